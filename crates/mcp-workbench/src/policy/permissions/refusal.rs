//! Reasons why a tool does not run, as data and messages. The message tells a model the next step; programs read
//! the code.

use std::fmt;

use ident::ClientName;
use thiserror::Error;

use crate::visible::visible;

/// The reason for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Rule(String),
    /// No rule under `allow` matches the tool.
    NotListed,
    /// It is one of the rules of the client.
    OfClient {
        client: ClientName,
        reason: Box<Self>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "rule '{}'", visible(rule)),
            Self::NotListed => f.write_str("no rule under 'allow' matches it"),
            Self::OfClient { client, reason } => {
                write!(f, "{reason}, for client '{}'", visible(client.as_str()))
            }
        }
    }
}

impl Reason {
    /// Returns the change that stops the question. A rule under `ask` takes precedence over one under `allow`.
    fn remedy(&self) -> String {
        match self {
            Self::Rule(rule) => format!("remove the rule '{}' from 'ask'", visible(rule)),
            Self::NotListed => "add the tool to 'allow'".to_owned(),
            Self::OfClient { reason, .. } => reason.remedy(),
        }
    }

    /// Returns whose permissions have the rule.
    fn owner(&self) -> &'static str {
        match self {
            Self::Rule(_) | Self::NotListed => "its server",
            Self::OfClient { .. } => "the client",
        }
    }
}

/// Reasons why a tool did not run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NotPermitted {
    #[error(
        "the configuration does not permit this tool ({0} under 'deny' of {owner}'s permissions). Do not try to \
         work around this; tell the user, who can change the configuration",
        owner = .0.owner()
    )]
    Denied(Reason),
    /// A script makes the call, and scripts may not call the tool.
    #[error(
        "scripts may not call this tool ({why}). Call it with use_tool, or tell the user, who can permit it under 'code' in \
         the permissions of its server",
        why = if *.is_listed { "no rule under 'code' matches it" } else { "its server marks it as destructive" }
    )]
    NotByScript {
        /// True if there is a list of tools that scripts may call.
        is_listed: bool,
    },
    #[error(
        "the user must be asked before this tool runs ({0} in {owner}'s permissions), and this client cannot ask: \
         it does not support form elicitation. Tell the user, who can use a client that does, or {remedy} in the permissions of \
         {owner}",
        remedy = .0.remedy(),
        owner = .0.owner()
    )]
    NotAskable(Reason),
    #[error(
        "the user was asked and did not permit this call. Do not repeat it; ask the user what to do instead"
    )]
    Refused,
    /// The user gave no valid answer.
    #[error(
        "the user was asked whether this tool may run, but there is no valid answer ({0}). Ask the user before you try \
         again"
    )]
    Unanswered(NoAnswer),
    #[error(
        "the server changed this tool while the user was asked about it. Look at it again with open_toolbox before \
         you call it"
    )]
    Outdated,
}

/// Reasons why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The client disconnected or answered with an error.
    None,
    /// The answer is not one of the offered ones.
    Unusable,
    Late,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "the client sent none",
            Self::Unusable => "the client's answer is not one of the choices",
            Self::Late => "timed out",
        })
    }
}

impl NotPermitted {
    /// Returns the stable code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "permission_denied",
            Self::NotByScript { .. } => "permission_code",
            Self::NotAskable(_) => "permission_required",
            Self::Refused => "permission_refused",
            Self::Unanswered(_) => "permission_unanswered",
            Self::Outdated => "permission_outdated",
        }
    }
}
