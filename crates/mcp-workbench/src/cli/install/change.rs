//! The change that an install makes to a client's file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{InstallError, target::TargetFile};
use crate::{
    cli::PROGRAM,
    clients::{
        ClientEditError, ClientText, DiscoveredServer, Identity, OwnEntry, OwnServer, ParsedEntry,
        ReadError, Scope, identity, servers_in,
    },
    visible::visible,
};

/// A change to a client's file.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) text: String,
    /// True if the text differs from the file.
    differs: bool,
    /// True if our entry is added or changed.
    sets_ours: bool,
    /// The removed servers, as they are shown.
    removed: Vec<String>,
    /// Servers that the workbench also has, and that stay.
    duplicates: Vec<String>,
    /// Servers of which the workbench allows more tools than the client.
    looser: Vec<String>,
    /// Servers that only the client has.
    others: Vec<String>,
    /// Entries that only the client can use, such as its extensions.
    foreign: Vec<String>,
    /// Servers that stay because they are disabled in the workbench.
    off: Vec<String>,
    /// Other entries that start the workbench.
    also_ours: Vec<String>,
}

/// The relation between a server of the client and the workbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Ours,
    /// The workbench has the same server.
    Duplicate,
    /// The workbench has the same server, disabled.
    Off,
    /// Only the client has it.
    Other,
    /// Only the client can use it: it has neither a command nor a URL.
    Foreign,
}

impl Change {
    pub(super) fn of(
        target: &TargetFile,
        own: &OwnEntry<'_>,
        known: &[OwnServer],
        replace: bool,
    ) -> Result<Self, InstallError> {
        let before = target.text.as_deref().unwrap_or_default();
        let servers = servers(target, before)?;
        let value = own.value(target.client);
        let mut change = Self::new();
        let mut gone: Vec<(String, Option<PathBuf>)> = Vec::new();
        for server in servers {
            let relation = relation(&server, known, own.program);
            let section = section(target, &server);
            // Our name at the top of the file: either our own entry, which is updated, or somebody else's,
            // which is never replaced.
            if server.name == own.name && section.is_none() {
                if relation != Relation::Ours {
                    return Err(InstallError::NameTaken {
                        name: server.name,
                        file: target.path.clone(),
                    });
                }
                change.sets_ours = Value::Object(server.entry) != value;
                continue;
            }
            if relation == Relation::Duplicate && is_looser(&server, known) {
                change.looser.push(server.name.clone());
            }
            match relation {
                Relation::Ours => change.also_ours.push(server.name),
                Relation::Other => change.others.push(server.name),
                Relation::Foreign => change.foreign.push(server.name),
                Relation::Off => change.off.push(server.name),
                Relation::Duplicate if replace => {
                    change.removed.push(shown(&server.name, section.as_deref()));
                    gone.push((server.name, section));
                }
                Relation::Duplicate => change.duplicates.push(server.name),
            }
        }
        let ours = change.sets_ours.then_some((own.name, &value));
        change.text = edited(target, before, ours, &gone)?;
        change.differs = change.text != before;
        Ok(change)
    }

    /// Creates a change that only adds our entry.
    fn new() -> Self {
        Self {
            text: String::new(),
            differs: false,
            sets_ours: true,
            removed: Vec::new(),
            duplicates: Vec::new(),
            looser: Vec::new(),
            others: Vec::new(),
            foreign: Vec::new(),
            off: Vec::new(),
            also_ours: Vec::new(),
        }
    }

    /// Returns true if the file does not change.
    pub(super) fn is_nothing(&self) -> bool {
        !self.differs
    }

