//! Requests to a server of revision 2026-07-28. Each is self-contained: its headers repeat parts of its body, and an
//! error in its response belongs to it even without an id.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rawjson::RawJson;

use crate::{
    era::{self, headers as names},
    wire::{Answer, Message, Params, RequestId, Response},
};

const REVISION: HeaderValue = HeaderValue::from_static(era::MODERN_REVISION);
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(names::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(names::METHOD);
const NAME: HeaderName = HeaderName::from_static(names::NAME);

/// The error codes, besides those of the modern era, by which a modern server refuses a request before it reads its
/// id: unknown method and invalid parameters.
const REFUSALS: [&str; 2] = ["-32601", "-32602"];

/// Returns the headers of a modern request: `posted`, which every POST has, and its own. `parameters` are those for
/// arguments of its tool.
pub(super) fn headers(
    posted: &HeaderMap,
    method: &str,
    params: &Params<'_>,
    parameters: &[(String, String)],
) -> HeaderMap {
    let mut headers = posted.clone();
    for (name, value) in parameters {
        let name = HeaderName::try_from(name.as_str());
        let value = HeaderValue::try_from(value.as_str());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            // The server reports the missing header.
            tracing::debug!("an argument cannot be sent in a header");
            continue;
        };
        // An argument may be a secret, and must not be shown where headers are.
        value.set_sensitive(true);
        headers.append(name, value);
    }
    // After the arguments, none of which may replace a header of the transport.
    headers.insert(PROTOCOL_VERSION, REVISION);
    insert(&mut headers, METHOD, method);
    if let Some(name) = names::name_member(method).and_then(|member| params.text(member)) {
        insert(&mut headers, NAME, &name);
    }
    headers
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // Encoded text is always a valid header value.
    if let Ok(value) = HeaderValue::from_str(&names::encode(text)) {
        headers.insert(name, value);
    }
}

/// Returns a message of the response to request `id`. An error without an id gets this id if it is one by which a
/// modern server refuses a request.
pub(super) fn attributed(message: Message, id: u64) -> Message {
    match message {
        Message::Response(Response {
            id: None,
            answer: Answer::Error(error),
            marks,
        }) if is_refusal(&error) => Message::Response(Response {
            id: RequestId::from_json(RawJson::of(&id)),
            answer: Answer::Error(error),
            marks,
        }),
        other => other,
    }
}

fn is_refusal(error: &RawJson) -> bool {
    let code = error.member("code");
    era::is_modern_code(error) || code.is_some_and(|code| REFUSALS.contains(&code.as_str()))
}

/// Returns the error in a response, unless it is one that only modern servers send.
pub(super) fn other_error(message: &Message) -> Option<&RawJson> {
    error_in(message).filter(|error| !era::is_modern_code(error))
}

/// Returns true if a message is an error that only modern servers send.
pub(super) fn is_modern_error(message: &Message) -> bool {
    error_in(message).is_some_and(era::is_modern_code)
}

fn error_in(message: &Message) -> Option<&RawJson> {
    match message {
        Message::Response(Response {
            answer: Answer::Error(error),
            ..
        }) => Some(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::wire::parse_on_one_line;

    fn json(text: &'static str) -> RawJson {
        RawJson::parse(&Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn invalid_header_values_are_omitted() {
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let parameters = [
            given("mcp-param-a", "1"),
            given("mcp-param-b", "two\nlines"),
            given("mcp param c", "3"),
            given("mcp-method", "4"),
        ];
        let params = json(r#"{"name":7}"#).into();
        let headers = headers(&HeaderMap::new(), "tools/call", &params, &parameters);
        let mut found: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        found.sort_unstable();
        let expected = [
            ("mcp-method", "tools/call"),
            ("mcp-param-a", "1"),
            ("mcp-protocol-version", "2026-07-28"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_modern_errors_without_an_id_get_the_request_id() {
        let message = |text: &str| parse_on_one_line(&Bytes::copy_from_slice(text.as_bytes()));
        for (id, code, expected) in [
            ("null", -32020, "3"),
            ("null", -32601, "3"),
            ("null", -32602, "3"),
            ("null", -32000, "null"),
            ("null", -32700, "null"),
            ("9", -32022, "9"),
            (r#""3""#, -32022, r#""3""#),
        ] {
            let text = |id: &str| {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"m"}}}}"#)
            };
            let found = attributed(message(&text(id)).unwrap(), 3);
            assert_eq!(found, message(&text(expected)).unwrap());
        }
    }
}
