//! The client's side of the workbench's stdout: a thread that reads lines, and that can be told to
//! stop for a while or for good, as clients do.

use std::{
    io::{BufRead, BufReader, Read},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// The reader and what it has read.
#[derive(Debug)]
pub(crate) struct Reading {
    lines: Receiver<String>,
    wish: Arc<Wish>,
    thread: JoinHandle<()>,
}

/// The requested mode of the reader.
#[derive(Debug, Default)]
struct Wish {
    mode: Mutex<Mode>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Mode {
    #[default]
    Read,
    Pause,
    Close,
}

impl Reading {
    /// Reads the lines of a stream.
    pub(super) fn start(stream: impl Read + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        let wish = Arc::new(Wish::default());
        let reader_wish = Arc::clone(&wish);
        let thread = thread::spawn(move || read(stream, &sender, &reader_wish));
        Self {
            lines,
            wish,
            thread,
        }
    }

    /// The next line; none if the time or the stream is over.
    pub(super) fn next_within(&self, time: Duration) -> Option<String> {
        self.lines.recv_timeout(time).ok()
    }

    /// Reads nothing more for now, but for a line that is being waited for.
    pub(crate) fn rest(&self) {
        self.wish.set(Mode::Pause);
    }

    pub(crate) fn go_on(&self) {
        self.wish.set(Mode::Read);
    }

    /// Closes the stream; at the next line if one is being waited for.
    pub(crate) fn close(&self) {
        self.wish.set(Mode::Close);
    }

    /// Returns true if the stream is closed, from either side.
    pub(crate) fn is_closed(&self) -> bool {
        self.thread.is_finished()
    }
}

impl Wish {
    fn set(&self, mode: Mode) {
        *self.lock() = mode;
        self.changed.notify_all();
    }

    /// Waits while nothing is to be read; false if nothing will ever be.
    fn may_read(&self) -> bool {
        let resting = |mode: &mut Mode| *mode == Mode::Pause;
        let mode = self.changed.wait_while(self.lock(), resting);
        *mode.unwrap_or_else(PoisonError::into_inner) == Mode::Read
    }

    fn lock(&self) -> MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(stream: impl Read, sender: &Sender<String>, wish: &Wish) {
    let mut lines = BufReader::new(stream).split(b'\n');
    while wish.may_read() {
        let Some(Ok(line)) = lines.next() else {
            return;
        };
        let line = String::from_utf8(line).expect("stdout is UTF-8");
        if sender.send(line).is_err() {
            return;
        }
    }
}
