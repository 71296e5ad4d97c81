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
//! - [`guard`] and [`tokens`] decide who has access, before a body is read, [`contexts`] and [`user_contexts`] to which
//!   workbench;
//! - [`endpoint`] handles POST, GET and DELETE, [`headers`] and [`request_body`] parse requests, and [`refusal`] has
//!   every reason for a refusal;
//! - [`quotas`] has the limits of each principal, whose rates are [`bucket`]s;
//! - [`sessions`] holds the clients, [`streams`] the output to each of them, and [`bodies`] puts it into a
//!   [`response`]; [`unread`] bounds the bytes that are stored for all of them;
//! - [`owners`] finds the replica that a request belongs to, [`forward`] sends it there, and [`sealed_session`] lets a
//!   session continue in another one;
//! - [`event_streams`] opens and resumes streams, and [`shared_events`] lets another replica answer for one that is gone;
//! - [`stateless`] handles the revision without sessions, and [`agreement`] checks that the headers of its requests
//!   match their bodies;
//! - [`page`] is the border to the page in the browser, which is not part of MCP;
//! - [`browser_pages`] are the pages for users who sign in to servers;
//! - [`limits`] has every bound, and [`wait_timer`] the timer for timeouts.

mod agreement;
mod bodies;
mod browser_pages;
mod bucket;
mod connections;
mod contexts;
mod endpoint;
mod event_streams;
mod extension_contexts;
mod forward;
mod guard;
mod headers;
mod limits;
mod listener;
mod owners;
mod page;
mod quotas;
mod refusal;
mod request_body;
mod response;
mod sealed_session;
mod sessions;
mod shared_events;
mod stateless;
mod stream_state;
mod streams;
mod timed_stream;
mod tokens;
mod unread;
mod user_contexts;
mod wait_timer;

use std::{net::SocketAddr, time::Duration};

use ident::ClientName;

use crate::config::{Auth, ClientClaims};

pub(crate) use contexts::{OtherWorkbenches, Workbenches};
pub(crate) use guard::AllowedHost;
pub(crate) use listener::HttpListener;
pub(crate) use page::{Page, PageBody, PageFuture, PageRequest, PageResponse};
pub(crate) use sessions::random_id;
pub(super) use streams::EventStream;
pub(crate) use tokens::{InvalidTokens, Tokens};

pub(crate) const ENDPOINT_PATH: &str = "/mcp";
/// The paths of the health check, which needs no token.
const HEALTH_PATHS: [&str; 2] = ["/healthz", "/health"];
/// The path that says whether a balancer should send requests. It needs no token either.
const READY_PATH: &str = "/ready";
/// The path of the metrics for Prometheus.
const METRICS_PATH: &str = "/metrics";

/// Returns whether a path is for probes, which need no token.
fn is_probe(path: &str) -> bool {
    HEALTH_PATHS.contains(&path) || path == READY_PATH
}

/// The users whose tokens an authorization server issues.
#[derive(Debug)]
pub(crate) struct Users {
    pub auth: Auth,
    /// The clients of the configuration that users can be.
    pub clients: Vec<(ClientName, ClientClaims)>,
}

/// The options of serving over HTTP.
#[derive(Debug)]
pub(crate) struct HttpOptions {
    pub address: SocketAddr,
    /// Further hosts by which we may be reached.
    pub hosts: Vec<AllowedHost>,
    /// The tokens, one of which is required unless `users` have their own; none if no token is.
    pub tokens: Option<Tokens>,
    /// The users whose tokens an authorization server issues.
    pub users: Option<Box<Users>>,
    /// For how long a session may be idle.
    pub session_timeout: Duration,
    /// How long requests are served after the signal to end.
    pub drain_timeout: Duration,
    pub offer: Offer,
}

/// The parts that an address offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// MCP, and the page if there is one.
    Mcp,
    /// The page and the metrics, for whoever has the key of the page.
    Page,
}
