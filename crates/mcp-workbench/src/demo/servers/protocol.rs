//! JSON-RPC and MCP over lines: one message in, at most one response out.

use std::io::{self, BufRead, Write};

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::server::DemoServer;
use super::tools::{ToolResult, Tools};
use crate::demo::lines::{Line, MAX_LINE, read_line};

const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const NEWEST_REVISION: &str = "2025-11-25";
/// The only revision with batches.
const BATCH_REVISION: &str = "2025-03-26";

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// Runs `server` until `input` ends: reads MCP messages, one per line, and writes the responses.
pub(crate) fn run(
    server: DemoServer,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut session = Session::new(server);
    let mut line = Vec::new();
    loop {
        let answer = match read_line(&mut input, &mut line)? {
            Line::End => return Ok(()),
            Line::TooLong => Some(failure(
                &Value::Null,
                INVALID_REQUEST,
                &format!("the message is longer than {MAX_LINE} bytes"),
            )),
            Line::Complete => session.answer_line(&line),
        };
        if let Some(answer) = answer {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
}

struct Session {
    server: DemoServer,
    tools: Tools,
    /// True if the negotiated revision has batches.
    has_batches: bool,
}

/// A JSON value classified as a JSON-RPC message.
enum Message {
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// A notification, or a response to a request that we never send.
    Unanswered,
    Invalid {
        id: Value,
        code: i32,
        reason: &'static str,
    },
}

/// The code and message of an error response.
type Refusal = (i32, String);

impl Session {
    fn new(server: DemoServer) -> Self {
        Self {
            server,
            tools: Tools::new(server),
            has_batches: false,
        }
    }

    fn answer_line(&mut self, line: &[u8]) -> Option<Value> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Err(error) => {
                let message = format!("the line is not JSON: {error}");
                Some(failure(&Value::Null, PARSE_ERROR, &message))
            }
            Ok(Value::Array(batch)) if self.has_batches && !batch.is_empty() => {
                let answers: Vec<_> = batch
                    .into_iter()
                    .filter_map(|message| self.answer(message))
                    .collect();
                (!answers.is_empty()).then_some(Value::Array(answers))
            }
            Ok(message) => self.answer(message),
        }
    }

    fn answer(&mut self, message: Value) -> Option<Value> {
        match classify(message) {
            Message::Unanswered => None,
            Message::Invalid { id, code, reason } => Some(failure(&id, code, reason)),
            Message::Request { id, method, params } => Some(match self.respond(&method, params) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Err((code, message)) => failure(&id, code, &message),
            }),
        }
    }

    fn respond(&mut self, method: &str, params: Map<String, Value>) -> Result<Value, Refusal> {
        match method {
            "initialize" => Ok(self.initialize(&params)),
            "ping" => Ok(json!({})),
            "tools/list" => self.list_tools(&params),
            "tools/call" => self.call_tool(params),
            _ => Err((
                METHOD_NOT_FOUND,
                format!("this server has no method `{method}`"),
            )),
        }
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let revision = REVISIONS
            .into_iter()
            .find(|revision| Some(*revision) == asked)
            .unwrap_or(NEWEST_REVISION);
        self.has_batches = revision == BATCH_REVISION;
        let mut result = json!({
            "protocolVersion": revision,
            "capabilities": { "tools": {} },
            "serverInfo": {
                "name": format!("demo-{}", self.server),
                "title": self.server.title(),
                "version": env!("CARGO_PKG_VERSION")
            }
        });
        if let Some(instructions) = self.server.instructions() {
            result["instructions"] = json!(instructions);
        }
        result
    }

    fn list_tools(&self, params: &Map<String, Value>) -> Result<Value, Refusal> {
        if params.contains_key("cursor") {
            return Err((
                INVALID_PARAMS,
                "unknown cursor: the list has one page".to_owned(),
            ));
        }
        Ok(json!({ "tools": self.tools.definitions() }))
    }

    fn call_tool(&mut self, mut params: Map<String, Value>) -> Result<Value, Refusal> {
        let Some(Value::String(name)) = params.remove("name") else {
            return Err((INVALID_PARAMS, "`name` must be a string".to_owned()));
        };
        let result = match Arguments::new(params.remove("arguments")) {
            Err(problem) => Err(problem.into()),
            Ok(arguments) => self
                .tools
                .call(&name, &arguments)
                .ok_or_else(|| (INVALID_PARAMS, format!("unknown tool: `{name}`")))?,
        };
        Ok(call_result(result))
    }
}

/// Classifies a JSON value.
fn classify(message: Value) -> Message {
    let Value::Object(mut members) = message else {
        return Message::Invalid {
            id: Value::Null,
            code: INVALID_REQUEST,
            reason: "a message must be a JSON object",
        };
    };
    let id = members.remove("id");
    let has_usable_id = matches!(&id, Some(Value::String(_) | Value::Number(_)));
    let invalid = |code, reason| Message::Invalid {
        id: if has_usable_id {
            id.clone().unwrap_or_default()
        } else {
            Value::Null
        },
        code,
        reason,
    };
    if members.get("jsonrpc") != Some(&json!("2.0")) {
        return invalid(INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
    }
    let method = match members.remove("method") {
        Some(Value::String(method)) => method,
        None if members.contains_key("result") || members.contains_key("error") => {
            return Message::Unanswered;
        }
        _ => return invalid(INVALID_REQUEST, "`method` must be a string"),
    };
    let params = match (members.remove("params"), &id) {
        (_, None) => return Message::Unanswered,
        (None, _) => Map::new(),
        (Some(Value::Object(params)), _) => params,
        _ => return invalid(INVALID_PARAMS, "`params` must be an object"),
    };
    match id {
        Some(id) if has_usable_id => Message::Request { id, method, params },
        _ => invalid(INVALID_REQUEST, "`id` must be a string or a number"),
    }
}

/// Returns the result of `tools/call`: the object, and the same as text for clients that read only that.
fn call_result(result: ToolResult) -> Value {
    match result {
        Ok(object) => json!({
            "content": [{ "type": "text", "text": object.to_string() }],
            "structuredContent": object
        }),
        Err(error) => json!({
            "content": [{ "type": "text", "text": error.to_string() }],
            "isError": true
        }),
    }
}

fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message }})
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