    /// Returns true if servers are removed from the file.
    pub(super) fn replaces(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Formats the change: our entry and the names of removed servers. Their entries are not shown, because they
    /// may contain secrets.
    pub(super) fn preview(&self, target: &TargetFile, own: &OwnEntry<'_>) -> String {
        let new = if target.text.is_none() { " (new)" } else { "" };
        let key = target.client.key.join(".");
        let mut text = format!("{}{new}, {key}:\n", target.path.display());
        if self.sets_ours {
            for line in own.lines(target.client) {
                text.push_str(&format!("+ {}\n", visible(&line)));
            }
        }
        for name in &self.removed {
            text.push_str(&format!("- {name}\n"));
        }
        text
    }

    /// Returns remarks about the other servers in the file.
    pub(super) fn remarks(&self, target: &TargetFile, replace: bool) -> Vec<String> {
        let client = target.client;
        let listed = |names: &[String]| {
            let names: Vec<_> = names.iter().map(|name| visible(name)).collect();
            names.join(", ")
        };
        let mut lines = Vec::new();
        if !self.duplicates.is_empty() && !replace {
            lines.push(format!(
                "the workbench also has these: {}; --replace removes them from {}",
                listed(&self.duplicates),
                client.title
            ));
        }
        if !self.looser.is_empty() {
            lines.push(format!(
                "{} allows fewer tools of these than the workbench: {}; copy their `includeTools` and `disabledTools` to \
                 the configuration to keep that",
                client.title,
                listed(&self.looser)
            ));
        }
        if !self.others.is_empty() {
            lines.push(format!(
                "these stay in {}: {}; `{PROGRAM} import --from {}` imports them",
                client.title,
                listed(&self.others),
                client.word()
            ));
        }
        if !self.foreign.is_empty() {
            lines.push(format!(
                "these stay in {}, because only it can start them: {}",
                client.title,
                listed(&self.foreign)
            ));
        }
        if !self.off.is_empty() {
            lines.push(format!(
                "these stay in {}, because they are disabled in the workbench: {}; \
                 `{PROGRAM} enable` changes that",
                client.title,
                listed(&self.off)
            ));
        }
        if !self.also_ours.is_empty() {
            lines.push(format!(
                "these start a workbench as well: {}; one is enough",
                listed(&self.also_ours)
            ));
        }
        lines
    }
}

/// Formats the name of a server, with its project.
pub(super) fn shown(name: &str, section: Option<&Path>) -> String {
    match section {
        Some(project) => {
            format!(
                "{} (in {})",
                visible(name),
                visible(&project.to_string_lossy())
            )
        }
        None => visible(name).into_owned(),
    }
}

/// Parses the servers of a client's file.
pub(super) fn servers(
    target: &TargetFile,
    text: &str,
) -> Result<Vec<DiscoveredServer>, InstallError> {
    let servers = servers_in(target.client, text, target.scope, &target.directory);
    servers.map_err(|error| {
        let file = target.path.clone();
        ReadError::Syntax { file, error }.into()
    })
}

/// Returns true if an entry starts the workbench.
pub(super) fn is_ours(server: &DiscoveredServer, program: &str) -> bool {
    what(server).is_some_and(|it| it.is_ours(Path::new(program)))
}

/// Returns the identity of an entry, if it is a server.
pub(super) fn what(server: &DiscoveredServer) -> Option<Identity> {
    match &server.parsed {
        ParsedEntry::Server(imported) => identity(&imported.entry),
        ParsedEntry::NotAServer => None,
    }
}

fn relation(server: &DiscoveredServer, known: &[OwnServer], program: &str) -> Relation {
    if is_ours(server, program) {
        return Relation::Ours;
    }
    let ParsedEntry::Server(imported) = &server.parsed else {
        return Relation::Foreign;
    };
    let identity = identity(&imported.entry);
    let disabled = imported.entry.get("disabled").is_some();
    // `min` prefers an enabled entry for the workbench: `false` sorts first.
    let same = known.iter().filter(|it| it.identity == identity);
    match (identity.is_some(), same.map(|it| it.disabled).min()) {
        // A disabled entry of the client is a duplicate even if ours is disabled too.
        (true, Some(off)) if disabled || !off => Relation::Duplicate,
        (true, Some(_)) => Relation::Off,
        (false, _) => Relation::Foreign,
        (true, None) => Relation::Other,
    }
}

/// Returns true if the workbench allows more tools of a server than the client's entry.
fn is_looser(server: &DiscoveredServer, known: &[OwnServer]) -> bool {
    let ParsedEntry::Server(imported) = &server.parsed else {
        return false;
    };
    let identity = identity(&imported.entry);
    let mut same = known.iter().filter(|it| it.identity == identity);
    same.any(|it| !it.disabled && it.allows_more_than(&imported.entry))
}

/// Returns the project whose section contains a server, if it is not at the top.
pub(super) fn section(target: &TargetFile, server: &DiscoveredServer) -> Option<PathBuf> {
    match target.scope {
        Scope::User => server.project.clone(),
        Scope::Project => None,
    }
}

/// Returns the text with our entry and without the removed servers.
fn edited(
    target: &TargetFile,
    before: &str,
    ours: Option<(&str, &Value)>,
    gone: &[(String, Option<PathBuf>)],
) -> Result<String, InstallError> {
    if ours.is_none() && gone.is_empty() {
        return Ok(before.to_owned());
    }
    let edit = || -> Result<String, ClientEditError> {
        let mut text = ClientText::parse(target.client, before)?;
        for (name, section) in gone {
            text.remove(name, section.as_deref())?;
        }
        if let Some((name, entry)) = ours {
            text.set(name, None, entry)?;
        }
        Ok(text.finish())
    };
    edit().map_err(|error| InstallError::Edit {
        file: target.path.clone(),
        error: error.into(),
    })
}
