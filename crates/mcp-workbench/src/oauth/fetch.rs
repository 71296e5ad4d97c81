//! Requests to servers and authorization servers: one request, one response, bounded in size and time, and only to
//! addresses that are checked when they are dialled. No cookies, no retries. The body of a response is never part of an
//! error; only the error codes that the standards define are.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    time::Duration,
};

use hyper::{
    Method, Request, Response, Uri,
    body::{Body, Incoming},
    client::conn::http1,
    header::{
        ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT, WWW_AUTHENTICATE,
    },
    http::StatusCode,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use url::{Position, Url};

use super::{
    Challenge,
    error::{FetchFault, OAuthCode, SignInError},
};
use crate::{
    alarm::timeout,
    dial::{DialFault, Guard, Stream},
    era::{LEGACY_REVISIONS, headers::PROTOCOL_VERSION},
    visible::visible,
};

const MOST_BYTES: usize = 64 * 1024;
/// How many redirects within one origin are followed to a metadata document.
const MOST_REDIRECTS: usize = 3;
/// How long a request may take in all.
const TIMEOUT: Duration = Duration::from_secs(10);
const OUR_NAME: HeaderValue =
    HeaderValue::from_static(concat!("mcp-workbench/", env!("CARGO_PKG_VERSION")));
const REVISION: HeaderValue =
    HeaderValue::from_static(LEGACY_REVISIONS[LEGACY_REVISIONS.len() - 1]);
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const JSON_OR_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The request that shows if a server wants a token. It leaves no state at the server.
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Sends requests on behalf of the entry of one server.
pub(super) struct Fetcher {
    guard: Guard,
    server: Url,
}

impl Fetcher {
    pub(super) fn new(server: &Url) -> Self {
        Self {
            guard: Guard::new(server),
            server: server.clone(),
        }
    }

    /// Returns the address of the server of the entry.
    pub(super) fn server(&self) -> &Url {
        &self.server
    }

    /// Refuses an address that must not be asked, as far as its text tells. It is checked again when it is dialled.
    pub(super) fn check(&self, url: &Url) -> Result<(), FetchFault> {
        let checked = self.guard.check(url);
        checked.map_err(|fault| dial_fault(fault, &host(url)))
    }

    /// Gets a metadata document. Returns `None` if there is none. Redirects are followed within the origin.
    pub(super) async fn get(&self, url: &Url) -> Result<Option<Vec<u8>>, SignInError> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let mut request = Request::new(String::new());
            // Revision 2025-03-26 wants it here, for servers whose metadata depends on the revision.
            let version = HeaderName::from_static(PROTOCOL_VERSION);
            request.headers_mut().insert(version, REVISION);
            let response = self.fetch(&url, request).await?;
            if !response.status().is_redirection() {
                let is_found = response.status() == StatusCode::OK;
                return Ok(is_found.then(|| response.into_body()));
            }
            let location = response
                .headers()
                .get(LOCATION)
                .and_then(|it| it.to_str().ok());
            let Some(next) = location.and_then(|it| url.join(it).ok()) else {
                return Ok(None);
            };
            // Another origin must not speak for this one.
            if next.origin() != url.origin() {
                return Err(SignInError::Metadata);
            }
            url = next;
        }
        Err(SignInError::Metadata)
    }

    /// Sends a request over a connection of its own and reads the response.
    pub(super) async fn fetch(
        &self,
        url: &Url,
        request: Request<String>,
    ) -> Result<Response<Vec<u8>>, FetchFault> {
        let host = host(url);
        let send = self.send(url, request, Reading::Whole);
        let (head, body) = within_time(&host, send).await?;
        let body = body.ok_or_else(|| FetchFault::TooLarge { host: host.clone() })?;
        let response = head.map(|()| body);
        let status = response.status();
        // An error without an OAuth code is often that of a proxy in front of the server. With a code, the caller
        // decides.
        if is_transient(status) && refusal(&response) == Some(OAuthCode::Other) {
            let status = status.as_u16();
            return Err(FetchFault::Status { host, status });
        }
        Ok(response)
    }

    /// Asks the server for its challenge. Many servers refuse every GET, so that a `ping` is posted first; others send
    /// a challenge only to a GET. Only the head of the response is read, since the body may be an endless stream.
    pub(super) async fn probe(&self) -> Result<Option<Challenge>, FetchFault> {
        let mut ping = post(JSON, PING.to_owned());
        ping.headers_mut().insert(ACCEPT, JSON_OR_STREAM);
        let probe = async {
            let (head, _) = self.send(&self.server, ping, Reading::Head).await?;
            if head.status() == StatusCode::UNAUTHORIZED {
                return Ok(head);
            }
            let get = Request::new(String::new());
            let (head, _) = self.send(&self.server, get, Reading::Head).await?;
            Ok(head)
        };
        let head = within_time(&host(&self.server), probe).await?;
        if head.status() != StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        let challenges = head.headers().get_all(WWW_AUTHENTICATE).iter();
        Ok(Challenge::of(challenges.filter_map(|it| it.to_str().ok())))
    }

    async fn send(
        &self,
        url: &Url,
        request: Request<String>,
        reading: Reading,
    ) -> Result<(Response<()>, Option<Vec<u8>>), FetchFault> {
        let host = host(url);
        let stream = self.guard.connect(url).await;
        let stream = stream.map_err(|fault| dial_fault(fault, &host))?;
        let broken = || FetchFault::Broken { host };
        let Some(request) = prepare(url, request) else {
            return Err(broken());
        };
        send(stream, request, reading).await.map_err(|_| broken())
    }
}

