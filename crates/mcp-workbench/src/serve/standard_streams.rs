//! Our own stdin and stdout, without a thread between us and the pipe if possible: a hand-off between threads costs
//! more than the rest of a call.

use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;

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

/// The stdin and stdout of another process.
#[cfg(unix)]
pub(crate) struct PassedStreams {
    pub(super) input: Input,
    pub(super) output: Output,
}

#[cfg(unix)]
impl PassedStreams {
    /// Takes over the two descriptors. Returns `None` unless both are pipes or sockets.
    pub(crate) fn new(stdin: &OwnedFd, stdout: &OwnedFd) -> Option<Self> {
        Some(Self {
            input: unix::input(stdin)?,
            output: unix::output(stdout)?,
        })
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
        os::{
            fd::{AsFd, AsRawFd},
            unix::net::UnixStream,
        },
        path::PathBuf,
    };

    use rustix::fs::{FileType, fstat};
    use tokio::net::unix::pipe;

    use super::{Input, Output, io};

    pub(super) fn is_stream(stream: &impl AsFd) -> bool {
        matches!(kind(stream), Some(FileType::Fifo | FileType::Socket))
    }

    pub(super) fn input(stdin: &impl AsFd) -> Option<Input> {
        match kind(stdin)? {
            FileType::Fifo => {
                // Reopened if possible, so that the non-blocking mode does not affect other processes that share the
                // pipe.
                let reopened = pipe::OpenOptions::new().open_receiver(path_of(stdin));
                let pipe = match reopened {
                    Ok(pipe) => pipe,
                    Err(_) => {
                        let descriptor = stdin.as_fd().try_clone_to_owned().ok()?;
                        pipe::Receiver::from_owned_fd(descriptor).ok()?
                    }
                };
                Some(Box::new(pipe))
            }
            FileType::Socket => Some(Box::new(socket(stdin).ok()?)),
            _ => None,
        }
    }

    pub(super) fn output(stdout: &impl AsFd) -> Option<Output> {
        match kind(stdout)? {
            FileType::Fifo => {
                let reopened = pipe::OpenOptions::new().open_sender(path_of(stdout));
                let pipe = match reopened {
                    Ok(pipe) => pipe,
                    Err(_) => {
                        let descriptor = stdout.as_fd().try_clone_to_owned().ok()?;
                        pipe::Sender::from_owned_fd(descriptor).ok()?
                    }
                };
                Some(Box::new(pipe))
            }
            FileType::Socket => Some(Box::new(socket(stdout).ok()?)),
            _ => None,
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
}
