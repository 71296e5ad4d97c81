//! The parts of the configuration that decide which clients share a server, and the variables that the process of a
//! shared configuration needs to know about each client.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
};

use super::{
    child_env::is_safe,
    environment::{Environment, same_variable},
    load::Loaded,
    resolved::{ChildEnvironment, RemoteEndpoint, Server, Share, StdioLaunch, Transport},
};

/// Variables of the safe set that describe a terminal or a login session, and not what a server does.
const TERMINAL_VARIABLES: &[&str] = &[
    "TERM",
    "XDG_ACTIVATION_TOKEN",
    "XDG_SEAT",
    "XDG_SESSION_CLASS",
    "XDG_SESSION_ID",
    "XDG_SESSION_TYPE",
    "XDG_VTNR",
];

/// The first difference that keeps two clients from sharing a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotShared {
    /// The entry says so.
    Configured,
    /// The file has changed between the two.
    Entry,
    /// The command or an argument has a different value.
    Arguments,
    /// The working directory differs.
    Folder,
    Variables(Vec<String>),
    /// The URL, a header or the account differs.
    Endpoint,
    /// The clients have declared different capabilities, which a server learns at its start.
    Capabilities,
}

/// Returns the reason why the servers of two clients cannot be one process or connection; `None` if they can.
pub(crate) fn not_shared(one: &Server, other: &Server) -> Option<NotShared> {
    if one.share == Share::Client || other.share == Share::Client {
        return Some(NotShared::Configured);
    }
    if !has_same_rules(one, other) {
        return Some(NotShared::Entry);
    }
    match (&one.transport, &other.transport) {
        (Transport::Stdio(one_launch), Transport::Stdio(other_launch)) => {
            different_launch(one_launch, other_launch, one.share)
        }
        (Transport::Remote(one), Transport::Remote(other)) => different_endpoint(one, other),
        (one, other) => (one != other).then_some(NotShared::Entry),
    }
}

/// Returns whether everything but the transport is equal. The server's task applies these rules to all of its clients.
fn has_same_rules(one: &Server, other: &Server) -> bool {
    // Every field is named, so that a new one does not compile before somebody has decided about it.
    let Server {
        name,
        transport: _,
        filters,
        permissions,
        times,
        era,
        max_result_chars,
        result_select,
        list_bounds,
        sanitize,
        pin,
        share,
        learn_shapes,
        written,
    } = one;
    *name == other.name
        && *filters == other.filters
        && *permissions == other.permissions
        && *times == other.times
        && *era == other.era
        && *max_result_chars == other.max_result_chars
        && *result_select == other.result_select
        && *list_bounds == other.list_bounds
        && *sanitize == other.sanitize
        && *pin == other.pin
        && *share == other.share
        && *learn_shapes == other.learn_shapes
        && *written == other.written
}

fn different_launch(one: &StdioLaunch, other: &StdioLaunch, share: Share) -> Option<NotShared> {
    if one.command != other.command || one.args != other.args {
        return Some(NotShared::Arguments);
    }
    if one.cwd != other.cwd {
        return Some(NotShared::Folder);
    }
    let counts = |name: &OsStr| match share {
        Share::Auto => !is_terminal_variable(name),
        // Who writes `machine` or `project` says that the safe set makes no difference to the server.
        Share::Machine | Share::Project | Share::Client => !is_safe(name),
    };
    let names = different_variables(&one.environment, &other.environment, counts);
    if !names.is_empty() {
        return Some(NotShared::Variables(names));
    }
    // Equal values from different texts: the file has changed between the two.
    let same_text = one.args_as_written == other.args_as_written
        && one.env_as_written == other.env_as_written
        && one.environment.file == other.environment.file;
    (!same_text).then_some(NotShared::Entry)
}

fn different_endpoint(one: &RemoteEndpoint, other: &RemoteEndpoint) -> Option<NotShared> {
    (one != other).then_some(NotShared::Endpoint)
}

/// Returns the names of the variables that count and differ.
fn different_variables(
    one: &ChildEnvironment,
    other: &ChildEnvironment,
    counts: impl Fn(&OsStr) -> bool,
) -> Vec<String> {
    let inherited = |environment: &ChildEnvironment| -> BTreeSet<(OsString, OsString)> {
        let inherited = environment.inherited.iter();
        inherited
            .filter(|(name, _)| counts(name))
            .cloned()
            .collect()
    };
    let own = |environment: &ChildEnvironment| -> BTreeSet<(OsString, OsString)> {
        let own = environment.own.iter();
        own.map(|(name, value)| (name.into(), value.into()))
            .collect()
    };
    let (inherited, own) = ([one, other].map(inherited), [one, other].map(own));
    let differ = inherited[0]
        .symmetric_difference(&inherited[1])
        .chain(own[0].symmetric_difference(&own[1]));
    let names: BTreeSet<String> = differ
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    names.into_iter().collect()
}

fn is_terminal_variable(name: &OsStr) -> bool {
    TERMINAL_VARIABLES.iter().any(|it| same_variable(name, it))
}

impl Environment {
    /// Returns the variables that every server gets.
    pub(crate) fn for_every_child(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables().filter(|(name, _)| is_safe(name))
    }

    /// Returns the variables that configure OpenTelemetry.
    pub(crate) fn for_telemetry(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let is_telemetry = |name: &OsStr| name.as_encoded_bytes().starts_with(b"OTEL_");
        self.variables().filter(move |(name, _)| is_telemetry(name))
    }

