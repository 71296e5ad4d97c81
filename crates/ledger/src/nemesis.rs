//! The nemesis: kills and stops servers at random moments while it runs. A stopped server continues after some hundred
//! milliseconds, and all do before the nemesis ends.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    processes::{Mark, MarkedProcess},
    random::Random,
};

/// How long a server is stopped.
const SHORTEST_STOP_MS: u64 = 50;
const LONGEST_STOP_MS: u64 = 400;

/// Running faults. Dropping it ends them too.
#[derive(Debug)]
pub(crate) struct Nemesis {
    alive: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<Deeds>>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Deeds {
    pub kills: u64,
    pub stops: u64,
}

struct Worker {
    mark: Mark,
    random: Random,
    /// The mean time between two deeds.
    pace: Duration,
    stopped: Vec<Stopped>,
    deeds: Deeds,
}

struct Stopped {
    process: MarkedProcess,
    until: Instant,
}

impl Nemesis {
    /// Starts the faults, with one every `pace` on average.
    pub(crate) fn start(mark: &Mark, random: Random, pace: Duration) -> Self {
        let worker = Worker {
            mark: mark.clone(),
            random,
            pace,
            stopped: Vec::new(),
            deeds: Deeds::default(),
        };
        let (alive, over) = mpsc::channel();
        Self {
            alive: Some(alive),
            thread: Some(thread::spawn(move || worker.run(&over))),
        }
    }

    /// Ends the faults, and returns their counts.
    pub(crate) fn finish(mut self) -> Deeds {
        self.end()
    }

    fn end(&mut self) -> Deeds {
        self.alive = None;
        let deeds = self.thread.take().map(JoinHandle::join);
        deeds.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Nemesis {
    fn drop(&mut self) {
        self.end();
    }
}

impl Worker {
    fn run(mut self, over: &mpsc::Receiver<()>) -> Deeds {
        let mut next = self.moment();
        loop {
            let ends = self.stopped.iter().map(|stopped| stopped.until);
            let wake = ends.fold(next, Instant::min);
            let left = wake.saturating_duration_since(Instant::now());
            // The sender is dropped at the end.
            if over.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                self.resume(|_| true);
                return self.deeds;
            }
            let now = Instant::now();
            self.resume(|stopped| stopped.until <= now);
            if next <= now {
                self.act();
                next = self.moment();
            }
        }
    }

    /// When the next deed is due: between now and twice the pace.
    fn moment(&mut self) -> Instant {
        let thousandths = u32::try_from(self.random.below(2000)).expect("a small number");
        Instant::now() + self.pace * thousandths / 1000
    }

    fn act(&mut self) {
        let mut servers = self.mark.carriers();
        // The system lists processes in any order. The seed decides which one is hit.
        servers.sort_unstable();
        if servers.is_empty() {
            return;
        }
        let victim = servers[self.random.index(servers.len())];
        let Some(process) = self.mark.hold(victim) else {
            return;
        };
        match self.random.below(10) {
            0..=5 => self.kill(&process),
            6..=8 => self.stop(process),
            _ => {
                process.signal(Signal::STOP);
                self.kill(&process);
            }
        }
    }

    fn kill(&mut self, process: &MarkedProcess) {
        self.deeds.kills += u64::from(process.signal(Signal::KILL));
    }

    fn stop(&mut self, process: MarkedProcess) {
        if process.signal(Signal::STOP) {
            self.deeds.stops += 1;
            let range = LONGEST_STOP_MS - SHORTEST_STOP_MS;
            let ms = SHORTEST_STOP_MS + self.random.below(range);
            let until = Instant::now() + Duration::from_millis(ms);
            self.stopped.push(Stopped { process, until });
        }
    }

    fn resume(&mut self, due: impl Fn(&Stopped) -> bool) {
        for stopped in self.stopped.extract_if(.., |stopped| due(stopped)) {
            stopped.process.signal(Signal::CONT);
        }
    }
}
