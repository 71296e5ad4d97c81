//! A whole run: start, warm-up, rounds of load under faults, end. Each round ends with a pause, in which every server
//! must respond again and everything is checked, so that a run of any length needs the memory of one round.
//!
//! A call to every server closes a round. A server starts its calls in order, so after that nothing of the round can
//! still run, and the execution journals are complete.

use std::{
    io, mem,
    path::PathBuf,
    time::{Duration, Instant},
};

use thiserror::Error;

use crate::{
    check::check,
    driver::{Driver, Limit, SILENCE, Stuck},
    nemesis::{Deeds, Nemesis},
    plan::Plan,
    processes::{self, Footprint, Seen},
    random::Random,
    report::Report,
    site::{Site, TOOLBOXES},
    tally::Tally,
    violation::Violation,
    waiting::poll_until,
    workbench::Workbench,
};

/// How many steps a round has, and the warm-up.
const ROUND_STEPS: u64 = 10_000;
const WARM_UP_STEPS: u64 = 500;

/// How long a server may take to respond after the faults have stopped. Kills during starts may have opened its
/// breaker, which takes a minute to close.
const ALIVE_WITHIN: Duration = Duration::from_secs(75);

/// How long descriptors and zombies of servers that were killed may last.
const TIDY_WITHIN: Duration = Duration::from_secs(5);

/// How long the workbench and its servers may take to end.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The number of log lines that are shown if a workbench does not start.
const SHOWN_LOG_LINES: usize = 20;

/// With so many violations a run is not worth going on with.
const ENOUGH: usize = 100;

#[derive(Debug, Clone)]
pub struct Options {
    /// Determines the calls and the faults.
    pub seed: u64,
    pub amount: Amount,
    pub servers: usize,
    /// The mean time between two faults.
    pub pace: Duration,
    pub workbench: PathBuf,
    /// The program of the servers.
    pub fixture_server: PathBuf,
}

#[derive(Debug, Clone, Copy)]
pub enum Amount {
    /// So many steps, most of which are calls.
    Steps(u64),
    Time(Duration),
}

