//! The guard: a second process of this program, started with the first server, that waits for the end of its stdin.
//! The workbench holds the other end and never closes it, so the guard notices the end of the workbench, even by
//! SIGKILL. It then ends every group that was registered with it and every process that carries our marker.

use std::{
    collections::HashSet,
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

use super::sweep::{HeldProcess, QUIET_ROUNDS, everybody};
use crate::program_lookup::own_program;

/// The first argument that makes this program a guard. It is not a command for users.
pub(crate) const GUARD_ARGUMENT: &str = "guard-process-trees";

/// Grace period for process trees to exit after their stdin was closed.
const GRACE_PERIOD: Duration = Duration::from_secs(1);
/// How long the guard continues to kill while it still finds processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The line that ends the guard without killing anything.
const DISMISSED: &str = "dismissed";
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The workbench's handle of the guard.
pub(super) struct Guard {
    child: Child,
}

impl Guard {
    /// Starts a guard for the processes marked with `run` and for `groups`.
    pub(super) fn start(run: &str, groups: &[Pid]) -> io::Result<Self> {
        let child = Command::new(own_program()?)
            .args([GUARD_ARGUMENT, run])
            // Neither our group's signals nor another workbench's sweep may reach it.
            .process_group(0)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut guard = Self { child };
        for group in groups {
            guard.add(*group);
        }
        Ok(guard)
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns true if the guard runs; reaps it if it does not.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn add(&mut self, group: Pid) {
        self.tell('+', group);
    }

    pub(super) fn remove(&mut self, group: Pid) {
        self.tell('-', group);
    }

    /// Dismisses the guard after all processes have ended in order.
    pub(super) fn dismiss(&mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // A guard that has died needs no dismissal.
            let _ = writeln!(stdin, "{DISMISSED}");
        }
    }

    fn tell(&mut self, change: char, group: Pid) {
        if let Some(stdin) = &mut self.child.stdin {
            // A guard that has died is replaced at the next start of a server.
            let _ = writeln!(stdin, "{change}{}", group.as_raw_nonzero());
        }
    }
}

/// Runs the guard: reads its stdin to the end, then ends the remaining processes.
pub(crate) fn run(marker: &str) {
    let mut groups = HashSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        // Without this line the end of stdin means that the workbench was killed.
        if line == DISMISSED {
            return;
        }
        let Some((change, group)) = line.split_at_checked(1) else {
            continue;
        };
        let Ok(group) = group.parse::<i32>() else {
            continue;
        };
        match change {
            "+" => groups.insert(group),
            _ => groups.remove(&group),
        };
    }
    end_all(marker, &groups);
}

fn end_all(marker: &str, groups: &HashSet<i32>) {
    let began = Instant::now();
    // A process in one of our groups that started after this moment only got a reused id.
    let newest = clock_ticks();
    let mut asked = false;
    let mut quiet_looks = 0;
    while began.elapsed() < KILL_TIMEOUT {
        let left = survivors(marker, groups, newest);
        quiet_looks = if left.is_empty() { quiet_looks + 1 } else { 0 };
        if quiet_looks == QUIET_ROUNDS {
            return;
        }
        // Most servers exit by themselves when their stdin ends, or after SIGTERM.
        if began.elapsed() >= GRACE_PERIOD {
            left.iter().for_each(HeldProcess::kill);
        } else if !left.is_empty() && !std::mem::replace(&mut asked, true) {
            for found in &left {
                found.signal(Signal::TERM);
            }
        }
        pause();
    }
}

fn survivors(marker: &str, groups: &HashSet<i32>, newest: Option<u64>) -> Vec<HeldProcess> {
    let held = everybody().into_iter().filter_map(HeldProcess::hold);
    held.filter(|found| {
        // A process may have left its group, or cleared its environment, but hardly ever both.
        let grouped = found.group_and_start().is_some_and(|(group, start)| {
            groups.contains(&group) && newest.is_some_and(|newest| start <= newest)
        });
        grouped || found.carries(marker)
    })
    .collect()
}

/// Returns the uptime of the system in the unit of a process's start time.
fn clock_ticks() -> Option<u64> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = uptime.split_once(' ')?.0.split_once('.')?;
    // A start time counts hundredths of a second on every Linux that Rust supports.
    Some(seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the guard has no runtime: it is one thread that does nothing else"
)]
fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}
