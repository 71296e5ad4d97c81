//! Scores of a ranking, as `evaluate.py` of the sets counts them.

use std::ops::{AddAssign, Div};

use crate::set::Question;

/// How well one ranking, or the average of several, answers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scores {
    /// The share of needs that are met by the first 1, 3, 5 and 10 tools.
    pub recall: [f64; 4],
    /// 1 if the first tool meets a need, otherwise 0.
    pub hit: f64,
    /// 1 divided by the rank of the first tool that meets a need.
    pub reciprocal_rank: f64,
    /// How early each need is met, of the first ten tools.
    pub ndcg: f64,
}

/// Up to which rank recall is counted.
pub const DEPTHS: [usize; 4] = [1, 3, 5, 10];

impl Scores {
    /// Returns the scores of one ranking; all zero if nothing was needed.
    pub fn of(question: &Question, ranked: &[String]) -> Self {
        let groups = &question.groups;
        if groups.is_empty() {
            return Self::default();
        }
        let meets = |tool: &String| groups.iter().any(|group| group.contains(tool));
        let first = ranked.iter().take(100).position(meets);
        Self {
            recall: DEPTHS.map(|depth| {
                let top = &ranked[..depth.min(ranked.len())];
                let met = groups
                    .iter()
                    .filter(|group| top.iter().any(|tool| group.contains(tool)));
                share(met.count(), groups.len())
            }),
            hit: f64::from(u8::from(first == Some(0))),
            reciprocal_rank: first.map_or(0.0, |rank| share(1, rank + 1)),
            ndcg: ndcg(groups, ranked),
        }
    }

    /// The average of some scores.
    pub fn average(all: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        let mut count = 0;
        for scores in all {
            sum += scores;
            count += 1;
        }
        sum / f64::from(count.max(1))
    }

    /// The share of needs that the first five tools meet.
    pub fn recall_at_5(&self) -> f64 {
        self.recall[2]
    }
}

impl AddAssign for Scores {
    fn add_assign(&mut self, other: Self) {
        for (own, other) in self.recall.iter_mut().zip(other.recall) {
            *own += other;
        }
        self.hit += other.hit;
        self.reciprocal_rank += other.reciprocal_rank;
        self.ndcg += other.ndcg;
    }
}

impl Div<f64> for Scores {
    type Output = Self;

    fn div(self, by: f64) -> Self {
        Self {
            recall: self.recall.map(|recall| recall / by),
            hit: self.hit / by,
            reciprocal_rank: self.reciprocal_rank / by,
            ndcg: self.ndcg / by,
        }
    }
}

fn ndcg(groups: &[Vec<String>], ranked: &[String]) -> f64 {
    let mut left: Vec<&Vec<String>> = groups.iter().collect();
    let mut gained = 0.0;
    for (rank, tool) in ranked.iter().take(10).enumerate() {
        if let Some(at) = left.iter().position(|group| group.contains(tool)) {
            left.remove(at);
            gained += gain(rank);
        }
    }
    gained / (0..groups.len().min(10)).map(gain).sum::<f64>()
}

fn gain(rank: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    let rank = rank as f64;
    1.0 / (rank + 2.0).log2()
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
