//! A server entry as it is written: before variables are expanded, and without literal credentials, so that it can be
//! stored and shown.

use indexmap::IndexMap;

use super::{
    literals::{is_literal_secret, is_secret_url, secret_arguments},
    raw::{RawCommand, RawInheritEnv, RawServer, Text},
    secrets::{REDACTED, Secrets},
};

/// A server entry as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenEntry {
    pub command: Option<String>,
    /// Its arguments, those of an array in `command` included.
    pub args: Vec<String>,
    /// The names of its variables, sorted.
    pub env: Vec<String>,
    /// The names of the variables that it inherits besides the safe set; `*` for all.
    pub inherit_env: Vec<String>,
    /// The file with more variables.
    pub env_file: Option<String>,
    pub cwd: Option<String>,
    /// The address of a remote server.
    pub url: Option<String>,
    /// The names of its headers, sorted.
    pub headers: Vec<String>,
    /// `type`, or `transport` if there is none.
    pub kind: Option<String>,
}

impl WrittenEntry {
    pub(super) fn of(raw: &RawServer) -> Self {
        let command = match &raw.command {
            Some(RawCommand::Program(program)) => Some(program),
            Some(RawCommand::Line(line)) => line.first(),
            None => None,
        };
        let inherit_env = match &raw.inherit_env {
            None | Some(RawInheritEnv::All(false)) => Vec::new(),
            Some(RawInheritEnv::All(true)) => vec!["*".to_owned()],
            Some(RawInheritEnv::Names(names)) => names.iter().map(harmless).collect(),
        };
        Self {
            command: command.map(harmless),
            args: arguments(raw),
            env: names(raw.env.as_ref()),
            inherit_env,
            env_file: raw.env_file.as_ref().map(harmless),
            cwd: raw.cwd.as_ref().map(harmless),
            url: raw.url.as_ref().map(|url| address(&harmless(url))),
            headers: names(raw.headers.as_ref()),
            kind: raw.kind.as_ref().or(raw.transport.as_ref()).map(harmless),
        }
    }
}

/// Returns the arguments of the program as written.
pub(super) fn arguments_as_written(raw: &RawServer) -> Vec<String> {
    let line = match &raw.command {
        Some(RawCommand::Line(line)) => line.get(1..).unwrap_or_default(),
        Some(RawCommand::Program(_)) | None => &[],
    };
    let args = raw.args.as_deref().unwrap_or_default();
    let texts = line.iter().chain(args);
    texts.map(|text| text.written.clone()).collect()
}

/// Returns the values of `env` as written.
pub(super) fn env_as_written(raw: &RawServer) -> IndexMap<String, String> {
    let members = raw
        .env
        .iter()
        .flatten()
        .map(|(name, text)| (name.clone(), text.written.clone()));
    members.collect()
}

fn arguments(raw: &RawServer) -> Vec<String> {
    let mut arguments = arguments_as_written(raw);
    // The defaults inside references are checked separately.
    let outside: Vec<String> = arguments.iter().map(|it| without_references(it)).collect();
    for index in secret_arguments(&outside) {
        let argument = &mut arguments[index];
        *argument = match argument.split_once('=') {
            // The name of an option such as `--token=…` is not a secret.
            Some((name, _)) => format!("{name}={REDACTED}"),
            None => REDACTED.to_owned(),
        };
    }
    arguments.iter().map(|it| without_defaults(it)).collect()
}

fn names(members: Option<&IndexMap<String, Text>>) -> Vec<String> {
    let members = members.into_iter().flatten();
    let mut names: Vec<String> = members.map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    names
}

fn harmless(text: &Text) -> String {
    without_defaults(&text.written)
}

/// Returns a URL without its password and parameters, if these look like credentials.
fn address(url: &str) -> String {
    if !is_secret_url(url, &Secrets::default()) {
        return url.to_owned();
    }
    let (address, query) = match url.split_once('?') {
        Some((address, _)) => (address, format!("?{REDACTED}")),
        None => (url, String::new()),
    };
    let Some((scheme, rest)) = address.split_once("://") else {
        return format!("{address}{query}");
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{REDACTED}@{host}"),
        None => authority.to_owned(),
    };
    format!("{scheme}://{host}{path}{query}")
}

