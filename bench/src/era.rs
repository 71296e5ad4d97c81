//! The two eras of the protocol as the load generator and the echo server speak them, and the parameters of
//! requests.

use clap::ValueEnum;

/// The revision of the modern era.
pub const MODERN_REVISION: &str = "2026-07-28";

/// The `_meta` of a modern request.
const MODERN_META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The era that a client or a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Era {
    /// `initialize` first: the revisions up to 2025-11-25.
    Legacy,
    /// No handshake, and `_meta` in every request: 2026-07-28.
    Modern,
}

/// The `_meta` that a client adds to its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMeta {
    /// None, as legacy clients do that do not ask for progress.
    None,
    /// A progress token, unique per request, as legacy clients do that ask for progress.
    ProgressToken,
    /// Revision, client and capabilities, as every modern request must have them.
    Modern,
}

/// The parameters of a request, with `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    text: String,
    /// The offset at which the id of the request is inserted as its progress token.
    token: Option<usize>,
    /// The name of the tool, for the `Mcp-Name` header of modern requests.
    name: Option<String>,
}

impl Params {
    /// Adds `_meta` to parameters, which must be a JSON object.
    pub fn new(params: &str, meta: RequestMeta) -> Self {
        let name = params
            .strip_prefix(r#"{"name":""#)
            .and_then(|rest| Some(rest.split_once('"')?.0.to_owned()));
        let open = params.strip_suffix('}').unwrap_or(params);
        let comma = if open == "{" { "" } else { "," };
        let (text, token) = match meta {
            RequestMeta::None => (params.to_owned(), None),
            RequestMeta::Modern => (format!(r#"{open}{comma}"_meta":{MODERN_META}}}"#), None),
            RequestMeta::ProgressToken => {
                let before = format!(r#"{open}{comma}"_meta":{{"progressToken":"#);
                let token = before.len();
                (before + "}}", Some(token))
            }
        };
        Self { text, token, name }
    }

    /// Writes the parameters of the request with this id.
    pub(crate) fn write(&self, id: &str, out: &mut Vec<u8>) {
        let (before, after) = self.text.split_at(self.token.unwrap_or(0));
        out.extend_from_slice(before.as_bytes());
        if self.token.is_some() {
            out.extend_from_slice(id.as_bytes());
        }
        out.extend_from_slice(after.as_bytes());
    }

    /// The name of the tool that a call is for.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(params: &str, meta: RequestMeta) -> Value {
        let mut out = Vec::new();
        Params::new(params, meta).write("7", &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn meta_is_added_to_the_parameters() {
        let call = r#"{"name":"a","arguments":{"bytes":0}}"#;
        let plain = json!({"name": "a", "arguments": {"bytes": 0}});
        assert_eq!(written(call, RequestMeta::None), plain);
        let mut with_token = plain.clone();
        with_token["_meta"] = json!({"progressToken": 7});
        assert_eq!(written(call, RequestMeta::ProgressToken), with_token);
        let modern = written("{}", RequestMeta::Modern);
        let revision = &modern["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(revision, MODERN_REVISION);
        assert_eq!(Params::new(call, RequestMeta::None).name(), Some("a"));
        assert_eq!(Params::new("{}", RequestMeta::None).name(), None);
    }
}
