//! The lock file's say in a list of tools: what may not be offered, and what is to be told.

use std::{collections::HashSet, sync::Arc};

use super::{Cause, ToolDefinition, ToolList, Withheld};
use crate::{
    config::PinMode,
    downstream::error::CallError,
    lock::{Ruling, ServerPins},
    visible::visible,
    wire::RawJson,
};

/// What is done about tools that are not what the lock file has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinRules<'a> {
    pub(crate) pins: &'a ServerPins,
    pub(crate) mode: PinMode,
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
    /// The tool of this name that is not offered; of several, the one that nobody has approved.
    pub fn withheld_as(&self, name: &str) -> Option<&Withheld> {
        let named = || self.withheld.iter().filter(|it| it.tool == visible(name));
        let denied = named().find(|it| it.cause == Cause::NotApproved);
        denied.or_else(|| named().next())
    }

    /// The list without the tools that may not be offered any more.
    pub(crate) fn ruled(self: &Arc<Self>, rules: &PinRules<'_>) -> Arc<Self> {
        let ruling = rules.rule(self);
        if ruling.denied.is_empty() {
            return Arc::clone(self);
        }
        let mut list = Self::clone(self);
        list.apply(ruling);
        Arc::new(list)
    }

    /// The tool of this name, or why it is not offered.
    pub(crate) fn find(&self, name: &str) -> Result<&ToolDefinition, CallError> {
        let missing = || self.refusal(name).unwrap_or(CallError::ToolGone);
        self.get(name).ok_or_else(missing)
    }

    /// Refuses a call with these parameters to a tool that is not permitted, or that nobody has approved.
    pub(crate) fn check_offered(&self, params: &RawJson) -> Result<(), CallError> {
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
        let withheld = self.withheld_as(name)?;
        (withheld.cause == Cause::NotApproved).then(|| CallError::NotApproved {
            reason: withheld.reason.clone(),
        })
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
