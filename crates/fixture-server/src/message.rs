//! What comes in: the envelope of a message, its parts as they were written.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::script::Raw;

/// One message from the client.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    /// The id of a request or of an answer.
    pub(crate) id: Option<Raw>,
    /// The method of a request or of a notification.
    pub(crate) method: Option<String>,
    /// What belongs to the method.
    pub(crate) params: Option<Raw>,
}

/// A request of the client, or one of its notifications (which has no id).
#[derive(Debug)]
pub(crate) struct Request {
    /// The id, where an answer is wanted.
    pub(crate) id: Option<Raw>,
    /// The method.
    pub(crate) method: String,
    /// The raw parameters; `{}` when absent.
    pub(crate) params: Raw,
    /// The parts of the parameters that the server itself reads.
    pub(crate) known: KnownParams,
}

/// The parts of the parameters that the server itself reads, whatever the method.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KnownParams {
    /// `tools/call`: the tool.
    pub(crate) name: Option<String>,
    /// `tools/call`: its arguments.
    pub(crate) arguments: Option<Raw>,
    /// `tools/list`: the page.
    pub(crate) cursor: Option<String>,
    /// `initialize`: the revision that the client wants.
    pub(crate) protocol_version: Option<String>,
    /// `notifications/cancelled`: the request.
    pub(crate) request_id: Option<Raw>,
    /// The progress token is in here.
    #[serde(rename = "_meta")]
    pub(crate) meta: Meta,
}

/// The part of `_meta` that the server reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    /// The token under which the client wants progress.
    pub(crate) progress_token: Option<Raw>,
}

impl Request {
    /// Reads what the server needs of the parameters; parameters of another shape read as none.
    pub(crate) fn new(id: Option<Raw>, method: String, params: Option<Raw>) -> Self {
        let params =
            params.unwrap_or_else(|| RawValue::from_string("{}".to_owned()).expect("an object"));
        let known = serde_json::from_str(params.get()).unwrap_or_default();
        Self {
            id,
            method,
            params,
            known,
        }
    }
}