    /// Returns the part of the environment that the process of a shared configuration needs: the variables that the
    /// configuration names, and those that every server gets.
    pub(crate) fn needed_by(&self, loaded: &Loaded) -> Self {
        let toolboxes = loaded.config.toolboxes.values();
        let servers = toolboxes.flat_map(|it| it.servers.values());
        let launches = servers.filter_map(|server| match &server.transport {
            Transport::Stdio(launch) => Some(launch),
            Transport::Remote(_) | Transport::Unset(_) => None,
        });
        let inherited: BTreeSet<&OsStr> = launches
            .flat_map(|launch| &launch.environment.inherited)
            .map(|(name, _)| name.as_os_str())
            .collect();
        let is_named = |name: &OsStr| {
            let mut named = loaded.variables.iter();
            named.any(|it| same_variable(name, it))
        };
        let needed = self
            .variables()
            .filter(|(name, _)| is_safe(name) || inherited.contains(name) || is_named(name));
        Self::new(
            needed.map(|(name, value)| (name.to_owned(), value.to_owned())),
            self.start_directory().into(),
            self.home().map(Into::into),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::*;
    use crate::config::parse;

    /// Returns the server `s` of an entry, for a client in a folder with these variables.
    fn server(entry: &str, folder: &str, variables: &[(&str, &str)]) -> Arc<Server> {
        let text = format!(
            r#"{{"toolboxes": {{"t": {{"description": "d", "mcpServers": {{"s": {entry}}}}}}}}}"#
        );
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(variables, folder.into(), None);
        let loaded = parse(&text, Path::new("/conf/c.json"), &environment).unwrap();
        Arc::clone(&loaded.config.toolboxes["t"].servers["s"])
    }

    /// The folder and the variables of a client.
    type ClientPlace<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    fn between(entry: &str, one: ClientPlace<'_>, other: ClientPlace<'_>) -> Option<NotShared> {
        not_shared(
            &server(entry, one.0, one.1),
            &server(entry, other.0, other.1),
        )
    }

    #[test]
    fn clients_share_what_is_defined_alike() {
        let names = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned());
            Some(NotShared::Variables(names.collect()))
        };
        let here: ClientPlace<'_> = ("/a", &[]);
        let there: ClientPlace<'_> = ("/b", &[]);
        let plain = r#"{"command": "x"}"#;
        let placed = r#"{"command": "x", "cwd": "/w"}"#;
        let token = r#"{"command": "x", "cwd": "/w", "env": {"T": "${T}"}}"#;
        let argument = r#"{"command": "x", "cwd": "/w", "args": ["${T}"]}"#;
        let header = r#"{"url": "https://x.test/", "headers": {"A": "${T}"}}"#;
        let ones: ClientPlace<'_> = ("/a", &[("T", "1")]);
        let twos: ClientPlace<'_> = ("/a", &[("T", "2")]);
        let terminal: ClientPlace<'_> = ("/a", &[("TERM", "xterm"), ("PATH", "/bin")]);
        let window: ClientPlace<'_> = ("/a", &[("PATH", "/bin")]);
        let path: ClientPlace<'_> = ("/a", &[("PATH", "/usr/bin")]);
        let share = |share: &str, entry: &str| {
            entry.replacen('{', &format!(r#"{{"share": "{share}", "#), 1)
        };
        let cases = [
            (plain.to_owned(), here, here, None),
            (plain.to_owned(), here, there, Some(NotShared::Folder)),
            (placed.to_owned(), here, there, None),
            (token.to_owned(), ones, twos, names(&["T"])),
            (argument.to_owned(), ones, twos, Some(NotShared::Arguments)),
            (header.to_owned(), ones, twos, Some(NotShared::Endpoint)),
            (header.to_owned(), ones, ones, None),
            (placed.to_owned(), terminal, window, None),
            (placed.to_owned(), window, path, names(&["PATH"])),
            (share("machine", plain), here, there, None),
            (share("machine", placed), window, path, None),
            (share("machine", token), ones, twos, names(&["T"])),
            (
                share("project", plain),
                here,
                there,
                Some(NotShared::Folder),
            ),
            (share("project", placed), window, path, None),
            (
                share("client", placed),
                here,
                here,
                Some(NotShared::Configured),
            ),
        ];
        for (entry, one, other, expected) in cases {
            assert_eq!(
                between(&entry, one, other),
                expected,
                "{entry} {one:?} {other:?}"
            );
        }
    }

    #[test]
    fn only_needed_variables_leave_the_client() {
        let text = r#"{"toolboxes": {"t": {"description": "d", "mcpServers": {
            "s": {"command": "x", "env": {"A": "${NAMED}"}, "inheritEnv": ["PASSED_*"]}}}}}"#;
        let variables = [
            "NAMED",
            "PASSED_ON",
            "PATH",
            "XDG_CACHE_HOME",
            "OTHER_SECRET",
        ];
        let variables = variables.map(|name| (name.into(), "v".into()));
        let environment = Environment::new(variables, "/start".into(), Some("/home/me".into()));
        let loaded = parse(text, Path::new("/conf/c.json"), &environment).unwrap();
        let needed = environment.needed_by(&loaded);
        let names: Vec<&OsStr> = needed.variables().map(|(name, _)| name).collect();
        assert_eq!(names, ["NAMED", "PASSED_ON", "PATH", "XDG_CACHE_HOME"]);
        assert_eq!(needed.start_directory(), Path::new("/start"));
        assert_eq!(needed.home(), Some(Path::new("/home/me")));
    }
}
