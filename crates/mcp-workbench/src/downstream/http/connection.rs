//! One HTTP/1.1 connection to a server, which carries one exchange at a time. hyper reads and writes it, and the task
//! that waits for the exchange drives hyper: a response passes through no other task, and an idle connection costs
//! nothing but its socket.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Incoming},
    client::conn::http1::{Builder, Connection, SendRequest},
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::time::Instant;

use super::{
    body::{MessageBody, RequestBody},
    watched_stream::{WatchedStream, Watcher},
};
use crate::dial::Stream;

/// Upper bound on the head of a response, and on a single read. hyper itself takes at most 100 headers.
const MAX_BUFFER_BYTES: usize = 256 * 1024;

/// The reason why a response is missing or incomplete.
#[derive(Debug, Error)]
pub(super) enum ExchangeError {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("unexpected `101 Switching Protocols` response")]
    SwitchingProtocols,
    #[error("the request was cancelled before it was sent")]
    Withdrawn,
}

type Driver = Pin<Box<Connection<TokioIo<WatchedStream>, RequestBody>>>;

pub(super) struct HttpConnection {
    sender: SendRequest<RequestBody>,
    /// Reads and writes; `None` after the connection has ended.
    driver: Option<Driver>,
    watcher: Arc<Watcher>,
    /// Set if another exchange may follow.
    is_reusable: bool,
    /// The end of its last exchange.
    pub(super) idle_since: Instant,
}

impl HttpConnection {
    pub(super) async fn new(stream: Box<dyn Stream>) -> Result<Self, hyper::Error> {
        let watcher = Arc::<Watcher>::default();
        let stream = WatchedStream::new(stream, Arc::clone(&watcher));
        let (sender, driver) = Builder::new()
            .max_buf_size(MAX_BUFFER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            sender,
            driver: Some(Box::pin(driver)),
            watcher,
            is_reusable: true,
            idle_since: Instant::now(),
        })
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn exchange(
        &mut self,
        head: Request<()>,
        message: &mut MessageBody<'_>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        let body = message.begin(&self.watcher);
        let mut response = pin!(self.sender.send_request(head.map(|()| body)));
        let driver = &mut self.driver;
        // The connection has no task: whoever waits for the response reads and writes for it.
        let response = poll_fn(|context| {
            drive(driver, context);
            response.as_mut().poll(context)
        });
        let response = match response.await {
            Ok(response) => response,
            Err(_) if message.is_withdrawn() => return Err(ExchangeError::Withdrawn),
            Err(error) => return Err(error.into()),
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ExchangeError::SwitchingProtocols);
        }
        // A response with both headers is ambiguous, so nothing after it on this connection is trusted.
        let headers = response.headers();
        self.is_reusable =
            !(headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING));
        Ok(response)
    }

    /// Returns true if no byte of the last request was sent.
    pub(super) fn is_unwritten(&self) -> bool {
        self.watcher.written() == 0
    }

    pub(super) fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// Reads the next bytes of a body; `None` at its end. Cancel-safe.
    pub(super) fn poll_chunk(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ExchangeError>> {
        let mut is_driven = false;
        loop {
            match Pin::new(&mut *body).poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(frame)) => {
                    // Trailers are ignored.
                    if let Ok(chunk) = frame?.into_data() {
                        return Poll::Ready(Ok(Some(chunk)));
                    }
                }
                // Driving may make a frame ready, so the body is polled once more after it.
                Poll::Pending if is_driven => return Poll::Pending,
                Poll::Pending => {
                    drive(&mut self.driver, context);
                    is_driven = true;
                }
            }
        }
    }

    /// Returns true if another exchange may begin: the last one has ended, and the server has neither sent anything
    /// since nor closed the connection.
    pub(super) fn is_ready(&mut self) -> bool {
        // Without a waker: this only looks whether the server has closed the connection.
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.is_reusable() && self.sender.is_ready()
    }

    /// Returns true if the last response and the connection allow another exchange.
    pub(super) fn is_reusable(&self) -> bool {
        self.is_reusable && self.driver.is_some()
    }
}

/// Reads and writes as far as possible without waiting. The exchange learns of the end of the connection through
/// hyper.
fn drive(driver: &mut Option<Driver>, context: &mut Context<'_>) {
    if let Some(running) = driver
        && running.as_mut().poll(context).is_ready()
    {
        *driver = None;
    }
}
