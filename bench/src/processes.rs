//! The resources of the processes of a target: its own and those that it started, except the echo servers.

use std::{collections::BTreeMap, fs, path::Path};

/// The memory of the processes of a target, in units of 2^20 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Resident, added up over the processes.
    pub resident: f64,
    /// Resident, with what is shared between processes divided among them.
    pub proportional: f64,
    /// Private and written to, added up over the processes: what the machine really loses.
    pub anonymous: f64,
    /// The most that was ever resident, added up over the processes.
    pub peak: f64,
}

/// The program that does not count.
const ECHO: &str = "bench-echo";

/// How many echo servers a process has started.
pub fn echo_servers(pid: u32) -> usize {
    let own = children(pid).into_iter();
    let servers = own.filter(|child| {
        let program = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
        program.ends_with(ECHO)
    });
    servers.count()
}

/// The process and its descendants, without echo servers and theirs.
pub fn own_processes(pid: u32) -> Vec<u32> {
    let mut own = vec![pid];
    let mut next = 0;
    while let Some(&parent) = own.get(next) {
        next += 1;
        for child in children(parent) {
            let program = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
            if program.file_name() != Some(ECHO.as_ref()) {
                own.push(child);
            }
        }
    }
    own
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = lists.flat_map(|list| {
        let numbers = list.split_ascii_whitespace();
        numbers
            .filter_map(|number| number.parse().ok())
            .collect::<Vec<u32>>()
    });
    numbers.collect()
}

/// How many nanoseconds the threads of these processes that still run have run.
pub fn cpu_nanoseconds(pids: &[u32]) -> f64 {
    let of = |pid: &u32| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        tasks.filter_map(|task| run_time(&task.path())).sum::<f64>()
    };
    pids.iter().map(of).sum()
}

fn run_time(task: &Path) -> Option<f64> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the current memory of the processes.
pub fn memory(pids: &[u32]) -> Memory {
    let sum = |file: &str, key: &str| {
        let kilobytes = pids.iter().filter_map(|pid| field(*pid, file, key));
        kilobytes.sum::<f64>() / 1024.0
    };
    Memory {
        resident: sum("status", "VmRSS"),
        proportional: sum("smaps_rollup", "Pss"),
        anonymous: sum("smaps_rollup", "Anonymous"),
        peak: sum("status", "VmHWM"),
    }
}

fn field(pid: u32, file: &str, key: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let fields: BTreeMap<&str, &str> = text.lines().filter_map(|it| it.split_once(':')).collect();
    fields
        .get(key)?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}
