//! Frames over a pair of pipes, for both sides: our own stdin and stdout, and a server's.

use std::{
    io::{self, IoSlice},
    time::Duration,
};

use rawjson::CheckedPart;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    task::unconstrained,
    time::{Instant, timeout_at},
};

use crate::wire::{FrameTicket, Line, LineFramer, MAX_FRAME_BYTES, Outbox, Outgoing};

/// The maximum number of slices in one write. A long body with the text around it takes three.
pub(crate) const SLICES_PER_WRITE: usize = 16;

/// The size of a wide pipe. Linux bounds the pages in all pipes of a user: most pipes keep the usual size, and none gets
/// more than four times that.
#[cfg(target_os = "linux")]
pub(crate) const WIDE_PIPE: usize = 256 * 1024;

/// Widens a pipe, so that the processes at its ends take turns less often while a large message passes. Where that is
/// refused, the pipe stays as it is.
#[cfg(target_os = "linux")]
pub(crate) fn widen(pipe: impl std::os::fd::AsFd) {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    // The process at the other end may have made it wider, and the call below would make it narrower again.
    if fcntl_getpipe_size(&pipe).is_ok_and(|size| size < WIDE_PIPE) {
        let _ = fcntl_setpipe_size(pipe, WIDE_PIPE);
    }
}

/// Leaves a pipe as it is: only Linux can widen it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn widen<P>(_pipe: &P) {}

/// How long the memory of a huge line is kept for the next one.
const KEEP_TIME: Duration = Duration::from_secs(1);

/// Reads lines from a pipe.
pub(crate) struct LineReader<R> {
    pipe: R,
    framer: LineFramer,
    ended: bool,
    /// The time at which kept memory is freed.
    release_at: Option<Instant>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(pipe: R) -> Self {
        Self::with_limit(pipe, MAX_FRAME_BYTES)
    }

    /// Creates a reader for lines of at most `limit` bytes.
    pub(crate) fn with_limit(pipe: R, limit: usize) -> Self {
        Self {
            pipe,
            framer: LineFramer::new(limit),
            ended: false,
            release_at: None,
        }
    }

    /// Checks lines while they arrive; [`Self::checked`] has the result.
    pub(crate) fn checking(self) -> Self {
        Self {
            framer: self.framer.checking(),
            ..self
        }
    }

    /// Returns the part of the last line that was checked while it arrived.
    pub(crate) fn checked(&self) -> Option<&CheckedPart> {
        self.framer.checked()
    }

    /// Returns the next line, or `None` at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.framer.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                // The last line may have no line end.
                return Ok(self.framer.finish());
            }
            self.ended = self.read().await? == 0;
        }
    }

    /// Reads some bytes. Frees the memory of a huge line if no other follows soon. Cancel-safe.
    async fn read(&mut self) -> io::Result<usize> {
        self.framer.room();
        if self.framer.keeps_memory() {
            let soon = || Instant::now() + KEEP_TIME;
            let release_at = *self.release_at.get_or_insert_with(soon);
            let reading = self.pipe.read_buf(self.framer.room());
            if let Ok(read) = timeout_at(release_at, reading).await {
                return read;
            }
            self.framer.release_memory();
        }
        self.release_at = None;
        self.pipe.read_buf(self.framer.room()).await
    }

    /// Returns the next line that has already been read.
    pub(crate) fn ready_line(&mut self) -> Option<Line> {
        self.framer.next_line()
    }

    /// Returns how many bytes of an overlong line have been skipped so far.
    pub(crate) fn skipped_bytes(&self) -> u64 {
        self.framer.skipped_bytes()
    }

    /// Returns whether the current line is too long and is being skipped.
    pub(crate) fn is_skipping(&self) -> bool {
        self.framer.is_skipping()
    }

    /// Reads the bytes that the pipe has ready, up to about `most`, without waiting.
    pub(crate) async fn read_ready(&mut self, most: usize) -> io::Result<()> {
        let mut read = 0;
        while read < most && !self.ended {
            // Without `unconstrained`, an exhausted tokio budget would look like an empty pipe.
            let reading = unconstrained(self.pipe.read_buf(self.framer.room()));
            let more = tokio::select! {
                biased;
                more = reading => more?,
                () = std::future::ready(()) => return Ok(()),
            };
            self.ended = more == 0;
            read += more;
        }
        Ok(())
    }

    /// Returns the next buffered line when nothing more will be read. The last line needs no line end if the pipe has
    /// ended.
    pub(crate) fn remaining_line(&mut self) -> Option<Line> {
        let line = self.framer.next_line();
        line.or_else(|| self.ended.then(|| self.framer.finish()).flatten())
    }
}

/// Writes frames to a pipe, with one system call for several queued frames.
pub(crate) struct FrameWriter<W> {
    pipe: W,
    outbox: Outbox,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(crate) fn new(pipe: W) -> Self {
        Self {
            pipe,
            outbox: Outbox::default(),
        }
    }

    pub(crate) fn push<'a>(&mut self, message: impl Into<Outgoing<'a>>) -> FrameTicket {
        self.outbox.push(message)
    }

    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Writes as much as the pipe accepts now; waits forever if there is nothing to write. Cancel-safe.
    pub(crate) async fn write_some(&mut self) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
        let filled = self.outbox.fill(&mut slices);
        if filled == 0 {
            return std::future::pending().await;
        }
        let written = self.pipe.write_vectored(&slices[..filled]).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.outbox.advance(written);
        self.pipe.flush().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_becomes_wider_and_never_narrower() {
        use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
        for (size, widened) in [
            (4096, WIDE_PIPE),
            (WIDE_PIPE, WIDE_PIPE),
            (2 * WIDE_PIPE, 2 * WIDE_PIPE),
        ] {
            let (pipe, _sender) = io::pipe().unwrap();
            fcntl_setpipe_size(&pipe, size).unwrap();
            widen(&pipe);
            assert_eq!(fcntl_getpipe_size(&pipe).unwrap(), widened);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_memory_of_a_huge_line_is_freed_when_no_other_follows() {
        let (mut server, ours) = tokio::io::duplex(16 * 1024 * 1024);
        let mut reader = LineReader::new(ours);
        let text = "x".repeat(4 * 1024 * 1024) + "\n";
        for wait in [KEEP_TIME / 2, KEEP_TIME * 2] {
            server.write_all(text.as_bytes()).await.unwrap();
            assert!(matches!(reader.next().await, Ok(Some(Line::Complete(_)))));
            tokio::select! {
                line = reader.next() => panic!("{line:?}"),
                () = sleep(wait) => {}
            }
            assert_eq!(reader.framer.keeps_memory(), wait < KEEP_TIME);
        }
        server.write_all(b"small\n").await.unwrap();
        assert_eq!(
            reader.next().await.unwrap(),
            Some(Line::Complete("small".into()))
        );
    }
}
