//! From what HTTP says to what is known: which fault it is, and whether the request can have had effects.

use std::time::Duration;

use hyper::{
    StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER},
};
use rawjson::RawJson;
use url::Url;

use super::{
    address::origin,
    body::Sending,
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

/// How much of a body is read to describe it, for how long, and how much of it is shown.
const READ_BYTES: usize = 8 * 1024;
const READ_PATIENCE: Duration = Duration::from_secs(2);
const SHOWN_CHARACTERS: usize = 200;
const TYPE_CHARACTERS: usize = 100;

/// A request that did not go through.
#[derive(Debug, Clone)]
pub(super) struct Setback {
    pub(super) fault: HttpFault,
    /// What is known of the effects of the request.
    pub(super) outcome: Outcome,
}

/// A status of failure, with what its body says.
pub(super) struct Refusal {
    pub(super) setback: Setback,
    /// The body, if it is a message of the protocol.
    pub(super) message: Option<Message>,
}

/// Why a request got no response at all.
pub(super) fn without_response(error: &SendError, sending: &Sending, secrets: &Secrets) -> Setback {
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

/// Why a response with a status of failure is one.
pub(super) async fn refusal(response: Response, had_session: bool, secrets: &Secrets) -> Refusal {
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
    Refusal {
        setback: Setback { fault, outcome },
        message,
    }
}

/// A success that is no answer, with the beginning of what it is.
pub(super) async fn not_mcp(response: Response, secrets: &Secrets) -> HttpFault {
    HttpFault::NotMcp {
        status: response.status().as_u16(),
        content_type: content_type(&response, secrets),
        excerpt: excerpt(&beginning(response).await, secrets),
    }
}

/// The fault of an error by which a server shows that it is not a modern one.
pub(super) fn not_modern(error: &RawJson, secrets: &Secrets) -> HttpFault {
    HttpFault::NotModern {
        excerpt: excerpt(error.as_str().as_bytes(), secrets),
    }
}

/// The fault of a body that is compressed although nobody asked for that.
pub(super) fn encoded(response: &Response) -> Option<HttpFault> {
    let encoding = text_of(response, &CONTENT_ENCODING)?;
    let plain = encoding.is_empty() || encoding.eq_ignore_ascii_case("identity");
    (!plain).then(|| HttpFault::Encoded {
        status: response.status().as_u16(),
        encoding: cut(encoding, TYPE_CHARACTERS),
    })
}

/// Where a response redirects to, if it may be followed; else the fault.
pub(super) fn redirection(response: &Response, secrets: &Secrets) -> Result<Url, HttpFault> {
    let status = response.status();
    let here = response.url();
    let target = text_of(response, &LOCATION).and_then(|target| here.join(target).ok());
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

/// Whether the content type of a response is this one, whatever its parameters.
pub(super) fn is_type(response: &Response, wanted: &str) -> bool {
    let value = text_of(response, &CONTENT_TYPE).unwrap_or_default();
    let name = value.split(';').next().unwrap_or_default().trim();
    name.eq_ignore_ascii_case(wanted)
}

/// The name of a redirect's target: another origin, or another path of this one.
pub(super) fn place(here: &Url, target: &Url, secrets: &Secrets) -> String {
    if target.origin() == here.origin() {
        cut(&secrets.redact(target.path()), SHOWN_CHARACTERS)
    } else {
        secrets.redact(&origin(target)).into_owned()
    }
}

/// A 404 always is; a 400 where the server says so, as many do.
fn is_about_session(status: u16, message: Option<&Message>) -> bool {
    let Some(Message::Response(response)) = message else {
        return status == 404;
    };
    let Answer::Error(error) = &response.answer else {
        return status == 404;
    };
    let words = error.member("message");
    let words = words.and_then(|it| Some(it.as_text()?.to_lowercase()));
    // An error that answers this very request is the request's own.
    let general = response.id.is_none();
    status == 404 || (general && words.is_some_and(|words| words.contains("session")))
}

/// Whether a request that was refused like this can have had effects.
fn outcome_of(status: StatusCode) -> Outcome {
    match status.as_u16() {
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
    Some(cut(&secrets.redact(value), TYPE_CHARACTERS))
}

/// `Retry-After` in seconds; its other form, a date, is not read.
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
        while body.len() < READ_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    let _ = timeout(READ_PATIENCE, read).await;
    body.truncate(READ_BYTES);
    body
}

/// The beginning of a text of others, without secrets and with nothing hidden in it.
fn excerpt(body: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(body);
    let text = secrets.redact(text.trim());
    cut(&visible(&text), SHOWN_CHARACTERS)
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
