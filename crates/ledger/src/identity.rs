//! Identities: requests have an id, calls a nonce, servers a number. On the wire an id or a progress token is a number
//! or a string, by turns, and only the same form is the same id.

use std::fmt;

use serde_json::Value;

/// The id of a request. Requests that were sent with one id on purpose share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u64);

/// The unique value in the arguments of a call. It is the call's progress token as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub u64);

/// One of the servers, by its place in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerIndex(pub usize);

impl Id {
    /// The id on the wire.
    pub fn to_json(self) -> Value {
        to_json(self.0, "r-")
    }

    /// The id that this is on the wire.
    pub fn from_json(value: &Value) -> Option<Self> {
        from_json(value, "r-").map(Self)
    }
}

impl Nonce {
    /// The progress token of the call.
    pub fn to_token(self) -> Value {
        to_json(self.0, "p-")
    }

    /// Returns the call with this progress token.
    pub fn from_token(value: &Value) -> Option<Self> {
        from_json(value, "p-").map(Self)
    }
}

fn to_json(number: u64, prefix: &str) -> Value {
    if number.is_multiple_of(2) {
        Value::from(number)
    } else {
        Value::from(format!("{prefix}{number}"))
    }
}

fn from_json(value: &Value, prefix: &str) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.strip_prefix(prefix)?.parse().ok()?,
        _ => return None,
    };
    (to_json(number, prefix) == *value).then_some(number)
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {}", self.to_json())
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}", self.0)
    }
}

impl fmt::Display for ServerIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}", self.0)
    }
}
