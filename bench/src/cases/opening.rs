//! From the start of a process to the list of all tools of all servers behind it, beside a client that starts
//! all servers itself at once.

use std::time::Instant;

use super::Run;
use crate::{
    session::{INITIALIZE, Session, SessionError},
    target::{Layout, Target},
};

const fn layout(servers: usize, tools: usize, start_delay: u64) -> Layout {
    Layout {
        servers,
        tools,
        start_delay,
    }
}

const LAYOUTS: [(&str, Layout); 8] = [
    ("open 1 server, ms", layout(1, 5, 0)),
    ("open 10 servers, ms", layout(10, 5, 0)),
    ("open 50 servers, ms", layout(50, 5, 0)),
    ("open 20 servers that take 200 ms, ms", layout(20, 5, 200)),
    ("open 10 tools, ms", layout(1, 10, 0)),
    ("open 100 tools, ms", layout(1, 100, 0)),
    ("open 1000 tools, ms", layout(1, 1000, 0)),
    ("open 5000 tools, ms", layout(1, 5000, 0)),
];

pub(super) fn run(run: &mut Run) {
    for (case, layout) in LAYOUTS {
        let mut targets = run.gateways();
        // Opening many servers takes long for some; a third of the rounds says enough.
        for round in 0..run.plan.starts.div_ceil(2) {
            if run.is_late() {
                return;
            }
            let result = open_all(run, layout);
            if let Some(time) = run.recorded(&Target::DIRECT, case, result) {
                run.store.put(case, Target::DIRECT.name(), round, time);
            }
            targets.retain(|target| {
                let Some(prepared) = run.prepare(target, layout) else {
                    return false;
                };
                let began = Instant::now();
                let result = Session::spawn(prepared).and_then(|mut session| {
                    session.initialize()?;
                    session.open()?;
                    Ok(began.elapsed().as_secs_f64() * 1e3)
                });
                let time = run.recorded(target, case, result);
                if let Some(time) = time {
                    run.store.put(case, target.name(), round, time);
                }
                time.is_some()
            });
        }
    }
}

/// A client that starts all servers itself and asks all of them before it waits for any.
pub(super) fn open_all(run: &mut Run, layout: Layout) -> Result<f64, SessionError> {
    let mut prepared = Vec::new();
    for number in 0..layout.servers {
        prepared.push(Target::direct(&run.programs, number, layout)?);
    }
    let began = Instant::now();
    let mut sessions = Vec::new();
    for one in prepared {
        let mut session = Session::spawn(one)?;
        let id = session.begin("initialize", INITIALIZE)?;
        sessions.push((session, id));
    }
    for (session, id) in &mut sessions {
        session.finish(*id)?;
        session.initialized()?;
        *id = session.begin("tools/list", "{}")?;
    }
    for (session, id) in &mut sessions {
        session.finish(*id)?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
