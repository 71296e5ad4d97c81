//! The way to one server: lanes that are kept between requests, as many as were needed lately, and new ones where
//! none is free. Nothing is followed, repeated, unpacked or remembered here.

use std::{
    future::poll_fn,
    io::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hyper::{HeaderMap, Method, StatusCode, Uri, header::HeaderValue};
use thiserror::Error;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use url::{Position, Url};

use super::{
    body::{MessageBody, OutgoingRequest},
    head::{Fields, Head},
    lane::{Lane, LaneError},
};
use crate::dial::{ConnectFault, Connector};

/// How many lanes are kept for the next request: as many as calls may run.
const MOST_IDLE: usize = 64;
/// How long they are kept: a little less than servers keep them (5 s is common), since a call that meets the end of
/// its connection cannot be sent again.
const IDLE_PATIENCE: Duration = Duration::from_secs(4);

/// Room for the head of a request and a small message.
const USUAL_BYTES: usize = 1024;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum SendError {
    /// There is no connection.
    #[error("no connection")]
    Connect(#[source] ConnectFault),
    /// The connection broke, or what came is not HTTP.
    #[error("no answer")]
    Exchange(#[source] LaneError),
}

/// An address of the server, with the form that it has in requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Target(Arc<(Url, Uri)>);

impl Target {
    pub(super) fn url(&self) -> &Url {
        &self.0.0
    }

    /// A request to it, with all of these headers. The last of them take the place of others of their names.
    pub(super) fn request<'a>(
        &self,
        method: &Method,
        headers: &[&HeaderMap],
        body: MessageBody<'a>,
    ) -> OutgoingRequest<'a> {
        let nothing = &HeaderMap::new();
        let mut head = Vec::with_capacity(USUAL_BYTES);
        // Writing to memory cannot fail.
        let _ = write!(head, "{method} {} HTTP/1.1\r\n", self.0.1);
        let (last, others) = headers.split_last().unwrap_or((&nothing, &[]));
        let others = others.iter().copied().flatten();
        let others = others.filter(|(name, _)| !last.contains_key(*name));
        for (name, value) in others.chain(*last) {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        if method == Method::POST {
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        head.extend_from_slice(b"\r\n");
        OutgoingRequest::new(head, body)
    }
}

/// The way to one server.
pub(super) struct Client {
    connector: Connector,
    /// Lanes that are not in use, the one that was used last at the end.
    idle: Mutex<Vec<Lane>>,
    has_idle: Notify,
}

impl Client {
    /// A client that has made no connection yet.
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::default(),
            has_idle: Notify::new(),
        })
    }

    /// The form of an address of this server in requests; none if it cannot stand in one.
    pub(super) fn target(&self, url: Url) -> Option<Target> {
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let uri = if self.connector.is_forwarded() {
            Uri::try_from(format!("{}{path}", url.origin().ascii_serialization()))
        } else {
            Uri::try_from(path)
        };
        let uri = uri.ok()?;
        Some(Target(Arc::new((url, uri))))
    }

    /// What the proxy between us and the server wants to see in every request.
    pub(super) fn proxy_credentials(&self) -> Option<&HeaderValue> {
        self.connector.proxy_credentials()
    }

    /// Sends a request. One that a kept connection took nothing of, because it had ended, goes to another one.
    pub(super) async fn send(
        self: &Arc<Self>,
        target: Target,
        mut request: OutgoingRequest<'_>,
    ) -> Result<Response, SendError> {
        let (head, lane) = loop {
            let kept = self.take_idle();
            let tells_end = kept.is_some() && !self.connector.is_encrypted();
            let mut lane = match kept {
                Some(lane) => lane,
                // On the heap: it is large and rare.
                None => Box::pin(self.open()).await?,
            };
            let head = lane.exchange(&mut request).await;
            // What was said before the request belongs to none.
            if !(tells_end && request.unbegin()) {
                break (head, lane);
            }
        };
        let mut response = Response {
            head: head.map_err(SendError::Exchange)?,
            target,
            lane: Some(lane),
            client: Arc::clone(self),
        };
        response.end_if_over();
        Ok(response)
    }

    /// Ends the lanes that nobody needs any more, for as long as it runs.
    pub(super) async fn end_idle(self: Arc<Self>) {
        loop {
            self.has_idle.notified().await;
            while !self.idle().is_empty() {
                sleep(IDLE_PATIENCE).await;
                self.idle().retain(is_fresh);
            }
        }
    }

    async fn open(&self) -> Result<Lane, SendError> {
        let stream = self.connector.connect().await.map_err(SendError::Connect)?;
        Ok(Lane::new(stream))
    }

    fn take_idle(&self) -> Option<Lane> {
        let mut idle = self.idle();
        while let Some(mut lane) = idle.pop() {
            if is_fresh(&lane) && lane.is_ready() {
                return Some(lane);
            }
        }
        None
    }

    /// Keeps a lane for the next request, if it can have one.
    pub(super) fn keep(&self, mut lane: Lane) {
        if !lane.is_ready() {
            return;
        }
        lane.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.is_empty() {
            self.has_idle.notify_one();
        }
        if idle.len() < MOST_IDLE {
            idle.push(lane);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(lane: &Lane) -> bool {
    lane.idle_since.elapsed() < IDLE_PATIENCE
}

/// An answer whose body is still to be read. Dropping it before that closes its connection.
pub(super) struct Response {
    head: Head,
    target: Target,
    /// The connection, until the body is over.
    lane: Option<Lane>,
    client: Arc<Client>,
}

impl Response {
    pub(super) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(super) fn headers(&self) -> &Fields {
        &self.head.fields
    }

    pub(super) fn url(&self) -> &Url {
        self.target.url()
    }

    /// How long its body is, as far as that is known.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.lane.as_ref().map_or(Some(0), Lane::content_length)
    }

    /// Whether all of the body was read.
    pub(super) fn is_over(&self) -> bool {
        self.lane.is_none()
    }

    /// The next bytes of its body; none at its end. Cancel-safe.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, LaneError> {
        let Some(lane) = &mut self.lane else {
            return Ok(None);
        };
        let chunk = poll_fn(|context| lane.poll_chunk(context)).await?;
        self.end_if_over();
        Ok(chunk)
    }

    /// Gives the connection back once the body is over.
    fn end_if_over(&mut self) {
        if let Some(lane) = self.lane.take_if(|lane| lane.is_over()) {
            self.client.keep(lane);
        }
    }
}
