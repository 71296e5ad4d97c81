//! The responses of the echo server: the start of the protocol, its tools, and text of the requested size.

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    era::{Era, MODERN_REVISION},
    text::Text,
};

/// A request or a notification.
#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams {
    #[serde(default)]
    arguments: Arguments,
}

/// The parameters of a modern request.
#[derive(Deserialize)]
struct ModernParams<'a> {
    #[serde(default)]
    arguments: Arguments,
    #[serde(borrow, rename = "_meta")]
    meta: ModernMeta<'a>,
}

/// The members of `_meta` that a modern server must check.
#[derive(Deserialize)]
struct ModernMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: &'a str,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    _capabilities: &'a RawValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
struct Arguments {
    /// How many bytes of text the result has.
    #[serde(default)]
    bytes: usize,
    #[serde(default)]
    text: Text,
}

/// The answers of one connection.
#[derive(Clone)]
pub struct EchoServer {
    era: Era,
    tools: String,
    /// The last result that was large, kept because making it would cost more than sending it.
    large: (Arguments, String),
}

impl EchoServer {
    /// A server with `tools` tools, each with a description of `description_bytes` bytes.
    pub fn new(era: Era, tools: usize, description_bytes: usize, prefix: &str) -> Self {
        let definition = |number: usize| {
            json!({
                "name": format!("{prefix}echo_{number}"),
                // The sentence has 19 bytes.
                "description": "Answers with text. ".repeat(description_bytes.div_ceil(19)),
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "bytes": { "type": "integer", "description": "How many bytes of text" },
                    },
                },
            })
        };
        let tools: Vec<_> = (0..tools).map(definition).collect();
        let list = match era {
            Era::Legacy => json!({ "tools": tools }),
            // A lasting list, so that nobody asks for it again during a measurement.
            Era::Modern => json!({ "resultType": "complete", "ttlMs": 3_600_000,
                "cacheScope": "public", "tools": tools }),
        };
        Self {
            era,
            tools: list.to_string(),
            large: (Arguments::default(), String::new()),
        }
    }

    /// Writes the answer to a message; nothing where there is none.
    pub fn answer(&mut self, message: &[u8], out: &mut Vec<u8>) {
        let Ok(message) = serde_json::from_slice::<Incoming<'_>>(message) else {
            return;
        };
        let Some(id) = message.id else {
            return;
        };
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        match self.era {
            Era::Legacy => self.answer_legacy(message.method, message.params, out),
            Era::Modern => self.answer_modern(message.method, message.params, out),
        }
        out.push(b'}');
    }

    fn answer_legacy(&mut self, method: &str, params: Option<&RawValue>, out: &mut Vec<u8>) {
        match method {
            "tools/call" => {
                let params =
                    params.and_then(|params| serde_json::from_str::<CallParams>(params.get()).ok());
                out.extend_from_slice(br#","result":{"#);
                let arguments = params.map(|params| params.arguments);
                self.write_content(arguments.unwrap_or_default(), out);
            }
            "initialize" => out.extend_from_slice(INITIALIZE.as_bytes()),
            "tools/list" => self.write_tools(out),
            "ping" => out.extend_from_slice(br#","result":{}"#),
            "prompts/list" => out.extend_from_slice(br#","result":{"prompts":[]}"#),
            "resources/list" => out.extend_from_slice(br#","result":{"resources":[]}"#),
            "resources/templates/list" => {
                out.extend_from_slice(br#","result":{"resourceTemplates":[]}"#);
            }
            _ => out.extend_from_slice(NO_SUCH_METHOD.as_bytes()),
        }
    }

    /// Refuses requests that a modern server must refuse: `initialize`, and those without the required `_meta`.
    fn answer_modern(&mut self, method: &str, params: Option<&RawValue>, out: &mut Vec<u8>) {
        if method == "initialize" {
            return out.extend_from_slice(UNSUPPORTED_VERSION.as_bytes());
        }
        let params = params.map_or("{}", RawValue::get);
        let Ok(params) = serde_json::from_str::<ModernParams<'_>>(params) else {
            return out.extend_from_slice(NO_META.as_bytes());
        };
        if params.meta.version != MODERN_REVISION {
            return out.extend_from_slice(UNSUPPORTED_VERSION.as_bytes());
        }
        match method {
            "tools/call" => {
                out.extend_from_slice(br#","result":{"resultType":"complete","#);
                self.write_content(params.arguments, out);
            }
            "server/discover" => out.extend_from_slice(DISCOVER.as_bytes()),
            "tools/list" => self.write_tools(out),
            _ => out.extend_from_slice(NO_SUCH_METHOD.as_bytes()),
        }
    }

    fn write_tools(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","result":"#);
        out.extend_from_slice(self.tools.as_bytes());
    }

    /// Writes the content of a result and its end.
    fn write_content(&mut self, arguments: Arguments, out: &mut Vec<u8>) {
        out.extend_from_slice(br#""content":[{"type":"text","text":""#);
        if arguments.bytes <= 64 {
            out.extend_from_slice(
                b"an answer of few words, as most tools give for most of the calls",
            );
        } else {
            if self.large.0 != arguments {
                self.large = (arguments, arguments.text.in_json(arguments.bytes));
            }
            out.extend_from_slice(self.large.1.as_bytes());
        }
        out.extend_from_slice(br#""}]}"#);
    }
}

/// The answer to `initialize` from the id on.
const INITIALIZE: &str = r#","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;

/// The answer to `server/discover` from the id on.
const DISCOVER: &str = r#","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":3600000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}}}"#;

const UNSUPPORTED_VERSION: &str = r#","error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":""}}"#;
const NO_META: &str = r#","error":{"code":-32602,"message":"_meta: protocolVersion and clientCapabilities are required"}"#;
const NO_SUCH_METHOD: &str = r#","error":{"code":-32601,"message":"no such method"}"#;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        era::{Params, RequestMeta},
        session::write_request,
    };

    fn answer(era: Era, message: &str) -> Value {
        let mut out = Vec::new();
        EchoServer::new(era, 2, 100, "a_").answer(message.as_bytes(), &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn modern(method: &str, params: &str) -> Value {
        let mut message = Vec::new();
        write_request(
            &mut message,
            7,
            method,
            &Params::new(params, RequestMeta::Modern),
        );
        answer(Era::Modern, std::str::from_utf8(&message).unwrap())
    }

    #[test]
    fn a_call_is_answered_with_text_of_the_requested_size() {
        let call = r#"{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"a_echo_1","arguments":{"bytes":1024}}}"#;
        let legacy = answer(Era::Legacy, call);
        assert_eq!(legacy["id"], "7");
        let call = r#"{"name":"a_echo_1","arguments":{"bytes":1024}}"#;
        let modern = modern("tools/call", call);
        assert_eq!(modern["result"]["resultType"], "complete");
        for answer in [legacy, modern] {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.len() > 1000, "{}", text.len());
        }
    }

    #[test]
    fn a_notification_has_no_answer() {
        let mut out = Vec::new();
        let notification = br#"{"jsonrpc":"2.0","method":"x"}"#;
        EchoServer::new(Era::Legacy, 1, 10, "").answer(notification, &mut out);
        assert_eq!(out, b"");
    }

    #[test]
    fn each_era_refuses_the_start_of_the_other() {
        let request = |method: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#)
        };
        let code = |era, method: &str| answer(era, &request(method))["error"]["code"].clone();
        assert_eq!(code(Era::Legacy, "server/discover"), -32601);
        assert_eq!(code(Era::Modern, "initialize"), -32022);
        assert_eq!(code(Era::Modern, "tools/list"), -32602);
        let discovered = modern("server/discover", "{}");
        assert_eq!(
            discovered["result"]["supportedVersions"][0],
            MODERN_REVISION
        );
        assert_eq!(modern("tools/list", "{}")["result"]["cacheScope"], "public");
    }
}
