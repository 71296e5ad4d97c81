//! The report of an import: a table, remarks and next steps, or JSON.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    destination::Destination,
    plan::{Addition, CandidateKind, ImportCandidate, ServerLocation},
};
use crate::{
    cli::{
        PROGRAM,
        shell::quoted,
        terminal::{Column, OutputStyle, Table, count},
    },
    clients::{Client, DiscoveredFile, ReadError, Scope},
    config::{self, Environment},
    visible::{revealed, visible},
};

/// The data of the report.
pub(super) struct ImportReport<'r> {
    pub(super) file: &'r Path,
    pub(super) searched: &'r [SearchedFile],
    pub(super) candidates: &'r [ImportCandidate],
    pub(super) additions: &'r [Addition<'r>],
    /// The files that could not be read.
    pub(super) unreadable: &'r [ReadError],
    /// True if the configuration file was written.
    pub(super) written: bool,
    /// The home directory, which is shown as `~`.
    pub(super) home: Option<&'r Path>,
}

/// A file that was read.
pub(super) struct SearchedFile {
    client: &'static Client,
    file: PathBuf,
    scope: Scope,
    servers: usize,
}

impl SearchedFile {
    pub(super) fn of(file: &DiscoveredFile) -> Self {
        Self {
            client: file.client,
            file: file.path.clone(),
            scope: file.scope,
            servers: file.servers.as_ref().map_or(0, Vec::len),
        }
    }
}

/// Formats the files that contain servers, one per line.
pub(super) fn searched_files_table(
    searched: &[SearchedFile],
    home: Option<&Path>,
    style: OutputStyle,
) -> String {
    let mut table = Table::new([Column::Text(""), Column::Text(""), Column::Text("")]);
    for it in searched.iter().filter(|it| it.servers > 0) {
        table.row([
            it.client.title.to_owned(),
            shown(&it.file, home),
            count(it.servers, "server"),
        ]);
    }
    format!("{}\n", table.render(style, ""))
}

/// Formats the servers of project files with their whole entries, so that the user can judge them. Secrets are
/// not hidden: hiding a part would let a hostile file choose what is seen.
pub(super) fn project_servers(candidates: &[ImportCandidate]) -> String {
    let mut lines =
        vec!["servers in files of this directory, as they would be imported:".to_owned()];
    for candidate in candidates {
        let (CandidateKind::New(new), Some(place)) = (&candidate.kind, candidate.places.first())
        else {
            continue;
        };
        if !new.from_project {
            continue;
        }
        let (name, file) = (revealed(&candidate.name), place.file.display().to_string());
        lines.push(format!("  {name} ({})", revealed(&file)));
        lines.extend(entry_lines(&new.entry).map(|line| format!("    {}", revealed(&line))));
    }
    lines.join("\n")
}

/// Formats an entry: its command line or URL, then one line per other member.
fn entry_lines(entry: &Value) -> impl Iterator<Item = String> {
    let text = |key: &str| entry[key].as_str();
    let arguments = entry["args"].as_array().into_iter().flatten();
    let words = text("command")
        .into_iter()
        .chain(arguments.filter_map(Value::as_str));
    let command_line: Vec<String> = words.map(word).collect();
    let first = match text("url") {
        Some(url) => url.to_owned(),
        None => command_line.join(" "),
    };
    let members = entry.as_object().into_iter().flatten();
    let others =
        members.filter(|(key, _)| !["command", "args", "url", "disabled"].contains(&key.as_str()));
    std::iter::once(first).chain(others.map(|(key, value)| format!("{key}: {value}")))
}

/// Formats a word of a command line. Words that need quotes are shown as JSON, which makes a line break visible:
/// it may end a comment of a script.
fn word(word: &str) -> String {
    if config::quoted(word) == word {
        word.to_owned()
    } else {
        Value::from(word).to_string()
    }
}

