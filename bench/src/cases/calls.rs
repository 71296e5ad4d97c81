//! Calls through targets that stay open: round trips, throughput with many in flight, CPU time, and results of
//! several sizes.

use std::time::Duration;

use super::Run;
use crate::{
    processes::{cpu_nanoseconds, own_processes},
    session::{Budget, Session, SessionError},
    stats::percentile,
    store::Store,
    target::{Layout, Target},
    text::Text,
};

const PERCENTILES: [(&str, f64); 4] = [("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
/// How long a target may take for one part of a round.
const LIMIT: Duration = Duration::from_mins(1);

/// The measurements of calls.
struct Extent {
    /// How many calls are in flight.
    in_flight: &'static [usize],
    sizes: &'static [usize],
}

const ALL: Extent = Extent {
    in_flight: &[1, 16, 64, 256],
    sizes: &[1 << 10, 64 << 10, 1 << 20, 10 << 20],
};
/// There are so many pairs that each is measured by what it is judged by, and by one large result.
const OF_PAIRS: Extent = Extent {
    in_flight: &[64],
    sizes: &[1 << 20],
};

/// The sizes that the kinds of text are measured at, in KiB, with the least that is acceptable and the goal.
pub const TEXT_SIZES: [(usize, f64, f64); 3] =
    [(64, 2.6, 2.2), (1 << 10, 2.1, 1.7), (10 << 10, 1.8, 1.5)];

/// One part of a round.
type Part = fn(&mut Open, &mut Store, usize, Budget) -> Result<(), SessionError>;
const PARTS: [Part; 3] = [round_trips, throughput, sizes];

/// A target that is open.
struct Open {
    target: Target,
    session: Session,
    pids: Vec<u32>,
    extent: &'static Extent,
}

pub(super) fn run(run: &mut Run, targets: &[Target]) {
    measure(run, targets, &ALL, &PARTS);
}

pub(super) fn run_pairs(run: &mut Run, targets: &[Target]) {
    measure(run, targets, &OF_PAIRS, &PARTS);
}

pub(super) fn run_texts(run: &mut Run, targets: &[Target]) {
    measure(run, targets, &ALL, &[texts]);
}

/// The name of the figures of a kind of text.
pub fn text_case(kib: usize, text: Text) -> String {
    format!("result of {kib} KiB of {} p50, µs", text.name())
}

fn texts(
    it: &mut Open,
    store: &mut Store,
    round: usize,
    budget: Budget,
) -> Result<(), SessionError> {
    let budget = Budget {
        calls: 50,
        time: budget.time / 2,
    };
    for (kib, ..) in TEXT_SIZES {
        for text in Text::ALL {
            let times = it.session.sequential_of(kib << 10, text, budget)?;
            if let Some(value) = percentile(&times, 0.5) {
                store.put(&text_case(kib, text), it.target.name(), round, value);
            }
        }
    }
    Ok(())
}

fn measure(run: &mut Run, targets: &[Target], extent: &'static Extent, parts: &[Part]) {
    let mut open = Vec::new();
    for target in targets {
        if let Some(session) = run.ready(target, Layout::SMALL) {
            let pids = own_processes(session.pid());
            open.push(Open {
                target: *target,
                session,
                pids,
                extent,
            });
        }
    }
    let budget = run.plan.budget();
    for round in 0..run.plan.rounds {
        if run.is_late() {
            break;
        }
        for part in parts {
            open.retain_mut(|it| {
                it.session.limit(LIMIT);
                let result = part(it, &mut run.store, round, budget);
                let target = it.target;
                run.recorded(&target, "calls", result).is_some()
            });
        }
    }
}

fn round_trips(
    it: &mut Open,
    store: &mut Store,
    round: usize,
    budget: Budget,
) -> Result<(), SessionError> {
    // What the others did since has left the caches cold.
    let warm_up = Budget {
        time: budget.time / 5,
        calls: 100,
    };
    it.session.sequential(0, warm_up)?;
    let times = it.session.sequential(0, budget)?;
    for (name, part) in PERCENTILES {
        if let Some(value) = percentile(&times, part) {
            store.put(
                &format!("round trip {name}, µs"),
                it.target.name(),
                round,
                value,
            );
        }
    }
    Ok(())
}

fn throughput(
    it: &mut Open,
    store: &mut Store,
    round: usize,
    budget: Budget,
) -> Result<(), SessionError> {
    for &count in it.extent.in_flight {
        let budget = Budget {
            calls: usize::MAX,
            ..budget
        };
        let warm_up = Budget {
            calls: 2 * count,
            ..budget
        };
        it.session.in_flight(count, warm_up)?;
        let before = cpu_nanoseconds(&it.pids);
        let (calls, seconds) = it.session.in_flight(count, budget)?;
        let spent = cpu_nanoseconds(&it.pids) - before;
        #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
        let calls = calls as f64;
        let name = it.target.name();
        store.put(
            &format!("calls a second, {count} in flight"),
            name,
            round,
            calls / seconds,
        );
        store.put(
            &format!("CPU a call, {count} in flight, µs"),
            name,
            round,
            spent / calls / 1e3,
        );
    }
    Ok(())
}

fn sizes(
    it: &mut Open,
    store: &mut Store,
    round: usize,
    budget: Budget,
) -> Result<(), SessionError> {
    for &bytes in it.extent.sizes {
        let budget = Budget {
            calls: 200,
            ..budget
        };
        let times = it.session.sequential(bytes, budget)?;
        if let Some(value) = percentile(&times, 0.5) {
            let case = format!("result of {} KiB p50, µs", bytes >> 10);
            store.put(&case, it.target.name(), round, value);
        }
    }
    Ok(())
}
