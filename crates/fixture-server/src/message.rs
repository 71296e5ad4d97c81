//! Incoming messages: the envelope, with its parts as they were written.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{output::Output, script::Raw};

/// One message from the client.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    /// The id of a request or of an answer.
    pub(crate) id: Option<Raw>,
    /// The method of a request or of a notification.
    pub(crate) method: Option<String>,
    pub(crate) params: Option<Raw>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// A request of the client, or one of its notifications (which has no id).
#[derive(Debug)]
pub(crate) struct Request {
    /// The id, or `None` for a notification.
    pub(crate) id: Option<Raw>,
    pub(crate) method: String,
    /// The raw parameters; `{}` when absent.
    pub(crate) params: Raw,
    /// The parts of the parameters that the server itself reads.
    pub(crate) known: KnownParams,
    pub(crate) era: Era,
    /// A key that is unique among all requests of all clients; over stdio the raw id.
    pub(crate) key: String,
    /// The output for its response and the messages before it.
    pub(crate) output: Arc<Output>,
}

/// The parts of the parameters that the server itself reads, whatever the method.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KnownParams {
    /// `tools/call` and `prompts/get`: the tool or prompt.
    pub(crate) name: Option<String>,
    /// `tools/call`: its arguments.
    pub(crate) arguments: Option<Raw>,
    /// `tools/list`: the page.
    pub(crate) cursor: Option<String>,
    /// `resources/read`: the address.
    pub(crate) uri: Option<String>,
    /// `tasks/…`: the task.
    pub(crate) task_id: Option<String>,
    /// `logging/setLevel`: the level.
    pub(crate) level: Option<String>,
    /// `subscriptions/listen`: the filter of the client.
    pub(crate) notifications: Option<Raw>,
    /// The responses to the questions of an earlier result.
    pub(crate) input_responses: Option<Raw>,
    /// The state that an earlier result asked to be returned.
    pub(crate) request_state: Option<String>,
    /// `initialize`: the revision that the client wants.
    pub(crate) protocol_version: Option<String>,
    /// `notifications/cancelled`: the request.
    pub(crate) request_id: Option<Raw>,
    /// The `_meta`: the progress token, and the client of a modern request.
    #[serde(rename = "_meta")]
    pub(crate) meta: Meta,
}

/// The part of `_meta` that the server reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Meta {
    /// The token under which the client wants progress.
    #[serde(rename = "progressToken")]
    pub(crate) progress_token: Option<Raw>,
    /// The revision of a modern request.
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<Raw>,
    /// The capabilities of the client of a modern request.
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) capabilities: Option<Raw>,
    /// The program of the client.
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client_info: Option<Raw>,
    /// The least urgent log messages that are wanted.
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    pub(crate) log_level: Option<Raw>,
}

impl Meta {
    /// Returns true if it makes a request a modern one.
    pub(crate) fn is_modern(&self) -> bool {
        self.version.is_some()
            || self.capabilities.is_some()
            || self.client_info.is_some()
            || self.log_level.is_some()
    }
}

impl Request {
    /// Parses the parameters that the server needs. Parameters of a different shape count as absent. `scope`
    /// distinguishes the ids of different connections.
    pub(crate) fn new(message: Message, method: String, output: Arc<Output>, scope: &str) -> Self {
        let params = message
            .params
            .unwrap_or_else(|| RawValue::from_string("{}".to_owned()).expect("an object"));
        let known = serde_json::from_str(params.get()).unwrap_or_default();
        let id = message.id.as_deref().map_or("", RawValue::get);
        Self {
            key: format!("{scope}{id}"),
            id: message.id,
            method,
            params,
            known,
            era: Era::Legacy,
            output,
        }
    }
    /// Answers it with a raw error.
    pub(crate) fn fail(&self, error: &str) {
        let id = self.id.as_deref().expect("a request");
        self.output.error(id, error);
    }
}
