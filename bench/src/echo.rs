//! What the echo server says: the start of the protocol, its tools, and text of the size that a call asks for.

use serde::Deserialize;
use serde_json::{json, value::RawValue};

/// How long a line of the text of a result is: results have line breaks, as files have.
const LINE: usize = 79;

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

/// What a call says.
#[derive(Deserialize)]
struct CallParams {
    #[serde(default)]
    arguments: Arguments,
}

/// What the tools take.
#[derive(Deserialize, Default)]
struct Arguments {
    /// How many bytes of text the result has.
    #[serde(default)]
    bytes: usize,
}

/// The answers of one connection.
#[derive(Clone)]
pub struct EchoServer {
    tools: String,
    /// The last result that was large, kept because making it would cost more than sending it.
    large: (usize, String),
}

impl EchoServer {
    /// A server with `tools` tools, each with a description of `description_bytes` bytes.
    pub fn new(tools: usize, description_bytes: usize, prefix: &str) -> Self {
        let definition = |number: usize| {
            json!({
                "name": format!("{prefix}echo_{number}"),
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
        Self {
            tools: json!({ "tools": tools }).to_string(),
            large: (0, String::new()),
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
        match message.method {
            "tools/call" => self.call(message.params, out),
            "initialize" => out.extend_from_slice(INITIALIZE.as_bytes()),
            "tools/list" => {
                out.extend_from_slice(br#","result":"#);
                out.extend_from_slice(self.tools.as_bytes());
            }
            "ping" => out.extend_from_slice(br#","result":{}"#),
            "prompts/list" => out.extend_from_slice(br#","result":{"prompts":[]}"#),
            "resources/list" => out.extend_from_slice(br#","result":{"resources":[]}"#),
            "resources/templates/list" => {
                out.extend_from_slice(br#","result":{"resourceTemplates":[]}"#);
            }
            _ => out.extend_from_slice(br#","error":{"code":-32601,"message":"no such method"}"#),
        }
        out.push(b'}');
    }

    fn call(&mut self, params: Option<&RawValue>, out: &mut Vec<u8>) {
        let params =
            params.and_then(|params| serde_json::from_str::<CallParams>(params.get()).ok());
        let bytes = params.map_or(0, |params| params.arguments.bytes);
        out.extend_from_slice(br#","result":{"content":[{"type":"text","text":""#);
        if bytes <= 64 {
            out.extend_from_slice(
                b"an answer of few words, as most tools give for most of the calls",
            );
        } else {
            if self.large.0 != bytes {
                self.large = (bytes, text(bytes));
            }
            out.extend_from_slice(self.large.1.as_bytes());
        }
        out.extend_from_slice(br#""}]}"#);
    }
}

/// The answer to `initialize` from the id on.
const INITIALIZE: &str = r#","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;

/// JSON text of a string of about so many bytes, without its quotes.
fn text(bytes: usize) -> String {
    let line = "x".repeat(LINE - 1) + "\\n";
    line.repeat(bytes.div_ceil(line.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_call_is_answered_with_text_of_the_size_that_it_asks_for() {
        let mut server = EchoServer::new(2, 100, "a_");
        let mut out = Vec::new();
        let call = br#"{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"a_echo_1","arguments":{"bytes":1024}}}"#;
        server.answer(call, &mut out);
        let answer: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(answer["id"], "7");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.len() > 1000, "{}", text.len());
    }

    #[test]
    fn a_notification_has_no_answer() {
        let mut out = Vec::new();
        EchoServer::new(1, 10, "").answer(br#"{"jsonrpc":"2.0","method":"x"}"#, &mut out);
        assert_eq!(out, b"");
    }
}
