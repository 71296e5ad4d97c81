//! Streamable HTTP: many clients of one workbench, each with a session, or with requests that stand for themselves.
//!
//! `initialize` makes a session: an unguessable id and the principal that made it. For another principal it does not
//! exist. A stream is a log with positions, so reading it live, later or again is the same, and a disconnect cancels
//! nothing. A modern request has no session but a connection object and a stream of its own; dropping the response
//! cancels it.
//!
//! ```text
//! connection ─► guard ─► endpoint ─► session ─► Connection, as over stdio
//!               host,    POST, GET,   one a       │
//!               origin,  DELETE       client      ▼
//!               token                          streams ─► JSON or events
//! ```
//!
//! - [`listener`] accepts connections and knows the order of the end, [`connections`] bounds their number;
//! - [`guard`] and [`tokens`] say who may come in, before anything of a body is read;
//! - [`endpoint`] gives POST, GET and DELETE their meaning, [`headers`] and [`request_body`] read what
//!   they need, and [`refusal`] has every reason why not;
//! - [`sessions`] holds the clients, [`streams`] what is said to each of them, and [`bodies`] puts it
//!   into a [`response`]; [`unread`] bounds what is held for all of them;
//! - [`stateless`] stands beside [`sessions`] for the revision without them, and [`agreement`] checks that
//!   the headers of its requests say what their bodies say;
//! - [`limits`] has every bound, and [`patience`] the timers for those of time.

mod agreement;
mod bodies;
mod connections;
mod endpoint;
mod guard;
mod headers;
mod limits;
mod listener;
mod patience;
mod patient_stream;
mod refusal;
mod request_body;
mod response;
mod sessions;
mod stateless;
mod stream_state;
mod streams;
mod tokens;
mod unread;

use std::{net::SocketAddr, time::Duration};

pub(crate) use guard::AllowedHost;
pub(crate) use listener::HttpListener;
pub(crate) use sessions::random_id;
pub(super) use streams::EventStream;
pub(crate) use tokens::{InvalidTokens, Tokens};

pub(crate) const ENDPOINT_PATH: &str = "/mcp";
/// The path of the health check, which needs no token.
const HEALTH_PATH: &str = "/healthz";

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
