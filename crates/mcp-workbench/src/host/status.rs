//! The description of a host for `ps`: its clients and its servers. It is part of the link, and every build reads that of every
//! other, so members are only added.

use std::{collections::HashMap, fs};

use serde::{Deserialize, Serialize};

use super::build::Build;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostStatus {
    pub(crate) pid: u32,
    pub(crate) build: Build,
    pub(crate) config: String,
    /// Set if it takes no new clients.
    #[serde(default)]
    pub(crate) draining: bool,
    pub(crate) uptime_seconds: u64,
    /// Its own memory, without that of the servers.
    #[serde(default)]
    pub(crate) memory_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) clients: Vec<ClientStatus>,
    #[serde(default)]
    pub(crate) servers: Vec<ServerStatus>,
}

/// A client of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientStatus {
    pub(crate) number: u64,
    /// The name that it reports, or the program that started its process.
    #[serde(default)]
    pub(crate) program: Option<String>,
    /// The process that waits.
    pub(crate) pid: u32,
    /// The folder in which it was started.
    pub(crate) folder: String,
    pub(crate) running: usize,
    pub(crate) uptime_seconds: u64,
}

/// A server of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerStatus {
    pub(crate) toolbox: String,
    pub(crate) server: String,
    /// `up`, `starting`, `resting` or `failed`.
    pub(crate) state: String,
    /// The process; absent for remote servers and while it does not run.
    #[serde(default)]
    pub(crate) pid: Option<u32>,
    /// The memory of its process and of all that it has started.
    #[serde(default)]
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) calls: u64,
    #[serde(default)]
    pub(crate) uptime_seconds: Option<u64>,
    /// The starts after the first.
    pub(crate) restarts: u64,
    /// The numbers of the clients that use it.
    #[serde(default)]
    pub(crate) clients: Vec<u64>,
    /// The reason why the clients of this server do not use another one of the same name; absent if there is only one.
    #[serde(default)]
    pub(crate) apart: Option<String>,
}

/// Returns the name of the program that started this process.
pub(super) fn parent_program() -> Option<String> {
    let parent = rustix::process::getppid()?;
    let name = fs::read_to_string(format!("/proc/{}/comm", parent.as_raw_nonzero())).ok()?;
    Some(name.trim_end().to_owned())
}

/// The memory of all processes, from one look at the system. Reads files.
pub(super) struct Memory {
    children: HashMap<u32, Vec<u32>>,
}

impl Memory {
    pub(super) fn look() -> Self {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Some(parent) = parent_of(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        Self { children }
    }

    /// Returns the memory of one process, its part of shared pages included.
    pub(super) fn of(pid: u32) -> Option<u64> {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = rollup.lines().find(|line| line.starts_with("Pss:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    }

    /// Returns the memory of a process and of all that it has started.
    pub(super) fn of_tree(&self, pid: u32) -> Option<u64> {
        let own = Self::of(pid)?;
        let mut total = own;
        let mut open = vec![pid];
        while let Some(parent) = open.pop() {
            for child in self.children.get(&parent).into_iter().flatten() {
                total += Self::of(*child).unwrap_or_default();
                open.push(*child);
            }
        }
        Some(total)
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    stat_field(pid, 1)?.parse().ok()
}

/// Returns whether a process runs or waits for a processor. Only Linux tells that.
pub(super) fn is_runnable(pid: u32) -> bool {
    stat_field(pid, 0).is_some_and(|state| state == "R")
}

/// Returns a field of `/proc/PID/stat`, counted from the state of the process.
fn stat_field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    Some(after.split_whitespace().nth(index)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_tree_has_the_memory_of_its_processes() {
        let pid = std::process::id();
        let own = Memory::of(pid).unwrap();
        assert!(own > 0);
        assert!(Memory::look().of_tree(pid).is_some());
        assert_eq!(Memory::look().of_tree(u32::MAX), None);
    }

    /// Returns the number of this thread, which is also that of a process with one thread.
    #[cfg(target_os = "linux")]
    fn own_thread() -> u32 {
        let path = fs::read_link("/proc/thread-self").unwrap();
        path.file_name().unwrap().to_str().unwrap().parse().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_runnable_while_it_runs() {
        assert!(is_runnable(own_thread()));
        assert!(!is_runnable(u32::MAX));
        let (blocked, waiting) = std::io::pipe().unwrap();
        let (sender, id) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            sender.send(own_thread()).unwrap();
            std::io::Read::read(&mut &blocked, &mut [0]).unwrap()
        });
        let blocked = id.recv().unwrap();
        while is_runnable(blocked) {
            std::thread::yield_now();
        }
        drop(waiting);
        assert_eq!(reader.join().unwrap(), 0);
    }
}
