//! A child process whose output is waited for with a time limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Far more than anything here takes; its end means that something hangs.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let name = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));

        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nobody listens any more once the test is over.
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });

        Self {
            name,
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
        }
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open until the end");
        let written = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        if let Err(error) = written {
            self.fail(&format!("does not read: {error}"));
        }
    }

    /// The next line of its stdout; `None` at the end of it.
    pub(crate) fn read_line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.fail(&format!("printed nothing for {} s", LIMIT.as_secs()))
            }
        }
    }

    /// Closes its stdin and waits for its end, which must be a success; what it still prints is
    /// returned.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let (status, rest) = self.end();
        if !status.success() {
            self.fail(&format!("ended with {status}"));
        }
        rest
    }

    /// Closes its stdin and waits for its end, whatever it is; what it still prints is returned.
    pub(crate) fn end(&mut self) -> (ExitStatus, Vec<String>) {
        self.stdin = None;
        let mut rest = Vec::new();
        while let Some(line) = self.read_line() {
            rest.push(line);
        }
        // It closed its stdout, so there is nothing left for it to do but to end.
        (self.child.wait().unwrap(), rest)
    }

    /// Fails the test with all that is known: its name, and what it wrote to stderr.
    pub(crate) fn fail(&mut self, what: &str) -> ! {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let stderr = self.stderr.take().map(|thread| thread.join().unwrap());
        panic!(
            "{} {what}\nits stderr:\n{}",
            self.name,
            stderr.unwrap_or_default()
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
