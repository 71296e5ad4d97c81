//! JSON-RPC and MCP over lines: one message in, at most one response out.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use crate::{DemoServer, ToolResult, calculator, clock, notes::Notebook};

/// The protocol revisions of the server, the newest last. 2025-03-26 is missing because it requires batches.
const REVISIONS: [&str; 3] = ["2024-11-05", "2025-06-18", NEWEST_REVISION];
const NEWEST_REVISION: &str = "2025-11-25";

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// Runs `server` until `input` ends: reads MCP messages, one per line, and writes the responses.
pub fn run(server: DemoServer, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut session = Session {
        server,
        notebook: Notebook::default(),
    };
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(response) = session.answer(line.trim_ascii()) {
            writeln!(output, "{response}")?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

struct Session {
    server: DemoServer,
    /// The notes; empty unless the server is the notes store.
    notebook: Notebook,
}

/// The code and message of an error response.
struct Refusal(i32, String);

impl Session {
    fn answer(&mut self, line: &[u8]) -> Option<Value> {
        if line.is_empty() {
            return None;
        }
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                let refusal = Refusal(PARSE_ERROR, format!("the line is not JSON: {error}"));
                return Some(response(&Value::Null, Err(refusal)));
            }
        };
        match (message.get("id"), message["method"].as_str()) {
            (Some(id), Some(method)) => Some(response(id, self.respond(method, &message))),
            // A notification.
            (None, Some(_)) => None,
            (id, None) => {
                let refusal = Refusal(INVALID_REQUEST, "`method` is missing".to_owned());
                Some(response(id.unwrap_or(&Value::Null), Err(refusal)))
            }
        }
    }

    fn respond(&mut self, method: &str, message: &Value) -> Result<Value, Refusal> {
        let params = &message["params"];
        match method {
            "initialize" => Ok(self.initialize(&params["protocolVersion"])),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": self.server.definitions() })),
            "tools/call" => self.call(params),
            _ => Err(Refusal(
                METHOD_NOT_FOUND,
                format!("this server has no method `{method}`"),
            )),
        }
    }

    fn initialize(&self, requested: &Value) -> Value {
        let mut supported = REVISIONS.into_iter();
        let revision = supported.find(|revision| requested == revision);
        let mut result = json!({
            "protocolVersion": revision.unwrap_or(NEWEST_REVISION),
            "capabilities": { "tools": {} },
            "serverInfo": {
                "name": format!("demo-{}", self.server.name()),
                "version": env!("CARGO_PKG_VERSION")
            }
        });
        if let Some(instructions) = self.server.instructions() {
            result["instructions"] = json!(instructions);
        }
        result
    }

    fn call(&mut self, params: &Value) -> Result<Value, Refusal> {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = params
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({}));
        let result = match (self.server, name) {
            (DemoServer::Clock, "now") => clock::now(arguments),
            (DemoServer::Clock, "days_between") => clock::days_between(arguments),
            (DemoServer::Calculator, "evaluate") => calculator::evaluate(arguments),
            (DemoServer::Notes, "add") => self.notebook.add(arguments),
            (DemoServer::Notes, "list") => self.notebook.list(arguments),
            (DemoServer::Notes, "remove") => self.notebook.remove(arguments),
            _ => return Err(Refusal(INVALID_PARAMS, format!("unknown tool: `{name}`"))),
        };
        Ok(call_result(result))
    }
}

/// Returns the result of `tools/call`: the object, and the same as text for clients that read only text.
fn call_result(result: ToolResult) -> Value {
    match result {
        Ok(object) => json!({
            "content": [{ "type": "text", "text": object.to_string() }],
            "structuredContent": object
        }),
        Err(message) => json!({
            "content": [{ "type": "text", "text": message }],
            "isError": true
        }),
    }
}

