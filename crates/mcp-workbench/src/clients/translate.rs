//! Translates a client's entry to an entry of our configuration, with remarks.

mod oauth;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{
    client::{Client, ClientName},
    fields::Fields,
    interpolate::{self, ReferenceContext, TranslatedText},
    read::ClientEntry,
    remark::{Remark, ValueSource},
};
use crate::config::{escape_references, literal_secrets};

/// The result of reading a client's entry.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedEntry {
    Server(ImportedEntry),
    /// An entry that cannot be started or reached: built into the client, or of an unknown kind.
    NotAServer,
}

/// A server as an entry of our configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedEntry {
    pub entry: Value,
    pub remarks: Vec<Remark>,
}

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Program,
    Remote { old_transport: bool },
}

/// Translates an entry of a client into an entry of the workbench.
pub(super) fn translate(client: &Client, found: &ClientEntry) -> ParsedEntry {
    let from = ReferenceContext {
        dialect: client.interpolation,
        project: found.project.as_deref(),
    };
    translate_from(client, Some(from), found)
}

/// Reads an entry of our own file, whose references are ours already. `client` decides how a missing `type` is read.
pub(super) fn translate_own(client: &Client, found: &ClientEntry) -> ParsedEntry {
    translate_from(client, None, found)
}

fn translate_from(
    client: &Client,
    from: Option<ReferenceContext<'_>>,
    found: &ClientEntry,
) -> ParsedEntry {
    let fields = Fields(&found.entry);
    let Some(kind) = kind(client, fields) else {
        return ParsedEntry::NotAServer;
    };
    let mut translation = Translation {
        from,
        entry: Map::new(),
        remarks: Vec::new(),
    };
    match kind {
        EntryKind::Program => translation.program(fields),
        EntryKind::Remote { old_transport } => translation.remote(fields, old_transport),
    }
    translation.filters(fields);
    ParsedEntry::Server(translation.finish(fields.is_disabled()))
}

/// Returns the kind of an entry: the declared one, or else the one that its keys imply. `None` if it is unknown.
fn kind(client: &Client, fields: Fields<'_>) -> Option<EntryKind> {
    let url = fields.url().map(|(_, key)| key);
    let said = fields.text(&["type", "transport", "transportType"]);
    let folded: Option<String> = said.map(|word| {
        // `streamable-http`, `streamableHttp` and `streamable_http` are the same.
        let letters = word.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|it| it.to_ascii_lowercase()).collect()
    });
    let program = fields.words().is_some();
    match folded.as_deref() {
        Some("stdio" | "local") => program.then_some(EntryKind::Program),
        Some("sse" | "httpsse") => url.map(|_| EntryKind::Remote {
            old_transport: true,
        }),
        Some("http" | "https" | "streamablehttp" | "httpstream" | "streamable" | "remote") => url
            .map(|_| EntryKind::Remote {
                old_transport: false,
            }),
        Some(_) => None,
        None if program => Some(EntryKind::Program),
        None => url.map(|key| EntryKind::Remote {
            // Gemini reads `url` as SSE, and `httpUrl` as streamable HTTP.
            old_transport: client.name == ClientName::Gemini && key == "url",
        }),
    }
}

/// An entry in progress.
struct Translation<'a> {
    /// The context of a client's references; `None` for an entry of our own file.
    from: Option<ReferenceContext<'a>>,
    entry: Map<String, Value>,
    remarks: Vec<Remark>,
}

