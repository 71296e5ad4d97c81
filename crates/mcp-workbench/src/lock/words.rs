//! The messages about servers and tools that differ from the lock file. Models and people read them; each message ends
//! with the command to run next.

use std::path::PathBuf;

use ident::ServerIdentifier;
use thiserror::Error;

use super::{
    Differences, LockFault,
    launch::{INPUTS, SAYS},
    pins::MAX_SERVER_BYTES,
};
use crate::{
    config::{Invocation, PinMode},
    visible::{visible, visible_name},
};

/// The command that shows the differences between a server or a tool and its pin.
pub(super) const DIFF: &str = "trust diff";
/// The command that shows and approves a server or a tool.
pub(super) const APPROVE: &str = "trust approve";
/// The command that confirms a lowered `"pin"`.
const PIN: &str = "trust pin";
/// The command that lists the tools of a server, withheld ones included.
const LIST: &str = "trust list";

const MAX_NAMES: usize = 5;

/// A reason why a server may not start, or none of its tools be offered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Denial {
    #[error(
        "it is not approved because there is no lock file '{}'; `{approve}` shows it and approves it",
        visible(&.file.display().to_string())
    )]
    NoLock {
        file: PathBuf,
        /// The command that approves it.
        approve: String,
    },
    #[error(
        "it is not approved and cannot be, because only a configuration in a regular file has a lock file; move it to a regular \
         file, or remove \"pin\": \"enforce\""
    )]
    NoPlace,
    #[error(
        "it is not approved because the lock file '{}' cannot be used: {fault}; fix or restore it, or remove it and \
         approve everything again with `{approve}`",
        visible(&.file.display().to_string())
    )]
    Unusable {
        file: PathBuf,
        fault: LockFault,
        /// The command that approves everything.
        approve: String,
    },
    #[error(
        "it is not approved because it is not in the lock file; `{approve}` shows it and approves it"
    )]
    Unknown {
        /// The command that approves it.
        approve: String,
    },
    /// Its launch differs from the approved one.
    #[error(
        "it is not what was approved: {} changed; `{diff}` shows the difference, and `{approve}` approves it",
        launch_parts(.parts)
    )]
    Launch {
        /// The command that shows the difference.
        diff: String,
        /// The command that approves it.
        approve: String,
        /// The changed parts.
        parts: Vec<String>,
    },
}

/// The approval state of a withheld tool.
#[derive(Debug, Clone, Copy)]
pub(super) enum ApprovalState {
    New,
    Changed,
}

/// Returns the reason why a tool is withheld.
pub(super) fn tool_denied(
    program: &Invocation,
    place: &ServerIdentifier,
    tool: &str,
    standing: ApprovalState,
) -> String {
    let why = match standing {
        ApprovalState::New => "it is not approved",
        ApprovalState::Changed => "its definition has changed since it was approved",
    };
    format!(
        "{why}; `{}` shows it, and `{}` approves it",
        program.about(DIFF, place, Some(tool)),
        program.about(APPROVE, place, Some(tool))
    )
}

/// Returns the reason why a tool with a finding is withheld. Models read it, so it says that only the user can approve
/// it.
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

/// Returns the reason why a tool with a broken definition is withheld.
pub(super) fn fault_reason(program: &Invocation, place: &ServerIdentifier, fault: &str) -> String {
    format!(
        "{fault}; `{}` lists the withheld tools",
        program.about(LIST, place, None)
    )
}

/// Returns the notice about a server whose `"pin"` is lowered to a mode.
pub(super) fn lowered_notice(
    program: &Invocation,
    place: &ServerIdentifier,
    mode: PinMode,
) -> String {
    format!(
        "the configuration lowers \"pin\" to \"{}\", but \"enforce\" in the lock file still applies; only the user can \
         confirm the change with `{}`",
        mode.word(),
        program.about(PIN, place, None)
    )
}

/// Returns the notice about reported changes.
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

/// Returns the notice about a server whose tools are too many or have too long names to be recorded.
pub(super) fn too_large() -> String {
    format!(
        "its tools are not pinned because they would take more than {} MiB in the lock file; leave some out with \
         \"toolFilters\"",
        MAX_SERVER_BYTES / (1024 * 1024)
    )
}

/// Returns the notice about an unusable lock file where nothing depends on it.
pub(super) fn not_pinned(file: &str, fault: &LockFault) -> String {
    format!(
        "nothing is pinned because the lock file '{}' cannot be used: {fault}; fix or restore it, or remove it to start over",
        visible(file)
    )
}

/// Returns the names of launch parts as a person reads them.
pub(crate) fn launch_parts(parts: &[String]) -> String {
    let shown = parts.iter().map(|part| match part.as_str() {
        SAYS => "its own name or version".to_owned(),
        INPUTS => "'inputs' (files among its arguments, 'envFile' or loader variables)".to_owned(),
        part => format!("'{}'", visible(part)),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn names(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| format!("'{}'", visible_name(name)))
        .collect();
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
