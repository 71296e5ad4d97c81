//! The history of a run, as the client saw it and as the servers recorded it. This module does not judge it.

use crate::identity::{Id, Nonce, ServerIndex};

/// All actions and observations of the client, in order.
#[derive(Debug, Default)]
pub struct History {
    pub events: Vec<Event>,
}

/// One thing that the client did or saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request is about to be sent.
    Sent { id: Id, request: Request },
    /// An invalid line is about to be sent.
    GarbageSent,
    /// The cancel of a request is about to be sent.
    Cancelled(Id),
    /// Stdin is about to be closed.
    Closing,
    Answered {
        /// The id that it names.
        id: Id,
        answer: Answer,
    },
    /// An error without an id arrived, which is the response to an invalid line.
    GarbageRefused,
    Progress {
        /// The call with this token.
        call: Nonce,
        /// The reported progress.
        value: u64,
    },
    /// An unexpected line arrived; its beginning.
    Stray(String),
}

/// The content of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A call of a tool.
    Call(SentCall),
    /// Something that no server runs: a ping, a list, the opening of a toolbox.
    Plain,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentCall {
    /// The unique nonce of the call.
    pub nonce: Nonce,
    /// The server that must run it.
    pub address: Address,
    /// The wish for progress notifications.
    pub progress: ProgressWish,
}

/// The target of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    Server(ServerIndex),
    /// Nowhere: it names something that is not there.
    Nothing,
}

/// The wish for progress notifications of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressWish {
    Wanted,
    Unwanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A server's result, which gives the call back.
    Echo {
        nonce: Nonce,
        /// The integrity of the rest of the result.
        state: EchoState,
    },
    /// The workbench reports that a call failed.
    Failed {
        code: Box<str>,
        /// The reported effect of the call.
        outcome: Outcome,
    },
    Result,
    RpcError(i64),
}

/// The integrity of an echoed payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoState {
    Intact,
    /// Something is not as it was sent.
    Damaged,
}

/// The effect that a failed call reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    NotSent,
    /// The server reported that it did not run it.
    Rejected,
    Unknown,
    /// None is named: the server answered.
    Answered,
}

/// A call that a server ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    pub server: ServerIndex,
    pub pid: u32,
    pub nonce: Nonce,
}
