//! The tools of one running server, whichever it is.

use serde_json::Value;

use super::arguments::{ArgumentError, Arguments};
use super::civil::TimeError;
use super::expression::ExpressionError;
use super::notes::{Notebook, NotesError};
use super::server::DemoServer;
use super::{calculator, clock};

/// The tools of a server, with what they remember between calls.
#[derive(Debug)]
pub(super) enum Tools {
    /// The clock, which remembers nothing.
    Clock,
    /// The calculator, which remembers nothing.
    Calculator,
    /// The notes and what was noted.
    Notes(Notebook),
}

/// Why a tool could not do what it was asked. The text is for the model that called it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ToolError {
    /// The arguments do not fit the tool's schema.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A date, a time or an offset cannot be used.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// An expression cannot be read or has no value.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error(transparent)]
    Notes(#[from] NotesError),
}

/// What a call gives: a JSON object that fits the tool's output schema.
pub(super) type ToolResult = Result<Value, ToolError>;

impl Tools {
    /// The tools of a server that just started.
    pub(super) fn new(server: DemoServer) -> Self {
        match server {
            DemoServer::Clock => Self::Clock,
            DemoServer::Calculator => Self::Calculator,
            DemoServer::Notes => Self::Notes(Notebook::default()),
        }
    }

    /// The definitions, as `tools/list` returns them.
    pub(super) fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Clock => clock::definitions(),
            Self::Calculator => calculator::definitions(),
            Self::Notes(_) => Notebook::definitions(),
        }
    }

    /// Runs a tool; `None` where the server has none of this name.
    pub(super) fn call(&mut self, tool: &str, arguments: &Arguments) -> Option<ToolResult> {
        match self {
            Self::Clock => clock::call(tool, arguments),
            Self::Calculator => calculator::call(tool, arguments),
            Self::Notes(notebook) => notebook.call(tool, arguments),
        }
    }
}
