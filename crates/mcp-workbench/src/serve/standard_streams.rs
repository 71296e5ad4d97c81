//! Our own stdin and stdout, without a thread between us and the pipe if possible: a hand-off between threads costs
//! more than the rest of a call.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

pub(super) fn input() -> Input {
    #[cfg(unix)]
    if let Some(input) = unix::input() {
        return input;
    }
    Box::new(tokio::io::stdin())
}

pub(super) fn output() -> Output {
    #[cfg(unix)]
    if let Some(output) = unix::output() {
        return output;
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod unix {
    use std::{
        os::{fd::AsFd, unix::net::UnixStream},
        path::Path,
    };

    use rustix::fs::{FileType, fstat};
    use tokio::net::unix::pipe;

    use super::{Input, Output, io};

    pub(super) fn input() -> Option<Input> {
        let stdin = io::stdin();
        match kind(&stdin)? {
            FileType::Fifo => {
                // Reopened if possible, so that the non-blocking mode does not affect other processes that share the
                // pipe.
                let reopened = pipe::OpenOptions::new().open_receiver(Path::new("/dev/stdin"));
                let pipe = match reopened {
                    Ok(pipe) => pipe,
                    Err(_) => {
                        let descriptor = stdin.as_fd().try_clone_to_owned().ok()?;
                        pipe::Receiver::from_owned_fd(descriptor).ok()?
                    }
                };
                Some(Box::new(pipe))
            }
            FileType::Socket => Some(Box::new(socket(&stdin).ok()?)),
            _ => None,
        }
    }

    pub(super) fn output() -> Option<Output> {
        let stdout = io::stdout();
        match kind(&stdout)? {
            FileType::Fifo => {
                let reopened = pipe::OpenOptions::new().open_sender(Path::new("/dev/stdout"));
                let pipe = match reopened {
                    Ok(pipe) => pipe,
                    Err(_) => {
                        let descriptor = stdout.as_fd().try_clone_to_owned().ok()?;
                        pipe::Sender::from_owned_fd(descriptor).ok()?
                    }
                };
                Some(Box::new(pipe))
            }
            FileType::Socket => Some(Box::new(socket(&stdout).ok()?)),
            _ => None,
        }
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
