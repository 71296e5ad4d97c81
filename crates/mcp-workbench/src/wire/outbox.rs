//! What waits to be written to one pipe, frame by frame, and how much of it has gone out: a call
//! may be sent again only if no byte of it was written.

use std::{collections::VecDeque, io::IoSlice};

use bytes::{Buf, Bytes};

use super::compose::Frame;

/// Names one frame of an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameTicket(u64);

/// The ticket of a carrier that numbers its frames itself.
impl From<u64> for FrameTicket {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// The frames that are still to be written.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: VecDeque<QueuedFrame>,
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
struct QueuedFrame {
    ticket: FrameTicket,
    parts: [Bytes; 3],
    started: bool,
}

impl Outbox {
    /// Puts a frame at the end.
    pub fn push(&mut self, frame: Frame) -> FrameTicket {
        let ticket = FrameTicket(self.next);
        self.next += 1;
        self.bytes += frame.len();
        self.frames.push_back(QueuedFrame {
            ticket,
            parts: frame.into_parts(),
            started: false,
        });
        ticket
    }

    /// Whether everything has been written.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether a byte of the frame has been written.
    pub fn has_started(&self, ticket: FrameTicket) -> bool {
        match self.find(ticket) {
            Some(index) => self.frames[index].started,
            None => true,
        }
    }

    /// Takes a frame out again; false if it is too late for that.
    pub fn remove(&mut self, ticket: FrameTicket) -> bool {
        match self.find(ticket) {
            Some(index) if !self.frames[index].started => {
                if let Some(frame) = self.frames.remove(index) {
                    self.bytes -= frame.parts.iter().map(Bytes::len).sum::<usize>();
                }
                true
            }
            _ => false,
        }
    }

    /// Fills `slices` with what is to be written next; returns how many were filled.
    pub fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = self.frames.iter().flat_map(|frame| &frame.parts);
        let waiting = parts.filter(|part| !part.is_empty());
        let mut filled = 0;
        for (slice, part) in slices.iter_mut().zip(waiting) {
            *slice = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// Notes that `written` bytes have gone out.
    pub fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while written > 0 {
            let Some(frame) = self.frames.front_mut() else {
                return;
            };
            frame.started = true;
            for part in &mut frame.parts {
                let here = written.min(part.len());
                part.advance(here);
                written -= here;
            }
            if frame.parts.iter().all(Bytes::is_empty) {
                self.frames.pop_front();
            }
        }
    }

    fn find(&self, ticket: FrameTicket) -> Option<usize> {
        self.frames
            .binary_search_by_key(&ticket, |frame| frame.ticket)
            .ok()
    }
}
