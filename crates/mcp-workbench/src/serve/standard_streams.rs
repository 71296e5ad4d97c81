//! Our own stdin and stdout, without a thread between us and the pipe if possible: a hand-off between threads costs
//! more than the rest of a call.

use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

pub(super) fn input() -> Input {
    #[cfg(unix)]
    if let Some(input) = unix::input(&io::stdin()) {
        return input;
    }
    Box::new(tokio::io::stdin())
}

pub(super) fn output() -> Output {
    #[cfg(unix)]
    if let Some(output) = unix::output(&io::stdout()) {
        return output;
    }
    Box::new(tokio::io::stdout())
}

/// The stdin and stdout of a client, often of another process.
#[cfg(unix)]
pub(crate) struct PassedStreams {
    pub(crate) input: ClientStream,
    pub(super) output: ClientStream,
}

#[cfg(unix)]
impl PassedStreams {
    /// Takes over the two descriptors. Returns `None` unless both are pipes or sockets.
    pub(crate) fn new(stdin: &impl AsFd, stdout: &impl AsFd) -> Option<Self> {
        Some(Self {
            input: unix::client_input(stdin)?,
            output: unix::client_output(stdout)?,
        })
    }

    /// Takes over the stdin and stdout of this process.
    pub(crate) fn of_process() -> Option<Self> {
        Self::new(&io::stdin(), &io::stdout())
    }
}

/// A stream from or to a client, in non-blocking mode.
#[cfg(unix)]
pub(crate) struct ClientStream(OwnedFd);

#[cfg(unix)]
impl AsFd for ClientStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(unix)]
impl AsRawFd for ClientStream {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Returns whether stdin and stdout can be passed to another process: both are pipes or sockets.
#[cfg(unix)]
pub(crate) fn can_be_passed() -> bool {
    unix::is_stream(&io::stdin()) && unix::is_stream(&io::stdout())
}

#[cfg(unix)]
mod unix {
    use std::{
        io::IoSlice,
        os::{
            fd::{AsFd, AsRawFd},
            unix::net::UnixStream,
        },
        path::PathBuf,
        pin::Pin,
        task::{Context, Poll, ready},
    };

    use rustix::fs::{FileType, fstat};
    use tokio::{io::AsyncWrite, net::unix::pipe};

    use super::{ClientStream, Input, Output, io};
    use crate::pipe::widen;

    /// The pipe to a client, which becomes wider when it is full.
    struct ClientPipe {
        pipe: pipe::Sender,
        /// True if widening was tried.
        is_wide: bool,
    }

    impl ClientPipe {
        fn new(pipe: pipe::Sender) -> Self {
            Self {
                pipe,
                is_wide: false,
            }
        }
    }

    impl AsyncWrite for ClientPipe {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(context, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let written = ready!(Pin::new(&mut self.pipe).poll_write_vectored(context, slices))?;
            if !self.is_wide && written < slices.iter().map(|slice| slice.len()).sum() {
                self.is_wide = true;
                widen(&self.pipe);
            }
            Poll::Ready(Ok(written))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.pipe).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.pipe).poll_shutdown(context)
        }
    }

    pub(super) fn is_stream(stream: &impl AsFd) -> bool {
        matches!(kind(stream), Some(FileType::Fifo | FileType::Socket))
    }

    pub(super) fn input(stdin: &impl AsFd) -> Option<Input> {
        match kind(stdin)? {
            FileType::Fifo => Some(Box::new(receiver(stdin)?)),
            FileType::Socket => Some(Box::new(socket(stdin).ok()?)),
            _ => None,
        }
    }

    pub(super) fn output(stdout: &impl AsFd) -> Option<Output> {
        match kind(stdout)? {
            FileType::Fifo => Some(Box::new(ClientPipe::new(sender(stdout)?))),
            FileType::Socket => Some(Box::new(socket(stdout).ok()?)),
            _ => None,
        }
    }

    pub(super) fn client_input(stdin: &impl AsFd) -> Option<ClientStream> {
        match kind(stdin)? {
            FileType::Fifo => {
                let descriptor = receiver(stdin)?.into_nonblocking_fd().ok()?;
                Some(ClientStream(descriptor))
            }
            FileType::Socket => client_socket(stdin),
            _ => None,
        }
    }

    pub(super) fn client_output(stdout: &impl AsFd) -> Option<ClientStream> {
        match kind(stdout)? {
            FileType::Fifo => {
                let descriptor = sender(stdout)?.into_nonblocking_fd().ok()?;
                Some(ClientStream(descriptor))
            }
            FileType::Socket => client_socket(stdout),
            _ => None,
        }
    }

    fn client_socket(stream: &impl AsFd) -> Option<ClientStream> {
        let descriptor = stream.as_fd().try_clone_to_owned().ok()?;
        // A socket cannot be opened again, so whoever shares it sees that it no longer blocks.
        rustix::io::ioctl_fionbio(&descriptor, true).ok()?;
        Some(ClientStream(descriptor))
    }

    /// Opens a pipe again if possible, so that the non-blocking mode does not affect other processes that share it.
    fn receiver(stdin: &impl AsFd) -> Option<pipe::Receiver> {
        match pipe::OpenOptions::new().open_receiver(path_of(stdin)) {
            Ok(pipe) => Some(pipe),
            Err(_) => {
                let descriptor = stdin.as_fd().try_clone_to_owned().ok()?;
                pipe::Receiver::from_owned_fd(descriptor).ok()
            }
        }
    }

    fn sender(stdout: &impl AsFd) -> Option<pipe::Sender> {
        match pipe::OpenOptions::new().open_sender(path_of(stdout)) {
            Ok(pipe) => Some(pipe),
            Err(_) => {
                let descriptor = stdout.as_fd().try_clone_to_owned().ok()?;
                pipe::Sender::from_owned_fd(descriptor).ok()
            }
        }
    }

    /// Returns the path by which this process can open a pipe again.
    fn path_of(stream: &impl AsFd) -> PathBuf {
        format!("/dev/fd/{}", stream.as_fd().as_raw_fd()).into()
    }

    fn kind(stream: &impl AsFd) -> Option<FileType> {
        Some(FileType::from_raw_mode(fstat(stream).ok()?.st_mode))
    }

    /// Returns the stream as a socket. Some clients, among them all on Node.js, pass sockets instead of pipes.
    fn socket(stream: &impl AsFd) -> io::Result<tokio::net::UnixStream> {
        let socket = UnixStream::from(stream.as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket)
    }

    #[cfg(test)]
    #[cfg(target_os = "linux")]
    mod tests {
        use rustix::pipe::fcntl_getpipe_size;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        use super::*;
        use crate::pipe::WIDE_PIPE;

        #[tokio::test]
        async fn the_pipe_to_a_client_becomes_wider_when_it_is_full() {
            let (sender, mut receiver) = pipe::pipe().unwrap();
            let mut output = ClientPipe::new(sender);
            let (few, many) = (vec![b'x'; 60 * 1024], vec![b'y'; 100 * 1024]);
            output.write_all(&few).await.unwrap();
            assert_eq!(fcntl_getpipe_size(&output.pipe).unwrap(), 64 * 1024);
            // Nobody reads: all of it fits only into a wide pipe.
            output.write_all(&many).await.unwrap();
            assert_eq!(fcntl_getpipe_size(&output.pipe).unwrap(), WIDE_PIPE);
            drop(output);
            let mut read = Vec::new();
            receiver.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, [few, many].concat());
        }
    }
}
