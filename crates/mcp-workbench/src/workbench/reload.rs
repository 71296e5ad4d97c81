//! Applies a changed configuration and touches only the parts that differ.

use std::{fmt, sync::Arc};

use ident::{ServerIdentifier, ServerName, ToolboxName};
use indexmap::IndexMap;
use thiserror::Error;

use super::{Snapshot, Workbench, following::follow, sharing::users};
use crate::{
    config::{Config, MetaTool, ToolMode},
    downstream::{ServerFamily, ToolList},
    toolbox::{ChangedFiles, Toolbox, ToolboxChanges},
    visible::visible,
};

/// The reason why a configuration cannot be applied while the workbench runs.
#[derive(Debug, Error)]
pub(crate) enum ApplyConfigError {
    /// The toolbox of native mode was removed.
    #[error(
        "toolbox `{0}` is served in native mode but is no longer in the file\n  \
         hint: put it back, or restart the workbench with another toolbox"
    )]
    NativeToolboxGone(ToolboxName),
}

/// The changes in a new configuration.
#[derive(Debug, Default)]
pub(crate) struct ConfigChanges {
    added: Vec<ToolboxName>,
    removed: Vec<ToolboxName>,
    /// The changed toolboxes with their changes.
    changed: Vec<(ToolboxName, ToolboxChanges)>,
    /// True if the order of the remaining toolboxes changed.
    is_reordered: bool,
    /// True if the enabled meta-tools or their definitions changed.
    has_new_meta_tools: bool,
    /// The changed keys that take effect at the next start.
    pub needs_restart: Vec<&'static str>,
}

impl ConfigChanges {
    /// Returns whether the toolboxes have the same names in the same order.
    fn has_same_names(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && !self.is_reordered
    }
}

/// The text for the log.
impl fmt::Display for ConfigChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.added.iter();
        let added = added.map(|it| format!("added toolbox '{}'", visible(it.as_str())));
        let removed = self.removed.iter();
        let removed = removed.map(|it| format!("removed toolbox '{}'", visible(it.as_str())));
        let changed = self.changed.iter().map(|(name, changes_in_toolbox)| {
            let name = visible(name.as_str());
            format!("in toolbox '{name}': {changes_in_toolbox}")
        });
        let meta_tools = self
            .has_new_meta_tools
            .then(|| "meta-tools changed".to_owned());
        let parts: Vec<String> = added
            .chain(removed)
            .chain(changed)
            .chain(meta_tools)
            .collect();
        match (&parts[..], self.is_reordered) {
            ([], false) => f.write_str("no toolbox changed"),
            ([], true) => f.write_str("the order of toolboxes changed"),
            (parts, _) => f.write_str(&parts.join("; ")),
        }
    }
}

/// Applies a configuration to a workbench, and to those of its users.
pub(super) fn reload_with_users(
    workbench: &Workbench,
    config: Config,
    files: &ChangedFiles,
) -> Result<ConfigChanges, ApplyConfigError> {
    let users = users(workbench);
    // A configuration is large, and most workbenches have no users.
    let of_users = (!users.is_empty()).then(|| config.clone());
    let changes = reload(workbench, config, files)?;
    // `cycle` repeats the one copy for every user.
    for (user, config) in users.iter().zip(of_users.iter().cycle()) {
        reload_with_users(user, config.clone(), files)?;
    }
    Ok(changes)
}

fn reload(
    workbench: &Workbench,
    mut config: Config,
    files: &ChangedFiles,
) -> Result<ConfigChanges, ApplyConfigError> {
    let before = Arc::clone(&workbench.now.borrow());
    // Checked first, so that a refused configuration changes nothing.
    if let ToolMode::Native(name) = &before.config.tool_mode
        && !config.toolboxes.contains_key(name)
    {
        return Err(ApplyConfigError::NativeToolboxGone(name.clone()));
    }
    let mut changes = ConfigChanges {
        // Native mode has no meta-tools.
        has_new_meta_tools: workbench.native.is_none()
            && (before.config.meta_tools != config.meta_tools
                || before.config.open_detail != config.open_detail
                || before.config.select != config.select),
        needs_restart: restore_fixed_settings(&before.config, &mut config),
        ..ConfigChanges::default()
    };
    // Taken now, because toolboxes that remain are changed in place.
    let shown = shown_tools(workbench, &before);
    let shown_apps = shown_apps(&before);
    // Before the toolboxes change: servers that they create use the new rules.
    workbench.pool.adapt(&config);
    workbench.observation.renew(&config);
    let now = Arc::new(next(workbench, &before, config, files, &mut changes));
    workbench.now.send_replace(Arc::clone(&now));
    workbench.results.adapt(&now.config);
    workbench.filters.adapt(&now.config);
    if !now.config.meta_tools.contains(&MetaTool::RunCode) {
        // Workers that wait for scripts are processes, which nobody needs now.
        workbench.scripts.cool_down();
    }
    workbench.links.retain_servers(|server| {
        let toolbox = now.config.toolboxes.get(&server.toolbox);
        toolbox.is_some_and(|toolbox| toolbox.servers.contains_key(&server.server))
    });
    // Servers whose entries changed are new ones, whose lists have to be watched too.
    for toolbox in now.toolboxes.values() {
        if toolbox.opened().is_some() {
            follow(workbench, toolbox);
        }
    }
    announce(workbench, &changes, shown != shown_tools(workbench, &now));
    if workbench.native.is_none() && shown_apps != self::shown_apps(&now) {
        workbench.apps_changed.send_modify(|changes| *changes += 1);
    }
    Ok(changes)
}