/// A reason why a run has no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// The directory of the run cannot be used.
    #[error("the directory of the run cannot be used")]
    Site(#[source] io::Error),
    /// The workbench cannot be started.
    #[error("cannot start {0}")]
    Workbench(PathBuf, #[source] io::Error),
    /// The workbench did not start.
    #[error("the workbench did not start: {log}")]
    NotUp {
        #[source]
        stuck: Stuck,
        /// The last lines that it wrote to stderr.
        log: String,
    },
}

/// Runs everything, and returns the report.
pub fn run(options: &Options) -> Result<Report, RunError> {
    let begun = Instant::now();
    let site = Site::new(options.servers, &options.fixture_server).map_err(RunError::Site)?;
    let mut random = Random::new(options.seed);
    let plan = Plan::new(random.fork(), options.servers);
    let workbench = Workbench::start(&options.workbench, &site)
        .map_err(|error| RunError::Workbench(options.workbench.clone(), error))?;
    let mut run = Run {
        driver: Driver::new(workbench, plan),
        site,
        random,
        pace: options.pace,
        violations: Vec::new(),
        tally: Tally::default(),
        executed: 0,
        deeds: Deeds::default(),
    };
    run.begin()?;
    let start = run.warm_up();
    let rounds = match start {
        Some(start) => run.rounds(options.amount, begun, start)?,
        None => 0,
    };
    let end = run.footprint();
    let ending = run.end()?;
    Ok(Report {
        seed: options.seed,
        duration: begun.elapsed(),
        rounds,
        tally: run.tally,
        executed: run.executed,
        deeds: run.deeds,
        slowest: run.driver.slowest,
        start,
        end,
        ending,
        traces: (!run.violations.is_empty()).then(|| run.site.keep()),
        violations: run.violations,
    })
}

struct Run {
    driver: Driver,
    site: Site,
    random: Random,
    pace: Duration,
    violations: Vec<Violation>,
    tally: Tally,
    executed: usize,
    deeds: Deeds,
}

impl Run {
    fn begin(&mut self) -> Result<(), RunError> {
        let up = self.driver.begin(TOOLBOXES.len());
        up.map_err(|stuck| {
            let log = self.site.read_log().unwrap_or_default();
            let from = log.lines().count().saturating_sub(SHOWN_LOG_LINES);
            let log: Vec<&str> = log.lines().skip(from).collect();
            RunError::NotUp {
                stuck,
                log: log.join("\n"),
            }
        })
    }

    /// Makes some calls without faults. Returns the resources of the workbench, if it can go on.
    fn warm_up(&mut self) -> Option<Footprint> {
        let loaded = self.driver.load(Limit::Steps(WARM_UP_STEPS));
        let rested = loaded.and_then(|()| self.rest());
        self.can_go_on(rested).then(|| self.footprint())?
    }

    /// Rounds until it is enough; returns how many.
    fn rounds(
        &mut self,
        amount: Amount,
        begun: Instant,
        start: Footprint,
    ) -> Result<u64, RunError> {
        let mut rounds = 0;
        let mut steps_left = match amount {
            Amount::Steps(steps) => steps,
            Amount::Time(_) => u64::MAX,
        };
        while steps_left > 0 && self.violations.len() < ENOUGH {
            let steps = steps_left.min(ROUND_STEPS);
            steps_left -= steps;
            let limit = match amount {
                Amount::Steps(_) => Limit::Steps(steps),
                Amount::Time(time) if begun.elapsed() >= time => break,
                Amount::Time(time) => Limit::StepsUntil(steps, begun + time),
            };
            rounds += 1;
            let done = self.round(limit);
            if !self.can_go_on(done) {
                break;
            }
            self.look_for_leaks(start);
            self.close_books()?;
        }
        Ok(rounds)
    }

    fn round(&mut self, limit: Limit) -> Result<(), Stuck> {
        let nemesis = Nemesis::start(&self.site.mark, self.random.fork(), self.pace);
        let loaded = self.driver.load(limit);
        let deeds = nemesis.finish();
        self.deeds.kills += deeds.kills;
        self.deeds.stops += deeds.stops;
        loaded?;
        self.rest()
    }

    /// Returns true if the client is not stuck.
    fn can_go_on(&mut self, done: Result<(), Stuck>) -> bool {
        let Err(stuck) = done else {
            return true;
        };
        self.violations.push(match stuck {
            Stuck::Ended => Violation::EndedByItself,
            Stuck::Silent { awaited } => Violation::Silent {
                requests: awaited,
                silence: SILENCE,
            },
        });
        false
    }

    /// Waits for all responses, and calls every server once more.
    fn rest(&mut self) -> Result<(), Stuck> {
        self.driver.settle()?;
        for server in self.site.servers() {
            if !self.driver.is_alive(server, ALIVE_WITHIN)? {
                let within = ALIVE_WITHIN;
                self.violations.push(Violation::NotAlive { server, within });
            }
        }
        Ok(())
    }

    /// Checks the history since the last check.
    fn close_books(&mut self) -> Result<(), RunError> {
        let history = mem::take(&mut self.driver.history);
        let executions = self.site.take_executions().map_err(RunError::Site)?;
        self.tally += Tally::of(&history);
        self.executed += executions.len();
        self.violations.extend(check(&history, &executions));
        Ok(())
    }

    fn footprint(&self) -> Option<Footprint> {
        Footprint::of(self.driver.workbench.pid())
    }

    fn look_for_leaks(&mut self, start: Footprint) {
        let pid = self.driver.workbench.pid();
        let deadline = Instant::now() + TIDY_WITHIN;
        let descriptors = || Footprint::of(pid).map_or(0, |it| it.descriptors);
        let tidy = || descriptors() <= start.descriptors && processes::zombies(pid).is_empty();
        if poll_until(deadline, || tidy().then_some(())).is_some() {
            return;
        }
        let end = descriptors();
        if end > start.descriptors {
            let start = start.descriptors;
            self.violations.push(Violation::Descriptors { start, end });
        }
        let zombies = processes::zombies(pid);
        if !zombies.is_empty() {
            self.violations.push(Violation::Zombies(zombies));
        }
    }

    /// Ends stdin while calls run. Returns the time until all processes were gone.
    fn end(&mut self) -> Result<Option<Duration>, RunError> {
        let children = processes::children(self.driver.workbench.pid());
        let closed = Instant::now();
        let deadline = closed + END_WITHIN;
        // A workbench that has ended is already reported as a violation.
        let _ended = self.driver.send_last_requests();
        self.driver.workbench.close();
        self.driver.hear_out(deadline);
        let gone = match self.driver.workbench.wait_until(deadline) {
            None => {
                self.violations.push(Violation::EndedLate(END_WITHIN));
                None
            }
            Some(status) => {
                if !status.success() {
                    let status = status.to_string();
                    self.violations.push(Violation::EndedBadly(status));
                }
                self.await_gone(&children, deadline)
            }
        };
        self.look_for_panics()?;
        self.close_books()?;
        Ok(gone.map(|gone| gone - closed))
    }

    /// Waits until no process of the run is left; returns when that was.
    fn await_gone(&mut self, children: &[Seen], deadline: Instant) -> Option<Instant> {
        let left = || -> Vec<u32> {
            let children = children.iter().filter(|child| child.is_there());
            let mut left: Vec<u32> = children.map(|child| child.pid).collect();
            left.extend(self.site.mark.carriers());
            left
        };
        let gone = poll_until(deadline, || left().is_empty().then(Instant::now));
        if gone.is_none() {
            let left = left();
            self.violations.push(Violation::LeftBehind(left));
        }
        gone
    }

    fn look_for_panics(&mut self) -> Result<(), RunError> {
        let log = self.site.read_log().map_err(RunError::Site)?;
        let panics = log
            .lines()
            .filter(|line| line.contains("panicked"))
            .map(|line| Violation::Panicked(line.to_owned()));
        self.violations.extend(panics);
        Ok(())
    }
}
