//! A client of the modern era, on a connection that any era can use.

use serde_json::{Map, Value, json};

use crate::harness::{Message, Workbench};

/// The revision that it speaks.
pub(super) const REVISION: &str = "2026-07-28";

/// What a request says of its client, and what it goes on with.
#[derive(Clone)]
pub(super) struct Modern {
    /// The members of `_meta`.
    pub(super) meta: Map<String, Value>,
    /// Further members of the parameters.
    pub(super) more: Map<String, Value>,
}

impl Modern {
    /// A client with these capabilities.
    pub(super) fn client(capabilities: &Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        });
        Self {
            meta: meta.as_object().unwrap().clone(),
            more: Map::new(),
        }
    }

    /// With another member of `_meta`.
    pub(super) fn meta(mut self, key: &str, value: Value) -> Self {
        self.meta.insert(key.to_owned(), value);
        self
    }

    /// With the answers to what was asked, by key, and the state that came with the questions.
    pub(super) fn answering(mut self, asked: &Message, answers: &[(&str, Value)]) -> Self {
        let answers: Map<_, _> = answers
            .iter()
            .map(|(key, answer)| ((*key).to_owned(), answer.clone()))
            .collect();
        self.more.insert("inputResponses".into(), answers.into());
        if let Some(state) = asked.result().get("requestState") {
            self.more.insert("requestState".into(), state.clone());
        }
        self
    }

    /// Sends a request; returns its id.
    pub(super) fn send(&self, workbench: &mut Workbench, method: &str, params: &Value) -> String {
        let mut params = params.as_object().unwrap().clone();
        params.extend(self.more.clone());
        params.insert("_meta".into(), self.meta.clone().into());
        workbench.request(method, &Value::Object(params).to_string())
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(&self, workbench: &mut Workbench, method: &str, params: &Value) -> Message {
        let id = self.send(workbench, method, params);
        workbench.response(&id)
    }

    /// Opens the toolbox `dev`.
    pub(super) fn open(&self, workbench: &mut Workbench) -> Message {
        let params = json!({"name": "open_toolbox", "arguments": {"toolbox": "dev"}});
        self.ask(workbench, "tools/call", &params)
    }

    /// Sends a call of a tool of the server `fs` in the toolbox `dev`; returns its id.
    pub(super) fn send_use(&self, workbench: &mut Workbench, tool: &str) -> String {
        self.send(workbench, "tools/call", &use_params(tool))
    }

    /// Calls a tool of the server `fs` in the toolbox `dev`.
    pub(super) fn use_tool(&self, workbench: &mut Workbench, tool: &str) -> Message {
        self.ask(workbench, "tools/call", &use_params(tool))
    }
}

/// The parameters of a call through `use_tool`.
pub(super) fn use_params(tool: &str) -> Value {
    let identifier = json!({"toolbox": "dev", "server": "fs", "tool": tool});
    json!({"name": "use_tool", "arguments": {"tool": identifier, "arguments": {}}})
}

/// The keys of what is asked.
pub(super) fn keys(asked: &Message) -> Vec<String> {
    let result = asked.result();
    assert_eq!(result["resultType"], "input_required", "{}", asked.line);
    let requests = result["inputRequests"].as_object().unwrap();
    requests.keys().cloned().collect()
}

/// Everything that a client can be asked.
pub(super) fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}
