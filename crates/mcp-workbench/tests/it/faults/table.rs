//! What a row is, how it is checked, and the report of a run.

use std::{
    fs::OpenOptions,
    io::Write,
    thread,
    time::{Duration, Instant},
};

use super::Bench;
use crate::harness::{Script, Setup};

/// The variable that names the file for the report; without it there is none.
const REPORT: &str = "WORKBENCH_FAULTS_REPORT";

/// One fault.
pub(super) struct Row {
    /// Its number: F and T as in the fault table, others as docs/reliability.md says.
    pub(super) number: &'static str,
    /// What goes wrong.
    pub(super) fault: &'static str,
    /// What is observed.
    pub(super) outcome: &'static str,
    /// The longest time that it may take, with room for a busy machine.
    pub(super) bound: Duration,
    /// Adds the server `fs` to the toolbox `dev`.
    pub(super) faulty: fn(Setup) -> Setup,
    /// Makes it happen, checks the outcome, and gives the time that it took.
    pub(super) act: fn(&mut Bench) -> Duration,
    /// What the next call of `fs` does.
    pub(super) after: After,
}

/// What comes after a fault.
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
    /// The workbench was killed, or had to end in haste.
    Killed,
}

/// Checks a row and gives the time that it took. Besides what the row says itself this holds for
/// each: `ok` answers afterwards, no request is answered twice, nothing panics, the workbench ends
/// with code 0 and leaves no process.
pub(super) fn check(row: &Row) -> Duration {
    let report = Report { row, took: None };
    let setup = (row.faulty)(Setup::new().toolbox("dev", "d"));
    let setup = setup.server("ok", &Script::new());
    let mut bench = Bench::new(setup.connect());
    let took = (row.act)(&mut bench);
    bench.conclude(row.after);
    assert!(
        took <= row.bound,
        "took {took:?}, the bound is {:?}",
        row.bound
    );
    let mut report = report;
    report.took = Some(took);
    took
}

/// Runs something and gives the time that it took.
pub(super) fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Names the row of a failed test, and writes the line of the report.
struct Report<'a> {
    row: &'a Row,
    took: Option<Duration>,
}

impl Drop for Report<'_> {
    #[expect(clippy::print_stderr, reason = "a failed test names its row")]
    fn drop(&mut self) {
        let row = self.row;
        let took = match self.took {
            Some(took) => format!("{:.2} s", took.as_secs_f64()),
            None => "FAILED".to_owned(),
        };
        if thread::panicking() {
            eprintln!("fault {}: {}", row.number, row.fault);
        }
        let Some((_, file)) = std::env::vars_os().find(|(name, _)| name == REPORT) else {
            return;
        };
        let bound = format!("{} s", row.bound.as_secs_f64());
        let line = [row.number, row.fault, row.outcome, &bound, &took].join("\t") + "\n";
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            eprintln!("the report cannot be written: {error}");
        }
    }
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
