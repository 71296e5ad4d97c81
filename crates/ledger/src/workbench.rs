//! The process under test: lines go in, events come out. Each pipe has its own thread, so that a workbench that does
//! not read is detected.

use std::{
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};

use crate::{history::Event, incoming, site::Site, waiting::poll_until};

/// How large a piece is read at once.
const READ_BYTES: usize = 256 * 1024;

/// A running workbench. One that is dropped is killed.
#[derive(Debug)]
pub(crate) struct Workbench {
    child: Child,
    lines: Option<mpsc::Sender<String>>,
    /// Its events. The channel ends with its stdout.
    pub events: mpsc::Receiver<Event>,
}

impl Workbench {
    /// Starts `program` on the configuration of `site`.
    pub(crate) fn start(program: &Path, site: &Site) -> io::Result<Self> {
        // Nothing else of this environment may change the run.
        let path = std::env::vars_os().find(|(name, _)| name == "PATH");
        let mut child = Command::new(program)
            .arg("--config")
            .arg(site.config())
            .current_dir(site.folder())
            .env_clear()
            .envs(path)
            .env("HOME", site.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(site.create_log()?)
            .spawn()?;
        let (sender, events) = mpsc::channel();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        thread::spawn(move || read(stdout, &sender));
        let (lines, to_write) = mpsc::channel();
        let stdin = child.stdin.take().expect("stdin is a pipe");
        thread::spawn(move || write(stdin, &to_write));
        Ok(Self {
            child,
            lines: Some(lines),
            events,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes lines; false if it has ended.
    pub(crate) fn write(&mut self, lines: String) -> bool {
        let writer = self.lines.as_ref();
        writer.is_some_and(|writer| writer.send(lines).is_ok())
    }

    /// Closes its stdin when everything has been written.
    pub(crate) fn close(&mut self) {
        self.lines = None;
    }

    /// How it ended, if it has by `deadline`.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        poll_until(deadline, || self.child.try_wait().ok().flatten())
    }
}

impl Drop for Workbench {
    fn drop(&mut self) {
        // One that has ended is only waited for.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn write(mut stdin: ChildStdin, lines: &mpsc::Receiver<String>) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(stdout: ChildStdout, events: &mpsc::Sender<Event>) {
    let mut stdout = BufReader::with_capacity(READ_BYTES, stdout);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
        if events.send(incoming::event(line.trim_ascii_end())).is_err() {
            return;
        }
        line.clear();
    }
}
