//! Splits a byte stream into newline-delimited frames, however it is chunked. A line over the limit is not stored: its
//! beginning is returned at once, so that its sender can be answered, and its end when it arrives.

use std::{mem, ops::Range};

use bytes::{Buf, Bytes, BytesMut};
use rawjson::CheckedPart;

/// The longest frame that is accepted.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The size of the stored beginning and end of a line that is too long: enough to find an id on either side.
const EXCERPT_BYTES: usize = 4096;

/// The byte order mark of UTF-8, which some programs write first.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much room a read gets while lines are few and short, when there was more to read than that, and once a line has
/// shown to be long.
const SMALL_READ: usize = 8 * 1024;
const BUSY_READ: usize = 64 * 1024;
const LARGE_READ: usize = 256 * 1024;
/// From this length on a line is checked while it arrives. Most lines are shorter and arrive at once.
const CHECKED_LINE: usize = 4 * 1024;
/// Above this length the line buffer grows fourfold. Untouched pages cost nothing, and little is copied. It does not
/// grow to the limit at once, because address space is limited when many such lines wait.
const HUGE_LINE: usize = 1024 * 1024;
const HUGE_GROWTH: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its end, never blank.
    Complete(Bytes),
    /// A line has passed the limit; this is its beginning. The rest is skipped.
    TooLong(Bytes),
    /// The end of a line that was too long: its last bytes.
    TooLongEnded(Bytes),
}

/// The check of a line as JSON while it arrives. A long string has no newline inside, so the check is the search as well.
#[derive(Debug)]
enum LineCheck {
    /// The lines are not checked here.
    Off,
    /// The line is new.
    Ready,
    /// The line is in the middle of this string.
    Inside(CheckedPart),
    /// The line does not begin with a long string.
    Failed,
}

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct LineFramer {
    buffer: BytesMut,
    /// The memory of the last huge line, for the next large one. Memory that is new costs more than the text in it: each
    /// of its pages is a fault. Growing again would leave holes besides.
    reserved: Option<BytesMut>,
    /// True if the buffer has had a huge line.
    was_huge: bool,
    /// The bytes at the start of the buffer that are known to hold no newline.
    searched: usize,
    check: LineCheck,
    /// The part of the last complete line that was checked while it arrived.
    checked: Option<CheckedPart>,
    limit: usize,
    /// The last bytes of a line that is being skipped.
    skipped: Option<Vec<u8>>,
    /// How long that line is so far, or the last of its kind was.
    skipped_bytes: u64,
    at_start: bool,
}

