//! Sends bytes of a file to a client. On Linux the kernel sends them and moves the offset of the file in one system call, so that a
//! kill comes before or after both. Elsewhere a kill between two calls can double an answer.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    os::{fd::BorrowedFd, unix::fs::FileExt},
};

/// The maximum number of bytes that are copied at once where the kernel cannot send from a file.
const MAX_COPIED_BYTES: usize = 64 * 1024;

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
    let count = rustix::io::write(stream, &part)?;
    // After a kill before this line the next host sends these bytes again.
    output.seek(SeekFrom::Start(at + count as u64))?;
    Ok(count)
}
