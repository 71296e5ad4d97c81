//! Lines out of a descriptor, read in chunks as large as a pipe gives them, without a copy for each line.

use std::io;

use rustix::fd::AsFd;

/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;
/// A line that was longer than this does not keep its room.
const KEPT: usize = 1024 * 1024;

/// Splits what comes from a descriptor into lines.
pub struct LineBuffer<S> {
    source: S,
    buffer: Vec<u8>,
    /// The start of the next line.
    start: usize,
    /// How far there is something in the buffer.
    end: usize,
}

impl<S: AsFd> LineBuffer<S> {
    /// The lines of this descriptor.
    pub fn new(source: S) -> Self {
        Self {
            source,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
        }
    }

    /// The next line without its newline; blocks until it is there. Nothing at the end.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = self.start;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let line = self.start..searched + found;
                self.start = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            self.make_room();
            searched = self.end;
            let count = rustix::io::read(&self.source, &mut self.buffer[self.end..])?;
            if count == 0 {
                return Ok(None);
            }
            self.end += count;
        }
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == 0 && self.buffer.len() > KEPT {
            self.buffer = vec![0; CHUNK];
        }
        if self.buffer.len() - self.end < CHUNK {
            self.buffer.resize((self.buffer.len() * 2).max(CHUNK), 0);
        }
    }
}
