//! The way to authorization servers: one request, one answer, bounded in size and time, and only to addresses that are
//! checked when they are dialled. No redirects, no cookies, no retries. What was answered is never part of an error; only
//! the codes that the standards define are remembered.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use hyper::{
    Method, Request, Response, Uri,
    body::{Body, Incoming},
    client::conn::http1,
    header::{
        ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT, WWW_AUTHENTICATE,
    },
    http::StatusCode,
};
use hyper_util::rt::TokioIo;
use rmcp::transport::auth::{
    AuthError, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use serde_json::Value;
use url::{Position, Url};

use super::{
    Challenge,
    error::{FetchFault, OAuthCode, SignInError},
};
use crate::{
    alarm::timeout,
    dial::{DialFault, Guard, Stream},
    visible::visible,
};

const MOST_BYTES: usize = 64 * 1024;
/// How long a request may take in all.
const PATIENCE: Duration = Duration::from_secs(10);
const OUR_NAME: HeaderValue =
    HeaderValue::from_static(concat!("mcp-workbench/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// What a server is asked to find out whether it wants a token: nothing that it would have to remember.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Asks authorization servers, for the server of one entry.
pub(super) struct Fetcher {
    guard: Guard,
    own: Url,
    seen: Mutex<Seen>,
    /// What the server itself asked for, if it was looked for.
    challenge: OnceLock<Challenge>,
}

/// What went wrong last, in words of ours.
#[derive(Default)]
struct Seen {
    fault: Option<FetchFault>,
    code: Option<OAuthCode>,
}

impl Fetcher {
    /// For the server at this address.
    pub(super) fn new(own: &Url) -> Self {
        Self {
            guard: Guard::new(own),
            own: own.clone(),
            seen: Mutex::default(),
            challenge: OnceLock::new(),
        }
    }

    pub(super) async fn fetch(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, FetchFault> {
        *self.seen() = Seen::default();
        let fetched = self.fetch_within(request).await;
        let mut seen = self.seen();
        match &fetched {
            Ok(response) => seen.code = code(response),
            Err(fault) => seen.fault = Some(fault.clone()),
        }
        drop(seen);
        fetched
    }

    /// Why something failed, from what was seen on the way. The error itself may hold what nobody is to read.
    pub(super) fn explain(&self, error: &AuthError) -> SignInError {
        let mut seen = self.seen();
        let (fault, code) = (seen.fault.take(), seen.code.take());
        drop(seen);
        if let Some(fault) = fault {
            return fault.into();
        }
        let code = code.unwrap_or(OAuthCode::Other);
        match error {
            AuthError::AuthorizationServerMismatch { .. }
            | AuthError::AuthorizationServerMissingIssuer { .. } => SignInError::WrongIssuer,
            AuthError::PkceUnsupported => SignInError::NoPkce,
            AuthError::RegistrationFailed(_) => SignInError::RegistrationRefused { code },
            AuthError::TokenExchangeFailed(_)
            | AuthError::TokenRefreshFailed(_)
            | AuthError::TokenRefreshRejected(_)
            | AuthError::ClientCredentialsError(_) => SignInError::NoToken { code },
            _ => SignInError::Metadata,
        }
    }

    /// What the server itself asked for, where it was looked for and did.
    pub(super) fn challenge(&self) -> Option<&Challenge> {
        self.challenge.get()
    }

    /// The code of the last answer, if it was a refusal.
    pub(super) fn take_code(&self) -> Option<OAuthCode> {
        self.seen().code.take()
    }

    async fn fetch_within(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, FetchFault> {
        let url = Url::parse(&request.uri().to_string());
        let url = url.map_err(|_| FetchFault::Insecure {
            host: String::new(),
        })?;
        let host = visible(url.host_str().unwrap_or_default()).to_string();
        let fetched = timeout(PATIENCE, self.exchange(&url, request, &host)).await;
        fetched.unwrap_or(Err(FetchFault::TooSlow { host }))
    }

    async fn exchange(
        &self,
        url: &Url,
        request: Request<Vec<u8>>,
        host: &str,
    ) -> Result<Response<Vec<u8>>, FetchFault> {
        if *url == self.own && request.method() == Method::GET {
            return self.probe(url, request, host).await;
        }
        let (head, body) = self.send(url, request, host, Reading::Whole).await?;
        let body = body.ok_or_else(|| FetchFault::TooLarge { host: host.into() })?;
        let response = head.map(|()| body);
        let status = response.status();
        if is_passing(status) && code(&response).is_none_or(|it| it == OAuthCode::Other) {
            let status = status.as_u16();
            let host = host.to_owned();
            return Err(FetchFault::Status { host, status });
        }
        Ok(response)
    }

    /// Whether the server itself asks for a token, which is all that is asked of it. Most servers say so of what is
    /// posted to them only; it may answer with a stream otherwise.
    async fn probe(
        &self,
        url: &Url,
        request: Request<Vec<u8>>,
        host: &str,
    ) -> Result<Response<Vec<u8>>, FetchFault> {
        let mut posted = Request::new(PING.to_vec());
        *posted.method_mut() = Method::POST;
        posted.headers_mut().insert(CONTENT_TYPE, JSON);
        posted.headers_mut().insert(ACCEPT, JSON_OR_STREAM);
        let (head, _) = self.send(url, posted, host, Reading::Head).await?;
        let head = if head.status() == StatusCode::UNAUTHORIZED {
            head
        } else {
            self.send(url, request, host, Reading::Head).await?.0
        };
        let head = probed(head);
        let challenges = head.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenges = challenges.filter_map(|it| it.to_str().ok());
        if let Some(challenge) = Challenge::of(challenges) {
            let _ = self.challenge.set(challenge);
        }
        Ok(head)
    }

    /// Sends a request over a connection of its own.
    async fn send(
        &self,
        url: &Url,
        request: Request<Vec<u8>>,
        host: &str,
        reading: Reading,
    ) -> Result<(Response<()>, Option<Vec<u8>>), FetchFault> {
        let broken = || FetchFault::Broken { host: host.into() };
        let stream = self.guard.connect(url).await;
        let stream = stream.map_err(|fault| dial_fault(fault, host))?;
        let request = prepare(url, request).ok_or_else(broken)?;
        send(stream, request, reading).await.map_err(|_| broken())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OAuthHttpClient for Fetcher {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let fetched = self.fetch(request.request).await;
            fetched.map_err(|fault| Box::new(fault) as OAuthHttpClientError)
        })
    }
}

/// How much of an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Head,
    Whole,
}

/// Whether a status may be another one in a while.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// The code of a refusal.
fn code(response: &Response<Vec<u8>>) -> Option<OAuthCode> {
    if response.status().is_success() || response.status().is_redirection() {
        return None;
    }
    let body = serde_json::from_slice::<Value>(response.body()).unwrap_or_default();
    let code = body["error"].as_str().map(OAuthCode::of);
    Some(code.unwrap_or(OAuthCode::Other))
}

/// What the answer of the server itself means: that it wants a token, or nothing.
fn probed(head: Response<()>) -> Response<Vec<u8>> {
    let mut head = head.map(|()| Vec::new());
    if head.status() != StatusCode::UNAUTHORIZED {
        *head.status_mut() = StatusCode::NOT_FOUND;
        head.headers_mut().clear();
    }
    head
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

/// The request as it goes over a connection; none if it cannot.
fn prepare(url: &Url, request: Request<Vec<u8>>) -> Option<Request<String>> {
    let (mut head, body) = request.into_parts();
    let path = &url[Position::BeforePath..Position::AfterQuery];
    head.uri = Uri::try_from(path).ok()?;
    let host = &url[Position::BeforeHost..Position::AfterPort];
    head.headers.insert(HOST, HeaderValue::try_from(host).ok()?);
    head.headers.insert(USER_AGENT, OUR_NAME);
    head.headers.entry(ACCEPT).or_insert(JSON);
    head.headers.remove(CONTENT_LENGTH);
    let body = String::from_utf8(body).ok()?;
    Some(Request::from_parts(head, body))
}

/// Sends a request over a connection and reads the answer: its head, and its body unless that is too long.
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
        // What came before its end is still to be read.
        _ = &mut connection => {}
    }
    exchange.await
}

/// A body; none if it is too long.
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
