//! The report of a team under trouble.

use std::{fmt, path::PathBuf, time::Duration};

use super::{check::TeamViolation, history::TeamCall, trouble::TeamDeeds};

/// How many violations are shown one by one.
const SHOWN: usize = 50;

/// The figures and findings of a run.
#[derive(Debug)]
pub struct TeamReport {
    pub seed: u64,
    pub duration: Duration,
    pub tally: Tally,
    /// How many calls the servers ran.
    pub executed: usize,
    pub deeds: TeamDeeds,
    /// The longest wait for an outcome, in milliseconds after it was due.
    pub slowest: f64,
    pub violations: Vec<TeamViolation>,
    /// The folder of the run, if there are violations.
    pub kept: Option<PathBuf>,
}

/// The outcomes of all calls.
#[derive(Debug, Default)]
pub struct Tally {
    pub calls: usize,
    pub results: usize,
    /// Calls of which the workbench says that the outcome is unknown.
    pub unknown: usize,
    /// Other failures that the workbench reports.
    pub failed: usize,
    /// Calls whose request failed: the balancer says so, or the connection broke.
    pub broken: usize,
    /// Further pages of large results that were read, and that could not be.
    pub pages: usize,
    pub no_pages: usize,
}

impl Tally {
    pub(super) fn of(calls: &[TeamCall]) -> Self {
        let mut tally = Self {
            calls: calls.len(),
            ..Self::default()
        };
        for done in calls.iter().filter_map(|call| call.done.as_ref()) {
            if done.is_result() {
                tally.results += 1;
            } else if done.error.is_some() {
                tally.broken += 1;
            } else if done.outcome.as_deref() == Some("unknown") {
                tally.unknown += 1;
            } else {
                tally.failed += 1;
            }
            match done.page.as_deref() {
                Some("own") => tally.pages += 1,
                Some(_) => tally.no_pages += 1,
                None => {}
            }
        }
        tally
    }
}

impl TeamReport {
    fn count(&self, is: impl Fn(&TeamViolation) -> bool) -> usize {
        self.violations.iter().filter(|it| is(it)).count()
    }
}

impl fmt::Display for TeamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tally, deeds) = (&self.tally, &self.deeds);
        let mut row = |name: &str, value: String| writeln!(f, "{name:<24} {value}");
        row("seed", self.seed.to_string())?;
        row("duration", format!("{:.1} s", self.duration.as_secs_f64()))?;
        row("calls", tally.calls.to_string())?;
        row("results", tally.results.to_string())?;
        row("unknown", tally.unknown.to_string())?;
        row("failed", tally.failed.to_string())?;
        row("broken", tally.broken.to_string())?;
        row("executed", self.executed.to_string())?;
        row("further pages", tally.pages.to_string())?;
        row("further pages gone", tally.no_pages.to_string())?;
        row("replicas killed", deeds.kills.to_string())?;
        row("store restarted", deeds.store_restarts.to_string())?;
        row("store stopped", deeds.store_stops.to_string())?;
        row("rolling restarts", deeds.rolling_restarts.to_string())?;
        let lost = |it: &_| matches!(it, TeamViolation::LostSession { .. });
        let twice = |it: &_| matches!(it, TeamViolation::RanTwice { .. });
        let foreign = |it: &_| matches!(it, TeamViolation::Foreign { .. });
        row("lost sessions", self.count(lost).to_string())?;
        row("duplicated calls", self.count(twice).to_string())?;
        row("foreign answers", self.count(foreign).to_string())?;
        row("slowest outcome", format!("{:.0} ms", self.slowest))?;
        row("violations", self.violations.len().to_string())?;
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "seed {}: {violation}", self.seed)?;
        }
        match &self.kept {
            Some(kept) => writeln!(f, "logs in {}", kept.display()),
            None => Ok(()),
        }
    }
}
