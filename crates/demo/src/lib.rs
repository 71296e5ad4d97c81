//! Three small MCP servers over stdio: a clock, a calculator and a notes store. `mcp-workbench` has them built in, so
//! that `mcp-workbench demo` needs no configuration, no network and no installation.
//!
//! A server is a synchronous loop that reads a line, answers it and reads the next. `protocol` handles JSON-RPC and
//! MCP; `clock`, `calculator` and `notes` have the tools.

mod calculator;
mod clock;
mod notes;
mod protocol;

use std::str::FromStr;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

pub use protocol::run;

/// A server that is built into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoServer {
    Clock,
    Calculator,
    Notes,
}

impl DemoServer {
    /// All servers, in the order of the demo's configuration.
    pub const ALL: [Self; 3] = [Self::Clock, Self::Calculator, Self::Notes];

    /// Returns the name on the command line and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Calculator => "calculator",
            Self::Notes => "notes",
        }
    }

    /// Returns the instructions for a model, if the tool definitions do not suffice.
    fn instructions(self) -> Option<&'static str> {
        match self {
            Self::Clock => Some("Times are in UTC, dates are written as YYYY-MM-DD."),
            Self::Calculator => None,
            Self::Notes => Some("Notes are kept in memory and are gone when this server stops."),
        }
    }

    fn definitions(self) -> Value {
        match self {
            Self::Clock => clock::definitions(),
            Self::Calculator => calculator::definitions(),
            Self::Notes => notes::definitions(),
        }
    }
}

impl FromStr for DemoServer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut servers = Self::ALL.into_iter();
        let server = servers.find(|server| server.name() == name);
        server.ok_or_else(|| {
            format!("unknown demo server `{name}`: choose `clock`, `calculator` or `notes`")
        })
    }
}

/// The result of a call: a JSON object that fits the tool's output schema, or a message for the model.
type ToolResult = Result<Value, String>;

/// The arguments of a tool without arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

/// Reads the arguments of a call.
fn read_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| format!("invalid arguments: {error}"))
}

/// Returns the schema of an object with these properties, all of them required.
fn object(properties: &Value) -> Value {
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    json!({
        "type": "object",
        "properties": properties,
        "required": names.collect::<Vec<_>>(),
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for server in DemoServer::ALL {
            assert_eq!(server.name().parse(), Ok(server));
        }
        let error = "Clock".parse::<DemoServer>().unwrap_err();
        assert!(error.starts_with("unknown demo server `Clock`"), "{error}");
    }
}
