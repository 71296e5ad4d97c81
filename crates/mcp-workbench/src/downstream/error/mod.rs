//! Errors of connections and of calls. Each variant carries its data; its message is written next to it.

mod call;
mod connect;
mod http;
mod oauth;

use std::time::Duration;

use thiserror::Error;

use super::stdio::{MAX_BAD_LINES, WRITE_TIMEOUT};
use crate::{visible::visible, wire::MAX_FRAME_BYTES};

pub(crate) use call::CallError;
pub(crate) use connect::{ConnectError, StartPhase};
pub(crate) use http::HttpFault;
pub(crate) use oauth::{SignInNeeded, SignInReason, SignInRemedy};

/// Upper bound on the stderr text in an error message.
const MAX_STDERR_CHARACTERS: usize = 500;

/// The reason why the workbench stops a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum StopReason {
    /// It writes only lines that are not MCP messages.
    #[error("wrote {MAX_BAD_LINES} consecutive lines that are not MCP messages")]
    Nonsense,
    /// It writes a message without ever ending it.
    #[error("wrote a message larger than {} MiB without ending it", MAX_FRAME_BYTES / (1024 * 1024))]
    EndlessMessage,
    /// It does not read its input.
    #[error("did not read its input for {} s", WRITE_TIMEOUT.as_secs())]
    NotReading,
    /// It runs but does not respond.
    #[error("did not answer a ping after its calls had timed out")]
    Unresponsive,
}

impl StopReason {
    fn code(self) -> &'static str {
        match self {
            Self::Nonsense => "invalid_response",
            Self::EndlessMessage => "frame_too_large",
            Self::NotReading | Self::Unresponsive => "server_unresponsive",
        }
    }
}

/// A limit on the time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum TimeLimit {
    /// `callTimeoutMs`: neither a response nor progress arrived.
    #[error("timed out after {} waiting for a response", seconds(*.0))]
    Silence(Duration),
    /// `maxCallMs`: the call did not finish.
    #[error("timed out: the call did not finish within {}", seconds(*.0))]
    Total(Duration),
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Formats the last lines of stderr, newest last. Text that exceeds the bound is cut from the front.
fn stderr_part(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = lines
        .iter()
        .map(|line| visible(line))
        .collect::<Vec<_>>()
        .join(" | ");
    let surplus = shown.chars().count().saturating_sub(MAX_STDERR_CHARACTERS);
    let shown: String = shown.chars().skip(surplus).collect();
    format!("; stderr: {shown}")
}

#[cfg(test)]
mod tests;
