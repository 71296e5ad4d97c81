//! Process trees on Linux. The state of a server's leader is checked whenever a child exits. The leader is not reaped
//! before its group was killed: until then the kernel reserves its id, so the group's id cannot belong to other
//! processes.

use std::{
    collections::HashSet,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    os::unix::process::CommandExt,
    pin::Pin,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, kill_process_group,
    prlimit, set_child_subreaper, setrlimit, waitid,
};
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};
use tokio_util::task::TaskTracker;

use super::{
    Exit, Spawned, end,
    guard::Guard,
    sweep::{HeldProcess, MARKER_VARIABLE, QUIET_ROUNDS, children},
};
use crate::{rare::Rare, sync::lock};

/// Upper bound on the rounds of a sweep, and the pause between two rounds.
const MAX_SWEEP_ROUNDS: u32 = 100;
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// All processes of this workbench.
pub(crate) struct ProcessTable {
    /// Random, so that two workbenches never mistake each other's processes for their own.
    run: String,
    tasks: TaskTracker,
    /// Changes whenever a child exits.
    child_ended: watch::Sender<()>,
    /// The time at which the shutdown of the workbench began.
    closing_since: OnceLock<Instant>,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    started: u64,
    /// The children that are servers or the guard; all others are adopted.
    known: HashSet<Pid>,
    guard: Option<Guard>,
    watching: bool,
    /// The limit on open files before it was raised.
    files_limit: Option<Rlimit>,
}

