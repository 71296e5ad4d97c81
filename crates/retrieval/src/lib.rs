//! The retrieval benchmark: sets of tools and queries, ranked by the product's own index and scored.

pub mod baseline;
pub mod measure;
pub mod places;
pub mod score;
pub mod set;

use mcp_workbench::search::{Index, Query};
use score::Scores;
use set::Set;

/// So many tools are ranked for each query; what stands behind counts for nothing.
pub const DEPTH: usize = 100;

/// The tools for a query, best first, as `server/tool`. Tools that were folded into a hit stand behind all hits.
pub fn ranked(index: &Index, query: &str) -> Vec<String> {
    let found = index.search(&Query {
        text: query,
        toolbox: None,
        limit: DEPTH,
    });
    let hits = found.hits.iter().map(|hit| &hit.tool);
    let alike = found.hits.iter().flat_map(|hit| &hit.alike);
    hits.chain(alike)
        .take(DEPTH)
        .map(|tool| format!("{}/{}", tool.server, tool.tool))
        .collect()
}

/// The average scores of a set.
pub fn scores(set: &Set, index: &Index) -> Scores {
    let questions = set.questions.iter();
    Scores::average(questions.map(|question| Scores::of(question, &ranked(index, &question.query))))
}
