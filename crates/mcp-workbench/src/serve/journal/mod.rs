//! The journal of an attached client: two files in memory without names. One has the bytes that were taken from the client, the
//! other the bytes for it. The offset of the first is the number of bytes that were taken for certain, and the offset of the second
//! the number that was sent. The process that waits for the host has the same files open. If the host is killed, the next host
//! reads them to continue the session, to send the rest, and to answer what was not answered.
//!
//! The lines that were taken last are not in the first file yet, or are behind its offset: recording them as certain would cost
//! each request a system call more. The next host looks whether the client's stream still has them.
//!
//! - [`transfer`] moves bytes and offsets together, so that no kill comes between them;
//! - [`recent`] is the pipe that holds the lines that were taken last;
//! - [`streams`] are the streams of the client through the journal;
//! - [`replay`] reads the files of a host that has ended.

mod recent;
mod replay;
mod streams;
mod transfer;

use std::{
    fs::File,
    io::{self, IoSlice, Seek, SeekFrom, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt,
    },
    sync::{Mutex, MutexGuard},
};

use tokio::io::ReadBuf;

use super::standard_streams::{ClientStream, StreamKind};
use crate::sync::lock;

use recent::Recent;
pub(super) use replay::{OpenRequest, opened_toolbox};
pub(crate) use replay::{Replay, replay};
pub(super) use streams::{RecordedInput, RecordedOutput};

/// The size from which the files are replaced by shorter ones.
const MIN_COMPACTED_BYTES: u64 = 1024 * 1024;
/// The number of times that bytes are taken before they are recorded as certain.
const MAX_UNSETTLED: usize = 8;

/// Makes a file of a journal.
pub(crate) type MakeFile = Box<dyn Fn() -> io::Result<File> + Send + Sync>;
/// Passes new files to the waiting process. Returns false if that is impossible at the moment.
pub(crate) type PassOn = Box<dyn Fn(&JournalFiles) -> bool + Send + Sync>;

/// The files of a journal.
pub(crate) struct JournalFiles {
    /// The bytes that were taken from the client for certain, up to the offset.
    pub(crate) input: File,
    /// The bytes for the client. Those before the offset were sent.
    pub(crate) output: File,
    /// The pipe with the bytes that follow those of the input. A client that has a socket has none.
    pub(crate) recent: Option<OwnedFd>,
}

impl JournalFiles {
    /// Takes the descriptors of a journal, in the order of [`JournalFiles::descriptors`].
    pub(crate) fn of(descriptors: impl IntoIterator<Item = OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        Some(Self {
            input: descriptors.next()?.into(),
            output: descriptors.next()?.into(),
            recent: descriptors.next(),
        })
    }

    /// Returns the descriptors, to be passed on.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let recent = self.recent.as_ref().map(AsFd::as_fd);
        let files = [self.input.as_fd(), self.output.as_fd()];
        files.into_iter().chain(recent).collect()
    }
}

/// The journal of one client.
pub(crate) struct Journal {
    state: Mutex<JournalState>,
    make: MakeFile,
    pass_on: PassOn,
}

struct JournalState {
    files: JournalFiles,
    /// The other end of the pipe of the files.
    recent: Option<Recent>,
    /// The number of bytes that were taken.
    taken: u64,
    /// How often bytes were taken that are not recorded as certain.
    unsettled: usize,
    /// Set if the next byte begins a line.
    is_at_line: bool,
    /// The length of the output.
    recorded: u64,
    /// The number of bytes that were sent.
    sent: u64,
    /// The bytes that an earlier host has recorded and not sent.
    backlog: u64,
    /// The size at which the files are replaced.
    compact_at: u64,
}

impl Journal {
    /// Creates a journal that continues an earlier one, for a client with this input, and passes it on.
    pub(crate) fn new(
        make: MakeFile,
        pass_on: PassOn,
        replay: &Replay,
        stream: &ClientStream,
    ) -> io::Result<Self> {
        let mut state = JournalState::of(&make, replay)?;
        if let Some((reader, recent)) = Recent::beside(stream) {
            state.files.recent = Some(reader);
            state.recent = Some(recent);
        }
        // Without them, whatever is taken from the client from here on would be lost by a kill.
        if !pass_on(&state.files) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Self {
            state: Mutex::new(state),
            make,
            pass_on,
        })
    }

    /// Takes bytes of the client. Returns their number, 0 at the end of the stream.
    fn take(&self, stream: &ClientStream, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        let mut state = self.state();
        let count = state.take(stream, buffer)?;
        if state.taken + state.recorded >= state.compact_at && state.sent == state.recorded {
            self.compact(&mut state);
        }
        Ok(count)
    }

    /// Records bytes for the client and sends as many as it takes now. Returns the number that was sent. The rest is recorded
    /// already; the next call begins with it.
    fn send(&self, stream: &ClientStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.state();
        state.send_backlog(stream)?;
        state.record(slices)?;
        let sent = state.send_some(stream)?;
        // The client has its answer by now, and does not wait for this.
        if state.unsettled > MAX_UNSETTLED / 2 {
            state.settle()?;
        }
        Ok(sent)
    }

    fn has_backlog(&self) -> bool {
        self.state().backlog > 0
    }

    /// Sends what an earlier host has not sent.
    fn send_backlog(&self, stream: &ClientStream) -> io::Result<()> {
        self.state().send_backlog(stream)
    }

    /// Replaces the files by ones that hold only what a new host needs. The old ones stay in use if that fails.
    fn compact(&self, state: &mut JournalState) {
        match state.compacted(&self.make) {
            Ok(compacted) if (self.pass_on)(&compacted.files) => {
                let recent = state.recent.take();
                *state = JournalState {
                    recent,
                    ..compacted
                };
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("failed to shorten the journal of a client: {error}"),
        }
        // Twice the size that is left, so that each byte is copied about once on average.
        state.compact_at = MIN_COMPACTED_BYTES.max(2 * (state.taken + state.recorded));
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        lock(&self.state)
    }
}

