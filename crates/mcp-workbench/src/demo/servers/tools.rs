//! The tools of a running server of any kind.

use serde_json::Value;

use super::arguments::{ArgumentError, Arguments};
use super::civil::TimeError;
use super::expression::ExpressionError;
use super::notes::{Notebook, NotesError};
use super::server::DemoServer;
use super::{calculator, clock};

/// The tools of a server, with their state.
#[derive(Debug)]
pub(super) enum Tools {
    Clock,
    Calculator,
    /// The notes store, with its notes.
    Notes(Notebook),
}

/// Reasons why a tool failed. The message is for the model that called it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ToolError {
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    #[error(transparent)]
    Time(#[from] TimeError),
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error(transparent)]
    Notes(#[from] NotesError),
}

/// The result of a call: a JSON object that fits the tool's output schema.
pub(super) type ToolResult = Result<Value, ToolError>;

impl Tools {
    /// Creates the tools of a server that just started.
    pub(super) fn new(server: DemoServer) -> Self {
        match server {
            DemoServer::Clock => Self::Clock,
            DemoServer::Calculator => Self::Calculator,
            DemoServer::Notes => Self::Notes(Notebook::default()),
        }
    }

    /// Returns the definitions for `tools/list`.
    pub(super) fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Clock => clock::definitions(),
            Self::Calculator => calculator::definitions(),
            Self::Notes(_) => Notebook::definitions(),
        }
    }

    /// Runs a tool; returns `None` for an unknown name.
    pub(super) fn call(&mut self, tool: &str, arguments: &Arguments) -> Option<ToolResult> {
        match self {
            Self::Clock => clock::call(tool, arguments),
            Self::Calculator => calculator::call(tool, arguments),
            Self::Notes(notebook) => notebook.call(tool, arguments),
        }
    }
}
