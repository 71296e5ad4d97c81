//! The plan of an import: the servers that were found, which of them are new, and their toolboxes and names.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::topic::{GENERAL, Topic};
use crate::{
    clients::{
        Client, DiscoveredFile, Identity, OwnServer, ParsedEntry, Remark, Scope, identity,
        restrict_to_both,
    },
    config::{Environment, parse},
};

/// A server with all places where it was found.
#[derive(Debug, PartialEq)]
pub(super) struct ImportCandidate {
    /// The first name that it was found under.
    pub(super) name: String,
    pub(super) places: Vec<ServerLocation>,
    pub(super) kind: CandidateKind,
}

/// The location of a server in a client.
#[derive(Debug, Clone)]
pub(super) struct ServerLocation {
    pub(super) client: &'static Client,
    pub(super) file: PathBuf,
    /// The directory that the server is for, if any.
    pub(super) project: Option<PathBuf>,
    pub(super) name: String,
}

impl PartialEq for ServerLocation {
    fn eq(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (
                it.client.name,
                it.file.clone(),
                it.project.clone(),
                it.name.clone(),
            )
        };
        key(self) == key(other)
    }
}

/// The relation of a server to our configuration.
#[derive(Debug, PartialEq)]
pub(super) enum CandidateKind {
    /// It is not in the configuration.
    New(NewServer),
    /// It is new, and comes from a project file that the user has not agreed to.
    Skipped,
    Present {
        toolbox: String,
        name: String,
        identity: Identity,
        remarks: Vec<Remark>,
    },
    Ourselves,
    /// The entry is not a server that others can use.
    NotAServer,
    /// The entry has values at these paths that our configuration does not support.
    Unusable(Vec<String>),
}

#[derive(Debug, PartialEq)]
pub(super) struct NewServer {
    pub(super) identity: Identity,
    pub(super) entry: Value,
    pub(super) remarks: Vec<Remark>,
    /// The topic, once classified.
    pub(super) topic: &'static Topic,
    /// True for an entry of a file in the current directory, which may be the work of somebody else.
    pub(super) from_project: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Grouping {
    /// One toolbox for each topic.
    ByTopic {
        /// Topics with different toolbox names.
        renamed: Vec<(&'static str, String)>,
    },
    /// One toolbox for each client.
    ByClient,
    One(String),
}

/// A new server with its toolbox and name.
#[derive(Debug)]
pub(super) struct Addition<'f> {
    pub(super) toolbox: String,
    pub(super) name: String,
    pub(super) candidate: &'f ImportCandidate,
    pub(super) new: &'f NewServer,
}

/// Merges the servers of all files: identical servers become one, in the order of the files.
pub(super) fn gather(
    files: Vec<DiscoveredFile>,
    known: &[OwnServer],
    program: &Path,
) -> Vec<ImportCandidate> {
    let mut candidates: Vec<ImportCandidate> = Vec::new();
    for mut file in files {
        let servers = std::mem::replace(&mut file.servers, Ok(Vec::new()));
        for server in servers.into_iter().flatten() {
            let place = ServerLocation {
                client: file.client,
                file: file.path.clone(),
                project: server.project.clone(),
                name: server.name.clone(),
            };
            let kind = kind_of(server.parsed, &file, known, program);
            add(&mut candidates, place, kind);
        }
    }
    candidates
}

fn add(candidates: &mut Vec<ImportCandidate>, place: ServerLocation, kind: CandidateKind) {
    if let Some(identity) = kind.identity() {
        let mut same = candidates.iter_mut();
        if let Some(same) = same.find(|it| it.kind.identity() == Some(identity)) {
            same.join(place, kind);
            return;
        }
    }
    candidates.push(ImportCandidate {
        name: place.name.clone(),
        places: vec![place],
        kind,
    });
}

fn kind_of(
    parsed: ParsedEntry,
    file: &DiscoveredFile,
    known: &[OwnServer],
    program: &Path,
) -> CandidateKind {
    let ParsedEntry::Server(imported) = parsed else {
        return CandidateKind::NotAServer;
    };
    // Entries without a command or URL cannot be compared or started.
    let Some(identity) = identity(&imported.entry) else {
        return CandidateKind::NotAServer;
    };
    if identity.is_ours(program) {
        return CandidateKind::Ourselves;
    }
    let mut known = known.iter();
    if let Some(present) = known.find(|it| it.identity.as_ref() == Some(&identity)) {
        // The restrictions of a project are not the user's.
        let is_stricter = file.scope == Scope::User && present.allows_more_than(&imported.entry);
        let client = file.client.title;
        return CandidateKind::Present {
            toolbox: present.toolbox.clone(),
            name: present.name.clone(),
            identity,
            remarks: Vec::from_iter(is_stricter.then_some(Remark::FewerToolsIn { client })),
        };
    }
    let wrong = wrong_places(&imported.entry);
    if !wrong.is_empty() {
        return CandidateKind::Unusable(wrong);
    }
    let mut new = NewServer {
        identity,
        entry: imported.entry,
        remarks: imported.remarks,
        topic: GENERAL,
        from_project: file.scope == Scope::Project,
    };
    if new.from_project {
        new.restrict();
    }
    CandidateKind::New(new)
}

/// Skips the new servers of project files.
pub(super) fn skip_projects(candidates: &mut [ImportCandidate]) {
    for candidate in candidates.iter_mut().filter(|it| it.is_from_project()) {
        candidate.kind = CandidateKind::Skipped;
    }
}

/// Returns the paths of unsupported values in an entry. The values may be secrets, so they are not returned.
fn wrong_places(entry: &Value) -> Vec<String> {
    let config = json!({"toolboxes": {"t": {"description": "d", "mcpServers": {"s": entry}}}});
    // Unset variables are no problem here: the check is about the form of the entry.
    let nothing_set = Environment::new([], "/".into(), None);
    let Err(problems) = parse(&config.to_string(), Path::new("entry"), &nothing_set) else {
        return Vec::new();
    };
    let place = |path: &str| {
        let below = path.strip_prefix("toolboxes.t.mcpServers.s");
        below.unwrap_or(path).trim_start_matches('.').to_owned()
    };
    problems.iter().map(|it| place(&it.place.path)).collect()
}

/// Assigns a toolbox to every new server, and a name that is free in it: its own, or with the client's appended.
/// `known` are the servers of the configuration.
pub(super) fn assign<'f>(
    candidates: &'f [ImportCandidate],
    grouping: &Grouping,
    known: &[OwnServer],
) -> Vec<Addition<'f>> {
    let mut additions: Vec<Addition<'f>> = Vec::new();
    for candidate in candidates {
        let (CandidateKind::New(new), Some(first)) = (&candidate.kind, candidate.places.first())
        else {
            continue;
        };
        let client = first.client.word();
        let toolbox = match grouping {
            Grouping::ByTopic { renamed } => {
                let topic = new.topic.name;
                let name = renamed.iter().find(|(known, _)| *known == topic);
                name.map_or_else(|| topic.to_owned(), |(_, name)| name.clone())
            }
            Grouping::ByClient => client.clone(),
            Grouping::One(name) => name.clone(),
        };
        let own = match candidate.name.trim() {
            "" => &client,
            _ => &candidate.name,
        };
        // The client's name tells two servers with one name apart better than a number.
        let numbered = (2..).map(|number| format!("{own}-{client}-{number}"));
        let mut names = [own.clone(), format!("{own}-{client}")]
            .into_iter()
            .chain(numbered);
        let name = names.find(|name| {
            let (mut added, mut known) = (additions.iter(), known.iter());
            !added.any(|it| it.toolbox == toolbox && it.name == *name)
                && !known.any(|it| it.toolbox == toolbox && it.name == *name)
        });
        additions.push(Addition {
            toolbox,
            // Never needed: the numbers do not end, so that one of the names is free.
            name: name.unwrap_or_else(|| own.clone()),
            candidate,
            new,
        });
    }
    additions
}

