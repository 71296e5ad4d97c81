//! The script language: what the server says of itself, which tools it lists, and what it does when.
//!
//! ```json
//! {
//!   "journal": "/tmp/x/journal", "executions": "/tmp/x/executions",
//!   "protocolVersion": "2025-06-18",
//!   "serverInfo": {}, "instructions": "…", "capabilities": {},
//!   "tools": [], "pages": [[], []],
//!   "onStart": [], "onMethod": {"tools/list": []}, "onCall": {"read_file": [{"answer": {}}]},
//!   "onEof": "exit", "ignoreTerm": false
//! }
//! ```
//!
//! Every member is optional. Definitions and results are kept as they were written, byte for byte.

use std::{collections::BTreeMap, fmt, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A piece of JSON as it was written.
pub(crate) type Raw = Box<RawValue>;

/// A whole script.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Script {
    /// The file to which everything that happens is appended.
    pub(crate) journal: Option<PathBuf>,
    /// The file to which every call with a nonce is appended.
    pub(crate) executions: Option<PathBuf>,
    /// The revision in the answer to `initialize`; the client's own when absent.
    pub(crate) protocol_version: Option<String>,
    /// What the server calls itself.
    pub(crate) server_info: Option<Raw>,
    /// What the server says of itself at its start.
    pub(crate) instructions: Option<Raw>,
    /// What the server declares; `{"tools":{"listChanged":true}}` when absent.
    pub(crate) capabilities: Option<Raw>,
    /// The tools, on one page. Without `tools` and `pages` the built-in ones are listed.
    pub(crate) tools: Option<Vec<Raw>>,
    /// The tools, page by page.
    pub(crate) pages: Option<Vec<Vec<Raw>>>,
    /// What happens before the first line is read.
    pub(crate) on_start: Vec<Action>,
    /// What happens instead of the usual answer to a request, or on a notification, by method.
    pub(crate) on_method: BTreeMap<String, Vec<Action>>,
    /// What a call does, by tool; a tool that is not here runs the built-in of its name.
    pub(crate) on_call: BTreeMap<String, Vec<Action>>,
    /// What the end of stdin means.
    pub(crate) on_eof: OnEof,
    /// Ignore SIGTERM from the start.
    pub(crate) ignore_term: bool,
}

/// What the end of stdin means to the server.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum OnEof {
    /// Exit with code 0 at once.
    #[default]
    Exit,
    /// Finish the calls that run, then exit with code 0.
    Finish,
    /// Live on.
    Ignore,
}

/// One thing that the server does. Texts that go to stdout may hold the placeholders of
/// [`crate::actions`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    /// Answer the request with this result.
    Answer(Raw),
    /// Answer the request with this JSON-RPC error.
    Error(Raw),
    /// Write this line to stdout, placeholders filled in.
    Line(String),
    /// Write this text to stdout without a line end, placeholders filled in.
    Stdout(String),
    /// Write this text to stdout byte by byte, without a line end, placeholders filled in.
    Bytewise(String),
    /// Write this line to stderr.
    Stderr(String),
    /// Write a text many times.
    Fill(Fill),
    /// Send a notification: an object with `method` and, if wanted, `params`.
    Notify(Raw),
    /// Send progress with the token of the request; the object holds `progress`, `total`, ….
    Progress(Raw),
    /// Send a request to the client, wait for its answer and keep it for `$REPLY`.
    Request(Raw),
    /// Replace the list of tools (one page); says nothing to the client.
    SetTools(Vec<Raw>),
    /// Do nothing for so many milliseconds.
    SleepMs(u64),
    /// Wait until this file exists.
    AwaitFile(PathBuf),
    /// Create this file.
    Touch(PathBuf),
    /// Wait until the request is cancelled.
    AwaitCancel,
    /// Run these only if the file does not exist yet, which is created; else the others.
    Once(Once),
    /// Run these so many times.
    Repeat(Repeat),
    /// Run these with stdout for themselves: other calls wait with their answers.
    Alone(Vec<Self>),
    /// Write a line to the journal.
    Journal(String),
    /// Start a process that outlives its use.
    Spawn(Spawn),
    /// Run the built-in tool of the call's name.
    BuiltIn,
    /// Read no further line of stdin; what runs goes on.
    StopReading,
    /// Never go on.
    Hang,
    /// Close stdout, but live on until stdin ends.
    CloseStdout,
    /// End the process with this code.
    Exit(u8),
    /// End the process by this signal (`KILL`, `SEGV`, …).
    Die(String),
}

/// A text, many times over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Fill {
    /// Where it goes.
    pub(crate) stream: Stream,
    /// The text.
    pub(crate) text: String,
    /// How often.
    pub(crate) times: u64,
}

/// One of the two outputs.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Stream {
    /// The protocol's output.
    Stdout,
    /// The log's output.
    Stderr,
}

/// Actions that run once over all processes that share a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Once {
    /// The file that remembers.
    pub(crate) file: PathBuf,
    /// What to do the first time.
    pub(crate) actions: Vec<Action>,
    /// What to do every other time.
    #[serde(default)]
    pub(crate) otherwise: Vec<Action>,
}

/// Actions that run several times.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Repeat {
    /// How often.
    pub(crate) times: u64,
    /// What to do each time.
    pub(crate) actions: Vec<Action>,
}

/// A process of the server's own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Spawn {
    /// Whether it leaves the server's process group.
    pub(crate) session: Session,
    /// Whether it ignores SIGTERM.
    pub(crate) ignore_term: bool,
    /// Whether it holds the server's stdout and stderr open.
    pub(crate) hold_output: bool,
}

/// Where a spawned process lives.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Session {
    /// In the server's session and process group.
    #[default]
    Same,
    /// In a session of its own, as after `setsid`.
    Own,
}

/// Why there is no script.
#[derive(Debug)]
pub(crate) enum ScriptError {
    /// No script was named.
    Usage,
    /// The file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// The text is no script.
    Invalid(serde_json::Error),
}

impl Script {
    /// The script that the command line names.
    pub(crate) fn from_arguments(arguments: &[String]) -> Result<Self, ScriptError> {
        let text = match arguments {
            [flag, text, ..] if flag == "--script" => text.clone(),
            [file, ..] if !file.starts_with("--") => fs::read_to_string(file)
                .map_err(|error| ScriptError::Unreadable(PathBuf::from(file), error))?,
            _ => return Err(ScriptError::Usage),
        };
        serde_json::from_str(&text).map_err(ScriptError::Invalid)
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => write!(f, "usage: fixture-server SCRIPT.json | --script JSON"),
            Self::Unreadable(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::Invalid(error) => write!(f, "not a script: {error}"),
        }
    }
}
