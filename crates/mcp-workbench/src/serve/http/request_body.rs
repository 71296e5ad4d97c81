//! Reading the body of a request: bounded while it comes, in size and in time.

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
    limits::{BODY_PAUSE, BODY_TIMEOUT},
    patience::Patience,
    refusal::Refusal,
};
use crate::wire::{MAX_FRAME_BYTES, own};

/// How many bytes one permit stands for.
const PERMIT_BYTES: usize = 1024 * 1024;

/// A body that was read, and its share of the bytes that all bodies may have.
pub(super) struct RequestBody {
    /// The bytes.
    pub(super) bytes: Bytes,
    _room: Vec<OwnedSemaphorePermit>,
}

/// Reads a body. `room` holds a permit for every MiB of all bodies.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    room: &Arc<Semaphore>,
    patience: &Patience,
) -> Result<RequestBody, Refusal> {
    let end = Instant::now() + BODY_TIMEOUT;
    let length = declared_length(headers);
    if length.is_some_and(|length| length > MAX_FRAME_BYTES) {
        // Nothing of it is read, so that nobody who waits for `100 Continue` gets it.
        return Err(Refusal::TooLarge);
    }
    let mut bytes = BytesMut::new();
    let mut permits = Vec::new();
    while let Some(data) = next(&mut body, end, patience).await? {
        if bytes.is_empty() && body.is_end_stream() && data.len() <= MAX_FRAME_BYTES {
            // It came at once: nobody waits with a part of it.
            return Ok(RequestBody {
                bytes: own(data),
                _room: permits,
            });
        }
        if bytes.len() + data.len() > MAX_FRAME_BYTES {
            return Err(Refusal::TooLarge);
        }
        if (bytes.len() + data.len()) / PERMIT_BYTES >= permits.len() {
            let permit = Arc::clone(room).try_acquire_owned();
            permits.push(permit.map_err(|_| Refusal::TooManyBytes)?);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(RequestBody {
        bytes: bytes.freeze(),
        _room: permits,
    })
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let value = headers.get(header::CONTENT_LENGTH)?;
    // What is longer than a number can say is too long.
    Some(value.to_str().ok()?.parse().unwrap_or(usize::MAX))
}

/// The next piece of a body; nothing at its end.
async fn next(
    body: &mut Incoming,
    end: Instant,
    patience: &Patience,
) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        let soon = end.min(Instant::now() + BODY_PAUSE);
        match patience
            .until(soon, frame)
            .await
            .ok_or(Refusal::BodyTimeout)?
        {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refusal::BodyBroken),
            // Trailers mean nothing here.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
