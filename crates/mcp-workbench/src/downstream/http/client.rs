//! The way to one server: lanes that are kept between requests, as many as were needed lately, and new ones where
//! none is free. Nothing is followed, repeated, unpacked or remembered here.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    body::{Body, Incoming},
    header::HeaderValue,
    http::response::Parts,
};
use thiserror::Error;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use url::{Position, Url};

use super::{body::MessageBody, lane::Lane};
use crate::dial::{ConnectFault, Connector};

/// How many lanes are kept for the next request: as many as calls may run.
const MOST_IDLE: usize = 64;
/// How long they are kept: a little less than servers keep them (5 s is common), since a call that meets the end of
/// its connection cannot be sent again.
const IDLE_PATIENCE: Duration = Duration::from_secs(4);

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum SendError {
    /// There is no connection.
    #[error("no connection")]
    Connect(#[source] ConnectFault),
    /// The connection broke, or what came is not HTTP.
    #[error("no answer")]
    Exchange(#[source] hyper::Error),
}

/// An address of the server, with the form that it has in requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Target(Arc<(Url, Uri)>);

impl Target {
    /// The address.
    pub(super) fn url(&self) -> &Url {
        &self.0.0
    }

    /// A request to it. On the heap, because it is handed on from future to future.
    pub(super) fn request(
        &self,
        method: Method,
        headers: HeaderMap,
        body: MessageBody,
    ) -> Box<Request<MessageBody>> {
        let mut request = Box::new(Request::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.0.1.clone();
        *request.headers_mut() = headers;
        request
    }
}

/// The way to one server.
pub(super) struct Client {
    connector: Connector,
    /// Lanes that are not in use, the one that was used last at the end.
    idle: Mutex<Vec<Lane>>,
    /// There are some.
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

    /// Sends a request. One that could not be begun because a kept connection had ended goes to another one.
    pub(super) async fn send(
        self: &Arc<Self>,
        target: Target,
        mut request: Box<Request<MessageBody>>,
    ) -> Result<Response, SendError> {
        loop {
            let kept = self.take_idle();
            let was_kept = kept.is_some();
            let mut lane = match kept {
                Some(lane) => lane,
                // On the heap: it is large and rare.
                None => Box::pin(self.open()).await?,
            };
            match lane.exchange(*request).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    return Ok(Response(Box::new(OpenResponse {
                        head,
                        target,
                        body,
                        lane: Some(lane),
                        client: Arc::clone(self),
                    })));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if was_kept => *request = unsent,
                    _ => return Err(SendError::Exchange(error.into_error())),
                },
            }
        }
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
        Lane::new(stream).await.map_err(SendError::Exchange)
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

    fn keep(&self, mut lane: Lane) {
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

/// An answer whose body is still to be read. Dropping it before that closes its connection. On the heap, because it
/// is handed on from future to future.
pub(super) struct Response(Box<OpenResponse>);

struct OpenResponse {
    head: Parts,
    target: Target,
    body: Incoming,
    /// The connection, until the body is over.
    lane: Option<Lane>,
    client: Arc<Client>,
}

impl Response {
    /// Its status.
    pub(super) fn status(&self) -> StatusCode {
        self.0.head.status
    }

    /// Its headers.
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.0.head.headers
    }

    /// Where the request went.
    pub(super) fn url(&self) -> &Url {
        self.0.target.url()
    }

    /// How long its body is, as far as that is known.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.0.body.size_hint().exact()
    }

    /// Whether all of the body was read.
    pub(super) fn is_over(&self) -> bool {
        self.0.body.is_end_stream()
    }

    /// The next bytes of its body; none at its end. Cancel-safe.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        let chunk = poll_fn(|context| self.0.poll_chunk(context)).await;
        let over = match &chunk {
            Ok(Some(_)) => self.is_over(),
            Ok(None) => true,
            Err(_) => false,
        };
        if over && let Some(lane) = self.0.lane.take() {
            self.0.client.keep(lane);
        }
        chunk
    }
}

impl OpenResponse {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, hyper::Error>> {
        // What is there is taken before the connection is driven, which then has room for more.
        if let Poll::Ready(chunk) = self.poll_taken(context) {
            return Poll::Ready(chunk);
        }
        match &mut self.lane {
            Some(lane) => lane.drive(context),
            None => return Poll::Ready(Ok(None)),
        }
        self.poll_taken(context)
    }

    /// What the connection has put into the body.
    fn poll_taken(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, hyper::Error>> {
        loop {
            return match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => Poll::Ready(Ok(Some(bytes))),
                    // Trailers mean nothing here.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
                Poll::Ready(None) => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            };
        }
    }
}
