//! The `"pin"` policy in the lock file. An attacker who can edit the configuration could switch off the protection with
//! the same edit. Therefore `"enforce"` applies, once it was set, until the user lowers it with `mcp-workbench trust
//! pin`.

use std::collections::BTreeMap;

use ident::ServerIdentifier;

use super::Lowered;
use crate::config::{Config, PinMode};

/// The policy for all servers, and for those that differ from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinPolicy {
    /// True if only approved launches and tools are allowed for every server that is not in `servers`.
    pub(super) is_enforced: bool,
    /// The exceptions, by toolbox and name.
    pub(super) servers: BTreeMap<String, BTreeMap<String, PinMode>>,
}

impl PinPolicy {
    /// Returns the policy of a configuration.
    pub fn of(config: &Config) -> Self {
        let mut policy = Self {
            is_enforced: config.pin == PinMode::Enforce,
            ..Self::default()
        };
        for toolbox in config.all_toolboxes() {
            let servers = toolbox.servers.values();
            let differing: BTreeMap<String, PinMode> = servers
                .filter(|it| (it.pin == PinMode::Enforce) != policy.is_enforced)
                .map(|server| (server.name.to_string(), server.pin))
                .collect();
            if !differing.is_empty() {
                policy.servers.insert(toolbox.name.to_string(), differing);
            }
        }
        policy
    }

    /// Returns the mode that applies to a server that has this mode in the configuration.
    pub(super) fn mode(&self, place: &ServerIdentifier, configured: PinMode) -> PinMode {
        let server = self.server(place.toolbox.as_str(), place.server.as_str());
        let is_enforced = server.map_or(self.is_enforced, |mode| mode == PinMode::Enforce);
        if is_enforced {
            PinMode::Enforce
        } else {
            configured
        }
    }

    /// Adds what another policy enforces. Nothing is lowered, except for servers that a configuration excludes at the
    /// moment when it starts to enforce everything else.
    pub(super) fn raise(&mut self, wanted: &Self) {
        if wanted.is_enforced && !self.is_enforced {
            // From now on everything is enforced. The exceptions of the configuration count, but not for servers that
            // were enforced before.
            let before = std::mem::replace(self, wanted.clone());
            self.retain(|toolbox, server| before.server(toolbox, server) != Some(PinMode::Enforce));
        } else if wanted.is_enforced {
            // Both enforce everything. An exception that the configuration no longer has is removed.
            self.retain(|toolbox, server| wanted.server(toolbox, server).is_some());
        } else if self.is_enforced {
            // The configuration enforces less, which lowers nothing. An exception ends if its server is enforced there.
            self.retain(|toolbox, server| wanted.server(toolbox, server) != Some(PinMode::Enforce));
        } else {
            // Neither enforces everything, so that all servers of the configuration here are enforced ones.
            for (toolbox, servers) in &wanted.servers {
                let known = self.servers.entry(toolbox.clone()).or_default();
                known.extend(servers.iter().map(|(name, mode)| (name.clone(), *mode)));
            }
        }
    }

    /// Lowers the policy for some servers, and for no others.
    pub fn lower(&mut self, servers: &[Lowered]) {
        for Lowered { place, mode } in servers {
            let toolbox = self.servers.entry(place.toolbox.to_string()).or_default();
            if self.is_enforced {
                toolbox.insert(place.server.to_string(), *mode);
            } else {
                toolbox.remove(place.server.as_str());
            }
        }
        self.servers.retain(|_, servers| !servers.is_empty());
    }

    fn server(&self, toolbox: &str, server: &str) -> Option<PinMode> {
        self.servers.get(toolbox)?.get(server).copied()
    }

    fn retain(&mut self, keep: impl Fn(&str, &str) -> bool) {
        for (toolbox, servers) in &mut self.servers {
            servers.retain(|server, _| keep(toolbox, server));
        }
        self.servers.retain(|_, servers| !servers.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(is_enforced: bool, servers: &[(&str, PinMode)]) -> PinPolicy {
        let servers: BTreeMap<String, PinMode> = servers
            .iter()
            .map(|(name, mode)| ((*name).to_owned(), *mode))
            .collect();
        let toolboxes = (!servers.is_empty()).then(|| ("dev".to_owned(), servers));
        PinPolicy {
            is_enforced,
            servers: toolboxes.into_iter().collect(),
        }
    }

    #[test]
    fn a_policy_is_raised_and_never_lowered() {
        use PinMode::{Enforce, Notice, Off};
        let rows = [
            // Stored policy, configured policy, expected result.
            (policy(false, &[]), policy(false, &[]), policy(false, &[])),
            (
                policy(false, &[]),
                policy(true, &[("a", Off)]),
                policy(true, &[("a", Off)]),
            ),
            (
                policy(false, &[("a", Enforce)]),
                policy(true, &[("a", Off), ("b", Notice)]),
                policy(true, &[("b", Notice)]),
            ),
            (
                policy(true, &[]),
                policy(true, &[("a", Off)]),
                policy(true, &[]),
            ),
            (
                policy(true, &[("a", Off)]),
                policy(true, &[]),
                policy(true, &[]),
            ),
            (policy(true, &[]), policy(false, &[]), policy(true, &[])),
            (
                policy(true, &[("a", Off), ("b", Off)]),
                policy(false, &[("a", Enforce)]),
                policy(true, &[("b", Off)]),
            ),
            (
                policy(false, &[("a", Enforce)]),
                policy(false, &[("b", Enforce)]),
                policy(false, &[("a", Enforce), ("b", Enforce)]),
            ),
        ];
        for (mut known, wanted, expected) in rows {
            let before = format!("{known:?} {wanted:?}");
            known.raise(&wanted);
            assert_eq!(known, expected, "{before}");
            known.raise(&wanted);
            assert_eq!(known, expected, "{before}: not the second time");
        }
    }
}
