//! The baseline scores, stored so that a regression is detected.

use serde::{Deserialize, Serialize};

use crate::{
    places,
    score::Scores,
    scores,
    set::{Set, SetError},
};

/// So much may be lost before it counts.
pub const TOLERANCE: f64 = 0.01;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    pub own: Reached,
    /// The macro average of the development sets.
    pub development: Reached,
}

/// The scores that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// The share of needs that the first five tools meet.
    #[serde(rename = "recall@5")]
    pub recall: f64,
    /// How early needs are met.
    #[serde(rename = "ndcg@10")]
    pub ndcg: f64,
}

impl Reached {
    /// Returns true if more than the tolerance of `before` is lost.
    pub fn falls_below(&self, before: &Self) -> bool {
        before.recall - self.recall > TOLERANCE || before.ndcg - self.ndcg > TOLERANCE
    }
}

impl From<Scores> for Reached {
    fn from(scores: Scores) -> Self {
        let rounded = |score: f64| (score * 10_000.0).round() / 10_000.0;
        Self {
            recall: rounded(scores.recall_at_5()),
            ndcg: rounded(scores.ndcg),
        }
    }
}

/// Returns the current scores on our own set.
pub fn own() -> Result<Reached, SetError> {
    let set = Set::read(&places::own_set())?;
    Ok(scores(&set, &set.index()).into())
}

/// Returns the current scores on the development sets, or `None` if they are absent.
pub fn development() -> Result<Option<Reached>, SetError> {
    let mut all = Vec::new();
    for folder in places::development_sets() {
        let set = Set::read(&folder)?;
        all.push(scores(&set, &set.index()));
    }
    Ok((!all.is_empty()).then(|| Scores::average(all).into()))
}
