//! Interprets HTTP failures: the fault, and the possible effects of the request.

use std::time::Duration;

use hyper::{
    StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER},
};
use rawjson::RawJson;
use url::Url;

use super::{
    address::origin,
    body::SendState,
    client::{Response, SendError},
};
use crate::{
    alarm::timeout,
    call::Outcome,
    config::Secrets,
    dial::innermost,
    downstream::error::HttpFault,
    visible::visible,
    wire::{Answer, Message, parse_on_one_line},
};

/// Upper bounds on the part of a body that describes an error: bytes read, time, and characters shown.
const MAX_READ_BYTES: usize = 8 * 1024;
const READ_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_EXCERPT_CHARACTERS: usize = 200;
const MAX_TYPE_CHARACTERS: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Setback {
    pub(super) fault: HttpFault,
    /// The known effects of the request.
    pub(super) outcome: Outcome,
}

/// An error status, with the content of its body.
pub(super) struct HttpRefusal {
    pub(super) setback: Setback,
    /// The body, if it is a JSON-RPC message.
    pub(super) message: Option<Message>,
}

/// Returns the fault of a request without any response.
pub(super) fn without_response(
    error: &SendError,
    sending: &SendState,
    secrets: &Secrets,
) -> Setback {
    let reason = secrets.redact(&innermost(error)).into_owned();
    if matches!(error, SendError::Connect(_)) || sending.outcome() == Outcome::NotSent {
        return Setback {
            fault: HttpFault::Unreachable { reason },
            outcome: sending.outcome(),
        };
    }
    Setback {
        fault: HttpFault::ConnectionLost { reason },
        outcome: sending.outcome(),
    }
}

/// Returns the fault of a response with an error status.
pub(super) async fn refusal(
    response: Response,
    had_session: bool,
    secrets: &Secrets,
) -> HttpRefusal {
    let status = response.status();
    let content_type = content_type(&response, secrets);
    let retry_after = retry_after(&response);
    let is_json = is_type(&response, "application/json");
    let body = beginning(response).await;
    let message = is_json
        .then(|| parse_on_one_line(&body.clone().into()).ok())
        .flatten();
    let fault = match status.as_u16() {
        401 => HttpFault::Unauthorized,
        403 => HttpFault::Forbidden,
        status @ (400 | 404) if had_session && is_about_session(status, message.as_ref()) => {
            HttpFault::SessionLost { status }
        }
        status => HttpFault::Status {
            status,
            content_type,
            excerpt: excerpt(&body, secrets),
            retry_after,
        },
    };
    let outcome = outcome_of(status);
    HttpRefusal {
        setback: Setback { fault, outcome },
        message,
    }
}

/// Returns the fault of a success that is not MCP, with the beginning of its body.
pub(super) async fn not_mcp(response: Response, secrets: &Secrets) -> HttpFault {
    HttpFault::NotMcp {
        status: response.status().as_u16(),
        content_type: content_type(&response, secrets),
        excerpt: excerpt(&beginning(response).await, secrets),
    }
}

/// Returns the fault of an error that shows that the server is not modern.
pub(super) fn not_modern(error: &RawJson, secrets: &Secrets) -> HttpFault {
    HttpFault::NotModern {
        excerpt: excerpt(error.as_str().as_bytes(), secrets),
    }
}

/// Returns the fault of a body that is compressed although the request did not allow that.
pub(super) fn encoded(response: &Response) -> Option<HttpFault> {
    let encoding = text_of(response, &CONTENT_ENCODING)?;
    let plain = encoding.is_empty() || encoding.eq_ignore_ascii_case("identity");
    (!plain).then(|| HttpFault::Encoded {
        status: response.status().as_u16(),
        encoding: cut(encoding, MAX_TYPE_CHARACTERS),
    })
}

/// Returns the target of a redirect if it may be followed, otherwise the fault.
pub(super) fn redirection(response: &Response, secrets: &Secrets) -> Result<Url, HttpFault> {
    let status = response.status();
    let here = response.url();
    let target = text_of(response, &LOCATION).and_then(|target| here.join(target).ok());
    // Any other redirect turns a POST into a GET.
    let keeps_method = matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    match target {
        Some(target) if keeps_method && target.origin() == here.origin() => Ok(target),
        target => Err(HttpFault::Redirect {
            status: status.as_u16(),
            target: target.map_or_else(
                || "nowhere".to_owned(),
                |target| place(here, &target, secrets),
            ),
        }),
    }
}

/// Returns true if the response has this content type, with any parameters.
pub(super) fn is_type(response: &Response, wanted: &str) -> bool {
    let value = response.headers().get(&CONTENT_TYPE);
    // The usual value, checked without parsing.
    if value.is_some_and(|value| value == wanted) {
        return true;
    }
    let value = value.and_then(|value| value.to_str().ok());
    let name = value.unwrap_or_default().split(';').next();
    name.unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

/// Returns a printable name of a redirect's target: its origin if that differs, otherwise its path.
pub(super) fn place(here: &Url, target: &Url, secrets: &Secrets) -> String {
    if target.origin() == here.origin() {
        cut(&secrets.redact(target.path()), MAX_EXCERPT_CHARACTERS)
    } else {
        secrets.redact(&origin(target)).into_owned()
    }
}

/// Returns true if an error is about the session: every 404, and a 400 whose error says so, as many servers send.
fn is_about_session(status: u16, message: Option<&Message>) -> bool {
    let Some(Message::Response(response)) = message else {
        return status == 404;
    };
    let Answer::Error(error) = &response.answer else {
        return status == 404;
    };
    let words = error
        .member("message")
        .and_then(|it| Some(it.as_text()?.to_lowercase()));
    // An error with an id is about that request.
    let general = response.id.is_none();
    status == 404 || (general && words.is_some_and(|words| words.contains("session")))
}

/// Returns the possible effects of a request with this error status.
fn outcome_of(status: StatusCode) -> Outcome {
    match status.as_u16() {
        // A server sends these instead of running a request. Every other status may come from the middle of a call.
        300..=399
        | 400
        | 401
        | 403
        | 404
        | 405
        | 406
        | 411
        | 413
        | 414
        | 415
        | 421
        | 426
        | 429
        | 431 => Outcome::Rejected,
        _ => Outcome::Unknown,
    }
}

fn content_type(response: &Response, secrets: &Secrets) -> Option<String> {
    let value = text_of(response, &CONTENT_TYPE)?;
    Some(cut(&secrets.redact(value), MAX_TYPE_CHARACTERS))
}

/// Returns `Retry-After` in seconds. Its other form, a date, is ignored.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = text_of(response, &RETRY_AFTER)?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn text_of<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while body.len() < MAX_READ_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    // A part of the body is enough to describe the error.
    let _ = timeout(READ_TIMEOUT, read).await;
    body.truncate(MAX_READ_BYTES);
    body
}

/// Returns the beginning of a foreign text, redacted and with hidden characters made visible.
fn excerpt(body: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(body);
    let text = secrets.redact(text.trim());
    cut(&visible(&text), MAX_EXCERPT_CHARACTERS)
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