/// Returns the next snapshot. Toolboxes that remain keep their identity.
fn next(
    workbench: &Workbench,
    before: &Snapshot,
    config: Config,
    files: &ChangedFiles,
    changes: &mut ConfigChanges,
) -> Snapshot {
    let mut toolboxes = IndexMap::new();
    for (name, toolbox) in &config.toolboxes {
        let next = if let Some(known) = before.toolboxes.get(name) {
            let changes_in_toolbox = known.reload(toolbox, files);
            if !changes_in_toolbox.is_empty() {
                changes.changed.push((name.clone(), changes_in_toolbox));
            }
            Arc::clone(known)
        } else {
            changes.added.push(name.clone());
            Arc::new(Toolbox::new(
                Arc::clone(toolbox),
                Arc::clone(&workbench.pool),
            ))
        };
        toolboxes.insert(name.clone(), next);
    }
    // Their servers end when the last handle is dropped, after the calls that still run.
    let gone = before
        .toolboxes
        .keys()
        .filter(|name| !toolboxes.contains_key(*name));
    changes.removed = gone.cloned().collect();
    let stayed = |names: &IndexMap<ToolboxName, Arc<Toolbox>>| -> Vec<ToolboxName> {
        let both = |name: &&ToolboxName| {
            before.toolboxes.contains_key(*name) && toolboxes.contains_key(*name)
        };
        names.keys().filter(both).cloned().collect()
    };
    changes.is_reordered = stayed(&before.toolboxes) != stayed(&toolboxes);
    Snapshot {
        config: Arc::new(config),
        toolboxes,
    }
}

/// Returns the tools of open toolboxes that `tools/list` contains.
fn shown_tools(workbench: &Workbench, snapshot: &Snapshot) -> Vec<ShownTools> {
    if !workbench.is_dynamic() {
        return Vec::new();
    }
    listed_tools(snapshot, |_| true)
}

/// Returns the tools of open toolboxes that `tools/list` contains for a client with MCP Apps.
fn shown_apps(snapshot: &Snapshot) -> Vec<ShownTools> {
    listed_tools(snapshot, ToolList::has_ui)
}

fn listed_tools(snapshot: &Snapshot, is_shown: impl Fn(&ToolList) -> bool) -> Vec<ShownTools> {
    let toolboxes = snapshot.toolboxes.values();
    let lists = toolboxes.map(|toolbox| {
        let catalogue = toolbox.catalogue();
        let lists = catalogue.lists().iter().filter(|(_, list)| is_shown(list));
        (toolbox.name().clone(), lists.cloned().collect())
    });
    lists.collect()
}

/// Notifies all listeners of the changes that concern them.
fn announce(workbench: &Workbench, changes: &ConfigChanges, shows_new_tools: bool) {
    let mut native_differs = false;
    for (toolbox, changes_in_toolbox) in &changes.changed {
        let is_native = workbench
            .native
            .as_ref()
            .is_some_and(|it| it.toolbox().name() == toolbox);
        if is_native {
            for server in changes_in_toolbox.servers() {
                native_differs = true;
                let server = ServerIdentifier {
                    toolbox: toolbox.clone(),
                    server: server.clone(),
                };
                let families = [ServerFamily::Prompts, ServerFamily::Resources];
                workbench.pool.announce(&server, &families);
            }
        }
    }
    let definitions_differ =
        workbench.native.is_none() && (changes.has_new_meta_tools || !changes.has_same_names());
    if definitions_differ {
        workbench
            .definitions_changed
            .send_modify(|changes| *changes += 1);
    }
    if definitions_differ || native_differs || shows_new_tools {
        workbench.tools_changed.send_modify(|changes| *changes += 1);
    }
}

/// A toolbox and the lists of its servers.
type ShownTools = (ToolboxName, Vec<(ServerName, Arc<ToolList>)>);

/// Restores settings that cannot change while the workbench runs; returns the keys that have different values in the
/// file.
fn restore_fixed_settings(before: &Config, config: &mut Config) -> Vec<&'static str> {
    let mut keys = Vec::new();
    if config.tool_mode != before.tool_mode {
        config.tool_mode = before.tool_mode.clone();
        keys.push("toolMode");
    }
    // A registered name never changes, and the limit decides where it is cut.
    if config.tool_name_limit != before.tool_name_limit {
        config.tool_name_limit = before.tool_name_limit;
        keys.push("toolNameLimit");
    }
    keys
}
