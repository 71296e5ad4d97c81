//! The calls of the users, as they have printed them, and the moments of the trouble. All times are milliseconds since 1970, on one
//! clock.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;

/// A call of a user.
#[derive(Debug, Clone)]
pub struct TeamCall {
    pub user: usize,
    pub nonce: u64,
    pub sent_at: f64,
    /// How long its tool takes, in milliseconds.
    pub ms: f64,
    pub tool: String,
    pub done: Option<Done>,
}

/// The outcome of a call, as its user got it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Done {
    pub at: f64,
    /// The nonce in the result.
    pub nonce: Option<u64>,
    /// The user whose answer is in the result, for a tool that asks.
    pub answered: Option<String>,
    /// True if the part of a large result has the words of this user and call.
    pub cut: Option<bool>,
    /// `own` if a further page has them too, or why there is none.
    pub page: Option<String>,
    /// The code and the outcome of a failure that the workbench reports.
    pub code: Option<String>,
    pub outcome: Option<String>,
    /// The error of the SDK.
    pub error: Option<String>,
}

impl Done {
    /// Returns whether the call has its result.
    pub fn is_result(&self) -> bool {
        self.nonce.is_some() || self.cut == Some(true)
    }
}

/// A line that a user prints.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Sent {
        sent: u64,
        at: f64,
        ms: f64,
        tool: String,
    },
    Done {
        #[serde(rename = "done")]
        nonce: u64,
        #[serde(flatten)]
        done: Done,
    },
    Ready {
        #[serde(rename = "ready")]
        _sdk: String,
    },
}

/// The moments of the trouble.
#[derive(Debug, Default)]
pub struct TroubleEvents {
    /// When replicas were killed.
    pub kills: Vec<f64>,
    /// From when to when the replicas were restarted in turn.
    pub rolling: Vec<(f64, f64)>,
}

pub(super) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}