impl ImportCandidate {
    /// Returns true if it is new and comes from a project file.
    pub(super) fn is_from_project(&self) -> bool {
        matches!(&self.kind, CandidateKind::New(new) if new.from_project)
    }

    /// Adds a place of the same server. The user's own entry wins over a project's, and then an enabled entry
    /// over a disabled one. Of two tool restrictions the stricter one wins. A project's restrictions do not count
    /// beside the user's own entry, because the user may not have agreed to the project file.
    fn join(&mut self, place: ServerLocation, kind: CandidateKind) {
        let (one, mut other) = match (&mut self.kind, kind) {
            (CandidateKind::New(one), CandidateKind::New(other)) => (one, other),
            (
                CandidateKind::Present { remarks, .. },
                CandidateKind::Present { remarks: more, .. },
            ) => {
                remarks.extend(more);
                self.places.push(place);
                return;
            }
            _ => {
                self.places.push(place);
                return;
            }
        };
        // The user's own entry replaces the project's, which the user may never have seen.
        if one.from_project && !other.from_project {
            *one = other;
            self.name.clone_from(&place.name);
            self.places.insert(0, place);
            return;
        }
        if one.from_project == other.from_project {
            if one.is_disabled() && !other.is_disabled() {
                std::mem::swap(one, &mut other);
            }
            one.restrict_tools(&other);
        }
        self.places.push(place);
    }
}

impl CandidateKind {
    fn identity(&self) -> Option<&Identity> {
        match self {
            Self::New(NewServer { identity, .. }) | Self::Present { identity, .. } => {
                Some(identity)
            }
            Self::Skipped | Self::Ourselves | Self::NotAServer | Self::Unusable(_) => None,
        }
    }
}

impl NewServer {
    /// Returns true if the entry contains a literal secret.
    pub(super) fn holds_secret(&self) -> bool {
        let mut remarks = self.remarks.iter();
        remarks.any(|it| matches!(it, Remark::LiteralSecret { .. }))
    }

    /// Returns true if the entry is disabled.
    pub(super) fn is_disabled(&self) -> bool {
        // An imported entry has the key only if it is true.
        self.entry.get("disabled").is_some()
    }

    /// Applies the tool restrictions of another entry for the same server.
    fn restrict_tools(&mut self, other: &Self) {
        let Some(entry) = self.entry.as_object_mut() else {
            return;
        };
        let differ = restrict_to_both(entry, &other.entry);
        if differ && !self.remarks.contains(&Remark::StricterTools) {
            self.remarks.push(Remark::StricterTools);
        }
    }

    /// Disables an entry of a project, and removes the variables that it wants to inherit.
    fn restrict(&mut self) {
        self.remarks.push(Remark::FromProject);
        let Some(entry) = self.entry.as_object_mut() else {
            return;
        };
        entry.insert("disabled".to_owned(), true.into());
        if let Some(inherited) = entry.remove("inheritEnv") {
            let names = inherited
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned);
            self.remarks.push(Remark::NotInherited {
                variables: names.collect(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
