//! The retrieval benchmark: sets of tools and queries, ranked by the product's own index and scored.

pub mod baseline;
pub mod floor;
pub mod measure;
pub mod places;
pub mod score;
pub mod set;

use std::iter;

use search::{Index, Query};

use score::Scores;
use set::Set;

/// The number of tools that are ranked for each query. Later ones do not count.
pub const DEPTH: usize = 100;

/// Returns the tools for a query, best first, by their ids in the set. Tools that were folded into a hit follow it,
/// because a reader of the hit reads their names too.
pub fn ranked(set: &Set, index: &Index, query: &str) -> Vec<String> {
    let found = index.search(&Query {
        text: query,
        toolbox: None,
        limit: DEPTH,
    });
    let hits = found.hits.iter();
    let tools = hits.flat_map(|hit| iter::once(&hit.tool).chain(&hit.alike));
    let mut ranked: Vec<String> = Vec::new();
    for id in tools.flat_map(|tool| set.ids(tool)) {
        if !ranked.contains(id) {
            ranked.push(id.clone());
        }
    }
    ranked.truncate(DEPTH);
    ranked
}

/// The average scores of a set.
pub fn scores(set: &Set, index: &Index) -> Scores {
    let questions = set.questions.iter();
    Scores::average(
        questions.map(|question| Scores::of(question, &ranked(set, index, &question.query))),
    )
}
