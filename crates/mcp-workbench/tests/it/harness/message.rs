//! One message on the wire, its parts as they were written.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

/// A message and the line that it came in.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Message {
    #[serde(skip)]
    pub(crate) line: String,
    jsonrpc: Option<String>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    /// The method of a request or of a notification.
    pub(crate) method: Option<String>,
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RpcError {
    /// The number that a program reads.
    pub(crate) code: i64,
    /// The text that a person reads.
    pub(crate) message: String,
}

impl Message {
    /// Reads a line, which must be a message of JSON-RPC 2.0.
    pub(crate) fn parse(line: String) -> Self {
        let parsed: Result<Self, _> = serde_json::from_str(&line);
        let mut message = parsed.unwrap_or_else(|error| panic!("{error}: no message: {line}"));
        assert_eq!(
            message.jsonrpc.as_deref(),
            Some("2.0"),
            "no JSON-RPC: {line}"
        );
        message.line = line;
        message
    }

    /// The raw id, `null` included.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref().map(RawValue::get)
    }

    /// The raw result of a successful answer.
    pub(crate) fn raw_result(&self) -> &str {
        let result = self.result.as_deref().map(RawValue::get);
        result.unwrap_or_else(|| panic!("no result: {}", self.line))
    }

    /// The result of a successful answer, where its bytes do not matter.
    pub(crate) fn result(&self) -> Value {
        serde_json::from_str(self.raw_result()).expect("a result is JSON")
    }

    /// The error of a failed answer.
    pub(crate) fn error(&self) -> &RpcError {
        let error = self.error.as_ref();
        error.unwrap_or_else(|| panic!("no error: {}", self.line))
    }

    /// Returns true if it is a response with a JSON-RPC error.
    pub(crate) fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// The parameters, where their bytes do not matter.
    pub(crate) fn params(&self) -> Value {
        let params = self.params.as_deref().expect("parameters");
        serde_json::from_str(params.get()).expect("parameters are JSON")
    }

    /// Returns true if it is the response to the request with this raw id.
    pub(crate) fn answers(&self, id: &str) -> bool {
        self.method.is_none() && self.id() == Some(id)
    }
}

/// Tells a member that is `null` from one that is absent.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}
