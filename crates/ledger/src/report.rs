//! The report of a run.

use std::{fmt, path::PathBuf, time::Duration};

use crate::{nemesis::Deeds, processes::Footprint, tally::Tally, violation::Violation};

/// How many violations are shown one by one.
const SHOWN: usize = 50;

/// The figures and findings of a run.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub duration: Duration,
    /// The number of pauses without faults in which everything was checked.
    pub rounds: u64,
    /// The counts of requests and responses.
    pub tally: Tally,
    /// How many calls the servers ran.
    pub executed: usize,
    pub deeds: Deeds,
    /// The longest wait for an answer.
    pub slowest: Duration,
    /// The resources of the workbench after the warm-up.
    pub start: Option<Footprint>,
    /// Its resources before its end, with the same servers running.
    pub end: Option<Footprint>,
    /// How long it took to end.
    pub ending: Option<Duration>,
    /// The violations that were found.
    pub violations: Vec<Violation>,
    /// The folder of the traces, if there are violations.
    pub traces: Option<PathBuf>,
}

impl Report {
    fn count(&self, is: impl Fn(&Violation) -> bool) -> usize {
        self.violations.iter().filter(|it| is(it)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        let mut row = |name: &str, value: String| writeln!(f, "{name:<16} {value}");
        row("seed", self.seed.to_string())?;
        row("duration", format!("{:.1} s", self.duration.as_secs_f64()))?;
        row("rounds", self.rounds.to_string())?;
        row("requests", tally.requests.to_string())?;
        row("calls", tally.calls.to_string())?;
        row("answered", tally.answered.to_string())?;
        row("results", tally.results.to_string())?;
        row("refused", tally.refused.to_string())?;
        row("unknown", tally.unknown.to_string())?;
        row("not sent", tally.not_sent.to_string())?;
        row("cancelled", tally.cancelled.to_string())?;
        row("progress", tally.progress.to_string())?;
        row("executed", self.executed.to_string())?;
        row("kills", self.deeds.kills.to_string())?;
        row("stops", self.deeds.stops.to_string())?;
        let lost = self.count(|it| matches!(it, Violation::Lost { .. } | Violation::Silent { .. }));
        let duplicated = self.count(|it| matches!(it, Violation::Duplicated { .. }));
        let misrouted = |it: &Violation| {
            matches!(
                it,
                Violation::Misrouted { .. } | Violation::ForeignResult { .. }
            )
        };
        let again = self.count(|it| matches!(it, Violation::ExecutedTwice { .. }));
        row("lost", lost.to_string())?;
        row("duplicated", duplicated.to_string())?;
        row("misrouted", self.count(misrouted).to_string())?;
        row("executed twice", again.to_string())?;
        row("slowest answer", format!("{} ms", self.slowest.as_millis()))?;
        if let (Some(start), Some(end)) = (self.start, self.end) {
            let change = |unit: &str, of: fn(Footprint) -> u64| {
                format!("{} -> {}{unit}", of(start), of(end))
            };
            row("memory", change(" KiB", |it| it.resident_kib))?;
            row("descriptors", change("", |it| it.descriptors))?;
            row("threads", change("", |it| it.threads))?;
        }
        match self.ending {
            Some(ending) => row("ended within", format!("{} ms", ending.as_millis()))?,
            None => row("ended within", "never".to_owned())?,
        }
        row("violations", self.violations.len().to_string())?;
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "seed {}: {violation}", self.seed)?;
        }
        match &self.traces {
            Some(traces) => writeln!(f, "traces in {}", traces.display()),
            None => Ok(()),
        }
    }
}
