//! The scores that were reached once, written down so that a change that loses them is seen.

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

/// What counts of some scores.
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
    /// Whether more than the tolerance of `before` is lost.
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

/// What is reached on our own set now.
pub fn own() -> Result<Reached, SetError> {
    let set = Set::read(&places::own_set())?;
    Ok(scores(&set, &set.index()).into())
}

/// What is reached on the development sets now; `None` where they are not there.
pub fn development() -> Result<Option<Reached>, SetError> {
    let mut all = Vec::new();
    for folder in places::development_sets() {
        let set = Set::read(&folder)?;
        all.push(scores(&set, &set.index()));
    }
    Ok((!all.is_empty()).then(|| Scores::average(all).into()))
}
