//! Processes, looked at from outside through `/proc`.

use std::{collections::BTreeSet, fs};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

/// The variable by which the processes of one test are known.
pub(crate) const MARK: &str = "WORKBENCH_TEST_MARK";

/// The processes that carry this mark in their environment. A zombie has no environment.
pub(crate) fn survivors(mark: &str) -> Vec<u32> {
    let needle = format!("{MARK}={mark}\0").into_bytes();
    let pids = all_pids().filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .windows(needle.len())
            .any(|window| window == needle)
    });
    pids.collect()
}

/// Returns true if a thread of a process runs; a zombie does not. While a thread runs, the descriptors of the process
/// stay open, even if its first thread has ended.
pub(crate) fn alive(pid: u32) -> bool {
    let fields = stat(pid);
    let is_over = |state: &String| state == "Z" && fields.get(17).is_some_and(|it| it == "1");
    fields.first().is_some_and(|state| !is_over(state))
}

/// The children of a process that have ended and that it has not waited for.
pub(crate) fn zombies(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let pids = all_pids().filter(|pid| {
        let fields = stat(*pid);
        fields.first().is_some_and(|state| state == "Z") && fields.get(1) == Some(&parent)
    });
    pids.collect()
}

/// The processor time that a process has used, in ticks.
pub(crate) fn cpu_time(pid: u32) -> u64 {
    let fields = stat(pid);
    let ticks = fields.iter().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// The most memory that a process has had so far, in bytes.
pub(crate) fn memory_peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process that runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kibibytes: u64 = kibibytes.and_then(|it| it.parse().ok()).expect("a size");
    kibibytes * 1024
}

/// Lets a process open no further descriptor.
pub(crate) fn exhaust_descriptors(pid: u32) {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process that runs");
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
    let numbers: BTreeSet<u64> = numbers.collect();
    let in_order = numbers.iter().zip(0_u64..);
    let dense = in_order.take_while(|(number, place)| *number == place);
    let lowest_free = dense.count();
    limit_descriptors(pid, u64::try_from(lowest_free).expect("a small number"));
}

/// Lets a process have descriptors below this number.
pub(crate) fn limit_descriptors(pid: u32, end: u64) {
    let limit = Rlimit {
        current: Some(end),
        maximum: Some(4096),
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::Nofile, limit).expect("the limit of a child can be set");
}

/// Returns the fields of a process in `/proc`, from its state on; empty if the process does not exist.
fn stat(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split_whitespace().map(str::to_owned).collect()
}

fn all_pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
}

/// Sends a signal; a process that has gone is no error.
pub(crate) fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _gone = kill_process(pid.expect("a process id"), signal);
}
