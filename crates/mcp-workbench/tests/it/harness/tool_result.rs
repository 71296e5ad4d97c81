//! The result of a tool, raw and read.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::Message;

#[derive(Debug)]
pub(crate) struct ToolResult {
    /// The whole result as it came.
    pub(crate) raw: String,
    parts: Parts,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts {
    #[serde(default)]
    content: Vec<Value>,
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(rename = "_meta", default)]
    meta: Value,
}

impl ToolResult {
    /// Reads the answer to a `tools/call`.
    pub(crate) fn of(answer: &Message) -> Self {
        let raw = answer.raw_result().to_owned();
        let parts = serde_json::from_str(&raw).unwrap_or_else(|error| panic!("{error}: {raw}"));
        Self { raw, parts }
    }

    /// The text of the one text content of a result that is no error.
    pub(crate) fn text(&self) -> &str {
        assert!(!self.parts.is_error, "an error: {}", self.raw);
        self.only_text()
    }

    /// The text of the one text content of an error.
    pub(crate) fn error(&self) -> &str {
        assert!(self.parts.is_error, "no error: {}", self.raw);
        self.only_text()
    }

    /// Returns true if it reports that the tool failed.
    pub(crate) fn failed(&self) -> bool {
        self.parts.is_error
    }

    /// The text read as JSON, where its bytes do not matter.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// `structuredContent`, where its bytes do not matter.
    pub(crate) fn structured(&self) -> Value {
        let raw = self.parts.structured_content.as_deref();
        let raw = raw.unwrap_or_else(|| panic!("no structuredContent: {}", self.raw));
        serde_json::from_str(raw.get()).expect("structuredContent is JSON")
    }

    /// Returns true if there is a `structuredContent`.
    pub(crate) fn is_structured(&self) -> bool {
        self.parts.structured_content.is_some()
    }

    /// Returns the machine-readable part of a failure.
    pub(crate) fn failure(&self) -> &Value {
        assert!(self.parts.is_error, "no error: {}", self.raw);
        &self.parts.meta["mcp-workbench/error"]
    }

    /// The names of the tools of an opened toolbox, in order.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let json = self.json();
        let tools = json["tools"].as_array().expect("a list of tools");
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    fn only_text(&self) -> &str {
        let [content] = self.parts.content.as_slice() else {
            panic!("not one content: {}", self.raw);
        };
        assert_eq!(content["type"], "text", "no text content: {}", self.raw);
        content["text"].as_str().expect("a text")
    }
}
