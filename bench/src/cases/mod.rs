//! The cases, each of which goes over its targets in rounds. A target that fails is recorded and left out of the rest of
//! the case; the others go on.

pub mod calls;
mod catalogue;
mod from_cache;
mod memory;
mod opening;
mod starting;

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use crate::{
    prepared::Prepared,
    session::{Budget, Session, SessionError},
    store::Store,
    target::{Layout, Programs, Target},
};

#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many rounds of calls.
    pub rounds: usize,
    /// How many rounds of starts.
    pub starts: usize,
    /// For how long calls are made to one target in one round.
    pub slice: Duration,
    /// The number of calls over which growth is measured.
    pub growth_calls: usize,
    /// For how long a peer makes a tenth of them: it may not get to the end.
    pub growth_slice: Duration,
}

impl Plan {
    pub const QUICK: Self = Self {
        rounds: 7,
        starts: 7,
        slice: Duration::from_millis(60),
        growth_calls: 100_000,
        growth_slice: Duration::from_secs(1),
    };
    /// As the published figures are made.
    pub const FULL: Self = Self {
        rounds: 15,
        starts: 11,
        slice: Duration::from_millis(100),
        growth_calls: 1_000_000,
        growth_slice: Duration::from_secs(4),
    };

    fn budget(&self) -> Budget {
        Budget {
            time: self.slice,
            calls: 4_000,
        }
    }
}

/// A run: what is measured, and what was found.
pub struct Run {
    pub programs: Programs,
    pub plan: Plan,
    /// The targets that are compared over pipes.
    pub targets: Vec<Target>,
    /// The targets that are compared over HTTP.
    pub http_targets: Vec<Target>,
    /// The era pairs over pipes.
    pub pairs: Vec<Target>,
    /// The era pairs over HTTP.
    pub http_pairs: Vec<Target>,
    /// After this no further round begins.
    pub deadline: Instant,
    pub store: Store,
}

/// The names of the cases, in the order in which they run.
pub const CASES: &[&str] = &[
    "pairs",
    "texts",
    "calls",
    "http",
    "start",
    "catalogue",
    "memory",
    "growth",
    "recall",
    "open",
];

impl Run {
    pub fn case(&mut self, name: &str) {
        // A reader that has gone away misses the progress.
        let _ = writeln!(io::stderr(), "bench: {name}");
        match name {
            "pairs" => {
                calls::run_pairs(self, &self.pairs.clone());
                calls::run_pairs(self, &self.http_pairs.clone());
            }
            "texts" => calls::run_texts(self, &self.text_targets()),
            "calls" => calls::run(self, &self.targets.clone()),
            "http" => calls::run(self, &self.http_targets.clone()),
            "start" => starting::run(self),
            "recall" => from_cache::run(self),
            "open" => opening::run(self),
            "catalogue" => catalogue::run(self),
            "memory" => memory::run(self),
            "growth" => memory::growth(self),
            _ => {}
        }
    }

    /// All targets of all cases.
    pub fn all_targets(&self) -> impl Iterator<Item = &Target> {
        let calls = self.targets.iter().chain(&self.http_targets);
        self.pairs.iter().chain(&self.http_pairs).chain(calls)
    }

    /// Returns the targets that are measured with every kind of text: the plain era pairs, and peers with the workbench
    /// beside them.
    pub fn text_targets(&self) -> Vec<Target> {
        text_targets(&self.pairs, &self.targets)
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    fn gateways(&self) -> Vec<Target> {
        let targets = self.targets.iter();
        targets.filter(|it| it.is_gateway()).copied().collect()
    }

    fn prepare(&mut self, target: &Target, layout: Layout) -> Option<Prepared> {
        match target.prepare(&self.programs, layout) {
            Ok(prepared) => Some(prepared),
            Err(error) => {
                self.store.fail(target.name(), error.to_string());
                None
            }
        }
    }

    /// Starts a target and makes it ready for calls.
    fn ready(&mut self, target: &Target, layout: Layout) -> Option<Session> {
        let prepared = self.prepare(target, layout)?;
        self.recorded(target, "start", Session::ready(prepared))
    }

    /// Records a failure; the case continues without the target.
    fn recorded<T>(
        &mut self,
        target: &Target,
        what: &str,
        result: Result<T, SessionError>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let why = format!("{what}: {error}");
                let _ = writeln!(io::stderr(), "bench: {}: {why}", target.name());
                self.store.fail(target.name(), why);
                None
            }
        }
    }
}

/// Returns the plain pairs and the plain other targets. Baselines alone say nothing. Without peers the workbench beside
/// them is measured only if no pair is: it would be a pair again.
fn text_targets(pairs: &[Target], beside: &[Target]) -> Vec<Target> {
    let plain = |targets: &[Target]| -> Vec<Target> {
        let targets = targets.iter().filter(|it| it.is_plain());
        targets.copied().collect()
    };
    let (mut measured, beside) = (plain(pairs), plain(beside));
    if measured.iter().all(Target::is_baseline) {
        measured.clear();
    }
    let has_peers = beside.iter().any(|it| it.package().is_some());
    if has_peers || measured.is_empty() {
        measured.extend(beside);
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pairs, peers::PEERS};

    #[test]
    fn texts_are_measured_with_what_was_asked_for() {
        let [direct, relay, workbench, native] = Target::OWN;
        let own = [direct, relay, workbench, native];
        let peer = Target::peer(&PEERS[0]);
        let names = |pairs: &[Target], beside: &[Target]| {
            let targets = text_targets(pairs, beside);
            targets.iter().map(Target::name).collect::<Vec<_>>()
        };
        let plain_pairs = names(&pairs::STDIO, &[]);
        assert_eq!(plain_pairs.len(), 8, "four pairs and their baselines");
        assert_eq!(names(&pairs::STDIO, &own), plain_pairs);
        let beside = ["direct", "relay", "workbench", peer.name()];
        let compared = [direct, relay, workbench, native, peer];
        let all = [&plain_pairs[..], &beside].concat();
        assert_eq!(names(&pairs::STDIO, &compared), all);
        assert_eq!(names(&pairs::STDIO[..4], &compared), beside);
        assert_eq!(names(&pairs::STDIO[..4], &own), beside[..3]);
    }
}
