//! Applies the lock file to a tool list: withholds tools and adds notices.

use std::{collections::HashSet, sync::Arc};

use ident::ToolName;

use super::{Cause, Reviewable, ToolDefinition, ToolList, Withheld};
use crate::{
    call::{ClientHandle, ToolRequest},
    config::PinMode,
    downstream::{
        error::CallError,
        skills::{is_within, root_of},
    },
    lock::{Ruling, ServerPins},
    policy::scan,
};

/// The rules for tools that differ from the lock file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinRules<'a> {
    pub(crate) pins: &'a ServerPins,
    /// The mode of the configuration.
    pub(crate) mode: PinMode,
}

impl PinRules<'_> {
    /// Returns the verdict of the lock file on a list.
    pub(crate) fn rule(&self, list: &ToolList) -> Ruling {
        let tools = list
            .tools
            .iter()
            .map(|tool| (tool.name.clone(), &tool.definition));
        let skills = list.skills.iter();
        let skills = skills.map(|skill| (ToolName::from(&*skill.uri), &skill.entry));
        let tools = tools.chain(skills);
        let product = list.introduction.product.as_deref();
        self.pins.rule(self.mode, product, tools)
    }
}

impl ToolList {
    /// Returns the withheld tool of this name; if there are several, the one that is not approved.
    pub(crate) fn withheld_as(&self, name: &str) -> Option<&Withheld> {
        let named = || self.withheld.iter().filter(|it| it.name.as_str() == name);
        let denied = named().find(|it| it.cause == Cause::NotApproved);
        denied.or_else(|| named().next())
    }

    /// Returns the list without the tools that may no longer be offered: unapproved ones if approval is enforced, and
    /// those with a finding whose approval was revoked.
    pub(crate) fn ruled(self: &Arc<Self>, rules: &PinRules<'_>) -> Arc<Self> {
        let ruling = match rules.pins.mode(rules.mode) {
            PinMode::Enforce => rules.rule(self),
            PinMode::Off | PinMode::Notice => Ruling::default(),
        };
        let is_revoked = |tool: &ToolDefinition| {
            let (name, definition) = (tool.name.as_str(), &tool.definition);
            let is_released = |code| rules.pins.releases(name, definition, code);
            tool.released.is_some_and(|code| !is_released(code))
        };
        if ruling.denied.is_empty() && !self.tools.iter().any(is_revoked) {
            return Arc::clone(self);
        }
        let mut list = Self::clone(self);
        list.revoke(is_revoked, rules.pins);
        list.apply(ruling);
        Arc::new(list)
    }

    /// Withholds tools whose findings are no longer approved.
    fn revoke(&mut self, is_revoked: impl Fn(&ToolDefinition) -> bool, pins: &ServerPins) {
        let tools = std::mem::take(&mut self.tools).into_iter();
        let (revoked, left): (Vec<_>, Vec<_>) = tools.partition(is_revoked);
        self.by_name.clear();
        for tool in left {
            self.offer(tool);
        }
        for tool in revoked {
            let Some(finding) = scan::hard(&tool.definition) else {
                continue;
            };
            let reason = pins.finding_reason(tool.name.as_str(), &finding.to_string());
            let cause = Cause::Finding(Reviewable {
                definition: tool.definition,
                code: finding.code(),
            });
            self.withhold(&tool.name, reason, cause);
        }
    }

    /// Returns the tool of a call that may be sent to the server with this list, else the reason why not. This is the
    /// one place that decides: the list holds what passed the filters, the scanner, the pins and the permissions, and a
    /// consent counts for the definition that the user was shown.
    pub(crate) fn admit(
        &self,
        request: &ToolRequest,
        client: &dyn ClientHandle,
    ) -> Result<&ToolDefinition, CallError> {
        let name = request.name.as_str();
        let missing = || self.refusal(name).unwrap_or(CallError::ToolGone);
        let tool = self.get(name).ok_or_else(missing)?;
        // Scripts are judged apart: not every tool that a model may call is one that a script may.
        if client.script_run().is_some() {
            self.check_script(tool)?;
        }
        // Compared here and not where the user was asked: in between, the server may have announced another
        // definition under the same name.
        if tool.asks.is_some() && request.consent.as_deref() != Some(&tool.fingerprint()) {
            return Err(CallError::ConsentNeeded);
        }
        Ok(tool)
    }

    /// Returns the reason why a tool of this name may not be called, although the server has it.
    fn refusal(&self, name: &str) -> Option<CallError> {
        // A duplicate of an offered tool is withheld too.
        if self.get(name).is_some() {
            return None;
        }
        if let Some(refusal) = self.denied(name) {
            return Some(refusal.into());
        }
        let withheld = self.withheld_as(name)?;
        let reason = withheld.reason.clone();
        Some(match withheld.cause {
            Cause::NotApproved => CallError::NotApproved { reason },
            Cause::Definition | Cause::Finding(_) | Cause::NotPermitted => {
                CallError::Withheld { reason }
            }
        })
    }

    /// Returns the withheld skill that a resource belongs to.
    pub(crate) fn withheld_skill(&self, uri: &str) -> Option<&Withheld> {
        let mut withheld = self.withheld.iter();
        withheld.find(|it| root_of(it.name.as_str()).is_some_and(|root| is_within(uri, root)))
    }

    /// Removes the tools and skills that may not be offered, and adds the notices.
    pub(crate) fn apply(&mut self, ruling: Ruling) {
        self.notices.extend(ruling.notices);
        if ruling.denied.is_empty() {
            return;
        }
        let denied: HashSet<&str> = ruling.denied.iter().map(|it| it.0.as_str()).collect();
        self.tools
            .retain(|tool| !denied.contains(tool.name.as_str()));
        self.skills.retain(|skill| !denied.contains(&*skill.uri));
        // `retain` has moved the tools.
        let names = self.tools.iter().enumerate();
        self.by_name = names.map(|(at, tool)| (tool.name.clone(), at)).collect();
        for (tool, reason) in ruling.denied {
            self.withhold(&ToolName::from(&*tool), reason, Cause::NotApproved);
        }
    }
}