/// How much of a response is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Head,
    Whole,
}

pub(super) fn post(content_type: HeaderValue, body: String) -> Request<String> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    request
}

/// Returns the error code of a response; `None` if it is a success.
pub(super) fn refusal(response: &Response<Vec<u8>>) -> Option<OAuthCode> {
    if response.status().is_success() {
        return None;
    }
    let body = serde_json::from_slice::<Value>(response.body()).unwrap_or_default();
    let code = body["error"].as_str().map(OAuthCode::of);
    Some(code.unwrap_or(OAuthCode::Other))
}

async fn within_time<T>(
    host: &str,
    work: impl Future<Output = Result<T, FetchFault>>,
) -> Result<T, FetchFault> {
    let done = timeout(TIMEOUT, work).await;
    done.unwrap_or_else(|_| Err(FetchFault::TooSlow { host: host.into() }))
}

fn host(url: &Url) -> String {
    visible(url.host_str().unwrap_or_default()).to_string()
}

/// Returns true if the same request may succeed in a while.
fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

fn dial_fault(fault: DialFault, host: &str) -> FetchFault {
    let host = host.to_owned();
    match fault {
        DialFault::Insecure => FetchFault::Insecure { host },
        DialFault::Internal => FetchFault::Internal { host },
        DialFault::Unreachable(reason) => FetchFault::Unreachable {
            host,
            reason: visible(&reason).to_string(),
        },
    }
}

/// Adds the target and the headers that every request has. Returns `None` if the address does not fit into a request.
fn prepare(url: &Url, mut request: Request<String>) -> Option<Request<String>> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    *request.uri_mut() = Uri::try_from(path).ok()?;
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(host).ok()?);
    headers.insert(USER_AGENT, OUR_NAME);
    headers.entry(ACCEPT).or_insert(JSON);
    Some(request)
}

/// Sends a request over a connection and reads the head of the response, and its body unless that is too long.
async fn send(
    stream: Box<dyn Stream>,
    request: Request<String>,
    reading: Reading,
) -> Result<(Response<()>, Option<Vec<u8>>), hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = pin!(connection);
    let mut exchange = pin!(async move {
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = match reading {
            Reading::Head => None,
            Reading::Whole => read(body).await?,
        };
        Ok((Response::from_parts(head, ()), body))
    });
    tokio::select! {
        biased;
        exchanged = &mut exchange => return exchanged,
        // Data that arrived before the connection ended is still to be read.
        _ = &mut connection => {}
    }
    exchange.await
}

/// Reads a body. Returns `None` if it is too long.
async fn read(mut body: Incoming) -> Result<Option<Vec<u8>>, hyper::Error> {
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(chunk) = frame?.into_data() else {
            continue;
        };
        if read.len() + chunk.len() > MOST_BYTES {
            return Ok(None);
        }
        read.extend_from_slice(&chunk);
    }
    Ok(Some(read))
}
