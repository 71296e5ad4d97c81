//! A server that is a child process: its pipes, its exit, and the last lines of its stderr. Servers are started only
//! here.

mod output;

use std::{
    ffi::OsString,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use indexmap::IndexMap;
use tokio::{
    process::{ChildStderr, ChildStdin},
    task::JoinHandle,
    time::Instant,
};

use self::output::ServerOutput;
use super::{
    error::ConnectError,
    link::{LinkEvent, Origin},
    process::{Exit, Process, ProcessTable, Spawned, spawn},
    server::ProcessView,
};
use crate::{
    config::{ChildEnvironment, EnvFileError, Secrets, StdioLaunch},
    offload::run_blocking,
    pipe::{FrameWriter, LineReader},
    program_lookup::find_program,
    sync::lock,
    visible::visible,
    wire::{FrameTicket, Line, Outbox, Outgoing, parse_checked},
};

/// How long output is read after the exit of the process. A child of it may keep the pipe open, and responses that
/// were written before the exit still count.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(400);
/// Upper bound on the output that is read after that without waiting. It exceeds the capacity of a pipe, because the
/// workbench itself may be late.
const MAX_DRAIN_BYTES: usize = 1024 * 1024;
/// How long to wait for the last lines of stderr.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);
/// The number of consecutive lines that are not MCP messages after which the connection ends.
pub(crate) const MAX_BAD_LINES: usize = 1000;
/// How long a process may leave its input unread.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of stderr lines that are stored, and the bounds on the bytes read and the characters stored of each.
const MAX_STDERR_LINES: usize = 20;
const MAX_STDERR_LINE_BYTES: usize = 64 * 1024;
const MAX_STDERR_LINE_CHARACTERS: usize = 2000;

type Variables = IndexMap<OsString, OsString>;

/// The connection to a child process.
pub(crate) struct StdioLink {
    reader: LineReader<ServerOutput>,
    /// Set when no more output is read.
    output_ended: bool,
    writer: FrameWriter<ChildStdin>,
    writer_broken: bool,
    /// The deadline for the process to read its input; `None` while nothing is waiting.
    stalls_at: Option<Instant>,
    bad_lines: usize,
    /// `None` after the link was dropped and the process is being ended.
    process: Option<Process>,
    table: Arc<ProcessTable>,
    exit: Option<Exit>,
    /// The deadline for the end of the link, after the process or its output has ended.
    over_at: Option<Instant>,
    /// The time from which the deadlines for ending the process count, if that was before the link is dropped.
    closing_since: Option<Instant>,
    stderr: StderrTail,
    secrets: Secrets,
}

impl StdioLink {
    pub(crate) async fn start(
        launch: &StdioLaunch,
        table: &Arc<ProcessTable>,
    ) -> Result<Self, ConnectError> {
        let mut secrets = launch.secrets.clone();
        let variables = variables(&launch.environment, &mut secrets).await?;
        let command = command(launch, variables)?;
        let spawned = spawn(table, command).map_err(|error| ConnectError::NotStarted {
            command: launch.command.clone(),
            error,
        })?;
        let Spawned {
            process,
            stdin,
            stdout,
            stderr,
        } = spawned;
        Ok(Self {
            reader: LineReader::new(ServerOutput::new(stdout)).checking(),
            output_ended: false,
            writer: FrameWriter::new(stdin),
            writer_broken: false,
            stalls_at: None,
            bad_lines: 0,
            process: Some(process),
            table: Arc::clone(table),
            exit: None,
            over_at: None,
            closing_since: None,
            stderr: StderrTail::follow(stderr, secrets.clone()),
            secrets,
        })
    }

    /// Returns the process id, while the process runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::id)
    }

    /// Queues a message to the server.
    pub(crate) fn send<'a>(&mut self, message: impl Into<Outgoing<'a>>) -> FrameTicket {
        self.stalls_at
            // An earlier deadline stays: more messages must not give the process more time.
            .get_or_insert_with(|| Instant::now() + WRITE_TIMEOUT);
        self.writer.push(message)
    }

    /// Withdraws a message; returns false if it was already sent.
    pub(crate) fn withdraw(&mut self, ticket: FrameTicket) -> bool {
        let removed = self.writer.outbox().remove(ticket);
        if self.writer.outbox().is_empty() {
            // Nothing is left for the process to read.
            self.stalls_at = None;
        }
        removed
    }

    /// Returns the deadline for the process to read its input.
    pub(crate) fn stalls_at(&self) -> Option<Instant> {
        self.stalls_at
    }

    /// Restarts the time that the process has to read its input.
    pub(crate) fn excuse_stall(&mut self) {
        if let Some(stalls_at) = &mut self.stalls_at {
            *stalls_at = Instant::now() + WRITE_TIMEOUT;
        }
    }

    /// Returns how much of an oversized message was read so far.
    pub(crate) fn oversized_bytes(&self) -> u64 {
        self.reader.skipped_bytes()
    }

    /// Returns true if the process is in the middle of an oversized message.
    pub(crate) fn is_mid_oversized(&self) -> bool {
        self.reader.is_skipping()
    }

    /// Returns the values to redact in messages about this server.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        self.writer.outbox()
    }

    /// Returns the next event, and writes meanwhile. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> LinkEvent {
        loop {
            if self.output_ended {
                // A last line without a newline counts too.
                if let Some(line) = self.reader.remaining_line() {
                    return self.event(line);
                }
                if let Some(exit) = self.exit {
                    return LinkEvent::Ended(exit);
                }
            }
            // Writing stops when nothing is waiting, so that it cannot delay reading.
            let writes = !self.writer_broken && !self.writer.outbox().is_empty();
            tokio::select! {
                biased;
                // The exit is noticed even while a grandchild holds the output open.
                exit = exited(&mut self.process), if self.exit.is_none() => {
                    self.exit = Some(exit);
                    self.over_soon();
                }
                written = self.writer.write_some(), if writes => {
                    // Each write that succeeds shows that the process reads, so the deadline starts again.
                    let waits = !self.writer.outbox().is_empty();
                    self.stalls_at = waits.then(|| Instant::now() + WRITE_TIMEOUT);
                    if written.is_err() {
                        // A server may close its input and still answer what it has read.
                        self.writer_broken = true;
                        self.over_soon();
                    }
                }
                line = self.reader.next(), if !self.output_ended => match line {
                    Ok(Some(line)) => return self.event(line),
                    Ok(None) | Err(_) => {
                        self.output_ended = true;
                        self.over_soon();
                    }
                },
                () = sleep_until(self.over_at), if self.over_at.is_some() => {
                    // The output has ended and the process runs on. It can no longer answer, so it counts as ended.
                    self.exit.get_or_insert(Exit::Closed);
                    if !self.output_ended {
                        // Output that was written before the exit counts, however late it is read.
                        let _ = self.reader.read_ready(MAX_DRAIN_BYTES).await;
                        self.output_ended = true;
                    }
                }
            }
        }
    }

    /// Returns the next of the lines that were read together.
    pub(crate) fn ready_event(&mut self) -> Option<LinkEvent> {
        let line = self.reader.ready_line()?;
        Some(self.event(line))
    }

    /// Returns the last lines of stderr, after a short wait for pending output.
    pub(crate) async fn stderr_tail(&mut self) -> Vec<String> {
        self.stderr.finished_tail().await
    }

    /// Returns the process as others see it.
    pub(crate) fn view(&self) -> Option<ProcessView> {
        Some(ProcessView {
            pid: self.pid()?,
            stderr: Arc::clone(&self.stderr.lines),
        })
    }

    /// Counts the deadlines for ending the process from `since`.
    pub(crate) fn closing_since(&mut self, since: Instant) {
        self.closing_since = Some(since);
    }

    fn event(&mut self, line: Line) -> LinkEvent {
        let frame = match line {
            Line::Complete(frame) => frame,
            Line::TooLong(head) => return LinkEvent::TooLarge(head),
            Line::TooLongEnded(tail) => return LinkEvent::TooLargeEnded(tail),
        };
        if let Ok(message) = parse_checked(&frame, self.reader.checked()) {
            // Only lines in a row count: a banner or a stray print at the start is harmless.
            self.bad_lines = 0;
            return LinkEvent::Message {
                message,
                origin: Origin::Connection,
            };
        }
        self.bad_lines += 1;
        if self.bad_lines < MAX_BAD_LINES {
            LinkEvent::BadLine(frame)
        } else {
            LinkEvent::Nonsense
        }
    }

    fn over_soon(&mut self) {
        self.over_at
            // Exit, end of output and a broken input come in any order, and the first of them counts.
            .get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
    }
}

