//! Letting go of buffers.

use bytes::Bytes;

/// Copying fewer bytes than this costs less than a new buffer.
const SMALL: usize = 2048;

/// Bytes that were read into the buffer of a connection, without it if they are few: the connection uses its buffer
/// again if nobody holds a part of it.
pub(crate) fn own(bytes: Bytes) -> Bytes {
    if bytes.len() < SMALL {
        Bytes::copy_from_slice(&bytes)
    } else {
        bytes
    }
}