fn response(id: &Value, outcome: Result<Value, Refusal>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Refusal(code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// Runs a server on these lines and returns its responses.
    fn answers(server: DemoServer, lines: &[&str]) -> Vec<Value> {
        let mut output = Vec::new();
        run(server, lines.join("\n").as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        let lines = output.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn request(server: DemoServer, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answers = answers(server, &[&message.to_string()]);
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    #[test]
    fn a_supported_revision_is_accepted() {
        for (requested, answered) in [
            (json!("2024-11-05"), "2024-11-05"),
            (json!("2025-03-26"), NEWEST_REVISION),
            (json!("2025-06-18"), "2025-06-18"),
            (json!("2025-11-25"), NEWEST_REVISION),
            (json!(null), NEWEST_REVISION),
        ] {
            let params = json!({ "protocolVersion": requested });
            let answer = request(DemoServer::Clock, "initialize", &params);
            assert_eq!(answer["result"]["protocolVersion"], answered);
        }
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            request(DemoServer::Calculator, "initialize", &json!({}))["result"],
            json!({
                "protocolVersion": NEWEST_REVISION,
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "demo-calculator", "version": version }
            })
        );
        let answer = request(DemoServer::Notes, "initialize", &json!({}));
        assert!(answer["result"]["instructions"].is_string(), "{answer}");
    }

    #[test]
    fn every_line_but_notifications_is_answered() {
        for (line, id, code) in [
            (r#"{"id":"a","method":"ping"}"#, json!("a"), None),
            ("{", json!(null), Some(PARSE_ERROR)),
            ("\u{7f}", json!(null), Some(PARSE_ERROR)),
            ("3", json!(null), Some(INVALID_REQUEST)),
            ("[]", json!(null), Some(INVALID_REQUEST)),
            (r#"{"id":2}"#, json!(2), Some(INVALID_REQUEST)),
            (
                r#"{"id":4,"method":"prompts/list"}"#,
                json!(4),
                Some(METHOD_NOT_FOUND),
            ),
            (
                r#"{"id":5,"method":"tools/call","params":{"name":"now"}}"#,
                json!(5),
                Some(INVALID_PARAMS),
            ),
        ] {
            let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            let answers = answers(DemoServer::Notes, &[notification, "  ", line]);
            assert_eq!(answers.len(), 1, "{line}");
            assert_eq!(answers[0]["id"], id, "{line}");
            let found = answers[0]["error"]["code"].as_i64();
            assert_eq!(found, code.map(i64::from), "{line}");
        }
    }

    #[test]
    fn results_are_structured_and_errors_are_results() {
        let call = |arguments: &Value| {
            let params = json!({ "name": "evaluate", "arguments": arguments });
            request(DemoServer::Calculator, "tools/call", &params)["result"].clone()
        };
        assert_eq!(
            call(&json!({ "expression": "6 * 7" })),
            json!({
                "content": [{ "type": "text", "text": r#"{"expression":"6 * 7","value":42}"# }],
                "structuredContent": { "expression": "6 * 7", "value": 42 }
            })
        );
        let failed = json!([{ "type": "text", "text": "division by zero" }]);
        assert_eq!(
            call(&json!({ "expression": "1 / 0" })),
            json!({ "content": failed, "isError": true })
        );
        assert_eq!(call(&json!("6 * 7"))["isError"], true);
    }

    #[test]
    fn notes_last_as_long_as_the_process() {
        let add =
            r#"{"id":1,"method":"tools/call","params":{"name":"add","arguments":{"text":"x"}}}"#;
        let list = r#"{"id":2,"method":"tools/call","params":{"name":"list"}}"#;
        let notes = |lines: &[&str]| {
            let last = answers(DemoServer::Notes, lines).pop().unwrap();
            last["result"]["structuredContent"]["notes"].clone()
        };
        assert_eq!(notes(&[add, list]), json!([{ "id": 1, "text": "x" }]));
        assert_eq!(notes(&[list]), json!([]));
    }

    #[test]
    fn every_listed_tool_is_complete_and_can_be_called() {
        for server in DemoServer::ALL {
            let listed = request(server, "tools/list", &json!({}));
            let tools = listed["result"]["tools"].as_array().unwrap();
            assert!(!tools.is_empty());
            for tool in tools {
                assert!(tool["title"].is_string() && tool["description"].is_string());
                assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
                for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
                    assert_eq!(schema["type"], "object", "{tool}");
                    assert_eq!(schema["additionalProperties"], false, "{tool}");
                }
                let answer = request(server, "tools/call", &json!({ "name": tool["name"] }));
                assert!(answer.get("error").is_none(), "{answer}");
            }
        }
    }
}
