//! The rows that the workbench is judged by: what was measured, the least that is acceptable, and the goal.

use serde::Serialize;

use self::Measure::{Growth, Hops, TimesDirect, TimesOwn, TimesRelay, Value};
use crate::{
    cases::calls::text_case,
    store::Store,
    target::{Kind, Target},
    text::Text,
};

/// One figure of a row.
#[derive(Debug, Clone, Copy)]
enum Measure {
    /// A value as it is.
    Value(&'static str),
    /// The ratio to the direct connection of the target in the same round.
    TimesDirect(&'static str),
    /// The ratio to the relay of the target in the same round.
    TimesRelay(&'static str),
    /// Times the value of the same target in another case.
    TimesOwn(&'static str, &'static str),
    /// The overhead over direct, in multiples of the relay's overhead.
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

/// A figure that nothing is judged by.
const fn figure(what: &'static str, measure: Measure) -> Goal {
    less(what, measure, f64::NAN, f64::NAN)
}

const ROUND_TRIP: &str = "round trip p50, µs";
const THROUGHPUT: &str = "calls a second, 64 in flight";
const CPU: &str = "CPU a call, 64 in flight, µs";

/// Calls over pipes, for every era pair.
const CALL_GOALS: &[Goal] = &[
    less(
        "round trip p50, x direct",
        TimesDirect(ROUND_TRIP),
        3.8,
        3.4,
    ),
    less("round trip p50, relay hops", Hops(ROUND_TRIP), 1.8, 1.5),
    more(
        "throughput, 64 in flight, x relay",
        TimesRelay(THROUGHPUT),
        0.75,
        0.85,
    ),
    less("CPU per call, 64 in flight, µs", Value(CPU), 2.5, 1.6),
];

/// Figures of the era pairs over pipes that nothing is judged by.
const PAIR_FIGURES: &[Goal] = &[
    figure(
        "throughput, 64 in flight, x direct",
        TimesDirect(THROUGHPUT),
    ),
    figure("round trip p50, µs", Value(ROUND_TRIP)),
    figure(
        "round trip p99, x direct",
        TimesDirect("round trip p99, µs"),
    ),
    figure(
        "result of 1 MiB, x direct",
        TimesDirect("result of 1024 KiB p50, µs"),
    ),
];

/// Over pipes, beside peers.
const GOALS: &[Goal] = &[
    figure(
        "round trip p99, x direct",
        TimesDirect("round trip p99, µs"),
    ),
    figure(
        "throughput, 64 in flight, x direct",
        TimesDirect(THROUGHPUT),
    ),
    less(
        "result of 64 KiB, x direct",
        TimesDirect("result of 64 KiB p50, µs"),
        3.5,
        2.5,
    ),
    less(
        "result of 1 MiB, x direct",
        TimesDirect("result of 1024 KiB p50, µs"),
        3.0,
        2.0,
    ),
    less(
        "result of 10 MiB, x direct",
        TimesDirect("result of 10240 KiB p50, µs"),
        2.5,
        1.6,
    ),
    less(
        "start to answer to initialize, x relay",
        TimesRelay("start to answer to initialize, ms"),
        2.0,
        1.2,
    ),
    less(
        "start to first good call, x direct",
        TimesDirect("start to first good call, ms"),
        4.0,
        2.5,
    ),
    less(
        "open 50 servers, x a client alone",
        TimesDirect("open 50 servers, ms"),
        2.0,
        1.4,
    ),
    less(
        "open 20 servers that take 200 ms, x a client alone",
        TimesDirect("open 20 servers that take 200 ms, ms"),
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
        TimesDirect("open 50 servers and 1000 tools from the catalogue, ms"),
        0.5,
        0.1,
    ),
    less(
        "open 5,000 tools, x a client alone",
        TimesDirect("open 5000 tools, ms"),
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
    less(
        "anonymous memory at rest, MB",
        Value("memory at rest, anonymous, MB"),
        1.0,
        1.0,
    ),
    less(
        "anonymous memory with one server, MB",
        Value("memory one server, anonymous, MB"),
        2.0,
        2.0,
    ),
    less(
        "anonymous memory with 5,000 tools, MB",
        Value("memory 5000 tools, anonymous, MB"),
        12.0,
        12.0,
    ),
    less(
        "proportional memory at rest, MB",
        Value("memory at rest, proportional, MB"),
        5.0,
        5.0,
    ),
    figure("resident memory at rest, MB", Value("memory at rest, MB")),
    figure(
        "resident memory with 50 servers, MB",
        Value("memory 50 servers, MB"),
    ),
    less(
        "peak memory after results of 10 MiB, MB",
        Value("peak memory after results of 10 MiB, MB"),
        25.0,
        25.0,
    ),
    less(
        "growth over the calls, MB",
        Growth("memory over calls, MB"),
        0.5,
        0.5,
    ),
];

const SMALL: &str = "call p50 with one small server, µs";

/// The goals that do not apply to native mode: it starts its servers before it responds to `initialize`, because it
/// announces their capabilities.
const NOT_OF_NATIVE: [&str; 3] = [
    "start to answer to initialize, x relay",
    "anonymous memory at rest, MB",
    "proportional memory at rest, MB",
];

/// With HTTP on one or both sides.
const HTTP_GOALS: &[Goal] = &[
    less("round trip p50, x relay", TimesRelay(ROUND_TRIP), 1.3, 1.1),
    more(
        "throughput, 64 in flight, x relay",
        TimesRelay(THROUGHPUT),
        0.9,
        1.0,
    ),
    less(
        "result of 1 MiB, x relay",
        TimesRelay("result of 1024 KiB p50, µs"),
        1.3,
        1.3,
    ),
    figure("round trip p50, x direct", TimesDirect(ROUND_TRIP)),
    figure(
        "throughput, 64 in flight, x direct",
        TimesDirect(THROUGHPUT),
    ),
    figure("CPU per call, 64 in flight, µs", Value(CPU)),
];

/// A row of the table.
#[derive(Debug, Serialize)]
pub struct Row {
    pub what: &'static str,
    /// For each column what was found.
    pub cells: Vec<Option<f64>>,
    /// The least that is acceptable.
    pub at_least: f64,
    pub goal: f64,
    /// For each column whether the goal is reached.
    pub verdicts: Vec<Verdict>,
}

/// The rank of a figure among its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    Goal,
    /// The acceptable limit is met.
    Acceptable,
    Missed,
    /// There is no figure or no limit.
    None,
}

impl Measure {
    fn of(self, store: &Store, target: &Target) -> Option<f64> {
        let name = target.name();
        let (direct, relay) = target.baselines();
        let ratio = |case, base| Some(store.ratio((case, name), base)?.median);
        match self {
            Self::Value(case) => Some(store.figure(case, name)?.median),
            Self::TimesDirect(case) => ratio(case, (case, direct)),
            Self::TimesRelay(case) => ratio(case, (case, relay)),
            Self::TimesOwn(case, base) => ratio(case, (base, name)),
            Self::Hops(case) => store.hops(case, name, (direct, relay)),
            Self::Growth(case) => store.growth(case, name),
        }
    }
}

impl Goal {
    fn row(&self, store: &Store, targets: &[Target]) -> Row {
        let cells = targets.iter().map(|it| self.measure.of(store, it));
        self.judged(cells.collect(), targets)
    }

    /// The row of figures that are there already.
    fn judged(&self, cells: Vec<Option<f64>>, targets: &[Target]) -> Row {
        let verdicts = cells
            .iter()
            .zip(targets)
            .map(|(cell, target)| self.verdict_of(target, *cell))
            .collect();
        Row {
            what: self.what,
            cells,
            at_least: self.at_least,
            goal: self.aim,
            verdicts,
        }
    }

    /// Judges a figure of the workbench; peers and baselines are not judged.
    fn verdict_of(&self, target: &Target, cell: Option<f64>) -> Verdict {
        let is_put_off = target.kind() == Kind::Native && NOT_OF_NATIVE.contains(&self.what);
        if is_put_off || !target.is_workbench() {
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

/// The rows for targets over pipes, beside peers.
pub fn rows(store: &Store, targets: &[Target]) -> Vec<Row> {
    rows_of(&[CALL_GOALS, GOALS], store, targets)
}

/// The rows for targets with HTTP.
pub fn http_rows(store: &Store, targets: &[Target]) -> Vec<Row> {
    rows_of(&[HTTP_GOALS], store, targets)
}

/// The rows for era pairs over pipes.
pub fn pair_rows(store: &Store, targets: &[Target]) -> Vec<Row> {
    rows_of(&[CALL_GOALS, PAIR_FIGURES], store, targets)
}

/// The rows for results of one size: one for each kind of text.
pub fn text_rows(
    store: &Store,
    targets: &[Target],
    (kib, at_least, aim): (usize, f64, f64),
) -> Vec<Row> {
    let row = |text: Text| {
        let case = text_case(kib, text);
        let cell = |target: &Target| {
            let direct = target.baselines().0;
            let ratio = store.ratio((&case, target.name()), (&case, direct))?;
            Some(ratio.median)
        };
        let cells: Vec<_> = targets.iter().map(cell).collect();
        let goal = less(text.name(), Value(""), at_least, aim);
        goal.judged(cells, targets)
    };
    Text::ALL.into_iter().map(row).collect()
}

fn rows_of(goals: &[&[Goal]], store: &Store, targets: &[Target]) -> Vec<Row> {
    let goals = goals.iter().copied().flatten();
    goals.map(|goal| goal.row(store, targets)).collect()
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
    fn native_mode_is_not_judged_by_work_it_cannot_defer() {
        for what in NOT_OF_NATIVE {
            let goal = GOALS.iter().find(|goal| goal.what == what).unwrap();
            let [_, relay, workbench, native] = Target::OWN;
            let verdicts = [relay, workbench, native].map(|it| goal.verdict_of(&it, Some(1000.0)));
            assert_eq!(verdicts, [Verdict::None, Verdict::Missed, Verdict::None]);
        }
    }
}
