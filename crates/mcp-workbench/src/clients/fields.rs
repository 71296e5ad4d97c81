//! Reads the fields of a client's entry by all the keys that clients use for them.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The members of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'e>(pub(super) &'e Map<String, Value>);

impl<'e> Fields<'e> {
    /// Returns the value of the first key that is present and not `null`.
    pub(super) fn first(self, keys: &[&str]) -> Option<&'e Value> {
        let mut found = keys.iter().filter_map(|key| self.0.get(*key));
        found.find(|value| !value.is_null())
    }

    /// Returns the string of the first key that is present, if it is not blank.
    pub(super) fn text(self, keys: &[&str]) -> Option<&'e str> {
        let text = self.first(keys)?.as_str()?;
        (!text.trim().is_empty()).then_some(text)
    }

    /// Returns the URL of a remote server, and its key.
    pub(super) fn url(self) -> Option<(&'e str, &'static str)> {
        let keys = ["httpUrl", "serverUrl", "url", "uri"];
        keys.into_iter()
            .find_map(|key| Some((self.text(&[key])?, key)))
    }

    /// Returns the program and its arguments.
    pub(super) fn words(self) -> Option<Vec<Cow<'e, str>>> {
        let mut words = match self.first(&["command", "cmd"])? {
            // Some clients write the whole command line as one list, and others as an object.
            Value::Array(line) => line.iter().filter_map(plain).collect(),
            Value::Object(command) => {
                let command = Fields(command);
                let mut words = vec![Cow::from(command.text(&["path", "command"])?)];
                words.extend(command.arguments());
                words
            }
            other => vec![plain(other)?],
        };
        words.extend(self.arguments());
        let first = words.first()?;
        (!first.trim().is_empty()).then_some(words)
    }

    fn arguments(self) -> Vec<Cow<'e, str>> {
        self.texts(&["args"])
    }

    /// Returns the strings of a list; numbers and booleans are converted.
    pub(super) fn texts(self, keys: &[&str]) -> Vec<Cow<'e, str>> {
        let list = self.first(keys).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(plain).collect()
    }

    /// Returns the strings of a map, in order.
    pub(super) fn map(self, keys: &[&str]) -> Vec<(&'e str, Cow<'e, str>)> {
        let map = self.first(keys).and_then(Value::as_object);
        let members = map.into_iter().flatten();
        members
            .filter_map(|(key, value)| Some((key.as_str(), plain(value)?)))
            .collect()
    }

    /// Returns the members of an object in the entry.
    pub(super) fn inner(self, key: &str) -> Option<Self> {
        self.0.get(key).and_then(Value::as_object).map(Fields)
    }

    /// Returns true if the entry is disabled.
    pub(super) fn is_disabled(self) -> bool {
        let is = |key: &str, flag: bool| self.0.get(key) == Some(&Value::Bool(flag));
        is("disabled", true) || is("enabled", false) || is("isActive", false)
    }

    /// Returns the names in a list of names, or of objects with a `name`.
    pub(super) fn names(self, key: &str) -> Vec<&'e str> {
        let list = self.0.get(key).and_then(Value::as_array);
        let name = |item: &'e Value| item.as_str().or_else(|| item.get("name")?.as_str());
        list.into_iter().flatten().filter_map(name).collect()
    }
}

/// Converts a plain value to a string; lists and objects are `None`.
fn plain(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::from(text)),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(flag) => Some(flag.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
