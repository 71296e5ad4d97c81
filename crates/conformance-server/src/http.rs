//! The fixture over Streamable HTTP: where it listens, whom it lets in, and the streams it can drop.

use std::{error::Error, sync::Arc, time::Duration};

use axum::{Router, http::request::Parts};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::net::TcpListener;

use crate::{fixture::Fixture, stderr_line};

/// The names by which a client on this machine may call us.
const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// What a client whose stream was dropped is told to wait before it comes back.
const RETRY: Duration = Duration::from_millis(100);

/// How many streams of a session are tried when they are dropped. Sessions count their streams from 0
/// and do not tell which are open; the ones of the suite have a handful.
const STREAMS_OF_A_SESSION: u64 = 256;

/// Serves the fixture on 127.0.0.1 until the process ends.
pub(crate) async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();

    let sessions = Arc::new(LocalSessionManager::default());
    let streams = Streams(Arc::clone(&sessions));
    let service = StreamableHttpService::new(
        move || Ok(Fixture::over_http(streams.clone())),
        sessions,
        loopback_only(port),
    );
    let router = Router::new().route_service("/mcp", service);

    stderr_line(&format!("listening on http://127.0.0.1:{port}/mcp"));
    axum::serve(listener, router).await?;
    Ok(())
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

impl Streams {
    /// Ends every open response stream of the session that the request belongs to. The requests go on,
    /// and their answers go to the client that has returned with `Last-Event-ID` by then.
    pub(crate) async fn drop_those_of(&self, request: &Parts) {
        let Some(session_id) = request.headers.get("mcp-session-id") else {
            return;
        };
        let Ok(session_id) = session_id.to_str() else {
            return;
        };
        let session = self.0.sessions.read().await.get(session_id).cloned();
        let Some(session) = session else {
            return;
        };
        for stream in 0..STREAMS_OF_A_SESSION {
            // An error says that there is no such stream, which is as good as closed.
            let _ = session.close_sse_stream(stream, Some(RETRY)).await;
        }
    }
}
