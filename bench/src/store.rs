//! The measurements: one value for each case, target and round. Ratios are computed within a round, so that a temporary
//! disturbance of the machine affects both sides of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::stats::Figure;

/// All values of a run.
#[derive(Debug, Default)]
pub struct Store {
    values: BTreeMap<(String, String), BTreeMap<usize, f64>>,
    failures: BTreeMap<String, BTreeSet<String>>,
}

/// One line of the results.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    pub case: &'a str,
    pub target: &'a str,
    pub figure: Figure,
    /// The values of the rounds, in their order.
    values: Vec<f64>,
}

impl Store {
    pub fn put(&mut self, case: &str, target: &str, round: usize, value: f64) {
        let key = (case.to_owned(), target.to_owned());
        self.values.entry(key).or_default().insert(round, value);
    }

    /// Notes that a target could not be measured, and why.
    pub fn fail(&mut self, target: &str, why: String) {
        let reasons = self.failures.entry(target.to_owned()).or_default();
        reasons.insert(why);
    }

    /// Returns the failures: the reasons of each target.
    pub fn failures(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.failures
    }

    /// The figure of a case for a target.
    pub fn figure(&self, case: &str, target: &str) -> Option<Figure> {
        let rounds = self.rounds(case, target)?;
        Figure::of(&rounds.values().copied().collect::<Vec<_>>())
    }

    /// Returns the ratio to the value of `base`, as the median of the rounds' ratios. Both are given as case and
    /// target.
    pub fn ratio(&self, over: (&str, &str), base: (&str, &str)) -> Option<Figure> {
        let over = self.rounds(over.0, over.1)?;
        let base = self.rounds(base.0, base.1)?;
        let both = over
            .iter()
            .filter_map(|(round, value)| Some((value, base.get(round)?)));
        let ratios: Vec<f64> = both.map(|(value, base)| value / base).collect();
        Figure::of(&ratios)
    }

    /// The cost that a target adds to the direct connection, in multiples of the cost that the relay adds, by the
    /// medians of the rounds. The baselines are the names of the direct connection and of the relay.
    pub fn hops(&self, case: &str, target: &str, baselines: (&str, &str)) -> Option<f64> {
        let median = |target| Some(self.figure(case, target)?.median);
        let direct = median(baselines.0)?;
        Some((median(target)? - direct) / (median(baselines.1)? - direct))
    }

    /// By how much the last value is above the second; the first is from before anything was done.
    pub fn growth(&self, case: &str, target: &str) -> Option<f64> {
        let rounds = self.rounds(case, target)?;
        let (_, last) = rounds.last_key_value()?;
        Some(last - rounds.values().nth(1)?)
    }

    /// Everything, in order.
    pub fn records(&self) -> Vec<Record<'_>> {
        let mut records = Vec::new();
        for ((case, target), rounds) in &self.values {
            let values: Vec<f64> = rounds.values().copied().collect();
            if let Some(figure) = Figure::of(&values) {
                records.push(Record {
                    case,
                    target,
                    figure,
                    values,
                });
            }
        }
        records
    }

    fn rounds(&self, case: &str, target: &str) -> Option<&BTreeMap<usize, f64>> {
        self.values.get(&(case.to_owned(), target.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_compares_within_a_round() {
        let mut store = Store::default();
        for (round, (direct, other)) in [(1.0, 2.0), (10.0, 30.0), (2.0, 8.0)]
            .into_iter()
            .enumerate()
        {
            store.put("p50", "direct", round, direct);
            store.put("p50", "other", round, other);
        }
        store.put("p50", "other", 3, 1000.0);
        let ratio = store.ratio(("p50", "other"), ("p50", "direct")).unwrap();
        assert_eq!((ratio.median, ratio.rounds), (3.0, 3));
        assert_eq!(store.ratio(("p50", "none"), ("p50", "direct")), None);
    }

    #[test]
    fn hops_are_multiples_of_what_the_relay_adds() {
        let mut store = Store::default();
        for (target, value) in [("direct", 10.0), ("relay", 15.0), ("other", 25.0)] {
            store.put("p10", target, 0, value);
        }
        assert_eq!(store.hops("p10", "other", ("direct", "relay")), Some(3.0));
    }
}
