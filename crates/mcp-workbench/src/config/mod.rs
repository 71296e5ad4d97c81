//! The configuration file: raw (as written) to resolved (cannot be wrong).
//!
//! [`locate()`] says which file it is, [`load()`] reads it. On the way the text becomes the types of
//! `raw`, each value with its place in the file, and these become a [`Config`] in which variables are
//! expanded, paths are whole and disabled servers are gone. Every problem of the file is collected
//! as a [`Problem`] with its place and its remedy; a [`Config`] exists only without errors. Apart
//! from reading the file itself, and an `envFile` at the start of its server, all of it is a function
//! of the text and an [`Environment`], the one place that looks at the process. A [`FileWatch`] tells when the files may
//! have changed.

mod access;
mod audit;
mod child_env;
mod dotenv;
mod edit;
mod environment;
mod expand;
mod faults;
mod filters;
mod glob;
mod invocation;
mod keyring;
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
mod sources;
mod transport;
mod watch;
mod written;

pub use self::{
    access::{AccessFault, Writer, foreign_writer},
    audit::{Audit, NotedArguments},
    child_env::EnvFileError,
    dotenv::LineFault,
    edit::{
        ConfigText, EditError, JsoncText, WriteError, create_new, replace_unchanged,
        write_atomically,
    },
    environment::Environment,
    expand::{UsedFrom, escape_references},
    filters::ToolFilters,
    invocation::{Invocation, quoted},
    literals::{LiteralPlace, literal_secrets, literal_values},
    load::{LoadError, Loaded, load, load_again, parse, read_text},
    locate::{
        CONFIG_FILE, CONFIG_VARIABLE, ConfigSource, LocateError, Located, locate, user_config_file,
    },
    meta_tools::MetaTool,
    oauth::{OAuth, OAuthGrant, OAuthSettings, SigningAlgorithm},
    permissions::{PermissionRule, Permissions, ToolHint},
    problems::{
        Fault, JsonType, KeyFault, Named, Place, Problem, Problems, ReferenceFault, Scope,
        Severity, TransportFault, ValueFault,
    },
    resolved::{
        ChildEnvironment, Config, Connect, ListBounds, PinMode, Purpose, RemoteEndpoint,
        RemoteProtocol, Server, ServerTimes, StdioLaunch, ToolMode, Toolbox, Transport, Unset,
    },
    schema::json_schema,
    secrets::{REDACTED, Secrets},
    sources::MissingValue,
    watch::{FileWatch, Fingerprint, wait_for_writer},
    written::Written,
};
