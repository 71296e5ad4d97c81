//! Opening a toolbox from the catalogue on disk, in a process that has just been started, beside a client that starts
//! all servers itself.

use std::time::Instant;

use super::{Run, opening::open_all};
use crate::{
    prepared::Prepared,
    processes::echo_servers,
    session::{Session, SessionError},
    target::{Layout, Target},
};

const LAYOUT: Layout = Layout {
    servers: 50,
    tools: 20,
    start_delay: 0,
};

/// From the request for the toolbox to all tools.
const OPEN: &str = "open 50 servers and 1000 tools from the catalogue, ms";
/// From the start of the process to all tools.
const START: &str = "start to 50 servers and 1000 tools from the catalogue, ms";

pub(super) fn run(run: &mut Run) {
    if !run.targets.contains(&Target::WORKBENCH) {
        return;
    }
    for round in 0..run.plan.starts {
        if run.is_late() {
            return;
        }
        let alone = open_all(run, LAYOUT);
        let prepared = Target::from_cache(&run.programs, LAYOUT);
        let cached = prepared
            .map_err(SessionError::from)
            .and_then(open_from_cache);
        let alone = run.recorded(&Target::DIRECT, OPEN, alone);
        let cached = run.recorded(&Target::WORKBENCH, OPEN, cached);
        let (Some(alone), Some((open, start))) = (alone, cached) else {
            return;
        };
        for (case, time) in [(OPEN, open), (START, start)] {
            run.store.put(case, Target::DIRECT.name(), round, alone);
            run.store.put(case, Target::WORKBENCH.name(), round, time);
        }
    }
}

/// How long the open takes, by itself and from the start of the process on.
fn open_from_cache(prepared: Prepared) -> Result<(f64, f64), SessionError> {
    let started = Instant::now();
    let mut session = Session::spawn(prepared)?;
    session.initialize()?;
    let began = Instant::now();
    session.open()?;
    let (open, start) = (began.elapsed(), started.elapsed());
    // A server that runs would mean that the tools did not come from the disk.
    match echo_servers(session.pid()) {
        0 => Ok((open.as_secs_f64() * 1e3, start.as_secs_f64() * 1e3)),
        running => Err(SessionError::Unexpected(format!("{running} servers run"))),
    }
}
