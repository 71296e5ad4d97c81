//! The pipe that holds the lines that were taken last. The kernel duplicates what is in the client's pipe into it without copying,
//! which costs a fraction of writing the bytes to a file. Now and then they are moved to the file together.

#[cfg(target_os = "linux")]
pub(super) use linux::{Recent, move_to, peek};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{Recent, move_to, peek};

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::File,
        io,
        os::fd::{AsFd, OwnedFd},
    };

    use rustix::{
        io::Errno,
        pipe::{SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, splice, tee},
    };
    use tokio::io::ReadBuf;

    use crate::serve::{
        journal::MAX_UNSETTLED,
        standard_streams::{ClientStream, StreamKind},
    };

    /// The maximum number of bytes that are moved at once.
    const MAX_MOVED_BYTES: usize = 1 << 30;

    /// The end of the pipe that bytes are put into.
    pub(in crate::serve::journal) struct Recent(io::PipeWriter);

    impl Recent {
        /// Creates the pipe for the input of a client, and returns it with its other end. There is none for a socket, and none if
        /// the kernel does not let it be large enough.
        pub(in crate::serve::journal) fn beside(stream: &ClientStream) -> Option<(OwnedFd, Self)> {
            if stream.kind == StreamKind::Socket {
                return None;
            }
            // What is taken at once must fit whole, since the kernel reports the rest of it only if more comes.
            let needed = MAX_UNSETTLED * fcntl_getpipe_size(stream).ok()?;
            let (reader, writer) = io::pipe().ok()?;
            let size = fcntl_setpipe_size(&writer, needed).ok()?;
            (size >= needed).then(|| (reader.into(), Self(writer)))
        }

        /// Duplicates the bytes that the client's pipe has, at most so many. Returns their number, 0 at the end of the stream.
        pub(in crate::serve::journal) fn duplicate(
            &self,
            stream: &ClientStream,
            most: usize,
        ) -> io::Result<usize> {
            Ok(tee(stream, &self.0, most, SpliceFlags::NONBLOCK)?)
        }

        /// Takes bytes from the client: duplicates them and then reads them into the buffer. Returns their number, 0 at the end
        /// of the stream.
        pub(in crate::serve::journal) fn take(
            &self,
            stream: &ClientStream,
            buffer: &mut ReadBuf<'_>,
        ) -> io::Result<usize> {
            let count = self.duplicate(stream, buffer.remaining())?;
            let part = buffer.initialize_unfilled_to(count);
            let mut read = 0;
            // The bytes are in the client's pipe, and nobody else reads it, so this never waits.
            while read < count {
                read += rustix::io::read(stream, &mut part[read..])?;
            }
            buffer.advance(count);
            Ok(count)
        }
    }

    /// Moves all bytes to the file, whose offset moves with them.
    pub(in crate::serve::journal) fn move_to(file: &File, reader: &OwnedFd) -> io::Result<()> {
        loop {
            match splice(
                reader,
                None,
                file,
                None,
                MAX_MOVED_BYTES,
                SpliceFlags::NONBLOCK,
            ) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the bytes that a client's pipe has, without taking them.
    pub(in crate::serve::journal) fn peek(stream: &ClientStream) -> io::Result<Vec<u8>> {
        let (reader, writer) = io::pipe()?;
        let size = fcntl_getpipe_size(stream.as_fd())?;
        let _ = fcntl_setpipe_size(&writer, size);
        let count = match tee(stream, &writer, size, SpliceFlags::NONBLOCK) {
            Ok(count) => count,
            Err(Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        let mut bytes = vec![0; count];
        let mut read = 0;
        while read < count {
            read += rustix::io::read(&reader, &mut bytes[read..])?;
        }
        Ok(bytes)
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::{convert::Infallible, fs::File, io, os::fd::OwnedFd};

    use tokio::io::ReadBuf;

    use crate::serve::standard_streams::ClientStream;

    /// No other system duplicates the bytes of a pipe.
    pub(in crate::serve::journal) struct Recent(Infallible);

    impl Recent {
        pub(in crate::serve::journal) fn beside(_: &ClientStream) -> Option<(OwnedFd, Self)> {
            None
        }

        pub(in crate::serve::journal) fn take(
            &self,
            _: &ClientStream,
            _: &mut ReadBuf<'_>,
        ) -> io::Result<usize> {
            match self.0 {}
        }
    }

    pub(in crate::serve::journal) fn move_to(_: &File, _: &OwnedFd) -> io::Result<()> {
        Ok(())
    }

    pub(in crate::serve::journal) fn peek(_: &ClientStream) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}
