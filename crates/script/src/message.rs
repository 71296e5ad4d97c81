//! The messages between a host and its worker: one line of JSON each.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::position::Position;

/// The largest arguments of one call, as JSON.
pub const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

/// A message to the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker<'a> {
    /// The script. It is the first message, and comes once.
    Run {
        #[serde(borrow)]
        code: Cow<'a, str>,
        limits: Limits,
    },
    /// The value of a call.
    Value {
        id: u32,
        #[serde(borrow)]
        value: &'a RawValue,
    },
    /// A call that failed. The script gets it as an exception.
    Failed { id: u32, failure: Failure },
}

/// The bounds that the worker keeps. The host enforces its own besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The CPU time of the script.
    pub cpu_ms: u64,
    pub heap_bytes: usize,
    pub stack_bytes: usize,
    /// The number of calls to the host.
    pub calls: u32,
    pub result_bytes: usize,
    pub log_bytes: usize,
}

/// The reason why a call failed, as the script sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stable code for programs.
    pub code: String,
    /// The known effect of the call, if there is doubt.
    pub outcome: Option<String>,
    pub message: String,
}

/// A message of the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The worker is confined and waits for its script.
    Ready,
    /// The worker cannot be confined, for this reason, and ends.
    NotConfined(String),
    Call(Request),
    /// `emit(part)`, with the reference of the part. It is answered like a call.
    Emit {
        id: u32,
        reference: String,
    },
    /// A line that the script has logged.
    Log(String),
    /// The end of the script, after which nothing follows.
    End(End),
}

/// A call of the script.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub id: u32,
    pub called: Called,
    pub arguments: Box<RawValue>,
    /// The place of the call in the script.
    pub at: Option<Position>,
}

/// The function that a script calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Called {
    /// `tools.<server>.<tool>(arguments)`
    Tool { server: String, tool: String },
    /// `tools.search(query)`
    Search,
    /// `tools.describe(name)`
    Describe,
    /// `results.read(handle)`
    ReadResult,
}

/// The way in which a script ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Value(Box<RawValue>),
    Undefined,
    /// It returned something that JSON does not have.
    NotJson(String),
    /// The value has more bytes than its limit.
    TooLarge(usize),
    Thrown(Thrown),
    CpuLimit {
        at: Option<Position>,
    },
    OutOfMemory,
    /// It waits for a promise that nothing can settle.
    Deadlock,
}

impl End {
    /// Returns the place in the script where it ended, if that is known.
    pub fn place(&self) -> Option<Position> {
        match self {
            Self::Thrown(thrown) => thrown.at,
            Self::CpuLimit { at } => *at,
            _ => None,
        }
    }
}

/// An exception that the script did not catch.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    /// The class, such as `TypeError`.
    pub name: String,
    pub message: String,
    pub at: Option<Position>,
    /// The tool, if a failed call threw it.
    pub tool: Option<String>,
    /// The code of a failed call.
    pub code: Option<String>,
}
