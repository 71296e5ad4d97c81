//! The list of demo servers.

use std::fmt;
use std::str::FromStr;

/// A server that is built into this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoServer {
    /// The time and date arithmetic.
    Clock,
    Calculator,
    /// Notes in memory.
    Notes,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown demo server `{name}`: choose `clock`, `calculator` or `notes`")]
pub(crate) struct UnknownDemoServer {
    pub name: String,
}

impl DemoServer {
    /// All servers, in the order of the demo's configuration.
    pub(crate) const ALL: [Self; 3] = [Self::Clock, Self::Calculator, Self::Notes];

    /// Returns the name on the command line and in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Calculator => "calculator",
            Self::Notes => "notes",
        }
    }

    /// Returns the title of the server.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Clock => "Clock",
            Self::Calculator => "Calculator",
            Self::Notes => "Notes",
        }
    }

    /// Returns the instructions for a model, if the tool definitions do not suffice.
    pub(super) fn instructions(self) -> Option<&'static str> {
        match self {
            Self::Clock => Some("Give time zones as offsets from UTC, such as +02:00."),
            Self::Calculator => None,
            Self::Notes => Some("Notes are kept in memory and are gone when this server stops."),
        }
    }
}

impl fmt::Display for DemoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DemoServer {
    type Err = UnknownDemoServer;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|server| server.name() == name)
            .ok_or_else(|| UnknownDemoServer {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn names_are_parsed_back() {
        for server in DemoServer::ALL {
            assert_eq!(server.name().parse(), Ok(server));
            assert_eq!(server.to_string(), server.name());
        }
        let error = "Clock".parse::<DemoServer>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown demo server `Clock`: choose `clock`, `calculator` or `notes`"
        );
    }
}
