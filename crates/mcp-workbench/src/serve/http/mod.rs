//! Streamable HTTP: many clients of one workbench, each with a session or with requests without one.
//!
//! `initialize` creates a session: an unguessable id and its principal. Other principals cannot see it. A stream is a
//! log with positions, so reading it live, later or again is the same, and a disconnect cancels nothing. A modern
//! request has no session; it has its own connection object and stream, and dropping the response cancels it.
//!
//! ```text
//! connection ─► guard ─► endpoint ─► session ─► Connection, as over stdio
//!               host,    POST, GET,  one per      │
//!               origin,  DELETE      client       ▼
//!               token                          streams ─► JSON or events
//! ```
//!
//! - [`listener`] accepts connections and shuts them down in order, [`connections`] bounds their number;
//! - [`guard`] and [`tokens`] decide who has access, before a body is read;
//! - [`endpoint`] handles POST, GET and DELETE, [`headers`] and [`request_body`] parse requests, and [`refusal`] has
//!   every reason for a refusal;
//! - [`sessions`] holds the clients, [`streams`] the output to each of them, and [`bodies`] puts it into a
//!   [`response`]; [`unread`] bounds the bytes that are stored for all of them;
//! - [`stateless`] handles the revision without sessions, and [`agreement`] checks that the headers of its requests
//!   match their bodies;
//! - [`page`] is the border to the page in the browser, which is not part of MCP;
//! - [`limits`] has every bound, and [`wait_timer`] the timer for timeouts.

mod agreement;
mod bodies;
mod connections;
mod endpoint;
mod guard;
mod headers;
mod limits;
mod listener;
mod page;
mod refusal;
mod request_body;
mod response;
mod sessions;
mod stateless;
mod stream_state;
mod streams;
mod timed_stream;
mod tokens;
mod unread;
mod wait_timer;

use std::{net::SocketAddr, time::Duration};

pub(crate) use guard::AllowedHost;
pub(crate) use listener::HttpListener;
pub(crate) use page::{Page, PageBody, PageFuture, PageRequest, PageResponse};
pub(crate) use sessions::random_id;
pub(super) use streams::EventStream;
pub(crate) use tokens::{InvalidTokens, Tokens};

pub(crate) const ENDPOINT_PATH: &str = "/mcp";
/// The path of the health check, which needs no token.
const HEALTH_PATH: &str = "/healthz";
/// The path of the metrics for Prometheus.
const METRICS_PATH: &str = "/metrics";

/// The options of serving over HTTP.
#[derive(Debug)]
pub(crate) struct HttpOptions {
    pub address: SocketAddr,
    /// Further hosts by which we may be reached.
    pub hosts: Vec<AllowedHost>,
    /// The tokens, one of which is required; none if no token is.
    pub tokens: Option<Tokens>,
    /// For how long a session may be idle.
    pub session_timeout: Duration,
}
