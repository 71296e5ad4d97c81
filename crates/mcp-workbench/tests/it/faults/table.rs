//! The rows of the table, and their checks.

use std::time::{Duration, Instant};

use super::Bench;
use crate::harness::{Fault, Script, Setup};

pub(super) struct Row {
    /// Its number: F and T as in the fault table, others as docs/evidence/reliability.md says.
    pub(super) number: &'static str,
    pub(super) fault: &'static str,
    pub(super) outcome: &'static str,
    /// The longest time that it may take, with room for a busy machine.
    pub(super) bound: Duration,
    /// Adds the server `fs` to the toolbox `dev`.
    pub(super) faulty: fn(Setup) -> Setup,
    /// Makes it happen, checks the outcome, and gives the time that it took.
    pub(super) act: fn(&mut Bench) -> Duration,
    /// The behaviour of the next call of `fs`.
    pub(super) after: After,
}

/// The state after a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum After {
    /// The next call simply succeeds.
    Recovers,
    /// The next open starts the server, and a call succeeds.
    RecoversAtOpen,
    /// The fault is for good: a call says so and was not sent.
    StaysDown,
    /// The row has said all there is to say of `fs`.
    Either,
    /// The workbench itself has ended, in order and with code 0.
    Ended,
    /// The workbench was killed, or had to end at once.
    Killed,
}

/// Checks a row. Besides what the row says itself this holds for
/// each: `ok` answers afterwards, no request is answered twice, nothing panics, the workbench ends
/// with code 0 and leaves no process.
pub(super) fn check(row: &Row) {
    let fault = Fault::new(row.number, row.fault, row.outcome, row.bound);
    let setup = (row.faulty)(Setup::new().toolbox("dev", "d"));
    let setup = setup.server("ok", &Script::new());
    let mut bench = Bench::new(setup.connect());
    let took = (row.act)(&mut bench);
    bench.conclude(row.after);
    fault.took(took);
}

/// Runs something and gives the time that it took.
pub(super) fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Makes a test of each row. A row is a function, so that one that is not listed is unused.
macro_rules! faults {
    ($($row:ident),+ $(,)?) => {
        mod row {
            $(
                #[test]
                fn $row() {
                    $crate::faults::table::check(&super::$row());
                }
            )+
        }
    };
}

pub(super) use faults;