impl<'a> Translation<'a> {
    /// Returns the directory that the entry is for.
    fn project(&self) -> Option<&'a Path> {
        self.from.and_then(|from| from.project)
    }

    fn program(&mut self, fields: Fields<'_>) {
        let words = fields.words().unwrap_or_default();
        let [command, arguments @ ..] = words.as_slice() else {
            return;
        };
        let text = self.text(command, "command");
        let text = self.path(&text, is_bare(command));
        self.entry.insert("command".into(), text.into());
        let mut translated = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            let key = format!("args[{number}]");
            translated.push(Value::from(self.text(argument, &key)));
        }
        if !translated.is_empty() {
            self.entry.insert("args".into(), translated.into());
        }
        self.environment(fields);
        self.directories(fields, arguments);
    }

    fn environment(&mut self, fields: Fields<'_>) {
        let mut variables = fields.map(&["env", "environment", "envs"]);
        if let Some(command) = fields.inner("command") {
            variables.extend(Fields(command.0).map(&["env"]));
        }
        let mut env = self.map("env", &variables);
        // The values of these variables are in the keyring of Goose.
        for name in fields.names("env_keys") {
            let text = self.variable(name, &format!("env.{name}"));
            env.insert(name.to_owned(), text.into());
            self.remark(Remark::SetVariable {
                variable: name.to_owned(),
                source: ValueSource::SecretStore,
            });
        }
        self.insert_map("env", env);
        // Codex passes these variables on from its own environment.
        let inherited = literals(fields.names("env_vars"));
        if !inherited.is_empty() {
            self.entry.insert("inheritEnv".into(), inherited.into());
        }
    }

    /// Sets the working directory and `envFile`. Relative paths are relative to the project.
    fn directories(&mut self, fields: Fields<'_>, arguments: &[std::borrow::Cow<'_, str>]) {
        for (key, spellings) in [
            ("cwd", ["cwd", "cwd"]),
            ("envFile", ["envFile", "env_file"]),
        ] {
            if let Some(text) = fields.text(&spellings) {
                let text = self.text(text, key);
                let text = self.path(&text, false);
                self.entry.insert(key.into(), text.into());
            }
        }
        // Clients start servers in the project folder. An argument that names a file there needs the same
        // working directory here.
        let Some(project) = self.project() else {
            return;
        };
        let names_a_file = |word: &str| {
            let path = Path::new(word);
            !word.starts_with('-') && path.is_relative() && project.join(path).exists()
        };
        let relative = arguments
            .iter()
            .any(|word| !word.is_empty() && names_a_file(word));
        if relative && !self.entry.contains_key("cwd") {
            let directory = project.to_string_lossy().into_owned();
            let text = escape_references(&directory);
            self.entry.insert("cwd".into(), text.into());
            self.remark(Remark::WorksIn { directory });
        }
    }

    fn remote(&mut self, fields: Fields<'_>, old_transport: bool) {
        if old_transport {
            self.entry.insert("type".into(), "sse".into());
        }
        let url = fields.url().map(|(url, _)| url).unwrap_or_default();
        let text = self.text(url, "url");
        self.entry.insert("url".into(), text.into());
        let mut given = fields.map(&["headers", "http_headers"]);
        for around in ["requestOptions", "requestInit"] {
            given.extend(
                fields
                    .inner(around)
                    .map(|it| it.map(&["headers"]))
                    .unwrap_or_default(),
            );
        }
        let mut headers = self.map("headers", &given);
        for (header, variable) in fields.map(&["env_http_headers"]) {
            let text = self.variable(&variable, &format!("headers.{header}"));
            headers.insert(header.to_owned(), text.into());
        }
        if let Some(variable) = fields.text(&["bearer_token_env_var"]) {
            let text = self.variable(variable, "headers.Authorization");
            headers.insert("Authorization".into(), format!("Bearer {text}").into());
        }
        let signs_in = ["oauth", "auth", "authProviderType", "headersHelper"];
        // A header with credentials makes a sign-in unnecessary.
        if headers.is_empty()
            && fields
                .first(&signs_in)
                .is_some_and(|it| *it != json!(false))
        {
            self.remark(Remark::SignsIn);
        }
        self.insert_map("headers", headers);
        self.oauth(fields);
    }

    fn filters(&mut self, fields: Fields<'_>) {
        let lists: [(&str, &[&str]); 3] = [
            (
                "includeTools",
                &[
                    "includeTools",
                    "enabledTools",
                    "enabled_tools",
                    "available_tools",
                    "tools",
                ],
            ),
            ("excludeTools", &["excludeTools"]),
            ("disabledTools", &["disabledTools", "disabled_tools"]),
        ];
        for (key, spellings) in lists {
            let names = fields.texts(spellings);
            // An empty list or `*` is taken as no restriction.
            if !names.is_empty() && !names.iter().any(|name| name == "*") {
                let names = literals(names.iter().map(AsRef::as_ref));
                self.entry.insert(key.into(), names.into());
            }
        }
    }

    fn finish(mut self, disabled: bool) -> ImportedEntry {
        let mut remarks = self.remarks.iter();
        // A server with a literal reference would start with a wrong value, so the user has to fix it first.
        let broken = remarks.any(|remark| matches!(remark, Remark::Untranslatable { .. }));
        if disabled || broken {
            self.entry.insert("disabled".into(), true.into());
        }
        let entry = Value::Object(self.entry);
        let secrets = literal_secrets(&entry).into_iter();
        self.remarks
            .extend(secrets.map(|place| Remark::LiteralSecret {
                key: place.to_string(),
            }));
        ImportedEntry {
            entry,
            remarks: self.remarks,
        }
    }

    fn text(&mut self, text: &str, key: &str) -> String {
        match self.from {
            Some(from) => self.take(interpolate::translate(text, key, from)),
            None => interpolate::normalize_own(text),
        }
    }

    /// Translates a bare variable name.
    fn variable(&mut self, name: &str, key: &str) -> String {
        self.take(interpolate::translate_name(name, key))
    }

    fn take(&mut self, translated: TranslatedText) -> String {
        for remark in translated.remarks {
            self.remark(remark);
        }
        translated.text
    }

    fn map(
        &mut self,
        key: &str,
        members: &[(&str, std::borrow::Cow<'_, str>)],
    ) -> Map<String, Value> {
        let mut map = Map::new();
        for (name, value) in members {
            let place = format!("{key}.{name}");
            let text = self.text(value, &place);
            map.insert((*name).to_owned(), text.into());
        }
        map
    }

    fn insert_map(&mut self, key: &str, map: Map<String, Value>) {
        if !map.is_empty() {
            self.entry.insert(key.into(), map.into());
        }
    }

    /// Makes a path absolute, if its base is known. A bare command stays, because it is looked up in PATH.
    fn path(&self, text: &str, bare: bool) -> String {
        if let Some(rest) = text.strip_prefix("~/") {
            return format!("${{userHome}}/{rest}");
        }
        // A text that begins with a reference may be an absolute path.
        let whole = bare || text.starts_with("${") || Path::new(text).is_absolute();
        match self.project() {
            Some(project) if !whole => {
                let folder = escape_references(&project.to_string_lossy());
                let path: PathBuf = Path::new(&folder).join(text).components().collect();
                path.to_string_lossy().into_owned()
            }
            _ => text.to_owned(),
        }
    }

    fn remark(&mut self, remark: Remark) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

/// Returns names as a list of the workbench, escaped because references are expanded there.
fn literals<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<Value> {
    let names = names.into_iter();
    names.map(|name| escape_references(name).into()).collect()
}

/// Returns true if a command is looked up in PATH.
fn is_bare(command: &str) -> bool {
    !command.contains(['/', '\\']) && !command.starts_with('~')
}

#[cfg(test)]
mod tests;
