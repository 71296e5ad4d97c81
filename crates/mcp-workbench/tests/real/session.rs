//! A JSON-RPC client that keeps what it gets as bytes, so that two servers' answers can be compared
//! to the letter.

use std::process::Command;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::process::Process;
use crate::steps::{Era, MODERN_REVISION};

/// An MCP session over a child's stdio.
pub(crate) struct Session {
    process: Process,
    next_id: u64,
    era: Era,
    /// The result of `initialize`, or of `server/discover`.
    pub(crate) greeting: Value,
}

/// A result as it was written, and the messages that came before it.
pub(crate) struct Answer {
    pub(crate) result: Box<RawValue>,
    pub(crate) notifications: Vec<Value>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Session {
    pub(crate) fn start(command: Command) -> Self {
        Self::start_in(Era::Legacy, command)
    }

    pub(crate) fn start_in(era: Era, command: Command) -> Self {
        let mut session = Self {
            process: Process::start(command),
            next_id: 1,
            era,
            greeting: Value::Null,
        };
        if era == Era::Modern {
            session.greeting = session.request("server/discover", &json!({})).value();
            return session;
        }
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "mcp-workbench-tests", "version": "1.0.0" },
        });
        session.greeting = session.request("initialize", &params).value();
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Answer {
        let id = self.next_id;
        self.next_id += 1;
        let params = &self.introduced(params);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));

        let mut notifications = Vec::new();
        loop {
            let Some(line) = self.process.read_line() else {
                self.process
                    .fail(&format!("ended before it answered {method}"));
            };
            let message: Message = serde_json::from_str(&line)
                .unwrap_or_else(|error| self.process.fail(&format!("printed {line}: {error}")));
            match message {
                Message {
                    id: Some(it),
                    result: Some(result),
                    ..
                } if it == json!(id) => {
                    return Answer {
                        result,
                        notifications,
                    };
                }
                Message {
                    error: Some(error), ..
                } => self.process.fail(&format!(
                    "answered {method} {params} with the error {error}"
                )),
                _ => notifications.push(serde_json::from_str(&line).unwrap()),
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Closes the session; the process must end by itself and well.
    pub(crate) fn finish(self) {
        for line in self.process.finish() {
            let message: Message = serde_json::from_str(&line).unwrap();
            assert!(
                message.result.is_none(),
                "an answer that nobody asked for: {line}"
            );
        }
    }

    /// The parameters of a request, which in the modern era says who sends it.
    fn introduced(&self, params: &Value) -> Value {
        let mut params = params.clone();
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN_REVISION);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        params
    }

    fn send(&mut self, message: &Value) {
        self.process.write_line(&message.to_string());
    }
}

impl Answer {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.result.get()).unwrap()
    }
}
