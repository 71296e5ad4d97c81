//! The retrieval benchmark: sets of tools and queries, ranked by the product's own index and scored.

pub mod baseline;
pub mod measure;
pub mod places;
pub mod score;
pub mod set;

use std::iter;

use mcp_workbench::search::{Index, Query};
use score::Scores;
use set::Set;

/// So many tools are ranked for each query; what stands behind counts for nothing.
pub const DEPTH: usize = 100;

/// The tools for a query, best first, as `server/tool`. Tools that were folded into a hit stand right behind it: whoever
/// reads the hit reads their names too.
pub fn ranked(index: &Index, query: &str) -> Vec<String> {
    let found = index.search(&Query {
        text: query,
        toolbox: None,
        limit: DEPTH,
    });
    let hits = found.hits.iter();
    let tools = hits.flat_map(|hit| iter::once(&hit.tool).chain(&hit.alike));
    tools
        .take(DEPTH)
        .map(|tool| format!("{}/{}", tool.server, tool.tool))
        .collect()
}

/// The average scores of a set.
pub fn scores(set: &Set, index: &Index) -> Scores {
    let questions = set.questions.iter();
    Scores::average(questions.map(|question| Scores::of(question, &ranked(index, &question.query))))
}
