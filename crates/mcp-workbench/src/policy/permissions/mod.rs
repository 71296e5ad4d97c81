//! Whether a tool may be called: `deny` first, then `ask`, then `allow`. What none of them names runs, unless there
//! is a list of what is allowed: then the user is asked.
//!
//! A rule goes by the name of a tool, or by its annotations, which are its server's own word. They are believed as
//! they were first given: what a server later says in a tool's favour does not count ([`Said`]).

mod hints;
mod question;
mod refusal;

pub(crate) use hints::{Hints, Said};
pub(crate) use question::{Answered, Offer, answer, question};
pub(crate) use refusal::{NoAnswer, NotPermitted, Reason};

use crate::config::{PermissionRule, Permissions};

/// What is decided about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    /// The user is asked first.
    Ask(Reason),
    /// It does not run.
    Deny(Reason),
}

/// What the rules say of a tool of this name and with these hints.
pub(crate) fn verdict(permissions: &Permissions, tool: &str, hints: Hints) -> Verdict {
    let first = |rules: &[PermissionRule]| {
        let mut rules = rules.iter();
        let found = rules.find(|rule| rule.matches(tool, |hint| hints.holds(hint)));
        found.map(|rule| Reason::Rule(rule.written().to_owned()))
    };
    if let Some(reason) = first(&permissions.deny) {
        return Verdict::Deny(reason);
    }
    if let Some(reason) = first(&permissions.ask) {
        return Verdict::Ask(reason);
    }
    match &permissions.allow {
        Some(allowed) if first(allowed).is_none() => Verdict::Ask(Reason::NotListed),
        _ => Verdict::Allow,
    }
}

/// What the rules say of a tool of which only the name is known; nothing if that depends on what its server says.
pub(crate) fn verdict_by_name(permissions: &Permissions, tool: &str) -> Option<Verdict> {
    let mut verdicts = Hints::ALL
        .map(|hints| verdict(permissions, tool, hints))
        .into_iter();
    let first = verdicts.next()?;
    let same = |other: Verdict| std::mem::discriminant(&other) == std::mem::discriminant(&first);
    verdicts.all(same).then_some(first)
}

#[cfg(test)]
mod tests;
