//! The script language: what the server says of itself, which tools it lists, and what it does when.
//!
//! ```json
//! {
//!   "journal": "/tmp/x/journal", "executions": "/tmp/x/executions",
//!   "era": "legacy", "unknown": "error", "protocolVersion": "2025-06-18",
//!   "serverInfo": {}, "instructions": "…", "capabilities": {},
//!   "tools": [], "pages": [[], []],
//!   "onStart": [], "onMethod": {"tools/list": []}, "onCall": {"read_file": [{"answer": {}}]},
//!   "resources": [], "resourceTemplates": [], "prompts": [], "onRead": {"file:///x": []}, "onPrompt": {"ask": []},
//!   "ttlMs": 60000, "cacheScope": "public", "sse": false,
//!   "onEof": "exit", "ignoreTerm": false
//! }
//! ```
//!
//! Every member is optional. Definitions and results are kept as they were written, byte for byte.

mod action;

use std::{collections::BTreeMap, fmt, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use action::{
    Action, Fill, InTurn, ListenEnd, Once, Repeat, Rounds, Session, Spawn, Stream, TaskScript,
};

/// A piece of JSON as it was written.
pub(crate) type Raw = Box<RawValue>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Script {
    /// The file of the event journal.
    pub(crate) journal: Option<PathBuf>,
    /// The file of the execution journal.
    pub(crate) executions: Option<PathBuf>,
    pub(crate) era: ScriptEra,
    /// The handling of unknown methods.
    pub(crate) unknown: Unknown,
    /// The revision in the answer to `initialize`; the client's own when absent.
    pub(crate) protocol_version: Option<String>,
    /// The name and version of the server.
    pub(crate) server_info: Option<Raw>,
    /// The instructions in the result of `initialize`.
    pub(crate) instructions: Option<Raw>,
    /// The declared capabilities; by default all that it has, with changes of lists.
    pub(crate) capabilities: Option<Raw>,
    /// The tools, on one page. Without `tools` and `pages` the built-in ones are listed.
    pub(crate) tools: Option<Vec<Raw>>,
    /// The tools, page by page.
    pub(crate) pages: Option<Vec<Vec<Raw>>>,
    /// The resources. Without them and the templates the server knows no method of resources.
    pub(crate) resources: Option<Vec<Raw>>,
    pub(crate) resource_templates: Option<Vec<Raw>>,
    /// The prompts. Without them the server knows no method of prompts.
    pub(crate) prompts: Option<Vec<Raw>>,
    /// The lifetime of a modern result in caches; a minute when absent.
    pub(crate) ttl_ms: Option<u64>,
    /// The cache scope of a modern result; `public` when absent.
    pub(crate) cache_scope: Option<String>,
    /// Over HTTP: answer every request with a stream of events.
    pub(crate) sse: bool,
    /// The actions before the first line is read.
    pub(crate) on_start: Vec<Action>,
    /// The actions that replace the usual response to a request, or handle a notification, by method.
    pub(crate) on_method: BTreeMap<String, Vec<Action>>,
    /// The actions of a call, by tool; a tool that is not here runs the built-in of its name.
    pub(crate) on_call: BTreeMap<String, Vec<Action>>,
    /// The actions of reading a resource, by address; one that is only listed has a text that names it.
    pub(crate) on_read: BTreeMap<String, Vec<Action>>,
    /// The actions of getting a prompt, by name; one that is only listed returns the parameters.
    pub(crate) on_prompt: BTreeMap<String, Vec<Action>>,
    /// The handling of the end of stdin.
    pub(crate) on_eof: OnEof,
    /// Ignore SIGTERM from the start.
    pub(crate) ignore_term: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ScriptEra {
    /// With `initialize`.
    #[default]
    Legacy,
    /// Every request by itself, as of 2026-07-28.
    Modern,
    Both,
}

/// The handling of unknown methods.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Unknown {
    /// It is answered with an error.
    #[default]
    Error,
    /// It is not answered.
    Silent,
    /// Before `initialize` the process exits with code 1; later it is answered with an error.
    Exit,
}

/// The handling of the end of stdin.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum OnEof {
    /// Exit with code 0 at once.
    #[default]
    Exit,
    /// Finish the calls that run, then exit with code 0.
    Finish,
    Ignore,
}

/// An error of loading a script.
#[derive(Debug)]
pub(crate) enum ScriptError {
    Usage,
    /// The file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// The text is not a valid script.
    Invalid(serde_json::Error),
}

impl Script {
    /// Loads the script that the command line names. Returns the port too if it is to be served over HTTP.
    pub(crate) fn from_arguments(arguments: &[String]) -> Result<(Self, Option<u16>), ScriptError> {
        let (port, arguments) = match arguments {
            [http, flag, port, rest @ ..] if http == "http" && flag == "--port" => {
                let port = port.parse().map_err(|_| ScriptError::Usage)?;
                (Some(port), rest)
            }
            all => (None, all),
        };
        let text = match arguments {
            [flag, text, ..] if flag == "--script" => text.clone(),
            [file, ..] if !file.starts_with("--") => fs::read_to_string(file)
                .map_err(|error| ScriptError::Unreadable(PathBuf::from(file), error))?,
            _ => return Err(ScriptError::Usage),
        };
        let script = serde_json::from_str(&text).map_err(ScriptError::Invalid)?;
        Ok((script, port))
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => write!(
                f,
                "usage: fixture-server [http --port PORT] SCRIPT.json | --script JSON"
            ),
            Self::Unreadable(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::Invalid(error) => write!(f, "not a script: {error}"),
        }
    }
}
