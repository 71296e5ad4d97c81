//! The workbench as a child process, with a deadline for every wait.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::connection::{Connection, DemoError, Incoming};
use super::lines::{Line, read_line};

/// Time limit for a response.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// Time limit for the exit after the input was closed; the workbench promises 5 s.
const EXIT_DEADLINE: Duration = Duration::from_secs(10);
/// The same after a failure, when only the clean-up is left.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(6);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The capacity of the line queue.
const QUEUED_LINES: usize = 64;
const MAX_LOG_LINES: usize = 20;

/// Sends the last lines of the workbench's stderr once it has exited.
pub(super) type LogSender = Sender<Vec<String>>;

/// A running workbench. On drop it gets time to exit, and is killed after that.
pub(super) struct Workbench {
    /// The connection. It is dropped first, which closes the workbench's input.
    pub(super) connection: Connection<ChildStdin>,
    process: Process,
}

struct Process(Child);

impl Workbench {
    /// Starts `program serve --demo`.
    pub(super) fn start(program: &Path, log: LogSender) -> Result<Self, DemoError> {
        let started = |source| DemoError::Start {
            program: program.to_owned(),
            source,
        };
        let mut child = Command::new(program)
            .args(["serve", "--demo"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(started)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on dropping `process` ends the child, whatever fails below.
        let process = Process(child);
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(started(io::Error::other("a pipe is missing")));
        };
        let incoming = read_in_background(stdout).map_err(started)?;
        thread::Builder::new()
            .name("demo-stderr".to_owned())
            // The receiver may be gone already.
            .spawn(move || drop(log.send(last_lines(stderr))))
            .map_err(started)?;
        Ok(Self {
            connection: Connection::new(stdin, incoming, ANSWER_DEADLINE),
            process,
        })
    }

    /// Closes the workbench's input and waits for a successful exit.
    pub(super) fn close(self) -> Result<Duration, DemoError> {
        let Self {
            connection,
            mut process,
        } = self;
        let started = Instant::now();
        // The output stays open until the exit, so that the last lines do not hit a closed pipe.
        let output = connection.hang_up();
        let status = process
            .wait(EXIT_DEADLINE)
            .map_err(|source| DemoError::Wait { source })?;
        drop(output);
        match status {
            None => Err(DemoError::StillRunning {
                deadline: EXIT_DEADLINE,
            }),
            Some(status) if status.success() => Ok(started.elapsed()),
            Some(status) => Err(DemoError::Exit { status }),
        }
    }
}

impl Process {
    /// Waits for the exit; returns `None` at the deadline. The standard library has no wait with a deadline, so
    /// this polls.
    fn wait(&mut self, deadline: Duration) -> io::Result<Option<ExitStatus>> {
        let started = Instant::now();
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || started.elapsed() >= deadline {
                return Ok(status);
            }
            thread::park_timeout(POLL_INTERVAL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.wait(CLEAN_UP_DEADLINE), Ok(Some(_))) {
            // Both fail only if the process has exited after all.
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

fn read_in_background(output: impl Read + Send + 'static) -> io::Result<Incoming> {
    let (sender, incoming) = mpsc::sync_channel(QUEUED_LINES);
    thread::Builder::new()
        .name("demo-stdout".to_owned())
        .spawn(move || forward_lines(output, &sender))?;
    Ok(incoming)
}

/// Forwards lines until the output ends or the receiver is gone.
fn forward_lines(output: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let received = match read_line(&mut output, &mut line) {
            Ok(Line::End) => return,
            Ok(Line::Complete) => Ok(line),
            Ok(Line::TooLong) => Err(io::Error::other("a line is too long")),
            Err(error) => Err(error),
        };
        let is_last = received.is_err();
        if sender.send(received).is_err() || is_last {
            return;
        }
    }
}

fn last_lines(output: impl Read) -> Vec<String> {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    let mut lines = VecDeque::new();
    while let Ok(Line::Complete | Line::TooLong) = read_line(&mut output, &mut line) {
        if lines.len() == MAX_LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
    lines.into()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn lines_are_forwarded_until_the_end() {
        let incoming = read_in_background(Cursor::new("one\ntwo\n")).unwrap();
        let lines: Vec<_> = incoming.iter().map(Result::unwrap).collect();
        assert_eq!(lines, [b"one\n", b"two\n"]);
    }

    #[test]
    fn only_the_last_log_lines_are_shown() {
        let log: Vec<_> = (0..50).map(|n| format!("line {n}")).collect();
        let lines = last_lines(Cursor::new(log.join("\n")));
        assert_eq!(lines.len(), MAX_LOG_LINES);
        assert_eq!(
            (lines[0].as_str(), lines[19].as_str()),
            ("line 30", "line 49")
        );
    }
}
