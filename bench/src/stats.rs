//! Figures out of samples: percentiles within a round, medians and spreads over the rounds.

use serde::Serialize;

/// The value below which `part` of the samples lie (nearest rank). Nothing without samples.
pub fn percentile(samples: &[f64], part: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a rank is small and not negative"
    )]
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The statistics of one figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The median of the rounds.
    pub median: f64,
    /// A quarter of the rounds were at most this.
    pub low: f64,
    /// A quarter of the rounds were at least this.
    pub high: f64,
    /// How many rounds there were.
    pub rounds: usize,
}

impl Figure {
    /// The figure of these rounds; nothing without rounds.
    pub fn of(rounds: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(rounds)?,
            low: percentile(rounds, 0.25)?,
            high: percentile(rounds, 0.75)?,
            rounds: rounds.len(),
        })
    }
}

/// The middle of the samples, or the middle between the two middle ones.
fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    Some(f64::midpoint(high, sorted[sorted.len() / 2 - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (part, expected) in [(0.1, 10.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert_eq!(percentile(&samples, part), Some(expected), "{part}");
        }
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_figure_has_the_median_and_the_quartiles() {
        let figure = Figure::of(&[4.0, 1.0, 3.0, 2.0]);
        let expected = Figure {
            median: 2.5,
            low: 1.0,
            high: 3.0,
            rounds: 4,
        };
        assert_eq!(figure, Some(expected));
        assert_eq!(Figure::of(&[]), None);
    }
}
