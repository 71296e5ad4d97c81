//! The rows that the workbench is judged by: what was measured, the least that is acceptable, and the goal.

use serde::Serialize;

use self::Measure::{Growth, Hops, Times, TimesOwn, Value};
use crate::store::Store;

/// One figure of a row.
#[derive(Debug, Clone, Copy)]
enum Measure {
    /// A value as it is.
    Value(&'static str),
    /// Times the value of another target in the same round.
    Times(&'static str, &'static str),
    /// Times the value of the same target in another case.
    TimesOwn(&'static str, &'static str),
    /// What is added to direct, in multiples of what the relay adds.
    Hops(&'static str),
    /// The difference between the last round and the second.
    Growth(&'static str),
}

/// A figure with its limits.
#[derive(Debug, Clone, Copy)]
struct Goal {
    what: &'static str,
    measure: Measure,
    at_least: f64,
    aim: f64,
    /// Whether more is better.
    more: bool,
}

const fn less(what: &'static str, measure: Measure, at_least: f64, aim: f64) -> Goal {
    Goal {
        what,
        measure,
        at_least,
        aim,
        more: false,
    }
}

const fn more(what: &'static str, measure: Measure, at_least: f64, aim: f64) -> Goal {
    Goal {
        what,
        measure,
        at_least,
        aim,
        more: true,
    }
}

/// Over pipes.
const GOALS: &[Goal] = &[
    less(
        "round trip p50, x direct",
        Times("round trip p50, µs", "direct"),
        4.3,
        3.5,
    ),
    less("round trip p10, hops", Hops("round trip p10, µs"), 2.0, 1.5),
    less(
        "round trip p99, x direct",
        Times("round trip p99, µs", "direct"),
        6.0,
        4.5,
    ),
    more(
        "throughput, 16 in flight, x direct",
        Times("calls a second, 16 in flight", "direct"),
        0.45,
        0.65,
    ),
    more(
        "throughput, 64 in flight, x direct",
        Times("calls a second, 64 in flight", "direct"),
        0.45,
        0.65,
    ),
    more(
        "throughput, 256 in flight, x direct",
        Times("calls a second, 256 in flight", "direct"),
        0.45,
        0.65,
    ),
    less(
        "CPU a call, 64 in flight, µs",
        Value("CPU a call, 64 in flight, µs"),
        10.0,
        5.0,
    ),
    less(
        "result of 64 KiB, x direct",
        Times("result of 64 KiB p50, µs", "direct"),
        3.5,
        2.5,
    ),
    less(
        "result of 1 MiB, x direct",
        Times("result of 1024 KiB p50, µs", "direct"),
        3.0,
        2.0,
    ),
    less(
        "result of 10 MiB, x direct",
        Times("result of 10240 KiB p50, µs", "direct"),
        2.5,
        1.6,
    ),
    less(
        "start to answer to initialize, x relay",
        Times("start to answer to initialize, ms", "relay"),
        2.0,
        1.2,
    ),
    less(
        "start to first good call, x direct",
        Times("start to first good call, ms", "direct"),
        4.0,
        2.5,
    ),
    less(
        "open 50 servers, x a client alone",
        Times("open 50 servers, ms", "direct"),
        2.0,
        1.4,
    ),
    less(
        "open 20 servers that take 200 ms, x a client alone",
        Times("open 20 servers that take 200 ms, ms", "direct"),
        1.3,
        1.1,
    ),
    less(
        "open 50 servers and 1,000 tools from the catalogue, ms",
        Value("open 50 servers and 1000 tools from the catalogue, ms"),
        10.0,
        5.0,
    ),
    less(
        "the same, x a client that starts them",
        Times(
            "open 50 servers and 1000 tools from the catalogue, ms",
            "direct",
        ),
        0.5,
        0.1,
    ),
    less(
        "open 5,000 tools, x a client alone",
        Times("open 5000 tools, ms", "direct"),
        4.0,
        2.0,
    ),
    less(
        "call p50 with 5,000 tools, x one small server",
        TimesOwn("call p50 with 5000 tools, µs", SMALL),
        1.15,
        1.05,
    ),
    less(
        "call p50 with 50 servers, x one small server",
        TimesOwn("call p50 with 50 servers, µs", SMALL),
        1.15,
        1.05,
    ),
    less("memory at rest, MB", Value("memory at rest, MB"), 8.0, 5.0),
    less(
        "memory with one server, MB",
        Value("memory one server, MB"),
        12.0,
        7.0,
    ),
    less(
        "memory with 50 servers, MB",
        Value("memory 50 servers, MB"),
        20.0,
        12.0,
    ),
    less(
        "memory with 5,000 tools, MB",
        Value("memory 5000 tools, MB"),
        30.0,
        20.0,
    ),
    less(
        "peak memory after results of 10 MiB, MB",
        Value("peak memory after results of 10 MiB, MB"),
        70.0,
        40.0,
    ),
    less(
        "growth over the calls, MB",
        Growth("memory over calls, MB"),
        0.5,
        0.5,
    ),
];

const SMALL: &str = "call p50 with one small server, µs";

/// What native mode is not judged by: it starts its servers before it answers `initialize`, since what it announces is
/// what they have.
const NOT_OF_NATIVE: [&str; 2] = [
    "start to answer to initialize, x relay",
    "memory at rest, MB",
];

/// Over HTTP.
const HTTP_GOALS: &[Goal] = &[
    less(
        "round trip p50, x direct",
        Times("round trip p50, µs", "direct-http"),
        2.2,
        1.8,
    ),
    more(
        "throughput, 64 in flight, x direct",
        Times("calls a second, 64 in flight", "direct-http"),
        0.6,
        0.8,
    ),
    // The same limits beside a relay that was at 1.58 x direct and let as many calls through as direct does.
    less(
        "round trip p50, x relay",
        Times("round trip p50, µs", "relay-http"),
        1.39,
        1.14,
    ),
    more(
        "throughput, 64 in flight, x relay",
        Times("calls a second, 64 in flight", "relay-http"),
        0.6,
        0.8,
    ),
    less(
        "CPU a call, 64 in flight, µs",
        Value("CPU a call, 64 in flight, µs"),
        f64::NAN,
        f64::NAN,
    ),
];

/// A row of the table.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub what: &'static str,
    /// For each column what was found.
    pub cells: Vec<Option<f64>>,
    /// The least that is acceptable.
    pub at_least: f64,
    /// What is aimed at.
    pub goal: f64,
    /// For each column whether the goal is reached.
    pub verdicts: Vec<Verdict>,
}

/// How a figure stands to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The goal is reached.
    Goal,
    /// What is acceptable is reached.
    Acceptable,
    /// Neither is.
    Missed,
    /// There is no figure or no limit.
    None,
}

impl Measure {
    fn of(self, store: &Store, target: &str) -> Option<f64> {
        let ratio = |case, base| Some(store.ratio((case, target), base)?.median);
        match self {
            Self::Value(case) => Some(store.figure(case, target)?.median),
            Self::Times(case, base) => ratio(case, (case, base)),
            Self::TimesOwn(case, base) => ratio(case, (base, target)),
            Self::Hops(case) => store.hops(case, target),
            Self::Growth(case) => store.growth(case, target),
        }
    }
}

impl Goal {
    fn row(&self, store: &Store, targets: &[&str]) -> Row {
        let cells: Vec<_> = targets
            .iter()
            .map(|it| self.measure.of(store, it))
            .collect();
        let verdicts = cells.iter().zip(targets);
        let verdicts = verdicts.map(|(cell, target)| self.verdict_of(target, *cell));
        let verdicts = verdicts.collect();
        Row {
            what: self.what,
            cells,
            at_least: self.at_least,
            goal: self.aim,
            verdicts,
        }
    }

