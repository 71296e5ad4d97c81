//! What is special about a request to a server of revision 2026-07-28: it stands for itself, so that its
//! headers repeat what its body says, and an error that came back for it is about it even without its id.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rawjson::RawJson;

use crate::{
    era::{self, headers as names},
    wire::{Answer, Message, RequestId, Response},
};

/// The errors beside those of its era by which a modern server refuses a request before it has read its id:
/// an unknown method and unusable parameters.
const REFUSALS: [&str; 2] = ["-32601", "-32602"];

/// The headers of a modern request. `parameters` are those for arguments of its tool.
pub(super) fn headers(
    method: &str,
    params: &RawJson,
    parameters: &[(String, String)],
) -> HeaderMap {
    const REVISION: HeaderValue = HeaderValue::from_static(era::MODERN_REVISION);
    let mut headers = HeaderMap::with_capacity(3 + parameters.len());
    for (name, value) in parameters {
        let name = HeaderName::try_from(name.as_str());
        let value = HeaderValue::try_from(value.as_str());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            // The server misses it and says so.
            tracing::debug!("an argument cannot be sent in a header");
            continue;
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.insert(names::PROTOCOL_VERSION, REVISION);
    insert(&mut headers, names::METHOD, method);
    let name = names::name_member(method).and_then(|member| params.member(member));
    if let Some(name) = name.as_ref().and_then(RawJson::as_text) {
        insert(&mut headers, names::NAME, &name);
    }
    headers
}

fn insert(headers: &mut HeaderMap, name: &'static str, text: &str) {
    // What is encoded can always stand in a header.
    if let Ok(value) = HeaderValue::try_from(names::encode(text)) {
        headers.insert(name, value);
    }
}

/// A message that came back for the request `id`. An error without an id is given that one, if it is one of
/// those by which a modern server refuses a request.
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

/// The error in an answer, unless it is one by which a modern server is known.
pub(super) fn other_error(message: &Message) -> Option<&RawJson> {
    error_in(message).filter(|error| !era::is_modern_code(error))
}

/// Whether a message is an error by which a modern server is known.
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
    fn what_cannot_stand_in_a_header_is_left_out() {
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let parameters = [
            given("mcp-param-a", "1"),
            given("mcp-param-b", "two\nlines"),
            given("mcp param c", "3"),
            // An argument does not change what is ours.
            given("mcp-method", "4"),
        ];
        let headers = headers("tools/call", &json(r#"{"name":7}"#), &parameters);
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
    fn only_a_modern_refusal_without_an_id_is_given_one() {
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
