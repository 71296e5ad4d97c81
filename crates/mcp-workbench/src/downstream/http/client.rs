//! The HTTP client of one server: idle connections are reused, and new ones are opened when none is free. Redirects,
//! retries, compression and cookies are not handled here.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard},
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

use super::{
    body::MessageBody,
    connection::{ExchangeError, HttpConnection},
};
use crate::{
    dial::{ConnectFault, Connector},
    sync::lock,
};

/// Upper bound on idle connections: as many as calls may run.
const MAX_IDLE: usize = 64;
/// How long connections stay idle: a little less than servers keep them open (5 s is common), since a call that meets
/// the end of its connection cannot be sent again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The reason why a request has no response.
#[derive(Debug, Error)]
pub(super) enum SendError {
    #[error("no connection")]
    Connect(#[source] ConnectFault),
    /// The connection broke, or the response is not valid HTTP.
    #[error("no response")]
    Exchange(#[source] ExchangeError),
}

/// An address of the server, with its form in requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Target(Arc<(Url, Uri)>);

impl Target {
    pub(super) fn url(&self) -> &Url {
        &self.0.0
    }

    /// Returns the head of a request with all of these headers. The last map replaces earlier headers of the same
    /// names.
    fn request(&self, method: &Method, headers: &[&HeaderMap]) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.0.1.clone();
        let Some((first, others)) = headers.split_first() else {
            return request;
        };
        // The first map has most of the headers. A clone of it costs less than adding them one by one.
        let mut all = HeaderMap::clone(first);
        if let Some((last, others)) = others.split_last() {
            for (name, value) in others.iter().copied().flatten() {
                all.append(name, value.clone());
            }
            for name in last.keys() {
                all.remove(name);
            }
            for (name, value) in *last {
                all.append(name, value.clone());
            }
        }
        *request.headers_mut() = all;
        request
    }
}

/// The HTTP client of one server.
pub(super) struct Client {
    connector: Connector,
    /// Idle connections, the one that was used last at the end.
    idle: Mutex<Vec<HttpConnection>>,
    has_idle: Notify,
}

impl Client {
    /// Creates a client without connections.
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::default(),
            has_idle: Notify::new(),
        })
    }

    /// Returns the form of an address in requests; `None` if it has none.
    pub(super) fn target(&self, url: Url) -> Option<Target> {
        let path = &url[Position::BeforePath..Position::AfterQuery];
        // A proxy that forwards requests needs the whole address in each of them.
        let uri = if self.connector.is_forwarded() {
            Uri::try_from(format!("{}{path}", url.origin().ascii_serialization()))
        } else {
            Uri::try_from(path)
        };
        let uri = uri.ok()?;
        Some(Target(Arc::new((url, uri))))
    }

    /// Returns the credentials for the proxy, which every request carries.
    pub(super) fn proxy_credentials(&self) -> Option<&HeaderValue> {
        self.connector.proxy_credentials()
    }

    /// Sends a request. If an idle connection has ended and sent no byte of it, the request goes to another one.
    pub(super) async fn send(
        self: &Arc<Self>,
        target: Target,
        method: Method,
        headers: &[&HeaderMap],
        mut body: MessageBody<'_>,
    ) -> Result<Response, SendError> {
        loop {
            let kept = self.take_idle();
            // Under TLS a failed write does not tell how much of it has reached the server.
            let is_repeatable = kept.is_some() && !self.connector.is_encrypted();
            let mut connection = match kept {
                Some(connection) => connection,
                // On the heap because it is large and rare.
                None => Box::pin(self.open()).await?,
            };
            let head = target.request(&method, headers);
            let exchanged = connection.exchange(head, &mut body).await;
            // A dead connection sent its last bytes before this request, so they belong to no request.
            if is_repeatable && connection.is_unwritten() && body.take_back(connection.watcher()) {
                continue;
            }
            let (head, body) = exchanged.map_err(SendError::Exchange)?.into_parts();
            let mut response = Response {
                head,
                body,
                target,
                connection: Some(connection),
                client: Arc::clone(self),
            };
            response.release_if_over();
            return Ok(response);
        }
    }

    /// Closes connections that stay idle for too long, as long as the future runs.
    pub(super) async fn end_idle(self: Arc<Self>) {
        loop {
            // One timer for all connections, and none while no connection is idle.
            self.has_idle.notified().await;
            while !self.idle().is_empty() {
                sleep(IDLE_TIMEOUT).await;
                self.idle().retain(is_fresh);
            }
        }
    }

    async fn open(&self) -> Result<HttpConnection, SendError> {
        let stream = self.connector.connect().await.map_err(SendError::Connect)?;
        let connection = HttpConnection::new(stream).await;
        connection.map_err(|error| SendError::Exchange(error.into()))
    }

    fn take_idle(&self) -> Option<HttpConnection> {
        let mut idle = self.idle();
        // The server is least likely to have closed the one that was used last.
        while let Some(mut connection) = idle.pop() {
            if is_fresh(&connection) && connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Returns a connection to the idle ones, if it can be reused.
    pub(super) fn keep(&self, mut connection: HttpConnection) {
        if !connection.is_reusable() {
            return;
        }
        connection.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.is_empty() {
            self.has_idle.notify_one();
        }
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<HttpConnection>> {
        lock(&self.idle)
    }
}

fn is_fresh(connection: &HttpConnection) -> bool {
    connection.idle_since.elapsed() < IDLE_TIMEOUT
}

/// A response whose body is still to be read. Dropping it before that closes its connection.
pub(super) struct Response {
    head: Parts,
    body: Incoming,
    target: Target,
    /// The connection, until the body ends.
    connection: Option<HttpConnection>,
    client: Arc<Client>,
}

impl Response {
    pub(super) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    pub(super) fn url(&self) -> &Url {
        self.target.url()
    }

    /// Returns the length of the unread body, if known.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Returns true if the body was read completely.
    pub(super) fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    /// Reads the next bytes of the body; `None` at its end. Cancel-safe.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        let Some(connection) = &mut self.connection else {
            return Ok(None);
        };
        let body = &mut self.body;
        let chunk = poll_fn(|context| connection.poll_chunk(body, context)).await?;
        if chunk.is_none() {
            self.release();
        }
        self.release_if_over();
        Ok(chunk)
    }

    fn release_if_over(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    /// Returns the connection to the client.
    fn release(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.client.keep(connection);
        }
    }
}
