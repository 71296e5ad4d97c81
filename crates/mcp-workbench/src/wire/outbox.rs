//! The queue of frames to one pipe. It tracks how many bytes were written: a call may be sent again only if none of its
//! bytes was.

use std::{collections::VecDeque, io::IoSlice, ops::Range};

use bytes::{Buf, Bytes};

use super::compose::{END, Outgoing};

/// Names one frame of an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FrameTicket(u64);

/// The ticket of a carrier that numbers its frames itself.
impl From<u64> for FrameTicket {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// The frames that are not written yet. Their texts are contiguous, so that one system call writes many frames and no
/// frame allocates memory; only long bodies are written from their own buffers.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    frames: VecDeque<QueuedFrame>,
    /// The texts of the frames, the first of which begins at `first_at`.
    text: Vec<u8>,
    first_at: usize,
    /// How much of the text has been written.
    written: usize,
    /// The bodies that are not part of the text.
    bodies: VecDeque<LongBody>,
    /// How many bytes of the first frame have been written.
    begun: usize,
    /// How many bytes wait.
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
struct QueuedFrame {
    ticket: FrameTicket,
    /// How many bytes it has in the text, and in all.
    text: usize,
    length: usize,
}

/// A long body, and its position in the text.
#[derive(Debug)]
struct LongBody {
    at: usize,
    body: Bytes,
}

/// The capacity that stays allocated when the queue is empty, and the size of the written text that may stay in it.
const KEPT_BYTES: usize = 64 * 1024;

impl Outbox {
    /// Puts a message at the end.
    pub(crate) fn push<'a>(&mut self, message: impl Into<Outgoing<'a>>) -> FrameTicket {
        let ticket = FrameTicket(self.next);
        self.next += 1;
        let start = self.text.len();
        let long = message.into().write_to(&mut self.text);
        let body = long.as_ref().map_or(0, Bytes::len);
        if let Some(body) = long {
            let at = self.text.len();
            self.bodies.push_back(LongBody { at, body });
            self.text.extend_from_slice(END);
        }
        let text = self.text.len() - start;
        let length = text + body;
        self.bytes += length;
        self.frames.push_back(QueuedFrame {
            ticket,
            text,
            length,
        });
        ticket
    }

    /// Returns true if all frames are written.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the number of waiting bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Returns true if a byte of the frame has been written.
    pub(crate) fn has_started(&self, ticket: FrameTicket) -> bool {
        match self.find(ticket) {
            Some(index) => self.is_begun(index),
            // A frame that is not queued was written. For an unknown one this is the safe answer: its call is not
            // sent again.
            None => true,
        }
    }

    /// Takes a frame out again; false if it is too late for that.
    pub(crate) fn remove(&mut self, ticket: FrameTicket) -> bool {
        match self.find(ticket) {
            Some(index) if !self.is_begun(index) => {
                let before = self.frames.range(..index).map(|frame| frame.text);
                // Frames have no position of their own, so that nothing has to be renumbered when the first one
                // leaves. Only a cancelled call pays for the sum.
                let start = self.first_at + before.sum::<usize>();
                if let Some(frame) = self.frames.remove(index) {
                    self.bytes -= frame.length;
                    self.cut(start..start + frame.text);
                }
                true
            }
            _ => false,
        }
    }

    /// Fills `slices` with the next bytes to write. Returns the number of filled slices.
    pub(crate) fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut from = self.written;
        // Text and bodies alternate: the text up to a body, the body, and at last the text behind the last one.
        let parts = self.bodies.iter().flat_map(|LongBody { at, body }| {
            let before = &self.text[from..*at];
            from = *at;
            [before, body]
        });
        let last_at = self.bodies.back().map_or(self.written, |last| last.at);
        let parts = parts.chain([&self.text[last_at..]]);
        let mut filled = 0;
        for (slice, part) in slices.iter_mut().zip(parts.filter(|part| !part.is_empty())) {
            *slice = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// Records that `written` bytes were written.
    pub(crate) fn advance(&mut self, written: usize) {
        self.bytes -= written;
        self.begun += written;
        self.pass(written);
        while let Some(first) = self.frames.front()
            && self.begun >= first.length
        {
            self.begun -= first.length;
            self.first_at += first.text;
            self.frames.pop_front();
        }
        if self.frames.is_empty() {
            self.text.clear();
            self.text.shrink_to(KEPT_BYTES);
            (self.first_at, self.written) = (0, 0);
        } else if self.first_at > KEPT_BYTES.max(self.text.len() / 2) {
            // The rest moves to the front only if it is the smaller part. A queue that never becomes empty then copies
            // each byte about once, and does not grow.
            let passed = std::mem::take(&mut self.first_at);
            self.written -= passed;
            self.cut(0..passed);
        }
    }

    /// Moves past so many bytes of the text and of bodies, in their order.
    fn pass(&mut self, mut bytes: usize) {
        while let Some(LongBody { at, body }) = self.bodies.front_mut() {
            let text = bytes.min(*at - self.written);
            self.written += text;
            bytes -= text;
            // The body is reached only when all text in front of it is written.
            let here = if self.written == *at {
                bytes.min(body.len())
            } else {
                0
            };
            body.advance(here);
            bytes -= here;
            if !body.is_empty() {
                return;
            }
            self.bodies.pop_front();
        }
        self.written += bytes;
    }

    /// Takes a piece out of the text, and the bodies in it.
    fn cut(&mut self, piece: Range<usize>) {
        // The end of its frame follows each body in the text, so the position of a body is never the end of the
        // piece.
        self.bodies.retain(|long| !piece.contains(&long.at));
        let behind = self.bodies.iter_mut().filter(|long| long.at >= piece.end);
        for long in behind {
            long.at -= piece.len();
        }
        self.text.drain(piece);
    }

    fn is_begun(&self, index: usize) -> bool {
        index == 0 && self.begun > 0
    }

    fn find(&self, ticket: FrameTicket) -> Option<usize> {
        // Tickets only grow and frames keep their order, so the queue is sorted.
        self.frames
            .binary_search_by_key(&ticket, |frame| frame.ticket)
            .ok()
    }
}
