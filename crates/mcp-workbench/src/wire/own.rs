//! Releases connection buffers.

use bytes::Bytes;

/// Copying fewer bytes than this costs less than a new buffer.
const SMALL: usize = 2048;

/// Copies bytes out of the buffer of a connection if they are few. A connection can reuse its buffer only if no part of
/// it is referenced.
pub(crate) fn own(bytes: Bytes) -> Bytes {
    if bytes.len() < SMALL {
        Bytes::copy_from_slice(&bytes)
    } else {
        bytes
    }
}
