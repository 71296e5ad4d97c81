//! The table of faults: each check that is a row of it says so here, wherever it stands.

use std::{
    fs::OpenOptions,
    io::Write,
    thread,
    time::{Duration, Instant},
};

/// The variable that names the file for the report; without it there is none.
const REPORT: &str = "WORKBENCH_FAULTS_REPORT";

/// A fault that is being checked. A check that does not come to [`Fault::ends`] has failed.
#[derive(Debug)]
pub(crate) struct Fault {
    number: String,
    what: String,
    outcome: String,
    bound: Duration,
    start: Instant,
    took: Option<Duration>,
}

impl Fault {
    /// Its number, what goes wrong, what is observed, and the longest time that it may take.
    pub(crate) fn new(number: &str, fault: &str, outcome: &str, bound: Duration) -> Self {
        Self {
            number: number.to_owned(),
            what: fault.to_owned(),
            outcome: outcome.to_owned(),
            bound,
            start: Instant::now(),
            took: None,
        }
    }

    /// The same with a bound in seconds.
    pub(crate) fn within(seconds: u64, number: &str, fault: &str, outcome: &str) -> Self {
        Self::new(number, fault, outcome, Duration::from_secs(seconds))
    }

    /// Starts the clock, after the preparation.
    pub(crate) fn begins(&mut self) {
        self.start = Instant::now();
    }

    /// Everything is as it must be, if it was in time.
    pub(crate) fn ends(self) {
        let took = self.start.elapsed();
        self.took(took);
    }

    /// The same, with a time that was measured elsewhere.
    pub(crate) fn took(mut self, took: Duration) {
        let bound = self.bound;
        assert!(took <= bound, "took {took:?}, the bound is {bound:?}");
        self.took = Some(took);
    }
}

/// Names the row of a failed test, and writes the line of the report.
impl Drop for Fault {
    #[expect(clippy::print_stderr, reason = "a failed test names its row")]
    fn drop(&mut self) {
        let took = match self.took {
            Some(took) => format!("{:.2} s", took.as_secs_f64()),
            None => "FAILED".to_owned(),
        };
        if thread::panicking() {
            eprintln!("fault {}: {}", self.number, self.what);
        }
        let Some((_, file)) = std::env::vars_os().find(|(name, _)| name == REPORT) else {
            return;
        };
        let bound = format!("{} s", self.bound.as_secs_f64());
        let line = [&self.number, &self.what, &self.outcome, &bound, &took];
        let line = line.map(String::as_str).join("\t") + "\n";
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            eprintln!("the report cannot be written: {error}");
        }
    }
}
