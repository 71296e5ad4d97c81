//! Which demonstration servers there are.

use std::fmt;
use std::str::FromStr;

/// One of the servers that are built into this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoServer {
    /// The time and date arithmetic.
    Clock,
    Calculator,
    /// Notes that are kept in memory.
    Notes,
}

/// No demonstration server has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no demo server is called `{name}`: there are `clock`, `calculator` and `notes`")]
pub(crate) struct UnknownDemoServer {
    /// The name that was asked for.
    pub name: String,
}

impl DemoServer {
    /// Every server, in the order of the demonstration's configuration.
    pub(crate) const ALL: [Self; 3] = [Self::Clock, Self::Calculator, Self::Notes];

    /// The name on the command line and in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Calculator => "calculator",
            Self::Notes => "notes",
        }
    }

    /// The title that the server gives itself.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Clock => "Clock",
            Self::Calculator => "Calculator",
            Self::Notes => "Notes",
        }
    }

    /// What the server tells a model about itself, where its tools do not say it all.
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
            "no demo server is called `Clock`: there are `clock`, `calculator` and `notes`"
        );
    }
}