impl JournalState {
    /// Makes the files of a journal that says what a replay says.
    fn of(make: &MakeFile, replay: &Replay) -> io::Result<Self> {
        let (mut input, mut output) = (make()?, make()?);
        let (taken, sent) = (replay.input(), replay.sent_output());
        input.write_all(&taken)?;
        output.write_all(&sent)?;
        let (taken, sent) = (taken.len() as u64, sent.len() as u64);
        // Behind the offset, so that it counts as recorded and not as sent.
        output.write_all_at(&replay.unsent, sent)?;
        let backlog = replay.unsent.len() as u64;
        Ok(Self {
            files: JournalFiles {
                input,
                output,
                recent: None,
            },
            recent: None,
            taken,
            unsettled: 0,
            is_at_line: replay.partial.is_empty(),
            recorded: sent + backlog,
            sent,
            backlog,
            compact_at: MIN_COMPACTED_BYTES,
        })
    }

    /// Returns a shorter journal that says the same, with the same pipe.
    fn compacted(&mut self, make: &MakeFile) -> io::Result<Self> {
        self.settle()?;
        // Without the stream: after `settle` nothing is in doubt.
        let mut compacted = Self::of(make, &replay(&self.files, None)?)?;
        if let Some(reader) = &self.files.recent {
            compacted.files.recent = Some(reader.try_clone()?);
        }
        Ok(compacted)
    }

    fn take(&mut self, stream: &ClientStream, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        // A part of a line could be mistaken for a later part of the same line.
        if self.unsettled >= MAX_UNSETTLED || !self.is_at_line {
            self.settle()?;
        }
        let (input, at) = (&self.files.input, self.taken);
        // Only whole lines go through the pipe, so that whatever is in doubt after a kill begins with a line.
        let count = match (stream.kind, &self.recent) {
            (StreamKind::Socket, _) => transfer::take_from_socket(stream, input, at, buffer)?,
            (StreamKind::Pipe, Some(recent)) if self.is_at_line => recent.take(stream, buffer)?,
            (StreamKind::Pipe, _) => transfer::take_from_pipe(stream, input, at, buffer)?,
        };
        if count > 0 {
            self.taken += count as u64;
            self.unsettled += 1;
            self.is_at_line = buffer.filled().ends_with(b"\n");
        }
        Ok(count)
    }

    /// Records the bytes that were taken as certain.
    fn settle(&mut self) -> io::Result<()> {
        if self.unsettled == 0 {
            return Ok(());
        }
        // From the pipe the bytes move into the file, and its offset with them. Without a pipe they are in the file
        // already, behind the offset.
        if let Some(reader) = &self.files.recent {
            recent::move_to(&self.files.input, reader)?;
        } else {
            self.files.input.seek(SeekFrom::Start(self.taken))?;
        }
        self.unsettled = 0;
        Ok(())
    }

    fn send_backlog(&mut self, stream: &ClientStream) -> io::Result<()> {
        // What an earlier host recorded goes out before anything new.
        while self.backlog > 0 {
            let backlog = usize::try_from(self.backlog).unwrap_or(usize::MAX);
            let count = transfer::send(&self.files.output, stream.as_fd(), backlog)? as u64;
            self.backlog -= count;
            self.sent += count;
        }
        Ok(())
    }

    /// Records the bytes that were not recorded by an earlier call.
    fn record(&mut self, slices: &[IoSlice<'_>]) -> io::Result<()> {
        // An earlier call may have recorded bytes that the pipe did not take; the caller offers them again.
        let mut known = usize::try_from(self.recorded - self.sent).unwrap_or(usize::MAX);
        for slice in slices {
            let skipped = slice.len().min(known);
            known -= skipped;
            let new = &slice[skipped..];
            if !new.is_empty() {
                self.files.output.write_all_at(new, self.recorded)?;
                self.recorded += new.len() as u64;
            }
        }
        Ok(())
    }

    fn send_some(&mut self, stream: &ClientStream) -> io::Result<usize> {
        let unsent = usize::try_from(self.recorded - self.sent).unwrap_or(usize::MAX);
        let count = transfer::send(&self.files.output, stream.as_fd(), unsent)?;
        self.sent += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
