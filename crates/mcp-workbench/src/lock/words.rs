//! What is said about a server or a tool that is not what the lock file has. Models and people read it; each sentence
//! ends with the command that goes on.

use std::path::PathBuf;

use thiserror::Error;

use super::{
    Differences, LockFault,
    launch::{INPUTS, SAYS},
};
use crate::{
    config::{Invocation, PinMode},
    ident::ServerIdentifier,
    visible::visible,
};

/// The command that shows how a server or a tool differs from what is pinned.
pub(super) const DIFF: &str = "trust diff";
/// The command that shows what a server or a tool is, and approves it.
pub(super) const APPROVE: &str = "trust approve";
/// The command that confirms a lowered `"pin"`.
const PIN: &str = "trust pin";
/// The command that lists the tools of a server, withheld ones included.
const LIST: &str = "trust list";

/// How many names a sentence has.
const MOST_NAMES: usize = 5;

/// Why a server may not be started, or nothing of it be offered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Denial {
    /// There is no lock file.
    #[error(
        "it is not approved because there is no lock file '{}'; `{approve}` shows it and approves it",
        visible(&.file.display().to_string())
    )]
    NoLock {
        file: PathBuf,
        /// The command that approves it.
        approve: String,
    },
    /// The configuration is no file, so that there is no place for a lock file.
    #[error(
        "it is not approved and cannot be, because only a configuration in a regular file has a lock file; move it to a regular \
         file, or remove \"pin\": \"enforce\""
    )]
    NoPlace,
    /// The lock file cannot be used.
    #[error(
        "it is not approved because the lock file '{}' cannot be used: {fault}; fix or restore it, or remove it and \
         approve everything again with `{approve}`",
        visible(&.file.display().to_string())
    )]
    Unusable {
        file: PathBuf,
        /// What is wrong with it.
        fault: LockFault,
        /// The command that approves everything.
        approve: String,
    },
    /// The lock file does not have it.
    #[error(
        "it is not approved because it is not in the lock file; `{approve}` shows it and approves it"
    )]
    Unknown {
        /// The command that approves it.
        approve: String,
    },
    /// It would be started in another way than was approved.
    #[error(
        "it is not what was approved: {} changed; `{diff}` shows the difference, and `{approve}` approves it",
        launch_parts(.parts)
    )]
    Launch {
        /// The command that shows how it differs.
        diff: String,
        /// The command that approves it.
        approve: String,
        /// The parts that are others.
        parts: Vec<String>,
    },
}

/// How a tool stands to what was approved.
#[derive(Debug, Clone, Copy)]
pub(super) enum Standing {
    New,
    Changed,
}

/// Why a tool is not offered.
pub(super) fn tool_denied(
    program: &Invocation,
    place: &ServerIdentifier,
    tool: &str,
    standing: Standing,
) -> String {
    let why = match standing {
        Standing::New => "it is not approved",
        Standing::Changed => "its definition has changed since it was approved",
    };
    format!(
        "{why}; `{}` shows it, and `{}` approves it",
        program.about(DIFF, place, Some(tool)),
        program.about(APPROVE, place, Some(tool))
    )
}

/// Returns why a tool with a finding is withheld. Models read it, so that it says who may approve it.
pub(super) fn finding_reason(
    program: &Invocation,
    place: &ServerIdentifier,
    tool: &str,
    finding: &str,
) -> String {
    format!(
        "{finding}; only the user can review it with `{}` and release it with `{}`",
        program.about(DIFF, place, Some(tool)),
        program.about(APPROVE, place, Some(tool))
    )
}

/// Returns why a tool is withheld whose definition is broken.
pub(super) fn fault_reason(program: &Invocation, place: &ServerIdentifier, fault: &str) -> String {
    format!(
        "{fault}; `{}` lists the withheld tools",
        program.about(LIST, place, None)
    )
}

/// Returns what is said of a server whose `"pin"` is lowered to a mode.
pub(super) fn held(program: &Invocation, place: &ServerIdentifier, mode: PinMode) -> String {
    format!(
        "the configuration lowers \"pin\" to \"{}\", but \"enforce\" in the lock file still applies; only the user can \
         confirm the change with `{}`",
        mode.word(),
        program.about(PIN, place, None)
    )
}

/// What has changed and is taken up.
pub(super) fn changes(
    program: &Invocation,
    place: &ServerIdentifier,
    differences: &Differences,
) -> String {
    let mut parts = Vec::new();
    let Differences {
        launch,
        changed,
        new,
        ..
    } = differences;
    if !launch.is_empty() {
        parts.push(format!(
            "the server differs from the pinned one: {} changed",
            launch_parts(launch)
        ));
    }
    match &changed[..] {
        [] => {}
        [one] => parts.push(format!(
            "the definition of {} has changed since it was pinned",
            names(std::slice::from_ref(one))
        )),
        _ => parts.push(format!(
            "the definitions of {} have changed since they were pinned",
            names(changed)
        )),
    }
    match new.len() {
        0 => {}
        1 => parts.push(format!("{} is new", names(new))),
        _ => parts.push(format!("{} are new", names(new))),
    }
    parts.push(format!(
        "`{}` shows the difference",
        program.about(DIFF, place, None)
    ));
    parts.join("; ")
}

/// A lock file that cannot be used, where nothing depends on it.
pub(super) fn not_pinned(file: &str, fault: &LockFault) -> String {
    format!(
        "nothing is pinned because the lock file '{}' cannot be used: {fault}; fix or restore it, or remove it to start over",
        visible(file)
    )
}

/// The parts of a launch, by names that a person understands.
pub(crate) fn launch_parts(parts: &[String]) -> String {
    let shown = parts.iter().map(|part| match part.as_str() {
        SAYS => "its own name or version".to_owned(),
        INPUTS => "'inputs' (files among its arguments, 'envFile' or loader variables)".to_owned(),
        part => format!("'{}'", visible(part)),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn names(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES);
    let shown: Vec<String> = shown.map(|name| format!("'{}'", visible(name))).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
