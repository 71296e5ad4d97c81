//! The lock file's say in a list of tools: what may not be offered, and what is to be told.

use std::{collections::HashSet, sync::Arc};

use super::{Cause, ToolDefinition, ToolList};
use crate::{
    config::PinMode,
    downstream::error::CallError,
    lock::{Ruling, ServerPins},
    visible::visible,
    wire::RawJson,
};

/// What is done about tools that are not what the lock file has.
#[derive(Debug, Clone, Copy)]
pub(in crate::downstream) struct PinRules<'a> {
    pub(in crate::downstream) pins: &'a ServerPins,
    pub(in crate::downstream) mode: PinMode,
}

impl PinRules<'_> {
    /// What may be offered of a list.
    pub(super) fn rule(&self, list: &ToolList) -> Ruling {
        let tools = list.tools.iter();
        let tools = tools.map(|tool| (tool.name.as_str(), &tool.definition));
        let product = list.introduction.product.as_deref();
        self.pins.rule(self.mode, product, tools)
    }
}

impl ToolList {
    /// Why a tool of this name is not offered, where that is because nobody has approved it.
    pub fn not_approved(&self, name: &str) -> Option<&str> {
        let mut withheld = self.withheld.iter();
        let denied = withheld.find(|it| it.cause == Cause::NotApproved && it.tool == visible(name));
        Some(&denied?.reason)
    }

    /// The list without the tools that may not be offered any more.
    pub(in crate::downstream) fn ruled(self: &Arc<Self>, rules: &PinRules<'_>) -> Arc<Self> {
        let ruling = rules.rule(self);
        if ruling.denied.is_empty() {
            return Arc::clone(self);
        }
        let mut list = Self::clone(self);
        list.apply(ruling);
        Arc::new(list)
    }

    /// The tool of this name, or why it is not offered.
    pub(in crate::downstream) fn find(&self, name: &str) -> Result<&ToolDefinition, CallError> {
        let missing = || self.refusal(name).unwrap_or(CallError::ToolGone);
        self.get(name).ok_or_else(missing)
    }

    /// Refuses a call with these parameters to a tool that is not permitted, or that nobody has approved.
    pub(in crate::downstream) fn check_offered(&self, params: &RawJson) -> Result<(), CallError> {
        // Almost always there is none, and reading the parameters for nothing costs something.
        if { self.withheld.iter() }.all(|it| it.cause == Cause::Definition) {
            return Ok(());
        }
        let name = params.member("name");
        let name = name.as_ref().and_then(RawJson::as_text);
        match name.and_then(|name| self.refusal(&name)) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    /// Why a tool of this name may not be called, although the server has it.
    fn refusal(&self, name: &str) -> Option<CallError> {
        if let Some(refusal) = self.denied(name) {
            return Some(refusal.into());
        }
        let reason = self.not_approved(name)?.to_owned();
        Some(CallError::NotApproved { reason })
    }

    /// Takes out what may not be offered, and notes what is to be told.
    pub(super) fn apply(&mut self, ruling: Ruling) {
        self.notices.extend(ruling.notices);
        if ruling.denied.is_empty() {
            return;
        }
        let denied: HashSet<&str> = ruling.denied.iter().map(|it| it.0.as_str()).collect();
        self.tools
            .retain(|tool| !denied.contains(tool.name.as_str()));
        let names = self.tools.iter().enumerate();
        self.by_name = names.map(|(at, tool)| (tool.name.clone(), at)).collect();
        for (tool, reason) in &ruling.denied {
            self.withhold(tool, reason, Cause::NotApproved);
        }
    }
}
