//! A file of a journal, mapped into the memory of this process: what is stored there is in the file at once, without a system
//! call, and outlives the process.

use std::{
    fs::File,
    io,
    os::fd::BorrowedFd,
    sync::{Arc, atomic::Ordering},
};

use vm_memory::{
    Bytes, FileOffset, MmapRegion, ReadVolatile, VolatileMemory, VolatileMemoryError, VolatileSlice,
};

/// The smallest size of a page. Where pages are larger, some are touched more than once.
const PAGE_BYTES: usize = 4096;

/// A file and its mapping, from the beginning. Pages that were never touched take no memory.
pub(super) struct MappedFile {
    file: Arc<File>,
    region: MmapRegion,
}

impl MappedFile {
    /// Maps a file, which gets this length if it is shorter.
    pub(super) fn new(file: Arc<File>, length: usize) -> io::Result<Self> {
        let length = length.next_multiple_of(PAGE_BYTES);
        if file.metadata()?.len() < length as u64 {
            file.set_len(length as u64)?;
        }
        let from_start = FileOffset::from_arc(Arc::clone(&file), 0);
        let region = MmapRegion::from_file(from_start, length).map_err(io::Error::other)?;
        Ok(Self { file, region })
    }

    /// Returns the number of bytes that are mapped.
    pub(super) fn length(&self) -> usize {
        self.region.size()
    }

    /// Maps at least so many bytes. At least doubles the mapping, so that a long message does not move it often.
    pub(super) fn reserve(&mut self, length: usize) -> io::Result<()> {
        if length > self.length() {
            *self = Self::new(Arc::clone(&self.file), length.max(2 * self.length()))?;
        }
        Ok(())
    }

    /// Reads bytes of a stream to `at`, at most so many. Returns their number. The bytes from there on must be zero.
    pub(super) fn read_from(
        &self,
        mut stream: BorrowedFd<'_>,
        at: usize,
        most: usize,
    ) -> io::Result<usize> {
        self.touch(at, most)?;
        let mut slice = self.slice(at, most)?;
        stream.read_volatile(&mut slice).map_err(io_error)
    }

    /// Writes zeros to the pages of a range that is zero, so that the kernel does not have to provide them while it copies. A
    /// process that is killed then can be left with a part of what it was to get.
    pub(super) fn touch(&self, at: usize, length: usize) -> io::Result<()> {
        let end = (at + length).min(self.length());
        let mut at = at;
        while at < end {
            self.region
                .as_volatile_slice()
                .store(0_u8, at, Ordering::Relaxed)
                .map_err(io_error)?;
            at = (at + 1).next_multiple_of(PAGE_BYTES);
        }
        Ok(())
    }

    /// Copies bytes from `at` on out of the file, until the buffer is full.
    pub(super) fn copy_to(&self, at: usize, buffer: &mut [u8]) -> io::Result<()> {
        self.slice(at, buffer.len())?.copy_to(buffer);
        Ok(())
    }

    /// Copies bytes into the file.
    pub(super) fn copy_from(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.slice(at, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    /// Stores a number. Whoever sees it sees what was stored before it.
    pub(super) fn store(&self, at: usize, number: u64) -> io::Result<()> {
        self.region
            .as_volatile_slice()
            .store(number, at, Ordering::Release)
            .map_err(io_error)
    }

    fn slice(&self, at: usize, length: usize) -> io::Result<VolatileSlice<'_>> {
        self.region.get_slice(at, length).map_err(io_error)
    }
}

fn io_error(error: VolatileMemoryError) -> io::Error {
    match error {
        VolatileMemoryError::IOError(error) => error,
        error => io::Error::other(error),
    }
}
