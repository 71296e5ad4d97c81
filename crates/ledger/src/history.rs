//! What happened, as the client saw it and as the servers wrote it down. Nothing here judges.

use crate::identity::{Id, Nonce, ServerIndex};

/// Everything that the client did and saw, in its order.
#[derive(Debug, Default)]
pub struct History {
    pub events: Vec<Event>,
}

/// One thing that the client did or saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request is about to be sent.
    Sent { id: Id, request: Request },
    /// A line that is no message is about to be sent.
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
    /// An error without an id came, as it answers a line that is no message.
    GarbageRefused,
    Progress {
        /// The call whose token it names.
        call: Nonce,
        /// How far it says the call is.
        value: u64,
    },
    /// A line came that is none of these; its beginning.
    Stray(String),
}

/// What a request asks for.
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
    /// What tells it from all others.
    pub nonce: Nonce,
    /// Where it has to run.
    pub address: Address,
    /// Whether it wants to hear of its progress.
    pub progress: ProgressWish,
}

/// Where a call has to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    Server(ServerIndex),
    /// Nowhere: it names something that is not there.
    Nothing,
}

/// Whether a call wants to hear of its progress.
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
        /// Whether all else in it is what was sent.
        state: EchoState,
    },
    /// The workbench says that a call failed.
    Failed {
        code: Box<str>,
        /// What it says about the call's effects.
        outcome: Outcome,
    },
    Result,
    RpcError(i64),
}

/// What has become of what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoState {
    Intact,
    /// Something is not as it was sent.
    Damaged,
}

/// What a failed call says about its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    NotSent,
    /// The server said that it did not run it.
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
