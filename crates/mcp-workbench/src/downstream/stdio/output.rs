//! The output of a server, whose pipe becomes wider when the server fills it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    process::ChildStdout,
};

use crate::pipe::widen;

/// The least content of a full pipe of the usual size. It holds sixteen pages, and one may be used in part.
const FULL_PIPE: usize = 60 * 1024;

pub(super) struct ServerOutput {
    pipe: ChildStdout,
    /// True if widening was tried.
    is_wide: bool,
}

impl ServerOutput {
    pub(super) fn new(pipe: ChildStdout) -> Self {
        Self {
            pipe,
            is_wide: false,
        }
    }
}

impl AsyncRead for ServerOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.pipe).poll_read(context, buffer))?;
        if !self.is_wide && buffer.filled().len() - before >= FULL_PIPE {
            self.is_wide = true;
            widen(&self.pipe);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::pipe::fcntl_getpipe_size;
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::pipe::WIDE_PIPE;

    /// Returns the size of the pipe of a process after its output has been read.
    async fn size_after(bytes: usize) -> usize {
        let mut child = Command::new("head")
            .args(["-c", &bytes.to_string(), "/dev/zero"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipe = ChildStdout::from_std(child.stdout.take().unwrap()).unwrap();
        // Only a process that has ended has certainly filled its pipe.
        let _ = (bytes <= 64 * 1024).then(|| child.wait().unwrap());
        let mut output = ServerOutput::new(pipe);
        let mut read = Vec::with_capacity(1024 * 1024);
        while output.read_buf(&mut read).await.unwrap() > 0 {}
        assert_eq!(read.len(), bytes);
        let _ = child.wait();
        fcntl_getpipe_size(&output.pipe).unwrap()
    }

    #[tokio::test]
    async fn a_pipe_that_is_filled_becomes_wider() {
        assert_eq!(size_after(64 * 1024).await, WIDE_PIPE);
    }

    #[tokio::test]
    async fn a_pipe_with_small_messages_stays_as_it_is() {
        assert_eq!(size_after(8 * 1024).await, 64 * 1024);
    }
}