/// Returns a text in which all references are replaced by the same word.
fn without_references(text: &str) -> String {
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.split_once('}').map_or("", |(_, rest)| rest);
        format!("{text}${{}}{rest}")
    })
}

/// Returns a text without defaults of references that look like credentials.
fn without_defaults(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let end = rest[at..]
            .find('}')
            .map_or(rest.len(), |length| at + length);
        let reference = &rest[at..end];
        let secret = reference.split_once(":-").filter(|(name, default)| {
            let name = name.trim_start_matches("${").trim_start_matches("env:");
            is_literal_secret(name, default, &Secrets::default())
        });
        shown.push_str(&rest[..at]);
        match secret {
            Some((name, _)) => shown.push_str(&format!("{name}:-{REDACTED}")),
            None => shown.push_str(reference),
        }
        rest = &rest[end..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Environment, parse};

    fn written(entry: &str) -> WrittenEntry {
        let text = format!(
            r#"{{"toolboxes": {{"a": {{"description": "d", "mcpServers": {{"b": {entry}}}}}}}}}"#
        );
        let variables = [("TOKEN".into(), "hunter2-hunter2".into())];
        let environment = Environment::new(variables, "/start".into(), None);
        let loaded = parse(&text, Path::new("c.json"), &environment).unwrap();
        loaded.config.toolboxes[0].servers[0].written.clone()
    }

    #[test]
    fn nothing_is_expanded_and_values_of_variables_are_left_out() {
        let entry = r#"{"command": ["npx", "-y"], "args": ["x@1.2.3", "${TOKEN}", "${DIR:-.}"], "cwd": "${TOKEN}",
            "env": {"B": "${TOKEN}", "A": "hunter2-hunter2"}, "inheritEnv": ["AWS_*"], "type": "stdio"}"#;
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            written(entry),
            WrittenEntry {
                command: Some("npx".to_owned()),
                args: texts(&["-y", "x@1.2.3", "${TOKEN}", "${DIR:-.}"]),
                env: texts(&["A", "B"]),
                inherit_env: texts(&["AWS_*"]),
                cwd: Some("${TOKEN}".to_owned()),
                kind: Some("stdio".to_owned()),
                ..WrittenEntry::default()
            }
        );
    }

    #[test]
    fn credentials_of_the_entry_itself_are_left_out() {
        let arguments =
            |args: &str| written(&format!(r#"{{"command": "x", "args": {args}}}"#)).args;
        assert_eq!(
            arguments(r#"["--token=hunter2-hunter2"]"#),
            ["--token=[redacted]"]
        );
        assert_eq!(
            arguments(r#"["--token", "hunter2-hunter2"]"#),
            ["--token", "[redacted]"]
        );
        assert_eq!(
            arguments(r#"["a ${API_KEY:-hunter2-hunter2} b ${X:-y}"]"#),
            ["a ${API_KEY:-[redacted]} b ${X:-y}"]
        );
        assert_eq!(
            arguments(r#"["--key=${KEY:-none}"]"#),
            ["--key=${KEY:-none}"]
        );
        let url = |url: &str| {
            let entry =
                format!(r#"{{"url": "{url}", "headers": {{"Authorization": "Bearer x"}}}}"#);
            let written = written(&entry);
            assert_eq!(written.headers, ["Authorization"]);
            written.url.unwrap()
        };
        assert_eq!(url("https://a/b?c=d"), "https://a/b?c=d");
        assert_eq!(
            url("https://a/b?key=hunter2-hunter2"),
            "https://a/b?[redacted]"
        );
        assert_eq!(url("https://u:hunter2@a:1/b"), "https://[redacted]@a:1/b");
        assert_eq!(url("https://a/${TOKEN}"), "https://a/${TOKEN}");
    }
}
