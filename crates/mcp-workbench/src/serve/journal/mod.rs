//! The journal of an attached client: two files in memory without names. One has the bytes that were taken from the client, the
//! other the bytes for it. The process that waits for the host has the same files open. If the host is killed, the next host
//! reads them to continue the session, to send the rest, and to answer what was not answered.
//!
//! Both are mapped. The bytes of the client are read into the first file directly: the system call that takes them from the client
//! puts them where they outlive us. Two numbers at its beginning say how much was taken and how long the second file is, whose
//! offset is the number of bytes that were sent. If the host is killed before it has stored how much it took, the bytes
//! behind that number are not zero.
//!
//! - [`mapped`] is a mapped file;
//! - [`transfer`] sends bytes and moves the offset together, so that no kill comes between them;
//! - [`streams`] are the streams of the client through the journal;
//! - [`replay`] reads the files of a host that has ended.

mod mapped;
mod replay;
mod streams;
mod transfer;

use std::{
    fs::File,
    io::{self, IoSlice, Seek, SeekFrom},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt,
    },
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::io::ReadBuf;

use super::standard_streams::ClientStream;
use crate::sync::lock;

use mapped::MappedFile;
pub(super) use replay::{OpenRequest, opened_toolbox};
pub(crate) use replay::{Replay, replay};
pub(super) use streams::{RecordedInput, RecordedOutput};

/// The size from which the files are replaced by shorter ones.
const MIN_COMPACTED_BYTES: usize = 1024 * 1024;
/// Upper bound on the files together: more than twice what the requests that may run at once have. They become longer only
/// if the waiting process takes no shorter ones, because it is stopped.
const MAX_JOURNAL_BYTES: usize = 1024 * 1024 * 1024;
/// The maximum number of bytes that are taken at once: what a pipe holds.
const MAX_TAKEN_BYTES: usize = 64 * 1024;
/// The length of the mapping of a new file. Enough for most files until they are replaced.
const MAPPED_BYTES: usize = MIN_COMPACTED_BYTES + 2 * MAX_TAKEN_BYTES;
/// The number of bytes from which output is written instead of copied, which would touch page after page.
const LONG_OUTPUT_BYTES: usize = 32 * 1024;
/// How far pages are touched before they are needed.
const TOUCHED_BYTES: usize = 4 * 1024;

/// The place of the number of bytes that were taken, in the file of the input.
const TAKEN_AT: usize = 0;
/// The place of the length of the output, in the file of the input.
const RECORDED_AT: usize = 8;
/// The place of the first byte of the client.
const INPUT_AT: usize = 16;

/// Makes a file of a journal.
pub(crate) type MakeFile = Box<dyn Fn() -> io::Result<File> + Send + Sync>;
/// Passes new files to the waiting process. Returns false if that is impossible at the moment.
pub(crate) type PassOn = Box<dyn Fn(&JournalFiles) -> bool + Send + Sync>;

pub(crate) struct JournalFiles {
    /// How much was taken and recorded, and the bytes that were taken from the client.
    pub(crate) input: Arc<File>,
    /// The bytes for the client. Those before the offset were sent.
    pub(crate) output: Arc<File>,
}

impl JournalFiles {
    /// Takes the descriptors of a journal, in the order of [`JournalFiles::descriptors`].
    pub(crate) fn of(descriptors: impl IntoIterator<Item = OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        Some(Self {
            input: Arc::new(descriptors.next()?.into()),
            output: Arc::new(descriptors.next()?.into()),
        })
    }

    /// Returns the descriptors, to be passed on.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.input.as_fd(), self.output.as_fd()]
    }
}

/// The journal of one client.
pub(crate) struct Journal {
    state: Mutex<JournalState>,
    make: MakeFile,
    /// Absent if nobody continues the session after this process.
    pass_on: Option<PassOn>,
}

struct JournalState {
    files: JournalFiles,
    input: MappedFile,
    output: MappedFile,
    /// The number of bytes that were taken.
    taken: usize,
    /// The length of the output.
    recorded: usize,
    /// The number of bytes that were sent.
    sent: usize,
    /// The bytes that an earlier host has recorded and not sent.
    backlog: usize,
    /// The size at which the files are replaced.
    compact_at: usize,
}

impl Journal {
    /// Creates a journal that continues an earlier one.
    pub(crate) fn new(make: MakeFile, replay: &Replay) -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(JournalState::of(&make, replay)?),
            make,
            pass_on: None,
        })
    }

    /// Passes the files on, now and whenever they are replaced. Returns `None` if that is impossible.
    pub(crate) fn passed_by(mut self, pass_on: PassOn) -> Option<Self> {
        let is_passed = pass_on(&self.state().files);
        self.pass_on = Some(pass_on);
        is_passed.then_some(self)
    }

    /// Takes bytes of the client, at most [`MAX_TAKEN_BYTES`]. Returns their number, 0 at the end of the stream.
    fn take(&self, stream: &ClientStream, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        let mut state = self.state();
        state.check_length()?;
        let count = state.take(stream, buffer)?;
        self.compact_if_due(&mut state);
        Ok(count)
    }

    /// Records bytes for the client and sends as many as it takes now. Returns the number that was sent. The rest is recorded
    /// already; the next call begins with it.
    fn send(&self, stream: &ClientStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.state();
        state.check_length()?;
        state.send_backlog(stream)?;
        state.record(slices)?;
        let sent = state.send_some(stream)?;
        // The client has its answer by now, and does not wait for this. A client that only listens takes nothing, so its
        // journal is shortened here.
        self.compact_if_due(&mut state);
        state.touch()?;
        Ok(sent)
    }

    fn has_backlog(&self) -> bool {
        self.state().backlog > 0
    }

    /// Sends what an earlier host has not sent.
    fn send_backlog(&self, stream: &ClientStream) -> io::Result<()> {
        self.state().send_backlog(stream)
    }

    fn compact_if_due(&self, state: &mut JournalState) {
        if state.taken + state.recorded >= state.compact_at && state.sent == state.recorded {
            self.compact(state);
        }
    }

    /// Replaces the files by ones that hold only what a new host needs. The old ones stay in use if that fails.
    fn compact(&self, state: &mut JournalState) {
        let compacted =
            replay(&state.files).and_then(|replay| JournalState::of(&self.make, &replay));
        match compacted {
            Ok(compacted) if self.passes_on(&compacted.files) => *state = compacted,
            Ok(_) => {}
            Err(error) => tracing::warn!("failed to shorten the journal of a client: {error}"),
        }
        // Twice the size that is left, so that each byte is copied about once on average.
        state.compact_at = MIN_COMPACTED_BYTES.max(2 * (state.taken + state.recorded));
    }

    fn passes_on(&self, files: &JournalFiles) -> bool {
        self.pass_on.as_ref().is_none_or(|pass_on| pass_on(files))
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        lock(&self.state)
    }
}

