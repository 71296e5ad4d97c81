//! Requests on idle connections that have ended, and the head of a request.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::{
    HeaderMap, Method,
    header::{AUTHORIZATION, HOST, HeaderValue},
};
use pretty_assertions::assert_eq;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use url::Url;

use super::{empty_result, json, remote::Remote};
use crate::{
    call::Outcome,
    dial::innermost,
    downstream::http::{
        address,
        body::{MessageBody, SendState},
        client::SendError,
        connection::{ExchangeError, HttpConnection},
    },
    wire,
};

/// A connection that looks alive until something is written to it.
struct Dead {
    /// The number of bytes that it accepts before it fails.
    takes: usize,
    /// The bytes that can be read after it failed.
    said: &'static [u8],
    shows: bool,
}

impl AsyncRead for Dead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.shows {
            return Poll::Pending;
        }
        buffer.put_slice(std::mem::take(&mut self.said));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Dead {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = std::mem::take(&mut self.takes).min(bytes.len());
        if taken > 0 {
            return Poll::Ready(Ok(taken));
        }
        self.shows = true;
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Sends a request with two such idle connections: returns the status of the response, or the error.
async fn send(url: &str, sending: &Arc<SendState>, takes: usize, said: &'static [u8]) -> String {
    let url = Url::parse(url).unwrap();
    let client = address::client(&url).await.unwrap();
    for _ in 0..2 {
        let dead = Dead {
            takes,
            said,
            shows: false,
        };
        let connection = HttpConnection::new(Box::new(dead)).await.unwrap();
        client.keep(connection);
    }
    let target = client.target(url).unwrap();
    let frame = wire::request(1, "tools/call", json("{}"));
    let body = MessageBody::new(&frame, sending, None);
    let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
    match client.send(target, Method::POST, &[&headers], body).await {
        Ok(response) => response.status().to_string(),
        Err(SendError::Connect(_)) => "not connected".to_owned(),
        Err(SendError::Exchange(ExchangeError::Withdrawn)) => "withdrawn".to_owned(),
        Err(SendError::Exchange(error)) => innermost(&error),
    }
}

#[tokio::test]
async fn unwritten_requests_move_to_another_connection() {
    const LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";
    for said in [b"".as_slice(), LATE] {
        let remote = Remote::start(empty_result);
        let (url, sending) = (
            format!("http://{}/", remote.address),
            Arc::<SendState>::default(),
        );
        assert_eq!(send(&url, &sending, 0, said).await, "200 OK");
        assert_eq!(remote.methods(), ["tools/call"]);
        assert_eq!(sending.outcome(), Outcome::Unknown);
    }
}

#[tokio::test]
async fn partly_written_requests_are_not_repeated() {
    let remote = Remote::start(empty_result);
    let (url, sending) = (
        format!("http://{}/", remote.address),
        Arc::<SendState>::default(),
    );
    assert_eq!(send(&url, &sending, 1, b"").await, "broken pipe");
    assert_eq!(remote.methods(), [""; 0]);
    assert_eq!(sending.outcome(), Outcome::Unknown);
}

/// A failed write does not show how much of it was sent.
#[tokio::test]
async fn failed_encrypted_writes_are_not_repeated() {
    let sending = Arc::<SendState>::default();
    let sent = send("https://127.0.0.1:1/", &sending, 0, b"").await;
    assert_eq!(sent, "broken pipe");
    assert_eq!(sending.outcome(), Outcome::Unknown);
}

#[tokio::test]
async fn unsent_requests_are_known_without_another_connection() {
    let sending = Arc::<SendState>::default();
    let sent = send("http://127.0.0.1:1/", &sending, 0, b"").await;
    assert_eq!(sent, "not connected");
    assert_eq!(sending.outcome(), Outcome::NotSent);
}

#[tokio::test]
async fn withdrawn_requests_are_not_sent() {
    let remote = Remote::start(empty_result);
    let (url, sending) = (
        format!("http://{}/", remote.address),
        Arc::<SendState>::default(),
    );
    sending.withdraw();
    assert_eq!(send(&url, &sending, 0, b"").await, "withdrawn");
    assert_eq!(remote.methods(), [""; 0]);
    assert_eq!(sending.outcome(), Outcome::NotSent);
}

/// Two headers with credentials would be ambiguous.
#[tokio::test]
async fn later_headers_replace_earlier_ones() {
    let remote = Remote::start(empty_result);
    let url = Url::parse(&format!("http://{}/", remote.address)).unwrap();
    let client = address::client(&url).await.unwrap();
    let target = client.target(url).unwrap();
    let credentials =
        |text| HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(text))]);
    let (frame, sending) = (
        wire::request(1, "ping", json("{}")),
        Arc::<SendState>::default(),
    );
    let body = MessageBody::new(&frame, &sending, None);
    let headers = [
        &credentials("Basic x"),
        &HeaderMap::new(),
        &credentials("Bearer y"),
    ];
    let sent = client.send(target, Method::POST, &headers, body).await;
    assert!(sent.is_ok());
    let seen = remote.seen();
    let seen = seen[0].headers("authorization");
    assert_eq!(seen, [("authorization", "Bearer y")]);
}
