//! From the start of a process to its first answers.

use std::time::{Duration, Instant};

use super::Run;
use crate::{
    prepared::Prepared,
    session::{Session, SessionError},
    store::Store,
    target::{Layout, Target},
};

pub(super) fn run(run: &mut Run) {
    let mut targets = run.targets.clone();
    for round in 0..run.plan.starts {
        if run.is_late() {
            break;
        }
        targets.retain(|target| {
            let Some(prepared) = run.prepare(target, Layout::SMALL) else {
                return false;
            };
            let result = start(prepared, target, &mut run.store, round);
            run.recorded(target, "start", result).is_some()
        });
    }
}

fn start(
    prepared: Prepared,
    target: &Target,
    store: &mut Store,
    round: usize,
) -> Result<(), SessionError> {
    let began = Instant::now();
    let mut session = Session::spawn(prepared)?;
    session.initialize()?;
    let initialized = began.elapsed();
    session.open()?;
    session.first_call()?;
    let called = began.elapsed();
    let mut put = |case, time: Duration| {
        store.put(case, target.name(), round, time.as_secs_f64() * 1e3);
    };
    put("start to answer to initialize, ms", initialized);
    put("start to first good call, ms", called);
    Ok(())
}
