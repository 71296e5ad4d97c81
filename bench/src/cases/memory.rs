//! The memory of a target's own processes: before and after its servers are opened, after a large result, and over very
//! many calls.

use std::time::Duration;

use super::Run;
use crate::{
    prepared::Prepared,
    processes::{memory, own_processes},
    session::{Budget, Session, SessionError},
    store::Store,
    target::{Kind, Layout, Target},
};

const OPEN: [(&str, Layout); 3] = [
    ("one server", Layout::SMALL),
    (
        "50 servers",
        Layout {
            servers: 50,
            tools: 5,
            start_delay: 0,
        },
    ),
    (
        "5000 tools",
        Layout {
            servers: 1,
            tools: 5000,
            start_delay: 0,
        },
    ),
];
/// The number of memory samples during growth.
const STEPS: usize = 10;
const LIMIT: Duration = Duration::from_mins(5);

pub(super) fn run(run: &mut Run) {
    for target in run.targets.clone() {
        for (what, layout) in OPEN {
            if run.is_late() {
                return;
            }
            if layout.servers * layout.tools > 1 && !target.is_gateway() {
                continue;
            }
            let Some(prepared) = run.prepare(&target, layout) else {
                break;
            };
            let result = look(prepared, &target, what, &mut run.store);
            if run.recorded(&target, "memory", result).is_none() {
                break;
            }
        }
    }
}

fn look(
    prepared: Prepared,
    target: &Target,
    what: &str,
    store: &mut Store,
) -> Result<(), SessionError> {
    let mut session = Session::spawn(prepared)?;
    session.initialize()?;
    if what == "one server" {
        note(&session, target, "at rest", store);
    }
    session.open()?;
    session.first_call()?;
    note(&session, target, what, store);
    if what == "one server" {
        let few = Budget {
            time: Duration::from_secs(20),
            calls: 5,
        };
        session.sequential(10 << 20, few)?;
        let peak = memory(&own_processes(session.pid())).peak;
        store.put(
            "peak memory after results of 10 MiB, MB",
            target.name(),
            0,
            peak,
        );
    }
    Ok(())
}

fn note(session: &Session, target: &Target, what: &str, store: &mut Store) {
    let memory = memory(&own_processes(session.pid()));
    for (kind, value) in [
        ("", memory.resident),
        (", proportional", memory.proportional),
        (", anonymous", memory.anonymous),
    ] {
        store.put(&format!("memory {what}{kind}, MB"), target.name(), 0, value);
    }
}

/// How memory grows between a tenth of very many calls and all of them. Peers make as many as they can in their time.
pub(super) fn growth(run: &mut Run) {
    for target in run.targets.clone() {
        if run.is_late() {
            return;
        }
        let time = match target.kind() {
            Kind::Direct => continue,
            Kind::Peer(_) => run.plan.growth_slice,
            _ => LIMIT,
        };
        let calls = run.plan.growth_calls / STEPS;
        let Some(session) = run.ready(&target, Layout::SMALL) else {
            continue;
        };
        let result = grow(session, &target, Budget { time, calls }, &mut run.store);
        run.recorded(&target, "growth", result);
    }
}

fn grow(
    mut session: Session,
    target: &Target,
    step: Budget,
    store: &mut Store,
) -> Result<(), SessionError> {
    for round in 0..=STEPS {
        let pids = own_processes(session.pid());
        let resident = memory(&pids).resident;
        store.put("memory over calls, MB", target.name(), round, resident);
        if round < STEPS {
            session.limit(LIMIT);
            let (calls, _) = session.in_flight(64, step)?;
            #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
            store.put("calls for growth", target.name(), round, calls as f64);
        }
    }
    Ok(())
}
