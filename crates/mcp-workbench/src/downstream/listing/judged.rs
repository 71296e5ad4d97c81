//! Applies the permissions of a server to its tool list: withholds denied tools and marks those that need the user's
//! consent.

use std::sync::Arc;

use ident::ToolName;

use super::{Cause, ToolDefinition, ToolList};
use crate::{
    config::{PermissionRule, Permissions, Server},
    policy::permissions::{Hints, NotPermitted, Reason, Verdict, verdict},
    visible::visible,
};

/// The number of tools with changed annotations that have a notice of their own.
const MAX_MISTRUSTED: usize = 5;

/// The tools that scripts may call, as far as the configuration lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScriptRules {
    server: Option<Vec<PermissionRule>>,
    client: Option<Vec<PermissionRule>>,
}

impl ScriptRules {
    fn of(permissions: &Permissions) -> Self {
        let client = permissions.client.as_ref();
        Self {
            server: permissions.code.clone(),
            client: client.and_then(|client| client.rules.code.clone()),
        }
    }

    fn is_empty(&self) -> bool {
        self.server.is_none() && self.client.is_none()
    }
}

impl ToolList {
    /// Returns true if permission rules apply to the tools.
    pub(crate) fn is_judged(&self) -> bool {
        !self.said.is_empty()
    }

    /// Returns the reason why a tool of the server is denied; `None` if it is not denied.
    pub(crate) fn denied(&self, name: &str) -> Option<NotPermitted> {
        let reason = self.denied.get(name)?;
        Some(NotPermitted::Denied(reason.clone()))
    }

    /// Returns the list without the tools that a changed entry does not let through. Tools that it lets through in
    /// addition are missing until the server lists them again.
    pub(crate) fn narrowed(self: &Arc<Self>, server: &Server) -> Arc<Self> {
        let allows = |tool: &&ToolDefinition| server.filters.allows(tool.name.as_str());
        let same_rules =
            self.denied.is_empty() && self.script_rules.is_empty() && server.permissions.is_empty();
        if same_rules
            && self
                .tools
                .iter()
                .all(|tool| allows(&tool) && tool.asks.is_none())
        {
            return Arc::clone(self);
        }
        let withheld = self
            .withheld
            .iter()
            // `deny` adds those that the new rules deny.
            .filter(|it| it.cause != Cause::NotPermitted);
        let mut list = Self {
            withheld: withheld.cloned().collect(),
            notices: self.notices.clone(),
            incomplete: self.incomplete.clone(),
            introduction: self.introduction.clone(),
            hints: self.hints,
            said: self.said.clone(),
            skills: self.skills.clone(),
            is_enforced: self.is_enforced,
            ..Self::default()
        };
        for tool in self.tools.iter().filter(allows) {
            list.offer(ToolDefinition {
                // `judge` below sets it again where the new rules want that.
                asks: None,
                ..tool.clone()
            });
        }
        list.judge(&server.permissions);
        // Denied tools have no definition here. They are judged by the annotations that the server gave them before.
        for name in self.denied.keys() {
            let hints = self.said.get(name).unwrap_or(Hints::WORST);
            if let Verdict::Deny(reason) = verdict(&server.permissions, name.as_str(), hints) {
                list.deny(name, reason);
            }
        }
        Arc::new(list)
    }

    /// Combines the list with an earlier one of the same server: an earlier annotation that is stricter than the
    /// current one still counts.
    pub(crate) fn after(mut self, earlier: &Self, permissions: &Permissions) -> Self {
        if permissions.is_empty() {
            return self;
        }
        let now = self.said.clone();
        self.said.merge(&earlier.said);
        // They differ only if an earlier annotation was stricter.
        if self.said != now {
            let mistrusted = self.judge(permissions);
            for name in mistrusted.iter().take(MAX_MISTRUSTED) {
                let name = visible(name.as_str());
                let notice = format!(
                    "tool '{name}' now declares itself harmless and did not before; its permissions follow the first \
                     declaration until the workbench restarts"
                );
                tracing::warn!("{notice}");
                self.notices.push(notice);
            }
            if let Some(more) = mistrusted.len().checked_sub(MAX_MISTRUSTED + 1) {
                let notice = format!("the same applies to {} more tools", more + 1);
                tracing::warn!("{notice}");
                self.notices.push(notice);
            }
        }
        self
    }

    /// Applies the rules to all tools; returns those whose annotations are not trusted.
    pub(crate) fn judge(&mut self, permissions: &Permissions) -> Vec<ToolName> {
        let mut mistrusted = Vec::new();
        if permissions.is_empty() {
            return mistrusted;
        }
        self.script_rules = ScriptRules::of(permissions);
        self.by_name.clear();
        for mut tool in std::mem::take(&mut self.tools) {
            let claimed = Hints::of(&tool.definition);
            let hints = self.said.record(&tool.name, claimed);
            let decided = verdict(permissions, tool.name.as_str(), hints);
            // By what the tool says of itself now, the rules would be milder.
            if decided != verdict(permissions, tool.name.as_str(), claimed) {
                mistrusted.push(tool.name.clone());
            }
            tool.asks = match decided {
                Verdict::Allow => None,
                Verdict::Ask(reason) => Some(reason),
                Verdict::Deny(reason) => {
                    self.deny(&tool.name, reason);
                    continue;
                }
            };
            self.offer(tool);
        }
        mistrusted
    }

    /// Checks that scripts may call a tool: one that `code` names, or, without that list, one that its server does not mark
    /// as destructive.
    pub(crate) fn check_script(&self, tool: &ToolDefinition) -> Result<(), NotPermitted> {
        let name = tool.name.as_str();
        let hints = || {
            self.said
                .get(&tool.name)
                .unwrap_or_else(|| Hints::of(&tool.definition))
        };
        let is_listed = |rules: &[PermissionRule]| {
            let hints = hints();
            let mut rules = rules.iter();
            rules.any(|rule| rule.matches(name, |hint| hints.holds(hint)))
        };
        let ScriptRules { server, client } = &self.script_rules;
        if server.is_none() && Hints::marks_destructive(&tool.definition) {
            return Err(NotPermitted::NotByScript { is_listed: false });
        }
        if [server, client]
            .into_iter()
            .flatten()
            .all(|it| is_listed(it))
        {
            return Ok(());
        }
        Err(NotPermitted::NotByScript { is_listed: true })
    }

    fn deny(&mut self, tool: &ToolName, reason: Reason) {
        let words = format!("not permitted by the configuration: {reason} under 'deny'");
        self.withhold(tool, words, Cause::NotPermitted);
        self.denied.insert(tool.clone(), reason);
    }
}
