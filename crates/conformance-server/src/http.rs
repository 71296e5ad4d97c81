//! The fixture over Streamable HTTP: its listener, its access checks, and the streams it can drop.

use std::{error::Error, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    era::Era,
    fixture::{Fixture, Process},
    stderr_line,
};

/// The names by which a client on this machine may call us.
const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The reconnection delay for a client whose stream was dropped.
const RETRY: Duration = Duration::from_millis(100);

/// The number of streams of a session that are tried when they are dropped. Sessions count their streams from 0 and do
/// not list the open ones; those of the suite have a handful.
const STREAMS_OF_A_SESSION: u64 = 256;

/// More than any request of the suite has.
const MOST_BYTES: usize = 1 << 20;

/// Serves the fixture on 127.0.0.1 until the process ends.
pub(crate) async fn serve(port: u16, era: Era) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();

    let sessions = Arc::new(LocalSessionManager::default());
    let streams = Streams(Arc::clone(&sessions));
    let process = Arc::new(Process::new(era));
    let service = StreamableHttpService::new(
        move || Ok(Fixture::over_http(Arc::clone(&process), streams.clone())),
        sessions,
        loopback_only(port),
    );
    let mut router = Router::new().route_service("/mcp", service);
    if era != Era::Both {
        router = router.layer(middleware::from_fn_with_state(era, refuse_other_era));
    }

    stderr_line(&format!("listening on http://127.0.0.1:{port}/mcp"));
    axum::serve(listener, router).await?;
    Ok(())
}

/// Refuses requests of the other era as a server of one era does. rmcp responds differently.
async fn refuse_other_era(State(era): State<Era>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MOST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    // rmcp refuses invalid bodies.
    let refusal = serde_json::from_slice(&bytes)
        .ok()
        .and_then(|message| era.refusal(&message));
    match refusal {
        Some(refusal) => {
            let headers = [(CONTENT_TYPE, "application/json")];
            let body = json!(refusal).to_string();
            (StatusCode::BAD_REQUEST, headers, body).into_response()
        }
        None => {
            next.run(Request::from_parts(parts, Body::from(bytes)))
                .await
        }
    }
}

/// Without the list of origins, rmcp would check the Host header only.
fn loopback_only(port: u16) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(LOOPBACK_NAMES.map(|name| format!("{name}:{port}")))
        .with_allowed_origins(LOOPBACK_NAMES.map(|name| format!("http://{name}:{port}")))
}

/// The response streams of all sessions.
#[derive(Clone)]
pub(crate) struct Streams(Arc<LocalSessionManager>);

/// The result of dropping streams.
#[derive(PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The streams of a session.
    Some,
    /// None, because the request belongs to no session.
    None,
}

impl Streams {
    /// Ends every open response stream of the session that the request belongs to. The requests go on,
    /// and their answers go to the client that has returned with `Last-Event-ID` by then.
    pub(crate) async fn drop_those_of(&self, request: &Parts) -> Dropped {
        let session_id = request.headers.get("mcp-session-id");
        let Some(session_id) = session_id.and_then(|id| id.to_str().ok()) else {
            return Dropped::None;
        };
        let session = self.0.sessions.read().await.get(session_id).cloned();
        let Some(session) = session else {
            return Dropped::None;
        };
        for stream in 0..STREAMS_OF_A_SESSION {
            // An error means that there is no such stream, so there is nothing to close.
            let _ = session.close_sse_stream(stream, Some(RETRY)).await;
        }
        Dropped::Some
    }
}
