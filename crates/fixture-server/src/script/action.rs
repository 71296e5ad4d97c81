//! The actions of a script.

use std::{path::PathBuf, sync::atomic::AtomicUsize};

use serde::Deserialize;

use super::Raw;

/// An action of the server. Texts for stdout may contain the placeholders of [`crate::actions`].
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
    /// Send a request to the client, wait for its response and store it for `$REPLY` and `$REPLIES`. A `$ROUND` in it
    /// is filled in.
    Request(Raw),
    /// Send several requests to the client before the first answer is waited for.
    Requests(Vec<Raw>),
    /// Send a log message if the client wants one of its level; the object holds `level`, `data`, ….
    Log(Raw),
    /// Send a notification, an object with `method` and perhaps `params`, to its subscribers: to every matching
    /// `subscriptions/listen`, and to every legacy client.
    Change(Raw),
    /// End every `subscriptions/listen`.
    EndListens(ListenEnd),
    /// Ask by answering that input is required, round by round, before the rest.
    Rounds(Rounds),
    /// Refuse the request with -32021 unless its client has declared these capabilities.
    Require(Raw),
    Task(TaskScript),
    /// Run the first list the first time, the second one the second time, and the last ever after.
    InTurn(InTurn),
    /// Replace the list of tools (one page) without a notification.
    SetTools(Vec<Raw>),
    /// Answer `tools/list` as usual, with the list of tools at this moment.
    ListTools,
    /// Sleep for so many milliseconds.
    SleepMs(u64),
    /// Wait until this file exists.
    AwaitFile(PathBuf),
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
    /// Read no more lines of stdin. Running calls continue.
    StopReading,
    Hang,
    /// Over HTTP: close the connection of this request.
    CloseStream,
    /// Close stdout, but live on until stdin ends.
    CloseStdout,
    /// End the process with this code.
    Exit(u8),
    /// End the process by this signal (`KILL`, `SEGV`, …).
    Die(String),
}

/// A repeated text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Fill {
    pub(crate) stream: Stream,
    pub(crate) text: String,
    pub(crate) times: u64,
}

/// One of the two outputs.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Actions that run once over all processes that share a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Once {
    pub(crate) file: PathBuf,
    /// The actions of the first time.
    pub(crate) actions: Vec<Action>,
    /// The actions of every later time.
    #[serde(default)]
    pub(crate) otherwise: Vec<Action>,
}

/// Actions that run several times.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Repeat {
    pub(crate) times: u64,
    /// The actions of each time.
    pub(crate) actions: Vec<Action>,
}

/// A process of the server's own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Spawn {
    pub(crate) session: Session,
    pub(crate) ignore_term: bool,
    /// True if it holds the server's stdout and stderr open.
    pub(crate) hold_output: bool,
}

/// The session of a spawned process.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Session {
    /// In the server's session and process group.
    #[default]
    Same,
    /// A new session, as after `setsid`.
    Own,
}

/// The way in which the server ends its subscriptions.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ListenEnd {
    Graceful,
    /// With `notifications/cancelled` that names the request.
    Cancelled,
    /// Over HTTP by closing the connection, over stdio with an error.
    Abrupt,
}

/// Questions of the modern era. Each round is one result.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Rounds {
    /// The questions of each round.
    pub(crate) rounds: Vec<Round>,
    /// The actions after the last round, with the responses of all rounds in `$REPLIES` and those of the last in
    /// `$REPLY`. By default the responses are returned as `told`, with the last `requestState`.
    #[serde(default)]
    pub(crate) then: Vec<Action>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Round {
    /// The questions by their keys.
    pub(crate) input_requests: Option<Raw>,
    /// The state that the client must return; `$N` in it is a number that no other state has.
    pub(crate) request_state: Option<String>,
}

/// A task. Each `tasks/get` reports the next step, until the task waits for input or has ended.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TaskScript {
    /// How often the client is to look.
    #[serde(default)]
    pub(crate) poll_interval_ms: u64,
    /// The lifetime of the task; `null` when absent.
    pub(crate) ttl_ms: Option<u64>,
    /// The members of each step beside those that all tasks have: `status` and its companions. A string `"$TOLD"`
    /// becomes the array of all `inputResponses` so far.
    pub(crate) steps: Vec<Raw>,
    /// The actions for a client without the extension, which is refused with -32021 when absent.
    pub(crate) otherwise: Option<Vec<Action>>,
}

/// Lists of actions that take turns.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct InTurn {
    pub(crate) turns: Vec<Vec<Action>>,
    /// How often one was run.
    #[serde(skip)]
    pub(crate) runs: AtomicUsize,
}
