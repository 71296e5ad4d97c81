//! Asks the host or the workbench that serves over HTTP.

use std::{future::poll_fn, pin::Pin, time::Duration};

use hyper::{
    Request, StatusCode,
    body::Body,
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;

use crate::{alarm::timeout, cli::ui::PageRecord, visible::visible};

/// How long an answer may take. A restart waits for the server.
const TIMEOUT: Duration = Duration::from_mins(3);

/// A question that was not answered.
#[derive(Debug, Error)]
pub(in crate::cli) enum LiveError {
    #[error(
        "cannot reach the workbench at {address}: {reason}\n  \
         hint: start one with `mcp-workbench serve --http {address}`"
    )]
    Unreachable {
        address: std::net::SocketAddr,
        reason: String,
    },
    #[error("{}", visible(.0))]
    Refused(String),
}

pub(in crate::cli) async fn ask(
    record: &PageRecord,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, LiveError> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let (status, text) = send(record, method, path, body).await?;
    let document: Value = serde_json::from_slice(&text).unwrap_or_default();
    match (status, document["error"].as_str()) {
        (StatusCode::OK, _) => Ok(document),
        (_, Some(error)) => Err(LiveError::Refused(error.to_owned())),
        (status, None) => Err(unreachable(record, format!("status {status}"))),
    }
}

pub(in crate::cli) async fn ask_text(record: &PageRecord, path: &str) -> Result<String, LiveError> {
    match send(record, "GET", path, String::new()).await? {
        (StatusCode::OK, text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        (status, _) => Err(unreachable(record, format!("status {status}"))),
    }
}

fn unreachable(record: &PageRecord, reason: String) -> LiveError {
    LiveError::Unreachable {
        address: record.address,
        reason,
    }
}

async fn send(
    record: &PageRecord,
    method: &str,
    path: &str,
    body: String,
) -> Result<(StatusCode, Vec<u8>), LiveError> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, record.address.to_string())
        .header(AUTHORIZATION, format!("Bearer {}", record.key))
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| unreachable(record, error.to_string()))?;
    let asked = timeout(TIMEOUT, exchange(record, request))
        .await
        .map_err(|_| unreachable(record, "timed out".to_owned()))?;
    asked.map_err(|error| unreachable(record, error.to_string()))
}

async fn exchange(
    record: &PageRecord,
    request: Request<String>,
) -> Result<(StatusCode, Vec<u8>), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(record.address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let (head, mut body) = sender.send_request(request).await?.into_parts();
        let mut text = Vec::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            if let Ok(chunk) = frame?.into_data() {
                text.extend_from_slice(&chunk);
            }
        }
        Ok((head.status, text))
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        exchanged = &mut exchange => return exchanged,
        // Data that arrived before the connection ended is still to be read.
        _ = connection => {}
    }
    exchange.await
}
