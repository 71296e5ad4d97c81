//! Processes, looked at from outside through `/proc`.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The variable by which the processes of one test are known.
pub(crate) const MARK: &str = "WORKBENCH_TEST_MARK";

/// The processes that carry this mark in their environment. A zombie has no environment.
pub(crate) fn survivors(mark: &str) -> Vec<u32> {
    let needle = format!("{MARK}={mark}\0").into_bytes();
    let entries = fs::read_dir("/proc").expect("/proc is there");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .windows(needle.len())
            .any(|window| window == needle)
    })
    .collect()
}

/// Whether a process runs; a zombie does not.
pub(crate) fn alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with('Z')
}

/// Sends a signal; a process that has gone is no error.
pub(crate) fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _gone = kill_process(pid.expect("a process id"), signal);
}