impl LineFramer {
    /// Creates a framer for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            reserved: None,
            was_huge: false,
            searched: 0,
            check: LineCheck::Off,
            checked: None,
            limit,
            skipped: None,
            skipped_bytes: 0,
            at_start: true,
        }
    }

    /// Checks lines while they arrive, as far as they are long strings in JSON.
    #[must_use]
    pub fn checking(self) -> Self {
        Self {
            check: LineCheck::Ready,
            ..self
        }
    }

    /// Returns the buffer to read into, with room.
    pub fn room(&mut self) -> &mut BytesMut {
        // Otherwise one huge line would cost its memory for the rest of the connection.
        if self.buffer.is_empty() && (self.was_huge || self.buffer.capacity() > LARGE_READ) {
            let last = mem::take(&mut self.buffer);
            if mem::take(&mut self.was_huge) {
                self.reserved = Some(last);
            }
        }
        let length = self.buffer.len();
        if length >= LARGE_READ {
            self.reuse_memory();
        }
        let spare = self.buffer.capacity() - length;
        // A read that used all its room has probably left more to read. Before the first read the buffer is empty for
        // another reason.
        let was_filled = !self.at_start && spare == 0;
        // A read is as large as the traffic: most connections have short lines, and a large buffer for each of them
        // would be most of their memory. Near the limit there is no room for more than that, since the rest of the
        // line is dropped.
        let room = if (HUGE_LINE..self.limit).contains(&length) && spare < LARGE_READ {
            (self.limit - length + LARGE_READ).min(length * (HUGE_GROWTH - 1))
        } else if length >= SMALL_READ {
            LARGE_READ
        } else if was_filled {
            BUSY_READ
        } else {
            SMALL_READ
        };
        self.buffer.reserve(room);
        &mut self.buffer
    }

    /// Returns true if the memory of a huge line is reserved for the next one.
    pub fn keeps_memory(&self) -> bool {
        // A line that filled its memory leaves no capacity behind it, but its memory is still held.
        self.reserved.is_some()
    }

    /// Frees the memory of the last huge line, as soon as nobody uses the line any more.
    pub fn release_memory(&mut self) {
        self.reserved = None;
    }

    /// Moves the line into the reserved memory, unless the last line is still in use.
    fn reuse_memory(&mut self) {
        let Some(mut reserved) = self.reserved.take() else {
            return;
        };
        // More than what is left behind the last line, so that its own room is taken too.
        if reserved.try_reclaim(reserved.capacity() + 1)
            && reserved.capacity() > self.buffer.capacity()
        {
            reserved.extend_from_slice(&self.buffer);
            self.buffer = reserved;
        }
    }

    /// Returns the next line that is complete, or too long.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            if self.searched == self.buffer.len() {
                return None;
            }
            // A long line arrives in many reads. Searching it from its beginning each time would take quadratic time.
            let start = self.check_on();
            let found = memchr::memchr(b'\n', &self.buffer[start..]);
            let Some(end) = found.map(|found| start + found) else {
                self.searched = self.buffer.len();
                return self.over_limit();
            };
            self.begin_line();
            if self.skipped.is_none() && self.is_over_limit(end) {
                // The newline stays: it ends the line on the next call.
                return Some(self.begin_skipping(end));
            }
            self.was_huge |= end > HUGE_LINE;
            let mut line = self.buffer.split_to(end + 1).freeze();
            line.truncate(end);
            // Blank lines are skipped, so the loop continues until a line counts or the buffer is used up.
            if let Some(line) = self.classify(line) {
                return Some(line);
            }
        }
    }

    /// Returns the part of the last line that was checked while it arrived, if the line is complete.
    pub fn checked(&self) -> Option<&CheckedPart> {
        self.checked.as_ref()
    }

    /// Returns the number of bytes of the current overlong line that were read.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// Returns true if the current line is too long.
    pub fn is_skipping(&self) -> bool {
        self.skipped.is_some()
    }

    /// Returns the last line, if the stream ended without a newline.
    pub fn finish(&mut self) -> Option<Line> {
        self.begin_line();
        let rest = self.buffer.split().freeze();
        self.classify(rest)
    }

    /// Checks more of the line. Returns the position before which there is no newline.
    fn check_on(&mut self) -> usize {
        if matches!(self.check, LineCheck::Ready) && self.searched >= CHECKED_LINE {
            let part = CheckedPart::begin(&self.buffer[..self.searched]);
            self.check = part.map_or(LineCheck::Failed, LineCheck::Inside);
        }
        match &mut self.check {
            LineCheck::Inside(part) => part.extend(&self.buffer).max(self.searched),
            LineCheck::Off | LineCheck::Ready | LineCheck::Failed => self.searched,
        }
    }

    /// Searches from the start of the buffer again.
    fn begin_line(&mut self) {
        self.searched = 0;
        self.checked = match self.check {
            LineCheck::Inside(part) => Some(part),
            LineCheck::Off | LineCheck::Ready | LineCheck::Failed => None,
        };
        if !matches!(self.check, LineCheck::Off) {
            self.check = LineCheck::Ready;
        }
    }

    fn classify(&mut self, mut line: Bytes) -> Option<Line> {
        if let Some(mut tail) = self.skipped.take() {
            keep_tail(&mut tail, &line);
            return Some(Line::TooLongEnded(tail.into()));
        }
        let Range { start, end } = self.without_frills(&line);
        line.truncate(end);
        line.advance(start);
        self.at_start = false;
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(Line::Complete(line))
    }

    /// Strips the carriage return at the end, and a byte order mark at the start of the stream.
    fn without_frills(&self, line: &[u8]) -> Range<usize> {
        let mark = self.at_start && line.starts_with(BYTE_ORDER_MARK);
        let start = if mark { BYTE_ORDER_MARK.len() } else { 0 };
        start..line.len() - usize::from(line.last() == Some(&b'\r'))
    }

    /// Returns true if the first bytes of the buffer, all of one line, exceed the limit.
    fn is_over_limit(&self, length: usize) -> bool {
        self.without_frills(&self.buffer[..length]).len() > self.limit
    }

    /// Drops the buffered part of a line that exceeds the limit.
    fn over_limit(&mut self) -> Option<Line> {
        if self.skipped.is_some() {
            self.begin_line();
        }
        if let Some(tail) = &mut self.skipped {
            self.skipped_bytes += self.buffer.len() as u64;
            // Only the last bytes stay, where the id of the message may be.
            keep_tail(tail, &self.buffer.split());
            return None;
        }
        let buffered = self.buffer.len();
        self.is_over_limit(buffered)
            .then(|| self.begin_skipping(buffered))
    }

    /// Drops the first bytes of the buffer, and the rest of their line when it arrives.
    fn begin_skipping(&mut self, length: usize) -> Line {
        self.begin_line();
        let part = self.buffer.split_to(length);
        let Range { start, end } = self.without_frills(&part);
        let line = &part[start..end];
        // A copy, because a slice would hold on to the buffer of the whole line.
        let head = Bytes::copy_from_slice(&line[..EXCERPT_BYTES.min(line.len())]);
        self.at_start = false;
        self.skipped_bytes = length as u64;
        let mut tail = Vec::new();
        keep_tail(&mut tail, &part[start..]);
        self.skipped = Some(tail);
        Line::TooLong(head)
    }
}

fn keep_tail(tail: &mut Vec<u8>, more: &[u8]) {
    // Cut before it is copied: `more` may be 16 MiB, of which 4 KiB stay.
    tail.extend_from_slice(&more[more.len().saturating_sub(EXCERPT_BYTES)..]);
    tail.drain(..tail.len().saturating_sub(EXCERPT_BYTES));
}