impl Drop for StdioLink {
    /// Dropping the link closes the pipes and ends the process tree.
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            let since = self.closing_since.unwrap_or_else(Instant::now);
            self.table.retire(process, since);
        }
    }
}

async fn exited(process: &mut Option<Process>) -> Exit {
    match process {
        Some(process) => process.exited().await,
        None => Exit::Closed,
    }
}

async fn sleep_until(instant: Option<Instant>) {
    if let Some(instant) = instant {
        tokio::time::sleep_until(instant).await;
    }
}

/// Returns the variables of the process. An `envFile` is read off the event loop.
async fn variables(
    environment: &ChildEnvironment,
    secrets: &mut Secrets,
) -> Result<Variables, ConnectError> {
    let Some(path) = &environment.file else {
        return Ok(environment.variables(secrets)?);
    };
    let (environment, mut known) = (environment.clone(), secrets.clone());
    let read = run_blocking(move || {
        let variables = environment.variables(&mut known);
        (variables, known)
    });
    let (variables, known) = read.await.map_err(|source| EnvFileError::Unreadable {
        path: path.clone(),
        source,
    })?;
    *secrets = known;
    Ok(variables?)
}

fn command(launch: &StdioLaunch, variables: Variables) -> Result<Command, ConnectError> {
    // The system reports a missing folder in the same way as a missing program.
    if !launch.cwd.is_dir() {
        return Err(ConnectError::DirectoryNotFound(launch.cwd.clone()));
    }
    // Looked up in the PATH that the server gets, which may differ from ours.
    let path = variables.get(std::ffi::OsStr::new("PATH"));
    let program = find_program(&launch.command, path.map(AsRef::as_ref)).ok_or_else(|| {
        ConnectError::CommandNotFound {
            command: launch.command.clone(),
        }
    })?;
    let mut command = Command::new(program);
    command
        .args(&launch.args)
        .current_dir(&launch.cwd)
        // The workbench has credentials of all servers in its environment.
        .env_clear()
        .envs(variables);
    Ok(command)
}

