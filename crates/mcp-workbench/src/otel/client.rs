//! The HTTP client of the exporters. The SDK exports on threads of its own and waits there; the requests are sent on the
//! event loop, with the connections that servers are reached by.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Request, Response, Uri,
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1,
    header::{HOST, HeaderValue},
    http::uri::Scheme,
};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::{
    alarm::timeout,
    dial::{Connector, Proxies, Stream, is_this_machine},
};

/// The longest response that is read. Receivers answer in a few bytes.
const MAX_RESPONSE: usize = 64 * 1024;
/// How long an export may take in all.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Requests that wait. Each exporter has one at a time.
const QUEUED: usize = 8;

/// A request of an exporter, and the way back to it.
struct Export {
    request: Request<Bytes>,
    reply: oneshot::Sender<Result<Response<Bytes>, HttpError>>,
}

/// Sends requests on the event loop.
#[derive(Debug, Clone)]
pub(super) struct EventLoopClient {
    exports: mpsc::Sender<Export>,
}

impl EventLoopClient {
    /// Starts the task that sends. It ends when the last client is dropped.
    pub(super) fn start() -> Self {
        let (exports, mut waiting) = mpsc::channel::<Export>(QUEUED);
        let tasks = TaskTracker::new();
        let sending = tasks.clone();
        tasks.spawn(async move {
            while let Some(Export { request, reply }) = waiting.recv().await {
                // In a task of its own, so that a slow receiver does not hold up the other exporter.
                sending.spawn(async move {
                    // An exporter that gave up drops the receiver.
                    let _ = reply.send(send(request).await);
                });
            }
        });
        Self { exports }
    }
}

#[async_trait::async_trait]
impl HttpClient for EventLoopClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (reply, answer) = oneshot::channel();
        self.exports.send(Export { request, reply }).await?;
        answer.await?
    }
}

/// Sends a request over a connection of its own: exports are rare, and a connection that is kept would break meanwhile.
async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let sent = timeout(TIMEOUT, async {
        let target = request.uri().clone();
        let proxies = match Url::parse(&target.to_string()) {
            Ok(url) if is_this_machine(&url) => Proxies::None,
            _ => Proxies::Usual,
        };
        let connector = Connector::new(target, proxies).await?;
        let is_forwarded = connector.is_forwarded();
        let stream = connector.connect().await?;
        exchange(stream, prepare(request, is_forwarded)?).await
    });
    sent.await.unwrap_or_else(|_| Err("timed out".into()))
}

/// Adds `Host`. Only a proxy that forwards the request gets the whole address.
fn prepare(request: Request<Bytes>, is_forwarded: bool) -> Result<Request<WholeBody>, HttpError> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().ok_or("the endpoint has no host")?;
    let host = HeaderValue::try_from(authority.as_str())?;
    head.headers.insert(HOST, host);
    if !is_forwarded || head.uri.scheme() == Some(&Scheme::HTTPS) {
        let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
        head.uri = Uri::try_from(path)?;
    }
    Ok(Request::from_parts(head, WholeBody(Some(body))))
}

async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<WholeBody>,
) -> Result<Response<Bytes>, HttpError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = pin!(connection);
    let mut exchange = pin!(async move {
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, read(body).await?))
    });
    tokio::select! {
        biased;
        exchanged = &mut exchange => return exchanged,
        // Data that arrived before the connection ended is still to be read.
        _ = &mut connection => {}
    }
    exchange.await
}

async fn read(mut body: Incoming) -> Result<Bytes, HttpError> {
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(chunk) = frame?.into_data() {
            if read.len() + chunk.len() > MAX_RESPONSE {
                return Err("the response is too large".into());
            }
            read.extend_from_slice(&chunk);
        }
    }
    Ok(read.into())
}

/// A body that is sent at once.
struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |it| it.len() as u64))
    }
}
