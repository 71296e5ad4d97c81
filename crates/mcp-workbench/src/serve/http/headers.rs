//! Parses the headers of MCP and of content.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::{refusal::Refusal, streams::EventId};
use crate::{era::headers::PROTOCOL_VERSION, serve::revision::Revision};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Names the last event that the client got.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The value of `Accept` of every MCP client.
const BOTH: &str = "application/json, text/event-stream";

/// Returns the session that a request names. An unreadable name counts as an unknown session.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(SESSION_ID).iter();
    let value = values.next()?;
    // Of two ids neither is trusted.
    let twice = values.next().is_some();
    Some(value.to_str().ok().filter(|_| !twice).unwrap_or(""))
}

/// The revision that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedRevision {
    /// A revision with sessions, or no revision, which is valid within a session.
    WithSessions,
    /// A revision without sessions, or an unknown one.
    Other,
}

/// Returns the revision that a request names.
pub(super) fn named_revision(headers: &HeaderMap) -> NamedRevision {
    let mut values = headers.get_all(PROTOCOL_VERSION).iter();
    let known = |value: &HeaderValue| value.to_str().ok().and_then(Revision::named).is_some();
    if values.all(known) {
        NamedRevision::WithSessions
    } else {
        NamedRevision::Other
    }
}

/// The event after which a client resumes.
pub(super) struct LastEvent<'a> {
    /// The handle of the stream, if there are replicas.
    pub(super) stream: Option<&'a str>,
    pub(super) id: EventId,
}

/// Returns the event after which the client resumes.
pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<LastEvent<'_>>, Refusal> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let value = value.to_str().map_err(|_| Refusal::UnknownEvent)?;
    let (stream, id) = match value.rsplit_once('.') {
        Some((stream, id)) => (Some(stream), id),
        None => (None, value),
    };
    let id = EventId::parse(id).ok_or(Refusal::UnknownEvent)?;
    Ok(Some(LastEvent { stream, id }))
}

/// Refuses content that is not declared to be JSON. That alone blocks the requests that a page in a browser can send
/// without a preflight.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Refusal::NotJson);
    };
    // The usual value, checked without parsing.
    if value == JSON {
        return Ok(());
    }
    let essence = value.to_str().unwrap_or_default();
    let essence = essence.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(JSON) {
        Ok(())
    } else {
        Err(Refusal::NotJson)
    }
}

/// Refuses a client that does not accept one of the types. Without a header it accepts all.
pub(super) fn check_accept(headers: &HeaderMap, types: &[&'static str]) -> Result<(), Refusal> {
    match headers.get(header::ACCEPT) {
        None => return Ok(()),
        // The usual value, checked without parsing.
        Some(value) if value == BOTH => return Ok(()),
        Some(_) => {}
    }
    let values = || headers.get_all(header::ACCEPT).iter();
    let texts = || values().filter_map(|value: &HeaderValue| value.to_str().ok());
    for wanted in types {
        let mut ranges = texts().flat_map(|text| text.split(','));
        if !ranges.any(|range| covers(range, wanted)) {
            return Err(Refusal::NotAcceptable(wanted));
        }
    }
    Ok(())
}

/// Returns true if a range of `Accept` covers a type.
fn covers(range: &str, wanted: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default();
    let refused = parts.any(|parameter| {
        let value = parameter
            .strip_prefix("q=")
            .or(parameter.strip_prefix("Q="));
        value.is_some_and(|value| value.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
    });
    let family = wanted.split('/').next().unwrap_or_default();
    let matches = range.eq_ignore_ascii_case(wanted)
        || range == "*/*"
        || range
            .strip_suffix("/*")
            .is_some_and(|it| it.eq_ignore_ascii_case(family));
    matches && !refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_types() {
        for (accept, taken) in [
            ("application/json, text/event-stream", true),
            ("text/event-stream,APPLICATION/JSON;q=0.5", true),
            ("*/*", true),
            ("application/*, text/*", true),
            ("application/json", false),
            ("text/event-stream", false),
            ("application/json, text/event-stream;q=0", false),
            ("text/html, application/xml", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            let checked = check_accept(&headers, &[JSON, EVENT_STREAM]);
            assert_eq!(checked.is_ok(), taken, "{accept:?}");
        }
        assert!(check_accept(&HeaderMap::new(), &[JSON]).is_ok());
    }

    #[test]
    fn only_json_is_json() {
        for (content_type, taken) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/json-patch+json", false),
            ("text/plain; application/json", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            assert_eq!(
                check_content_type(&headers).is_ok(),
                taken,
                "{content_type:?}"
            );
        }
    }
}
