//! The floor of the search: how often a good match is refused, and how often a query that no tool answers is not.

use search::{Index, Query};

use crate::{
    ranked,
    score::Scores,
    set::{Question, Set},
};

/// So many tools are shown for a good match, and so many without one.
const SHOWN: usize = 5;
const NEAREST: usize = 3;

/// The errors of the floor on a set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Errors {
    /// Queries that one of the first five tools answers.
    pub answered: usize,
    /// How many of them have no good match: false negatives.
    pub refused: usize,
    /// The recall of all queries by the first five tools.
    pub recall: f64,
    /// The same where only three are shown without a good match.
    pub recall_shown: f64,
    /// Queries that no tool of the set answers.
    pub unanswered: usize,
    /// How many of them have hits, with a good match or without.
    pub found: usize,
    /// How many of them have a good match: false positives.
    pub accepted: usize,
}

/// Counts the errors on a set.
pub fn errors(set: &Set, index: &Index) -> Errors {
    let mut errors = Errors::default();
    let mut recall = Vec::new();
    let mut recall_shown = Vec::new();
    for question in &set.questions {
        let is_good = has_good_match(index, question);
        let mut tools = ranked(set, index, &question.query);
        tools.truncate(SHOWN);
        let whole = Scores::of(question, &tools);
        let is_answered = whole.reciprocal_rank > 0.0;
        errors.answered += usize::from(is_answered);
        errors.refused += usize::from(is_answered && !is_good);
        if !is_good {
            tools.truncate(NEAREST);
        }
        recall.push(whole);
        recall_shown.push(Scores::of(question, &tools));
    }
    errors.recall = Scores::average(recall).recall_at_5();
    errors.recall_shown = Scores::average(recall_shown).recall_at_5();
    errors.unanswered = set.unanswered.len();
    for question in &set.unanswered {
        errors.found += usize::from(!ranked(set, index, &question.query).is_empty());
        errors.accepted += usize::from(has_good_match(index, question));
    }
    errors
}

/// Returns true if the search has a good match for a query.
fn has_good_match(index: &Index, question: &Question) -> bool {
    let found = index.search(&Query {
        text: &question.query,
        toolbox: None,
        limit: SHOWN,
    });
    found.is_good
}
