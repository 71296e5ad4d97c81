//! Reads the body of a request, with bounds on its size and time.

use std::{future::poll_fn, pin::Pin, sync::Arc};

use bytes::{Bytes, BytesMut};
use hyper::{
    HeaderMap,
    body::{Body, Incoming},
    header,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{
    limits::{BODY_IDLE_TIMEOUT, BODY_TIMEOUT},
    refusal::Refusal,
    wait_timer::WaitTimer,
};
use crate::wire::{MAX_FRAME_BYTES, own};

/// The number of bytes per permit.
const PERMIT_BYTES: usize = 1024 * 1024;

/// A body that was read, and its share of the bytes that all bodies may have.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    pub(super) room: Vec<OwnedSemaphorePermit>,
}

/// Reads a body. `room` holds a permit for every MiB of all bodies.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    room: &Arc<Semaphore>,
    timer: &WaitTimer,
) -> Result<RequestBody, Refusal> {
    let end = Instant::now() + BODY_TIMEOUT;
    let length = declared_length(headers);
    if length.is_some_and(|length| length > MAX_FRAME_BYTES) {
        // The body is not read, so that a client that waits for `100 Continue` does not send it.
        return Err(Refusal::TooLarge);
    }
    let mut bytes = BytesMut::new();
    let mut permits = Vec::new();
    while let Some(data) = next(&mut body, end, timer).await? {
        if bytes.is_empty() && body.is_end_stream() && data.len() <= MAX_FRAME_BYTES {
            // The whole body arrived at once, so it needs no permits.
            return Ok(RequestBody {
                bytes: own(data),
                room: permits,
            });
        }
        if bytes.len() + data.len() > MAX_FRAME_BYTES {
            return Err(Refusal::TooLarge);
        }
        if (bytes.len() + data.len()) / PERMIT_BYTES >= permits.len() {
            // Refused instead of waited for: bodies that are half read and wait for each other's permits would never
            // end.
            let permit = Arc::clone(room).try_acquire_owned();
            permits.push(permit.map_err(|_| Refusal::TooManyBytes)?);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(RequestBody {
        bytes: bytes.freeze(),
        room: permits,
    })
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let value = headers.get(header::CONTENT_LENGTH)?;
    // A length that does not fit into a number is too long.
    Some(value.to_str().ok()?.parse().unwrap_or(usize::MAX))
}

/// Returns the next piece of a body, or `None` at its end.
async fn next(
    body: &mut Incoming,
    end: Instant,
    timer: &WaitTimer,
) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        let soon = end.min(Instant::now() + BODY_IDLE_TIMEOUT);
        match timer.until(soon, frame).await.ok_or(Refusal::BodyTimeout)? {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refusal::BodyBroken),
            // Trailers are ignored.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