/// The last lines of a process's stderr. It is read as long as it is open, so that the process never blocks on it.
struct StderrTail {
    lines: Arc<Mutex<std::collections::VecDeque<String>>>,
    reading: JoinHandle<()>,
}

impl StderrTail {
    #[expect(
        clippy::disallowed_methods,
        reason = "the reader ends with its pipe, which a stray grandchild may hold; nobody waits for it"
    )]
    fn follow(stderr: ChildStderr, secrets: Secrets) -> Self {
        let lines = Arc::new(Mutex::default());
        let reading = tokio::spawn(read_stderr(stderr, Arc::clone(&lines), secrets));
        Self { lines, reading }
    }

    async fn finished_tail(&mut self) -> Vec<String> {
        // The reason for an exit is often still in the pipe. A grandchild may hold the pipe open for much longer.
        let _ = tokio::time::timeout(STDERR_TIMEOUT, &mut self.reading).await;
        let lines = lock(&self.lines);
        lines.iter().cloned().collect()
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn read_stderr(
    stderr: ChildStderr,
    lines: Arc<Mutex<std::collections::VecDeque<String>>>,
    secrets: Secrets,
) {
    let mut reader = LineReader::with_limit(stderr, MAX_STDERR_LINE_BYTES);
    while let Ok(Some(line)) = reader.next().await {
        let Some(line) = stderr_line(&line, &secrets) else {
            continue;
        };
        tracing::debug!("stderr: {}", visible(&line));
        let mut lines = lock(&lines);
        if lines.len() == MAX_STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Returns a line as it is stored: redacted and shortened. If the line was cut while reading, a possible beginning of
/// a secret at its end is removed too.
fn stderr_line(line: &Line, secrets: &Secrets) -> Option<String> {
    let bytes = match line {
        Line::Complete(bytes) => &bytes[..],
        Line::TooLong(head) => &head[..head.len().saturating_sub(secrets.longest())],
        Line::TooLongEnded(_) => return None,
    };
    let text = String::from_utf8_lossy(bytes);
    let text = secrets.redact(text.trim_end());
    Some(text.chars().take(MAX_STDERR_LINE_CHARACTERS).collect())
}

#[cfg(test)]
mod tests;