    fn verdict_of(&self, target: &str, cell: Option<f64>) -> Verdict {
        if target == "native" && NOT_OF_NATIVE.contains(&self.what) {
            return Verdict::None;
        }
        self.verdict(cell)
    }

    fn verdict(&self, cell: Option<f64>) -> Verdict {
        let Some(value) = cell.filter(|_| !self.aim.is_nan()) else {
            return Verdict::None;
        };
        let reaches = |limit: f64| {
            if self.more {
                value >= limit
            } else {
                value <= limit
            }
        };
        match (reaches(self.aim), reaches(self.at_least)) {
            (true, _) => Verdict::Goal,
            (false, true) => Verdict::Acceptable,
            (false, false) => Verdict::Missed,
        }
    }
}

/// The rows for these targets.
pub fn rows(store: &Store, targets: &[&str]) -> Vec<Row> {
    GOALS.iter().map(|goal| goal.row(store, targets)).collect()
}

/// The rows for these targets over HTTP.
pub fn http_rows(store: &Store, targets: &[&str]) -> Vec<Row> {
    HTTP_GOALS
        .iter()
        .map(|goal| goal.row(store, targets))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged_by_its_direction() {
        let low = less("", Value(""), 4.0, 2.0);
        let high = more("", Value(""), 0.4, 0.6);
        let cases = [
            (low, 2.0, Verdict::Goal),
            (low, 3.0, Verdict::Acceptable),
            (low, 5.0, Verdict::Missed),
            (high, 0.7, Verdict::Goal),
            (high, 0.5, Verdict::Acceptable),
            (high, 0.1, Verdict::Missed),
        ];
        for (goal, value, expected) in cases {
            assert_eq!(goal.verdict(Some(value)), expected, "{value}");
        }
        assert_eq!(low.verdict(None), Verdict::None);
    }

    #[test]
    fn native_mode_is_not_judged_by_what_it_cannot_put_off() {
        for what in NOT_OF_NATIVE {
            let goal = GOALS.iter().find(|goal| goal.what == what).unwrap();
            assert_eq!(goal.verdict_of("native", Some(1000.0)), Verdict::None);
            assert_eq!(goal.verdict_of("workbench", Some(1000.0)), Verdict::Missed);
        }
    }
}