impl ProcessTable {
    /// Creates an empty table that runs its work on `tasks`.
    pub(crate) fn new(tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self {
            run: random_word(),
            tasks,
            child_ended: watch::channel(()).0,
            closing_since: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    pub(super) fn spawn(self: &Arc<Self>, mut command: Command) -> io::Result<Spawned> {
        // Before the first child exists, or its exit could be missed.
        self.prepare()?;
        let marker = {
            let mut state = self.state();
            state.started += 1;
            // The trailing dot keeps the marker of server 1 from matching that of server 10.
            format!("{}.{}.", self.run, state.started)
        };
        let mut child = command
            .env(MARKER_VARIABLE, &marker)
            // A group of its own, so that one signal reaches the server and its children.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = Pid::from_child(&child);
        let mut state = self.state();
        state.known.insert(pid);
        if let Some(limit) = state.files_limit {
            // A server gets the limit that it would have without the workbench.
            let _ = prlimit(Some(pid), Resource::Nofile, limit);
        }
        if let Some(guard) = &mut state.guard {
            // From here on the group ends even if the workbench is killed.
            guard.add(pid);
        }
        drop(state);
        let pipes = take_pipes(&mut child);
        let process = Process {
            child_ended: self.child_ended.subscribe(),
            may_have_ended: true,
            next_end: None,
            child,
            pid,
            marker,
            table: Arc::clone(self),
        };
        match pipes {
            Ok((stdin, stdout, stderr)) => Ok(Spawned {
                process,
                stdin,
                stdout,
                stderr,
            }),
            Err(error) => {
                // The process runs, although its pipes cannot be used.
                self.retire(process, Instant::now());
                Err(error)
            }
        }
    }

    /// Records a child that its owner reaps, so that it is not taken for an adopted one.
    pub(super) fn keep(&self, pid: Option<Pid>) {
        self.state().known.extend(pid);
    }

    /// Forgets a child that [`keep`](Self::keep) has recorded.
    pub(super) fn release(&self, pid: Option<Pid>) {
        if let Some(pid) = pid {
            self.state().known.remove(&pid);
        }
    }

    /// Ends a process whose stdin was closed at `closed_at`, in a task of its own.
    pub(crate) fn retire(self: &Arc<Self>, process: Process, closed_at: Instant) {
        let closing = self.closing_since.get().copied();
        // During the shutdown all deadlines count from its beginning, so that everything is gone within 5 s.
        let closed_at = closing.map_or(closed_at, |closing| closing.min(closed_at));
        self.tasks.spawn(end(process, closed_at));
    }

    /// Counts the deadline of every process from `since` at the latest.
    pub(crate) fn closing_since(&self, since: Instant) {
        let _ = self.closing_since.set(since);
    }

    /// Kills the remaining processes of all trees, after all servers have ended.
    pub(crate) async fn sweep_all(&self) {
        self.kill_leaders();
        self.sweep(None).await;
        let (guard, all_ended) = {
            let mut state = self.state();
            // The guard itself is one of them.
            (state.guard.take(), state.known.len() <= 1)
        };
        let Some(mut guard) = guard else { return };
        if !all_ended {
            // The guard acts when the workbench ends, so it kills what is left.
            return;
        }
        guard.dismiss();
        for _ in 0..MAX_SWEEP_ROUNDS {
            if !guard.is_alive() {
                return;
            }
            tokio::time::sleep(SWEEP_PAUSE).await;
        }
    }

    /// Kills the groups of leaders that were not reaped in time. Their ids still belong to them.
    fn kill_leaders(&self) {
        let state = self.state();
        let guard = state.guard.as_ref().map(Guard::pid);
        for leader in state.known.iter().filter(|pid| Some(**pid) != guard) {
            // An error means that nothing is left that could be killed.
            let _ = kill_process_group(*leader, Signal::KILL);
        }
    }

    /// Prepares for the first server: makes orphans children of the workbench, reaps them, and starts the guard.
    fn prepare(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.state();
        if !state.watching {
            // A process that leaves its group becomes our child when its parent exits, and can be found.
            if let Err(error) = set_child_subreaper(Some(getpid())) {
                tracing::warn!("cannot track processes that leave their process group: {error}");
            }
            self.watch_children()?;
            state.files_limit = Some(raise_files_limit());
            state.watching = true;
        }
        // Somebody may have killed the guard; the new one gets all groups.
        if state.guard.as_mut().is_none_or(|guard| !guard.is_alive()) {
            if let Some(dead) = state.guard.take() {
                state.known.remove(&dead.pid());
            }
            let groups: Vec<Pid> = state.known.iter().copied().collect();
            match Guard::start(&self.run, &groups) {
                Ok(guard) => {
                    state.known.insert(guard.pid());
                    state.guard = Some(guard);
                }
                Err(error) => {
                    tracing::warn!("servers will keep running if the workbench is killed: {error}");
                }
            }
        }
        Ok(())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "it is needed until the last server has ended, so nobody can wait for its own end"
    )]
    fn watch_children(self: &Arc<Self>) -> io::Result<()> {
        let mut ended = signal(SignalKind::child())?;
        let table = Arc::clone(self);
        tokio::spawn(async move {
            while let Some(()) = ended.recv().await {
                table.reap_adopted();
                table.child_ended.send_replace(());
            }
        });
        Ok(())
    }

    /// Reaps adopted children that exited. Each is reaped by its own id: a wait for any child would take the exit
    /// status of a server away from the task that owns it.
    fn reap_adopted(&self) {
        let state = self.state();
        for pid in children() {
            if !state.known.contains(&pid) {
                reap(pid);
            }
        }
    }

    /// Kills adopted processes that carry `marker`, or all of them, until none is found.
    async fn sweep(&self, marker: Option<&str>) {
        let mut quiet_looks = 0;
        for _ in 0..MAX_SWEEP_ROUNDS {
            let found: Vec<HeldProcess> = self.adopted(marker);
            quiet_looks = if found.is_empty() { quiet_looks + 1 } else { 0 };
            // One check is not enough: a process that is just forking is in no list.
            if quiet_looks == QUIET_ROUNDS {
                return;
            }
            found.iter().for_each(HeldProcess::kill);
            tokio::time::sleep(SWEEP_PAUSE).await;
        }
        tracing::warn!("failed to kill some processes of a server");
    }

    fn adopted(&self, marker: Option<&str>) -> Vec<HeldProcess> {
        let state = self.state();
        let strangers = children()
            .into_iter()
            .filter(|pid| !state.known.contains(pid));
        strangers
            // One that has exited is only reaped: there is nothing left to kill.
            .filter(|pid| !reap(*pid))
            .filter_map(HeldProcess::hold)
            .filter(|found| marker.is_none_or(|marker| found.carries(marker)))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, TableState> {
        lock(&self.state)
    }
}

pub(crate) struct Process {
    child_ended: watch::Receiver<()>,
    /// Set if a child has exited since the last check of this one. A check costs a system call.
    may_have_ended: bool,
    /// Completes when the next child exits.
    next_end: Option<Rare<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    child: Child,
    pid: Pid,
    marker: String,
    table: Arc<ProcessTable>,
}

async fn next_end(mut child_ended: watch::Receiver<()>) {
    // The sender is in the table, which outlives all processes.
    let _ = child_ended.changed().await;
}

impl Process {
    /// Waits for the exit of the leader and leaves it unreaped. Cancel-safe.
    pub(crate) async fn exited(&mut self) -> Exit {
        loop {
            if self.may_have_ended {
                // Reset before the check, so that an exit after it causes another check.
                self.child_ended.mark_unchanged();
                self.may_have_ended = false;
                if let Some(exit) = self.look() {
                    self.may_have_ended = true;
                    return exit;
                }
            }
            // Stored between checks, because this is polled for every message of the server.
            self.next_end
                .get_or_insert_with(|| Rare::new(Box::pin(next_end(self.child_ended.clone()))))
                .await;
            self.next_end = None;
            self.may_have_ended = true;
        }
    }

    /// Returns the id of the process.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "other systems do not always know it"
    )]
    pub(crate) fn id(&self) -> Option<u32> {
        Some(self.child.id())
    }