impl JournalState {
    /// Makes the files of a journal that says what a replay says.
    fn of(make: &MakeFile, replay: &Replay) -> io::Result<Self> {
        let files = JournalFiles {
            input: Arc::new(make()?),
            output: Arc::new(make()?),
        };
        let (taken, sent) = (replay.input(), replay.sent_output());
        files.input.write_all_at(&taken, INPUT_AT as u64)?;
        files.output.write_all_at(&sent, 0)?;
        files
            .output
            .write_all_at(&replay.unsent, sent.len() as u64)?;
        (&*files.output).seek(SeekFrom::Start(sent.len() as u64))?;
        let (backlog, recorded) = (replay.unsent.len(), sent.len() + replay.unsent.len());
        let input = MappedFile::new(Arc::clone(&files.input), taken.len() + MAPPED_BYTES)?;
        let output = MappedFile::new(Arc::clone(&files.output), recorded + MAPPED_BYTES)?;
        input.store(TAKEN_AT, taken.len() as u64)?;
        input.store(RECORDED_AT, recorded as u64)?;
        Ok(Self {
            files,
            input,
            output,
            taken: taken.len(),
            recorded,
            sent: sent.len(),
            backlog,
            compact_at: MIN_COMPACTED_BYTES,
        })
    }

    fn check_length(&self) -> io::Result<()> {
        if self.taken + self.recorded < MAX_JOURNAL_BYTES {
            return Ok(());
        }
        tracing::warn!("ending a client whose process is stopped: its journal is too long");
        Err(io::ErrorKind::StorageFull.into())
    }

    fn take(&mut self, stream: &ClientStream, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        let at = INPUT_AT + self.taken;
        let most = buffer.remaining().min(MAX_TAKEN_BYTES);
        self.input.reserve(at + most)?;
        let count = self.input.read_from(stream.as_fd(), at, most)?;
        self.taken += count;
        self.input.store(TAKEN_AT, self.taken as u64)?;
        let taken = buffer.initialize_unfilled_to(count);
        self.input.copy_to(at, taken)?;
        buffer.advance(count);
        Ok(count)
    }

    fn send_backlog(&mut self, stream: &ClientStream) -> io::Result<()> {
        // What an earlier host recorded goes out before anything new.
        while self.backlog > 0 {
            let count = transfer::send(&self.files.output, stream.as_fd(), self.backlog)?;
            self.backlog -= count;
            self.sent += count;
        }
        Ok(())
    }

    /// Records whole lines, so that a kill leaves no part of a line with the client.
    fn record(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        // An earlier call has recorded bytes that the client did not take; the caller offers them again. They go first:
        // with new bytes behind them, the journal of a slow client would never be shortened.
        if self.recorded > self.sent {
            return Ok(());
        }
        let mut left = whole_lines(slices);
        let mut end = self.recorded;
        for slice in slices {
            let new = &slice[..slice.len().min(left)];
            if new.len() < LONG_OUTPUT_BYTES && end + new.len() <= self.output.length() {
                self.output.copy_from(end, new)?;
            } else {
                self.files.output.write_all_at(new, end as u64)?;
            }
            left -= new.len();
            end += new.len();
        }
        self.recorded = end;
        self.input.store(RECORDED_AT, end as u64)
    }

    fn send_some(&mut self, stream: &ClientStream) -> io::Result<usize> {
        let unsent = self.recorded - self.sent;
        let count = transfer::send(&self.files.output, stream.as_fd(), unsent)?;
        self.sent += count;
        Ok(count)
    }

    /// Provides the pages that are needed next.
    fn touch(&self) -> io::Result<()> {
        self.input.touch(INPUT_AT + self.taken, TOUCHED_BYTES)?;
        self.output.touch(self.recorded, TOUCHED_BYTES)
    }
}

/// Returns the number of bytes up to the last end of a line; of all, if no line ends.
fn whole_lines(slices: &[IoSlice<'_>]) -> usize {
    let all = slices.iter().map(|slice| slice.len()).sum();
    let mut behind = 0;
    for slice in slices.iter().rev() {
        if let Some(end) = memchr::memrchr(b'\n', slice) {
            return all - behind - (slice.len() - (end + 1));
        }
        behind += slice.len();
    }
    all
}

#[cfg(test)]
mod tests;
