//! One call as a line of the log.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{shape::shape, time};
use crate::{
    call::{ClientHandle, Principal},
    config::Secrets,
    ident::ToolIdentifier,
    visible::visible,
    wire::RawJson,
};

/// How many characters of a name are kept: whoever calls can name anything.
const NAME: usize = 200;
/// The largest arguments whose values are noted.
const MAX_VALUES: usize = 16 * 1024;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With a result of so many bytes.
    Ok(usize),
    /// With a result that says that the tool has failed.
    ToolError(usize),
    /// With a question: the client calls again with the answer.
    InputRequired(usize),
    /// With a failure of this code.
    Error(&'static str),
    /// It was not permitted, with this code.
    Denied(&'static str),
    /// The caller did not wait for the end.
    Cancelled,
}

impl Ended {
    /// With this result.
    pub fn with(result: &RawJson) -> Self {
        let size = result.as_bytes().len();
        let asks = result.member("resultType");
        if result.member("isError").is_some_and(|it| it.is_true()) {
            Self::ToolError(size)
        } else if asks.is_some_and(|it| it.as_text().as_deref() == Some("input_required")) {
            Self::InputRequired(size)
        } else {
            Self::Ok(size)
        }
    }

    /// With a failure of this code.
    pub fn failed(code: &'static str) -> Self {
        if code.starts_with("permission_") {
            Self::Denied(code)
        } else {
            Self::Error(code)
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::ToolError(_) => "tool_error",
            Self::InputRequired(_) => "input_required",
            Self::Error(_) => "error",
            Self::Denied(_) => "denied",
            Self::Cancelled => "cancelled",
        }
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Error(code) | Self::Denied(code) => Some(code),
            _ => None,
        }
    }

    fn size(self) -> Option<usize> {
        match self {
            Self::Ok(size) | Self::ToolError(size) | Self::InputRequired(size) => Some(size),
            _ => None,
        }
    }
}

/// What is known of a call when it begins.
pub(super) struct Record {
    time: String,
    client: Value,
    /// Toolbox, server and tool.
    place: [String; 3],
    size: usize,
    shape: Value,
    values: Option<Value>,
}

impl Record {
    /// A call that begins now.
    pub(super) fn new(
        tool: &ToolIdentifier,
        arguments: &RawJson,
        client: &dyn ClientHandle,
        secrets: &Secrets,
    ) -> Self {
        let name = |text: &str| cut(&secrets.redact(text), NAME);
        Self {
            time: time::now(),
            client: said_of(client),
            place: [
                name(tool.toolbox.as_str()),
                name(tool.server.as_str()),
                name(tool.tool.as_str()),
            ],
            size: arguments.as_bytes().len(),
            shape: shape(arguments, secrets),
            values: None,
        }
    }

    /// Adds what the arguments say, without secrets, unless it is too much.
    pub(super) fn add_values(&mut self, arguments: &RawJson, secrets: &Secrets) {
        if arguments.as_bytes().len() <= MAX_VALUES {
            let values = serde_json::from_str(arguments.as_str()).ok();
            self.values = values.map(|values| redacted(values, secrets));
        }
    }

    /// The line, with its end.
    pub(super) fn into_line(self, ended: Ended, took: Duration) -> Vec<u8> {
        let [toolbox, server, tool] = self.place;
        let mut line = json!({
            "time": self.time,
            "client": self.client,
            "toolbox": toolbox,
            "server": server,
            "tool": tool,
            "outcome": ended.word(),
        });
        if let Some(code) = ended.code() {
            line["code"] = code.into();
        }
        line["duration_ms"] = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).into();
        line["arguments_bytes"] = self.size.into();
        if let Some(size) = ended.size() {
            line["result_bytes"] = size.into();
        }
        line["shape"] = self.shape;
        if let Some(values) = self.values {
            line["arguments"] = values;
        }
        to_line(&line)
    }
}

/// The line that says that calls were not noted.
pub(super) fn dropped_line(calls: u64) -> Vec<u8> {
    to_line(&json!({ "time": time::now(), "not_noted": calls }))
}

/// A value as a line in which nothing is hidden: what a terminal could act on stands there as an escape of JSON.
fn to_line(value: &Value) -> Vec<u8> {
    let mut line = String::new();
    for character in value.to_string().chars() {
        let mut buffer = [0; 4];
        let text = character.encode_utf8(&mut buffer);
        if character.is_ascii() && !character.is_ascii_control() || *visible(text) == *text {
            line.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    line.push('\n');
    line.into_bytes()
}

/// What is known of whoever calls. Of a token nothing is known but that there is one.
fn said_of(client: &dyn ClientHandle) -> Value {
    let mut said = Map::new();
    let identity = client.identity();
    if let Some(name) = identity.name {
        said.insert("name".into(), name.into());
    }
    if let Some(version) = identity.version {
        said.insert("version".into(), version.into());
    }
    let principal = match client.principal() {
        Principal::Local => "local",
        Principal::Anybody => "anybody",
        Principal::Holder(_) => "token",
    };
    said.insert("principal".into(), principal.into());
    Value::Object(said)
}

/// A value whose texts and names hold no secrets.
fn redacted(value: Value, secrets: &Secrets) -> Value {
    match value {
        Value::String(text) => secrets.redact(&text).into(),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| redacted(item, secrets));
            items.collect()
        }
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members
                .map(|(name, value)| (secrets.redact(&name).into(), redacted(value, secrets)));
            Value::Object(members.collect())
        }
        plain => plain,
    }
}

/// A text of at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_shows_what_is_hidden() {
        let value = json!({"tool": "a\nb\u{1b}[2J\u{202E}\u{E0041}\u{9b}ü👍"});
        let line = String::from_utf8(to_line(&value)).unwrap();
        let expected = r#"{"tool":"a\nb\u001b[2J\u202e\udb40\udc41\u009bü👍"}"#;
        assert_eq!(line, format!("{expected}\n"));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }

    #[test]
    fn values_hold_no_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "hunter2-\"hunter2");
        let value = json!({"a": ["x hunter2-\"hunter2 y"], "hunter2-\"hunter2": {"b": 1}});
        let expected = json!({"a": ["x [redacted] y"], "[redacted]": {"b": 1}});
        assert_eq!(redacted(value, &secrets), expected);
    }

    #[test]
    fn an_end_has_its_word() {
        let with = |text: &str| Ended::with(&RawJson::parse(&text.to_owned().into()).unwrap());
        assert_eq!(with("{}"), Ended::Ok(2));
        assert_eq!(with(r#"{"isError":true}"#), Ended::ToolError(16));
        assert_eq!(with(r#"{"isError":false}"#).word(), "ok");
        let asks = with(r#"{"resultType":"input_required"}"#);
        assert_eq!(asks.word(), "input_required");
        assert_eq!(Ended::failed("permission_denied").word(), "denied");
        assert_eq!(Ended::failed("call_timeout").word(), "error");
    }
}