impl ImportReport<'_> {
    /// Formats the servers, one per line, with the places where they were found.
    pub(super) fn table(&self, style: OutputStyle) -> String {
        let headings = ["server", "toolbox", "what", "found in"];
        let mut table = Table::new(headings.map(Column::Text));
        for candidate in self.candidates {
            let (toolbox, name, what) = match &candidate.kind {
                CandidateKind::New(_) => {
                    let mut additions = self.additions.iter();
                    let Some(it) = additions.find(|it| std::ptr::eq(it.candidate, candidate))
                    else {
                        continue;
                    };
                    let off = if it.new.is_disabled() {
                        " (disabled)"
                    } else {
                        ""
                    };
                    let what = format!("{}{off}", it.new.identity.summary());
                    (it.toolbox.clone(), it.name.as_str(), what)
                }
                CandidateKind::Present { toolbox, name, .. } => (
                    toolbox.clone(),
                    name.as_str(),
                    "already configured".to_owned(),
                ),
                CandidateKind::Skipped => (
                    "-".to_owned(),
                    candidate.name.as_str(),
                    "not imported without --project".to_owned(),
                ),
                CandidateKind::Ourselves => (
                    "-".to_owned(),
                    candidate.name.as_str(),
                    "the workbench itself".to_owned(),
                ),
                CandidateKind::Unusable(_) => (
                    "-".to_owned(),
                    candidate.name.as_str(),
                    "cannot be imported".to_owned(),
                ),
                CandidateKind::NotAServer => continue,
            };
            table.row([
                visible(name).into_owned(),
                visible(&toolbox).into_owned(),
                visible(&what).into_owned(),
                self.places(candidate, name),
            ]);
        }
        table.render(style, "")
    }

    /// Formats the places of a server, with the name it has there if that differs.
    fn places(&self, candidate: &ImportCandidate, name: &str) -> String {
        let places = candidate.places.iter().map(|place| {
            let mut text = place.client.title.to_owned();
            if let Some(project) = &place.project {
                text.push_str(&format!(" in {}", shown(project, self.home)));
            }
            if place.name != name {
                text.push_str(&format!(" (as {})", visible(&place.name)));
            }
            text
        });
        let mut texts: Vec<String> = places.collect();
        // A client may have the server in several files.
        texts.dedup();
        texts.join(", ")
    }

    /// Formats the remarks about single servers and the outcome.
    pub(super) fn remarks(&self) -> String {
        let mut lines = Vec::new();
        for addition in self.additions {
            let remarks = addition.new.remarks.iter();
            let name = visible(&addition.name);
            lines.extend(remarks.map(|remark| format!("{name}: {remark}")));
        }
        for candidate in self.candidates {
            match &candidate.kind {
                CandidateKind::Unusable(places) => lines.push(format!(
                    "{}: the workbench does not support the value of {}; add it by hand",
                    visible(&candidate.name),
                    visible(&places.join(", "))
                )),
                CandidateKind::Present { name, remarks, .. } => {
                    let name = visible(name);
                    lines.extend(remarks.iter().map(|remark| format!("{name}: {remark}")));
                }
                _ => {}
            }
        }
        lines.push(self.outcome());
        format!("\n{}", lines.join("\n"))
    }

    fn outcome(&self) -> String {
        let found = |is: fn(&CandidateKind) -> bool| {
            self.candidates.iter().filter(|it| is(&it.kind)).count()
        };
        let file = shown(self.file, self.home);
        let added = count(self.additions.len(), "server");
        let mut text = match (self.additions.len(), self.written) {
            (0, _) => format!("nothing to add to {file}"),
            (_, true) => format!("added {added} to {file}"),
            (_, false) => format!("nothing was written; {added} would be added to {file}"),
        };
        let present = found(|it| matches!(it, CandidateKind::Present { .. }));
        if present > 0 {
            text.push_str(&format!("; {present} already configured"));
        }
        for (number, what) in [
            (
                found(|it| matches!(it, CandidateKind::Skipped)),
                "from files of this directory",
            ),
            (
                found(|it| matches!(it, CandidateKind::Ourselves)),
                "the workbench itself",
            ),
            (
                found(|it| matches!(it, CandidateKind::NotAServer)),
                "built into a client",
            ),
        ] {
            if number > 0 {
                text.push_str(&format!("; skipped: {what} ({number})"));
            }
        }
        let holds_secret = self.additions.iter().any(|it| it.new.holds_secret());
        if self.written && holds_secret && cfg!(unix) {
            text.push_str("\nit contains secrets, so only you can read it");
        }
        text
    }

    pub(super) fn next_steps(&self, environment: &Environment) -> String {
        let option = Destination::option(self.file, environment).map_or_else(String::new, |file| {
            format!(" --config {}", quoted(&file.display().to_string()))
        });
        let from_project = self.additions.iter().filter(|it| it.new.from_project);
        if !self.written && !self.additions.is_empty() {
            let project = from_project
                .map(|_| " --project")
                .next()
                .unwrap_or_default();
            return format!("\nnext: {PROGRAM}{option} import{project}, without --dry-run");
        }
        let mut text = "\nnext:".to_owned();
        let mut step = |command: &str, why: &str| {
            text.push_str(&format!("\n  {PROGRAM}{option} {command}\n      {why}"));
        };
        let is_skipped = |it: &ImportCandidate| matches!(it.kind, CandidateKind::Skipped);
        if self.candidates.iter().any(is_skipped) {
            let why = "review and import the servers of this directory too";
            step("import --project", why);
        }
        for it in from_project {
            let (toolbox, name) = (quoted(&it.toolbox), quoted(&it.name));
            let why = "if you trust this server of the directory";
            step(&visible(&format!("enable {toolbox} {name}")), why);
        }
        if !self.candidates.iter().all(is_skipped) {
            step("doctor", "start every server once and report problems");
        }
        for client in self.to_be_served() {
            step(
                &format!("install --client {} --replace", client.word()),
                &format!("replace the servers of {} with the workbench", client.title),
            );
        }
        text
    }

    /// Returns the clients that have user servers and should get the workbench.
    fn to_be_served(&self) -> Vec<&'static Client> {
        let mut clients: Vec<&'static Client> = Vec::new();
        for it in self.searched {
            let client = it.client;
            let is_wanted = it.servers > 0
                && it.scope == Scope::User
                && client.can_be_written()
                && !self.is_served(client);
            if is_wanted && !clients.iter().any(|known| known.name == client.name) {
                clients.push(client);
            }
        }
        clients
    }

    /// Returns true if a client has the workbench, and only servers that the workbench had already.
    fn is_served(&self, client: &Client) -> bool {
        let is_there = |candidate: &ImportCandidate| {
            let mut places = candidate.places.iter();
            places.any(|place| place.client.name == client.name)
        };
        let mut candidates = self.candidates.iter();
        let mut additions = self.additions.iter();
        candidates.any(|it| matches!(it.kind, CandidateKind::Ourselves) && is_there(it))
            && !additions.any(|it| is_there(it.candidate))
    }

    pub(super) fn json(&self) -> String {
        let files = self
            .searched
            .iter()
            .map(|it| json!({"client": it.client.word(), "file": it.file.to_string_lossy(), "servers": it.servers}));
        let candidates = self
            .candidates
            .iter()
            .map(|candidate| self.candidate(candidate));
        let unreadable = self.unreadable.iter().map(ToString::to_string);
        let value = json!({
            "file": self.file.to_string_lossy(),
            "written": self.written,
            "searched": files.collect::<Vec<_>>(),
            "servers": candidates.collect::<Vec<_>>(),
            "unreadable": unreadable.collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }

    fn candidate(&self, candidate: &ImportCandidate) -> Value {
        let mut additions = self.additions.iter();
        let addition = additions.find(|it| std::ptr::eq(it.candidate, candidate));
        let (status, toolbox, name) = match (&candidate.kind, addition) {
            (CandidateKind::New(_), Some(it)) => ("new", Some(&it.toolbox), Some(&it.name)),
            (CandidateKind::Skipped, _) => ("skipped", None, None),
            (CandidateKind::Present { toolbox, name, .. }, _) => {
                ("present", Some(toolbox), Some(name))
            }
            (CandidateKind::Ourselves, _) => ("workbench", None, None),
            (CandidateKind::Unusable(_), _) => ("unusable", None, None),
            (CandidateKind::NotAServer | CandidateKind::New(_), _) => ("not_a_server", None, None),
        };
        let remarks = match (&candidate.kind, addition) {
            (CandidateKind::Present { remarks, .. }, _) => remarks.as_slice(),
            (_, Some(it)) => it.new.remarks.as_slice(),
            _ => &[],
        };
        let remarks = remarks
            .iter()
            .map(|it| json!({"code": it.code(), "text": it.to_string()}));
        // Entries of the user's own files may contain secrets. Those of a project are shown, since the user has to
        // judge them.
        let from_project = addition.filter(|it| it.new.from_project);
        json!({
            "status": status,
            "toolbox": toolbox,
            "name": name,
            "disabled": addition.is_some_and(|it| it.new.is_disabled()),
            "entry": from_project.map(|it| &it.new.entry),
            "places": candidate.places.iter().map(place).collect::<Vec<_>>(),
            "remarks": remarks.collect::<Vec<_>>(),
        })
    }
}

/// Formats a path, with `~` for the home directory.
fn shown(path: &Path, home: Option<&Path>) -> String {
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let text = match below {
        Some(below) => Path::new("~").join(below).display().to_string(),
        None => path.display().to_string(),
    };
    visible(&text).into_owned()
}

fn place(place: &ServerLocation) -> Value {
    json!({
        "client": place.client.word(),
        "file": place.file.to_string_lossy(),
        "project": place.project.as_deref().map(Path::to_string_lossy),
        "name": place.name,
    })
}
