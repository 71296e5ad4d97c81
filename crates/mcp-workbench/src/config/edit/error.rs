//! The reasons why a configuration file cannot be edited, with their messages.

use std::fmt;

use crate::{
    config::problems::{Fault, SourceLocation},
    visible::visible,
};

/// The reason why an edit is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    /// The text is not JSON, or a part of it is not the object that it should be. It is displayed as `LINE:COLUMN:
    /// PATH: fault`, so that callers can put the name of the file before it.
    #[error("{}", LocatedFault(.place, .fault))]
    Unusable { place: SourceLocation, fault: Fault },
    #[error("there is no toolbox `{}`\n  hint: {}", visible(.name), hint(.near.as_deref(), "toolboxes", .known))]
    UnknownToolbox {
        /// The name that was given.
        name: String,
        near: Option<String>,
        known: Vec<String>,
    },
    #[error(
        "there is no server `{}` in the toolbox `{}`\n  hint: {}",
        visible(.name), visible(.toolbox), hint(.near.as_deref(), "servers", .known)
    )]
    UnknownServer {
        toolbox: String,
        /// The name that was given.
        name: String,
        near: Option<String>,
        /// All servers of the toolbox.
        known: Vec<String>,
    },
    #[error("the toolbox `{}` already exists\n  hint: choose another name, or remove it first", visible(.name))]
    ToolboxExists { name: String },
    #[error(
        "the toolbox `{}` already has a server `{}`\n  hint: choose another name, or remove it first",
        visible(.toolbox), visible(.name)
    )]
    ServerExists {
        toolbox: String,
        /// The name of the server.
        name: String,
    },
}

/// A fault with its place and its remedy.
struct LocatedFault<'e>(&'e SourceLocation, &'e Fault);

impl fmt::Display for LocatedFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(SourceLocation { line, column, path }, fault) = self;
        write!(f, "{line}:{column}: ")?;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        write!(f, "{fault}\n  hint: {}", fault.remedy())
    }
}

/// Returns the remedy for an unknown name.
fn hint(near: Option<&str>, kind: &str, known: &[String]) -> String {
    match (near, known) {
        (Some(near), _) => format!("did you mean `{}`?", visible(near)),
        (None, []) => format!("there are no {kind}"),
        (None, known) => {
            let names: Vec<_> = known.iter().map(|name| visible(name)).collect();
            format!("the {kind} are {}", names.join(", "))
        }
    }
}
