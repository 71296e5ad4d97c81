//! Why a server could not be reached, and why a call to it failed: data first, and the words for it
//! beside the data.

mod call;
mod connect;
mod http;
mod oauth;

use std::time::Duration;

use thiserror::Error;

use super::stdio::{BAD_LINES, WRITE_PATIENCE};
use crate::{visible::visible, wire::MAX_FRAME_BYTES};

pub(crate) use call::CallError;
pub(crate) use connect::{ConnectError, StartPhase};
pub(crate) use http::HttpFault;
pub(crate) use oauth::{Lack, SignInNeeded};

/// How much of a server's stderr an error message shows.
const STDERR_CHARACTERS: usize = 500;

/// Why a server that still runs is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum GiveUp {
    /// It writes only what is no message.
    #[error("wrote {BAD_LINES} consecutive lines that are not MCP messages")]
    Nonsense,
    /// It writes one message for ever.
    #[error("wrote a message larger than {} MiB without ending it", MAX_FRAME_BYTES / (1024 * 1024))]
    EndlessMessage,
    /// It does not take what is written to it.
    #[error("did not read its input for {} s", WRITE_PATIENCE.as_secs())]
    NotReading,
    /// It runs and says nothing.
    #[error("did not answer a ping after its calls had timed out")]
    Unresponsive,
}

impl GiveUp {
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
    /// `callTimeoutMs`: neither an answer nor progress came.
    #[error("timed out after {} waiting for a response", seconds(*.0))]
    Silence(Duration),
    /// `maxCallMs`: the call was not finished.
    #[error("timed out: the call did not finish within {}", seconds(*.0))]
    Total(Duration),
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// The last lines of stderr, the newest last, cut from the front.
fn stderr_part(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = lines
        .iter()
        .map(|line| visible(line))
        .collect::<Vec<_>>()
        .join(" | ");
    let surplus = shown.chars().count().saturating_sub(STDERR_CHARACTERS);
    let shown: String = shown.chars().skip(surplus).collect();
    format!("; stderr: {shown}")
}

#[cfg(test)]
mod tests;
