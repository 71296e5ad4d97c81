//! Measures if a call costs more when there are more tools.

use std::time::Duration;

use super::Run;
use crate::{
    session::{Budget, Session},
    stats::percentile,
    target::{Layout, Target},
};

/// How long a target may take for one part of a round.
const LIMIT: Duration = Duration::from_mins(1);

const LAYOUTS: [(&str, Layout); 3] = [
    ("call p50 with one small server, µs", Layout::SMALL),
    (
        "call p50 with 5000 tools, µs",
        Layout {
            servers: 1,
            tools: 5000,
            start_delay: 0,
        },
    ),
    (
        "call p50 with 50 servers, µs",
        Layout {
            servers: 50,
            tools: 5,
            start_delay: 0,
        },
    ),
];

pub(super) fn run(run: &mut Run) {
    // All targets are open at once, so that their rounds can take turns.
    let mut open: Vec<(Target, &str, Session)> = Vec::new();
    for target in run.gateways() {
        for (case, layout) in LAYOUTS {
            if let Some(session) = run.ready(&target, layout) {
                open.push((target, case, session));
            }
        }
    }
    let budget = run.plan.budget();
    let warm_up = Budget {
        calls: 100,
        ..budget
    };
    for round in 0..run.plan.rounds {
        if run.is_late() {
            return;
        }
        open.retain_mut(|(target, case, session)| {
            session.limit(LIMIT);
            let result = session
                .sequential(0, warm_up)
                .and_then(|_| session.sequential(0, budget));
            let times = run.recorded(target, case, result);
            let median = times.and_then(|times| percentile(&times, 0.5));
            if let Some(value) = median {
                run.store.put(case, target.name(), round, value);
            }
            median.is_some()
        });
    }
}
