//! Why a configuration file cannot be edited as it was asked, with the words for it.

use std::fmt;

use crate::{
    config::problems::{Fault, Place},
    visible::visible,
};

/// Why an edit is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    /// The text is no JSON, or something in it is not the object that it should be. It shows itself as
    /// `LINE:COLUMN: PATH: what is wrong`, so that the name of the file can be put before it.
    #[error("{}", Located(.place, .fault))]
    Unusable { place: Place, fault: Fault },
    /// There is no such toolbox.
    #[error("there is no toolbox `{}`\n  hint: {}", visible(.name), hint(.near.as_deref(), "toolboxes", .known))]
    UnknownToolbox {
        /// The name that was given.
        name: String,
        /// The toolbox that was probably meant.
        near: Option<String>,
        known: Vec<String>,
    },
    /// There is no such server in the toolbox.
    #[error(
        "there is no server `{}` in the toolbox `{}`\n  hint: {}",
        visible(.name), visible(.toolbox), hint(.near.as_deref(), "servers", .known)
    )]
    UnknownServer {
        toolbox: String,
        /// The name that was given.
        name: String,
        /// The server that was probably meant.
        near: Option<String>,
        /// All that there are in the toolbox.
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

/// A fault with its place and what to do about it.
struct Located<'e>(&'e Place, &'e Fault);

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Place { line, column, path }, fault) = self;
        write!(f, "{line}:{column}: ")?;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        write!(f, "{fault}\n  hint: {}", fault.remedy())
    }
}

/// What to do about a name that nothing has.
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
