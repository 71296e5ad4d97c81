//! The stderr of the workbench and the messages on the wire, for the message of a failed test.

use std::{
    io::{BufRead, BufReader, Read},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// A text that grows while others read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    text: Arc<Mutex<String>>,
}

impl Transcript {
    pub(crate) fn text(&self) -> String {
        self.lock().clone()
    }

    pub(crate) fn add(&self, line: &str) {
        let mut text = self.lock();
        text.push_str(line);
        text.push('\n');
    }

    /// Adds every line of a stream, in a thread of its own, until the stream ends.
    pub(crate) fn drain(&self, stream: impl Read + Send + 'static) -> thread::JoinHandle<()> {
        let transcript = self.clone();
        thread::spawn(move || {
            let mut lines = BufReader::new(stream).split(b'\n');
            while let Some(Ok(line)) = lines.next() {
                transcript.add(&String::from_utf8_lossy(&line));
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
