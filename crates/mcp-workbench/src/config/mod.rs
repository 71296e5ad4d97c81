//! The configuration file, from raw (as written) to resolved (valid by construction).
//!
//! [`locate()`] finds the file and [`load()`] reads it. The text is parsed into the types of `raw`, in which each
//! value has its place in the file. These are resolved to a [`Config`], in which variables are expanded, paths are
//! absolute and disabled servers are dropped. Every problem of the file is collected as a [`Problem`] with its place
//! and its remedy; a [`Config`] exists only if there are no errors. Apart from reading the file itself, and an
//! `envFile` at the start of its server, all of this is a function of the text and an [`Environment`], which alone
//! reads the state of the process. A [`FileWatch`] reports when the files may have changed.

mod access;
mod as_client;
mod audit;
mod auth;
mod child_env;
mod detail;
mod dotenv;
mod edit;
mod environment;
mod expand;
mod faults;
mod filters;
mod glob;
mod invocation;
mod keyring;
mod limits;
mod literals;
mod load;
mod locate;
mod meta_tools;
mod oauth;
mod permissions;
mod problems;
mod raw;
mod resolve;
mod resolved;
mod schema;
mod secrets;
mod sharing;
mod sources;
mod store;
mod transport;
mod watch;
mod written_entry;

pub(crate) use access::{AccessFault, foreign_writer};
pub(crate) use as_client::{ClientError, as_client};
pub(crate) use audit::{Audit, AuditArguments};
pub(crate) use auth::{Auth, AuthClient, ClientClaims, Introspection, TokenAlgorithm};
pub(crate) use child_env::EnvFileError;
pub(crate) use detail::Detail;
pub(crate) use edit::{
    ConfigText, EditError, JsoncText, WriteError, create_new, replace_unchanged, write_atomically,
};
pub use environment::Environment;
pub(crate) use expand::escape_references;
pub(crate) use filters::ToolFilters;
pub(crate) use invocation::{Invocation, quoted};
pub(crate) use limits::{Limits, RequestRate};
pub(crate) use literals::{LiteralPlace, literal_secrets, literal_values};
pub(crate) use load::{LoadError, load, load_again, read_text};
pub use load::{Loaded, parse};
pub(crate) use locate::{CONFIG_FILE, CONFIG_VARIABLE, LocateError, locate, user_config_file};
pub(crate) use meta_tools::MetaTool;
pub(crate) use oauth::{CredentialsPer, OAuth, OAuthGrant, OAuthSettings, SigningAlgorithm};
pub(crate) use permissions::{PermissionRule, Permissions, ToolHint};
pub use problems::Problems;
pub(crate) use problems::{Fault, Problem, ReferenceFault, Severity};
pub use resolved::Transport;
pub(crate) use resolved::{
    ChildEnvironment, Config, Connect, ListBounds, PinMode, Purpose, RemoteEndpoint,
    RemoteProtocol, Selecting, Server, ServerTimes, Share, StdioLaunch, ToolMode, Toolbox, Unset,
};
pub(crate) use schema::JSON_SCHEMA;
pub(crate) use secrets::{REDACTED, Secrets};
pub(crate) use sharing::{NotShared, not_shared};
pub(crate) use sources::MissingValue;
pub(crate) use store::{SentinelAddress, StoreAddress};
pub(crate) use watch::{FileWatch, Fingerprint, wait_for_writer};
pub(crate) use written_entry::WrittenEntry;
