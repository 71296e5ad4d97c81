//! The violations, one variant per rule.

use std::time::Duration;

use thiserror::Error;

use crate::identity::{Id, Nonce, ServerIndex};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Violation {
    /// A request was not answered.
    #[error("lost: {id} was sent {sent} times, answered {answered} times and never cancelled")]
    Lost {
        id: Id,
        /// How many requests had this id.
        sent: usize,
        answered: usize,
    },
    /// Requests got no answer for so long that the client gave up; the end may still answer them.
    #[error("lost: {requests} requests were not answered while nothing came for {} s", .silence.as_secs())]
    Silent {
        /// How many answers were awaited.
        requests: usize,
        /// How long nothing arrived.
        silence: Duration,
    },
    /// A request was answered more than once.
    #[error("duplicate: {id} was sent {sent} times and answered {answered} times")]
    Duplicated {
        id: Id,
        /// How many requests had this id.
        sent: usize,
        answered: usize,
    },
    /// An answer to a request that was never made.
    #[error("unasked: an answer to {0}, which was never sent")]
    Unasked(Id),
    /// A line of the workbench that is not allowed.
    #[error("stray: {0}")]
    Stray(String),
    /// The number of refused lines is not the number of lines that were no message.
    #[error("garbage: {sent} invalid lines, {refused} refusals")]
    Garbage { sent: usize, refused: usize },
    /// A response with the result of a different call.
    #[error("misrouted: the answer to {id} holds the result of {nonce}")]
    ForeignResult { id: Id, nonce: Nonce },
    /// A call ran on the wrong server.
    #[error("misrouted: {nonce} ran on {ran_on} (process {pid})")]
    Misrouted {
        nonce: Nonce,
        ran_on: ServerIndex,
        pid: u32,
    },
    /// A result that differs from the payload that was sent.
    #[error("damaged: the result of {0} is not what was sent")]
    Damaged(Nonce),
    /// An answer of a kind that does not fit its request.
    #[error("unfit: {id} was answered with {answer}")]
    Unfit { id: Id, answer: String },
    /// A call ran more than once.
    #[error("executed twice: {nonce} ran {times} times")]
    ExecutedTwice { nonce: Nonce, times: usize },
    /// A call ran that was not made, or that had ended long before.
    #[error("executed unasked: {nonce} ran on {server} (process {pid})")]
    ExecutedUnasked {
        nonce: Nonce,
        server: ServerIndex,
        pid: u32,
    },
    /// More calls of this id ran than its answers allow.
    #[error("executed though not sent: {id} ran {ran} times, its answers allow {allowed}")]
    ExecutedThoughNotSent {
        id: Id,
        /// How many of its calls without a result ran.
        ran: usize,
        /// How many may have run.
        allowed: usize,
    },
    /// A call that never ran has a response of its server.
    #[error("never executed: {id} has {answered} answers of its server, but ran {ran} times")]
    NeverExecuted {
        id: Id,
        /// How many answers came from the server.
        answered: usize,
        /// How many of its calls ran.
        ran: usize,
    },
    /// Progress that was not requested.
    #[error("progress of {0}, which did not ask for it")]
    ProgressUnasked(Nonce),
    #[error("progress of {nonce} went from {before} to {after}")]
    ProgressDisorder {
        nonce: Nonce,
        before: u64,
        after: u64,
    },
    #[error("progress of {0} after its answer")]
    ProgressAfterAnswer(Nonce),
    /// A server did not answer when the faults had stopped.
    #[error("not alive: {server} gave no result within {} s after the faults had stopped", .within.as_secs())]
    NotAlive {
        server: ServerIndex,
        /// How long it was tried.
        within: Duration,
    },
    /// The workbench holds more descriptors than at its start.
    #[error("descriptors: {start} at the start, {end} at the end")]
    Descriptors {
        start: u64,
        /// With the same servers up.
        end: u64,
    },
    /// Children that have ended and were not waited for.
    #[error("zombies: {0:?}")]
    Zombies(Vec<u32>),
    /// The workbench ended before it was asked to.
    #[error("the workbench ended by itself")]
    EndedByItself,
    /// The workbench did not end in time.
    #[error("the workbench did not end within {} s of the end of its stdin", .0.as_secs())]
    EndedLate(Duration),
    /// The workbench ended with a code other than 0.
    #[error("the workbench ended with {0}")]
    EndedBadly(String),
    #[error("{0}")]
    Panicked(String),
    /// Processes that outlived the workbench.
    #[error("processes left behind: {0:?}")]
    LeftBehind(Vec<u32>),
}