    /// Returns how the leader exited, if it did.
    fn look(&self) -> Option<Exit> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(None) => None,
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Some(Exit::Code(code)),
                (_, Some(signal)) => Some(Exit::Signal(signal)),
                _ => Some(Exit::Closed),
            },
            Err(_) => Some(Exit::Closed),
        }
    }

    /// Sends SIGTERM to the group.
    pub(super) fn terminate(&self) {
        let _ = kill_process_group(self.pid, Signal::TERM);
    }

    /// Kills the group and everything that left it, and reaps the leader.
    pub(super) async fn kill_tree(mut self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
        // A process in an uninterruptible system call does not exit, and must not hold up the shutdown.
        let _ = tokio::time::timeout(SWEEP_PAUSE * MAX_SWEEP_ROUNDS, self.exited()).await;
        // Processes that the leader started become our children only after it has exited.
        self.table.sweep(Some(&self.marker)).await;
        let reaped = self.child.try_wait().is_ok_and(|status| status.is_some());
        let mut state = self.table.state();
        if let Some(guard) = &mut state.guard {
            guard.remove(self.pid);
        }
        if reaped {
            state.known.remove(&self.pid);
        } else {
            tracing::warn!("failed to kill process {}", self.pid.as_raw_nonzero());
        }
    }
}

fn take_pipes(child: &mut Child) -> io::Result<(ChildStdin, ChildStdout, ChildStderr)> {
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    Ok((
        ChildStdin::from_std(child.stdin.take().ok_or_else(missing)?)?,
        ChildStdout::from_std(child.stdout.take().ok_or_else(missing)?)?,
        ChildStderr::from_std(child.stderr.take().ok_or_else(missing)?)?,
    ))
}

/// Reaps a child that exited; returns false if it still runs.
fn reap(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Raises the soft limit on open files to the hard limit, because each server needs three. Returns the previous limit.
fn raise_files_limit() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    // If raising fails, the old limit stays, and a start that runs out of files reports it.
    let _ = setrlimit(Resource::Nofile, raised);
    before
}

/// Returns a random word. It only tells workbenches apart and protects nothing.
fn random_word() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}
