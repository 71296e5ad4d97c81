//! Everything that can be wrong at one place of a configuration file, as data, with the words for
//! it: what is wrong (`Display`) and what to do about it (`remedy`).

mod remedies;

use super::{
    access::AccessFault,
    expand::UsedFrom,
    problems::{JsonType, Named, Severity},
    sources::MissingValue,
};

/// What is wrong at one place of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is not JSON.
    #[error("not valid JSON: {what}")]
    Syntax {
        /// What the parser stumbled over.
        what: String,
        remedy: &'static str,
    },
    /// Something is wrong with a key.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// Something is wrong with a value.
    #[error(transparent)]
    Value(#[from] ValueFault),
    /// It is not clear how a server is reached.
    #[error(transparent)]
    Transport(#[from] TransportFault),
    /// Something is wrong with a reference to a variable.
    #[error(transparent)]
    Reference(#[from] ReferenceFault),
    /// Somebody else may write the file.
    #[error(transparent)]
    Access(#[from] AccessFault),
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("unknown key `{key}`")]
    Unknown {
        key: String,
        scope: Scope,
        /// The known key that it resembles.
        near: Option<&'static str>,
    },
    /// The key stands twice in one object.
    #[error("duplicate key `{key}`, first given at line {line}, column {column}")]
    Duplicate {
        key: String,
        /// The line of the first.
        line: usize,
        /// The column of the first.
        column: usize,
    },
    /// A required key is not there.
    #[error("`{key}` is missing")]
    Missing { key: &'static str },
    /// Two spellings of one key stand in one entry.
    #[error("`{ignored}` is ignored because `{kept}` has the same meaning")]
    SpeltTwice {
        kept: String,
        /// The spelling that does not.
        ignored: String,
    },
    /// A name that is empty or only white space.
    #[error("the name of a {named} is empty")]
    EmptyName { named: Named },
    /// A name that no variable can have.
    #[error("`{name}` is not a valid variable name")]
    VariableName { name: String },
    /// A name that no header can have.
    #[error("`{name}` is not a valid header name")]
    HeaderName { name: String },
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        expected: &'static str,
        found: JsonType,
    },
    /// A number or boolean where only strings can be.
    #[error("expected a string, found `{found}`")]
    Unquoted { found: String },
    /// A number that is no positive integer.
    #[error("expected a positive integer, found `{found}`")]
    NotPositive { found: String },
    /// A number outside of its bounds.
    #[error("`{found}` is not between {least} and {most}")]
    OutOfRange {
        found: String,
        /// The smallest that is allowed.
        least: u64,
        /// The largest that is allowed.
        most: u64,
    },
    /// A word that is none of the known ones.
    #[error("unknown value `{found}`")]
    UnknownWord {
        found: String,
        known: &'static [&'static str],
        /// The known word that it resembles.
        near: Option<&'static str>,
    },
    /// A word that will mean something in a later version.
    #[error("`{word}` is not available yet")]
    NotAvailable {
        word: String,
        /// What can be used today.
        instead: &'static [&'static str],
    },
    /// A toolbox that is not in the file.
    #[error("there is no toolbox `{found}`")]
    UnknownToolbox {
        found: String,
        /// The toolbox that it resembles.
        near: Option<String>,
    },
    /// A word that stands twice in a list.
    #[error("duplicate entry `{word}`")]
    Repeated { word: String },
    /// A list of meta-tools with which something cannot be done.
    #[error("no tool can be {what} without {}", alternatives(names))]
    NoMetaTool {
        /// What cannot be done with tools.
        what: &'static str,
        /// The meta-tools of which one is needed.
        names: &'static [&'static str],
    },
    /// A rule that takes something away, where lists do not.
    #[error("`{found}` is not a valid rule for `permissions`")]
    Negated { found: String },
    /// A file that is to be in a folder which there is not.
    #[error("no folder found for the {what}")]
    NoFolder { what: &'static str },
    /// A text that is empty or only white space.
    #[error("the {what} is empty")]
    Empty {
        /// What the text should be.
        what: &'static str,
    },
    /// A text with a NUL character.
    #[error("the text contains a NUL character, which cannot be passed to a program")]
    NulCharacter,
    /// A header whose value has several lines.
    #[error("the value of a header contains a line break")]
    LineBreak,
    /// An address that is none.
    #[error("`{url}` is not an http or https URL")]
    Url { url: String },
}

/// Why it is not clear how a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportFault {
    /// Neither a command nor a URL.
    #[error("a server needs `command` or `url`")]
    Neither,
    /// Both a command and a URL, and nothing that decides.
    #[error("the server has both `command` and `url`")]
    Both,
    /// The type needs a key that is not there.
    #[error("a server of type `{word}` needs `{key}`")]
    Needs {
        word: String,
        /// The key that is not there.
        key: &'static str,
    },
    /// `type` and `transport` contradict each other.
    #[error("`type` says `{kind}`, and `transport` says `{transport}`")]
    Contradiction { kind: String, transport: String },
}

/// What is wrong with a reference to a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceFault {
    /// A `${` without its `}`.
    #[error("`${{` is never closed")]
    Unclosed,
    /// Something between the braces that is no name.
    #[error("`${{{name}}}` does not name a variable")]
    Malformed {
        /// What stands in place of the name.
        name: String,
    },
    /// A reference inside a reference.
    #[error("a reference inside a reference")]
    Nested,
    /// A value that is not there and has no default.
    #[error("{0}")]
    Missing(MissingValue),
    /// A variable that has an empty value where no default says that it may be empty.
    #[error("variable {0} is set to an empty value")]
    Empty(String),
    /// A secret in the arguments of a program.
    #[error(
        "the value of {0} is passed as an argument, which every user of this machine can read while the server runs"
    )]
    InArguments(UsedFrom),
}

/// An object of the file, by its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    File,
    Toolbox,
    /// An entry of `mcpServers`.
    Server,
    /// The `permissions` of a server.
    Permissions,
    /// The `audit` of the file.
    Audit,
    /// The `oauth` of a server, where other clients have keys of their own.
    OAuth,
}

impl Fault {
    pub fn severity(&self) -> Severity {
        match self {
            Self::Key(
                KeyFault::Unknown {
                    scope: Scope::Server | Scope::OAuth,
                    ..
                }
                | KeyFault::SpeltTwice { .. }
                | KeyFault::Missing { key: "description" },
            )
            | Self::Reference(ReferenceFault::Empty(_) | ReferenceFault::InArguments(_)) => {
                Severity::Warning
            }
            Self::Access(fault) if fault.is_tolerable() => Severity::Warning,
            Self::Reference(ReferenceFault::Missing(_)) => Severity::Unset,
            _ => Severity::Error,
        }
    }
}

/// A list such as "`proxy` or `dynamic`".
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}
