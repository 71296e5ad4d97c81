//! The faults of a configuration file, as data, with their texts: the problem (`Display`) and the next step
//! (`remedy`).

mod remedies;

use super::{
    access::AccessFault,
    expand::UsedFrom,
    problems::{JsonType, Named, Severity},
    sources::MissingValue,
};
use crate::{jq::FilterError, seal::MIN_KEY_LENGTH};

/// A fault at one place of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is not JSON.
    #[error("not valid JSON: {what}")]
    Syntax {
        /// The message of the parser.
        what: String,
        remedy: &'static str,
    },
    #[error(transparent)]
    Key(#[from] KeyFault),
    #[error(transparent)]
    Value(#[from] ValueFault),
    /// The transport of a server is ambiguous.
    #[error(transparent)]
    Transport(#[from] TransportFault),
    /// A fault of a reference to a variable.
    #[error(transparent)]
    Reference(#[from] ReferenceFault),
    /// Another user can write the file.
    #[error(transparent)]
    Access(#[from] AccessFault),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("unknown key `{key}`")]
    Unknown {
        key: String,
        scope: KeyScope,
        near: Option<&'static str>,
    },
    /// The object has a duplicate key.
    #[error("duplicate key `{key}`, first given at line {line}, column {column}")]
    Duplicate {
        key: String,
        /// The line of the first one.
        line: usize,
        /// The column of the first one.
        column: usize,
    },
    /// A required key is missing.
    #[error("`{key}` is missing")]
    Missing { key: &'static str },
    /// An entry uses two spellings of one key.
    #[error("`{ignored}` is ignored because `{kept}` has the same meaning")]
    SpeltTwice {
        kept: String,
        /// The spelling that is ignored.
        ignored: String,
    },
    /// A name that is empty or only white space.
    #[error("the name of a {named} is empty")]
    EmptyName { named: Named },
    /// A name that is not a valid variable name.
    #[error("`{name}` is not a valid variable name")]
    VariableName { name: String },
    /// A name that is not a valid header name.
    #[error("`{name}` is not a valid header name")]
    HeaderName { name: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// A value of the wrong type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        expected: &'static str,
        found: JsonType,
    },
    /// A number or boolean where a string is required.
    #[error("expected a string, found `{found}`")]
    Unquoted { found: String },
    /// A number that is not a positive integer.
    #[error("expected a positive integer, found `{found}`")]
    NotPositive { found: String },
    /// A number out of bounds.
    #[error("`{found}` is not between {least} and {most}")]
    OutOfRange {
        found: String,
        least: u64,
        most: u64,
    },
    #[error("unknown value `{found}`")]
    UnknownWord {
        found: String,
        known: &'static [&'static str],
        near: Option<&'static str>,
    },
    /// A word that is reserved for a later version.
    #[error("`{word}` is not available yet")]
    NotAvailable {
        word: String,
        /// The words that can be used today.
        instead: &'static [&'static str],
    },
    /// A toolbox that is not in the file.
    #[error("there is no toolbox `{found}`")]
    UnknownToolbox { found: String, near: Option<String> },
    /// A duplicate word in a list.
    #[error("duplicate entry `{word}`")]
    Repeated { word: String },
    /// A list of meta-tools that leaves something impossible.
    #[error("no tool can be {what} without {}", alternatives(names))]
    NoMetaTool {
        /// The action that is impossible.
        what: &'static str,
        /// The meta-tools of which one is needed.
        names: &'static [&'static str],
    },
    /// A negated rule in a list that does not support negation.
    #[error("`{found}` is not a valid rule for `permissions`")]
    Negated { found: String },
    /// A file whose folder is unknown.
    #[error("no folder found for the {what}")]
    NoFolder { what: &'static str },
    /// A text that is empty or only white space.
    #[error("the {what} is empty")]
    Empty {
        /// A noun for the text.
        what: &'static str,
    },
    /// A text with a NUL character.
    #[error("the text contains a NUL character, which cannot be passed to a program")]
    NulCharacter,
    /// A header value with several lines.
    #[error("the value of a header contains a line break")]
    LineBreak,
    #[error("not a jq filter: {0}")]
    Filter(#[from] FilterError),
    /// A key of `seal` that cannot be used.
    #[error(transparent)]
    SealKey(#[from] SealKeyFault),
    /// A key that has no meaning without another one.
    #[error("this needs `{key}`")]
    Needs { key: &'static str },
    /// An invalid address of a store, which may contain a password.
    #[error("not a Redis URL")]
    StoreUrl,
    /// Credentials of users that contradict something.
    #[error(transparent)]
    PerUser(#[from] PerUserFault),
    #[error("`{url}` is not an http or https URL")]
    Url { url: String },
}

/// A fault of a key that seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealKeyFault {
    /// The key is part of the file.
    #[error("the key is written into the configuration")]
    Literal,
    /// The file or the variable does not exist.
    #[error("the key is missing")]
    Missing,
    #[error("the key is shorter than {MIN_KEY_LENGTH} characters")]
    Short,
    /// Other users can read the file of the key.
    #[error("other users can read the file of the key")]
    Exposed,
}

/// A setting that contradicts credentials of users, or that these need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PerUserFault {
    #[error("credentials of users cannot be combined with the grant `client_credentials`")]
    ClientCredentials,
    #[error("credentials of users cannot be combined with the `Authorization` header of the entry")]
    Header,
    /// Tokens of users are stored encrypted, so they need a key.
    #[error("the credentials of users cannot be stored without `seal`")]
    NoSeal,
    #[error("`exchange` needs `\"per\": \"user\"`")]
    ExchangeWithoutUser,
    #[error("`exchange` needs `clientId` and `clientSecret` in `auth`")]
    ExchangeWithoutClient,
    /// An assertion about a user is taken from a client that the other authorization server knows.
    #[error("`exchange` with a different `issuer` than `auth` needs `clientId`")]
    AssertionWithoutClient,
}

/// A fault in the choice of a transport.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportFault {
    /// Neither a command nor a URL.
    #[error("a server needs `command` or `url`")]
    Neither,
    /// Both a command and a URL, without a type that decides.
    #[error("the server has both `command` and `url`")]
    Both,
    /// The type needs a key that is missing.
    #[error("a server of type `{word}` needs `{key}`")]
    Needs { word: String, key: &'static str },
    /// `type` and `transport` contradict each other.
    #[error("`type` says `{kind}`, and `transport` says `{transport}`")]
    Contradiction { kind: String, transport: String },
}

/// A fault of a reference to a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceFault {
    /// A `${` without its `}`.
    #[error("`${{` is never closed")]
    Unclosed,
    /// Text between the braces that is not a name.
    #[error("`${{{name}}}` does not name a variable")]
    Malformed {
        /// The text in place of the name.
        name: String,
    },
    /// A reference inside a reference.
    #[error("a reference inside a reference")]
    Nested,
    /// A missing value without a default.
    #[error("{0}")]
    Missing(MissingValue),
    /// A variable with an empty value that has no default to permit it.
    #[error("variable {0} is set to an empty value")]
    Empty(String),
    /// A secret in the arguments of a program.
    #[error(
        "the value of {0} is passed as an argument, which every user of this machine can read while the server runs"
    )]
    InArguments(UsedFrom),
}

/// An object of the file, for the list of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScope {
    File,
    Toolbox,
    /// An entry of `clients`.
    Client,
    /// An entry of `mcpServers`.
    Server,
    /// The `permissions` of a server.
    Permissions,
    /// The `audit` of the file.
    Audit,
    /// The `limits` of the file or of a client.
    Limits,
    /// The `auth` of the file.
    Auth,
    /// The `introspection` of `auth`.
    Introspection,
    /// The `seal` of the file.
    Seal,
    /// The `exchange` of `oauth`.
    Exchange,
    /// The `oauth` of a server, where other clients have keys of their own.
    OAuth,
}

impl Fault {
    pub fn severity(&self) -> Severity {
        match self {
            // Entries of other MCP clients have keys that mean nothing here, and must still work.
            Self::Key(
                KeyFault::Unknown {
                    scope: KeyScope::Server | KeyScope::OAuth,
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

/// Returns a list such as "`proxy` or `dynamic`".
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}
