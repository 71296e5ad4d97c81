//! What waits to be written to one pipe, frame by frame, and how much of it has gone out: a call
//! may be sent again only if no byte of it was written.

use std::{collections::VecDeque, io::IoSlice};

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
    /// How many bytes of the first frame have been written.
    begun: usize,
    /// How many bytes wait.
    bytes: usize,
    next: u64,
}

#[derive(Debug)]
struct QueuedFrame {
    ticket: FrameTicket,
    frame: Frame,
}

impl Outbox {
    /// Puts a frame at the end.
    pub fn push(&mut self, frame: Frame) -> FrameTicket {
        let ticket = FrameTicket(self.next);
        self.next += 1;
        self.bytes += frame.len();
        self.frames.push_back(QueuedFrame { ticket, frame });
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
            Some(index) => self.is_begun(index),
            None => true,
        }
    }

    /// Takes a frame out again; false if it is too late for that.
    pub fn remove(&mut self, ticket: FrameTicket) -> bool {
        match self.find(ticket) {
            Some(index) if !self.is_begun(index) => {
                if let Some(queued) = self.frames.remove(index) {
                    self.bytes -= queued.frame.len();
                }
                true
            }
            _ => false,
        }
    }

    /// Fills `slices` with what is to be written next; returns how many were filled.
    pub fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut skip = self.begun;
        let parts = self.frames.iter().flat_map(|queued| queued.frame.parts());
        let waiting = parts.filter_map(|part| {
            let written = skip.min(part.len());
            skip -= written;
            Some(&part[written..]).filter(|part| !part.is_empty())
        });
        let mut filled = 0;
        for (slice, part) in slices.iter_mut().zip(waiting) {
            *slice = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// Notes that `written` bytes have gone out.
    pub fn advance(&mut self, written: usize) {
        self.bytes -= written;
        self.begun += written;
        while let Some(first) = self.frames.front()
            && self.begun >= first.frame.len()
        {
            self.begun -= first.frame.len();
            self.frames.pop_front();
        }
    }

    fn is_begun(&self, index: usize) -> bool {
        index == 0 && self.begun > 0
    }

    fn find(&self, ticket: FrameTicket) -> Option<usize> {
        self.frames
            .binary_search_by_key(&ticket, |frame| frame.ticket)
            .ok()
    }
}
