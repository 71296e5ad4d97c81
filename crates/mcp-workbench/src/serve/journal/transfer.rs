//! Moves bytes between the streams of a client and the files of its journal. On Linux the kernel moves the bytes and the offset of
//! the file in one system call, so that a kill comes before or after both. Elsewhere a kill between two calls can lose a request
//! or double an answer.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileExt,
    },
};

use rustix::net::{RecvFlags, recv};
use tokio::io::ReadBuf;

use super::recent;
use crate::serve::standard_streams::{ClientStream, StreamKind};

/// The maximum number of bytes that are taken from a socket at once.
const MAX_SOCKET_BYTES: usize = 16 * 1024;
/// The maximum number of bytes that are copied at once where the kernel cannot move them.
const MAX_COPIED_BYTES: usize = 64 * 1024;

/// Returns the number of bytes that are taken at once if the stream of a client has them and the buffer has room for so many.
pub(super) fn room(kind: StreamKind, remaining: usize) -> usize {
    match kind {
        StreamKind::Pipe => remaining,
        StreamKind::Socket => remaining.min(MAX_SOCKET_BYTES),
    }
}

/// Takes bytes from the pipe of a client: appends them to the file, whose offset is `at`, and reads them into the buffer. Returns
/// their number, 0 at the end of the stream.
pub(super) fn take_from_pipe(
    pipe: &ClientStream,
    input: &File,
    at: u64,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<usize> {
    let Some(count) = move_in(pipe.as_fd(), input, buffer.remaining())? else {
        return copy_in(pipe.as_fd(), input, buffer);
    };
    input.read_exact_at(buffer.initialize_unfilled_to(count), at)?;
    buffer.advance(count);
    Ok(count)
}

/// Moves bytes of a pipe to the end of a file. Returns `None` if the kernel cannot do that.
#[cfg(target_os = "linux")]
fn move_in(pipe: BorrowedFd<'_>, input: &File, most: usize) -> io::Result<Option<usize>> {
    use rustix::{
        io::Errno,
        pipe::{SpliceFlags, splice},
    };
    match splice(pipe, None, input, None, most, SpliceFlags::NONBLOCK) {
        Ok(count) => Ok(Some(count)),
        // Some kernels cannot do it for this kind of file, and some sandboxes do not allow it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn move_in(_: BorrowedFd<'_>, _: &File, _: usize) -> io::Result<Option<usize>> {
    Ok(None)
}

fn copy_in(
    stream: BorrowedFd<'_>,
    mut input: &File,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<usize> {
    let most = buffer.remaining().min(MAX_COPIED_BYTES);
    let part = buffer.initialize_unfilled_to(most);
    let count = rustix::io::read(stream, &mut *part)?;
    input.write_all(&part[..count])?;
    buffer.advance(count);
    Ok(count)
}

/// Takes bytes from the socket of a client. They are recorded at `at`, behind the offset of the file, before they are received.
pub(super) fn take_from_socket(
    socket: &ClientStream,
    input: &File,
    at: u64,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<usize> {
    let most = room(StreamKind::Socket, buffer.remaining());
    let part = buffer.initialize_unfilled_to(most);
    let flags = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);
    // Recorded between the look and the receive. After a kill in between the bytes are in both places, which the next
    // host can tell.
    let (_, count) = recv(socket, &mut *part, flags)?;
    let recorded = &mut part[..count];
    if count > 0 {
        input.write_all_at(recorded, at)?;
        recv(socket, recorded, RecvFlags::DONTWAIT)?;
    }
    buffer.advance(count);
    Ok(count)
}

/// Returns the bytes that the stream of a client has, at most so many, without taking them.
pub(super) fn peek(stream: &ClientStream, most: usize) -> io::Result<Vec<u8>> {
    if stream.kind == StreamKind::Pipe {
        return recent::peek(stream);
    }
    let mut bytes = vec![0; most];
    let flags = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);
    let (_, count) = recv(stream, &mut bytes[..], flags)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Sends bytes of a file from its offset on to the client, and moves the offset. Returns their number.
#[cfg(target_os = "linux")]
pub(super) fn send(output: &File, stream: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    use rustix::{fs::sendfile, io::Errno};
    match sendfile(stream, output, None, most) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => copy_out(output, stream, most),
        sent => Ok(sent?),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn send(output: &File, stream: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    copy_out(output, stream, most)
}

fn copy_out(mut output: &File, stream: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    let mut part = vec![0; most.min(MAX_COPIED_BYTES)];
    let at = output.stream_position()?;
    output.read_exact_at(&mut part, at)?;
    let count = rustix::io::write(stream.as_fd(), &part)?;
    // After a kill before this line the next host sends these bytes again.
    output.seek(SeekFrom::Start(at + count as u64))?;
    Ok(count)
}
