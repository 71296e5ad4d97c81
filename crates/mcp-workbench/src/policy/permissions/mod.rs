//! Permissions of tools: `deny` is checked first, then `ask`, then `allow`. A tool that no rule names runs,
//! unless there is an `allow` list: then the user is asked.
//!
//! A rule matches the name of a tool, or its annotations, which the server chooses. Annotations count as first
//! given: a server cannot relax them later ([`HintHistory`]).

mod hints;
mod question;
mod refusal;

pub(crate) use hints::{HintHistory, Hints};
pub(crate) use question::{Approval, Offer, answer, question};
pub(crate) use refusal::{NoAnswer, NotPermitted, Reason};

use crate::config::{PermissionRule, Permissions};

/// The decision about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    /// The user is asked first.
    Ask(Reason),
    /// The tool does not run.
    Deny(Reason),
}

/// Returns the decision for a tool by its name and hints. Of the rules of its server and of its client, the stricter
/// count.
pub(crate) fn verdict(permissions: &Permissions, tool: &str, hints: Hints) -> Verdict {
    let own = verdict_of_rules(permissions, tool, hints);
    let Some(client) = &permissions.client else {
        return own;
    };
    let of_client = |reason| Reason::OfClient {
        client: client.name.clone(),
        reason: Box::new(reason),
    };
    match (own, verdict_of_rules(&client.rules, tool, hints)) {
        (own @ Verdict::Deny(_), _) => own,
        (_, Verdict::Deny(reason)) => Verdict::Deny(of_client(reason)),
        (own @ Verdict::Ask(_), _) => own,
        (_, Verdict::Ask(reason)) => Verdict::Ask(of_client(reason)),
        (Verdict::Allow, Verdict::Allow) => Verdict::Allow,
    }
}

fn verdict_of_rules(permissions: &Permissions, tool: &str, hints: Hints) -> Verdict {
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
    // An `allow` list makes everything else a question, so that new tools do not run unseen.
    match &permissions.allow {
        Some(allowed) if first(allowed).is_none() => Verdict::Ask(Reason::NotListed),
        _ => Verdict::Allow,
    }
}

/// Returns the decision for a tool by its name alone; `None` if it depends on the hints.
pub(crate) fn verdict_by_name(permissions: &Permissions, tool: &str) -> Option<Verdict> {
    let mut verdicts = Hints::ALL
        .map(|hints| verdict(permissions, tool, hints))
        .into_iter();
    let first = verdicts.next()?;
    // The reason may differ between hints; only the decision must be the same.
    let same = |other: Verdict| std::mem::discriminant(&other) == std::mem::discriminant(&first);
    verdicts.all(same).then_some(first)
}

#[cfg(test)]
mod tests;
