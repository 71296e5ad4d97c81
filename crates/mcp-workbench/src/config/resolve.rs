//! Resolves the file as written to the configuration that the program uses: expands variables, makes paths absolute,
//! decides transports and drops disabled servers. It is a function of the file and the environment; of the disk it
//! reads only the files that `${file:…}` names.

mod auth;
mod limits;
mod oauth;
mod rules;
mod seal;
mod texts;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use indexmap::IndexMap;

use super::{
    child_env::{self, Inherit},
    detail::Detail,
    environment::{Environment, clean},
    filters::ToolFilters,
    glob::Glob,
    locate::{lock_file, user_config_file},
    meta_tools::MetaTool,
    problems::{Findings, ValueFault},
    raw::{
        RawAuth, RawCommand, RawConfig, RawConnect, RawEra, RawInheritEnv, RawPin, RawSeal,
        RawServer, RawShare, RawToolMode, RawToolbox, Text,
    },
    resolved::{
        ChildEnvironment, Config, Connect, ListBounds, PinMode, Purpose, RemoteEndpoint,
        RemoteProtocol, Selecting, Server, ServerTimes, Share, StdioLaunch, ToolMode, Toolbox,
        Transport,
    },
    secrets::Secrets,
    transport::{self, Hints, TransportKind},
    written_entry::{WrittenEntry, arguments_as_written, env_as_written},
};
use crate::era::Era;
use texts::EntryVariables;

const DEFAULT_NAME_LIMIT: usize = 64;
const DEFAULT_OPEN_WAIT: Duration = Duration::from_secs(15);
const DEFAULT_CONNECT: Duration = Duration::from_mins(2);
const DEFAULT_CALL: Duration = Duration::from_mins(10);
const DEFAULT_MAX_CALL: Duration = Duration::from_hours(1);

/// Resolves a file. The result is usable only if no error was recorded.
pub(super) fn resolve(
    raw: &RawConfig,
    file: &Path,
    environment: &Environment,
    findings: &mut Findings,
) -> Config {
    let mut resolver = Resolver {
        folder: folder_of(file, environment),
        max_result_chars: raw.max_result_chars,
        pin: pin_mode(raw.pin).unwrap_or_default(),
        environment,
        connect: raw.connect,
        findings,
        sanitize: raw.sanitize.unwrap_or(false),
        learn_shapes: raw.learn_shapes.unwrap_or(true),
        auth: raw.auth.as_ref(),
        seal: raw.seal.as_ref(),
    };
    let lock = lock_file(&environment.absolute(file));
    let toolboxes = raw
        .toolboxes
        .iter()
        .map(|(name, toolbox)| {
            let toolbox = resolver.toolbox(name, toolbox);
            (toolbox.name.clone(), Arc::new(toolbox))
        })
        .collect();
    Config {
        file: file.into(),
        is_default_file: user_config_file(environment)
            .is_some_and(|usual| usual == environment.absolute(file)),
        tool_mode: match (raw.tool_mode, &raw.native_toolbox) {
            (Some(RawToolMode::Native), Some(toolbox)) => {
                ToolMode::Native(toolbox.written.as_str().into())
            }
            (Some(RawToolMode::Dynamic), _) => ToolMode::Dynamic,
            // Native mode without a toolbox was reported as an error.
            _ => ToolMode::Proxy,
        },
        attribute_questions: raw.attribute_questions,
        roots: raw.roots.as_ref().map(|roots| resolver.roots(roots)),
        tool_name_limit: raw
            .tool_name_limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(DEFAULT_NAME_LIMIT),
        toolboxes,
        clients: raw
            .clients
            .iter()
            .flatten()
            .map(|(name, client)| {
                let client = resolver.client(client, raw.limits.as_ref());
                (name.as_str().into(), client)
            })
            .collect(),
        limits: limits::limits(&[raw.limits.as_ref()]),
        auth: raw.auth.as_ref().and_then(|auth| resolver.auth(auth)),
        replica_address: resolver.replica_address(raw),
        store: resolver.store(raw),
        seal: raw.seal.as_ref().and_then(|seal| resolver.seal(seal)),
        client: None,
        whole: None,
        // A toolbox that one replica has opened is not open in the others.
        auto_open: raw.auto_open.unwrap_or(raw.seal.is_some()),
        open_wait: raw
            .open_wait_ms
            .map_or(DEFAULT_OPEN_WAIT, Duration::from_millis),
        meta_tools: raw
            .meta_tools
            .clone()
            .unwrap_or_else(|| MetaTool::DEFAULT.to_vec()),
        open_detail: raw.open_detail.unwrap_or(Detail::Full),
        select: match raw.select {
            Some(true) => Selecting::On,
            Some(false) | None => Selecting::Off,
        },
        watch: raw.watch.unwrap_or(true),
        shared: raw.shared.unwrap_or(false),
        start_directory: environment.start_directory().into(),
        cache: environment.cache_directory(),
        state: environment.state_directory(),
        audit: raw.audit.as_ref().and_then(|audit| resolver.audit(audit)),
        lock,
        pin: resolver.pin,
        purpose: Purpose::Use,
    }
}

/// Returns a path as a `file://` URI.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn folder_of(file: &Path, environment: &Environment) -> PathBuf {
    let mut folder = environment.absolute(file);
    folder.pop();
    folder
}

struct Resolver<'a> {
    /// The folder of the file, against which relative paths are resolved.
    folder: PathBuf,
    /// The default for servers without their own value.
    max_result_chars: Option<u64>,
    /// The default for servers without their own value.
    pin: PinMode,
    environment: &'a Environment,
    /// The default for toolboxes that set no value.
    connect: Option<RawConnect>,
    findings: &'a mut Findings,
    /// The default for servers without their own value.
    sanitize: bool,
    learn_shapes: bool,
    /// The `auth` of the file, which credentials of users need.
    auth: Option<&'a RawAuth>,
    seal: Option<&'a RawSeal>,
}

impl Resolver<'_> {
    /// Returns the folders as URIs. A relative path is resolved against the file's folder.
    fn roots(&mut self, roots: &[Text]) -> Vec<String> {
        let roots = roots.iter().map(|root| {
            let root = self.text(&mut EntryVariables::default(), root);
            if root.contains("://") {
                root
            } else {
                file_uri(&self.folder.join(root))
            }
        });
        roots.collect()
    }

    fn toolbox(&mut self, name: &str, raw: &RawToolbox) -> Toolbox {
        let mut servers = IndexMap::new();
        let mut disabled = Vec::new();
        for (name, raw) in &raw.mcp_servers {
            if is_disabled(raw) {
                disabled.push(name.as_str().into());
                continue;
            }
            if let Some(server) = self.server(name, raw) {
                servers.insert(server.name.clone(), Arc::new(server));
            }
        }
        Toolbox {
            name: name.into(),
            description: raw.description.as_ref().map_or_else(String::new, |text| {
                self.text(&mut EntryVariables::default(), text)
            }),
            servers,
            connect: match raw.connect.or(self.connect) {
                None | Some(RawConnect::OnOpen) => Connect::OnOpen,
                Some(RawConnect::OnUse) => Connect::OnUse,
            },
            disabled,
        }
    }

    fn server(&mut self, name: &str, raw: &RawServer) -> Option<Server> {
        let mut variables = EntryVariables::default();
        // Both forms are resolved, whichever the entry uses, so that faults in all of its keys are reported.
        let stdio = self.stdio(&mut variables, raw);
        let remote = self.remote(&mut variables, raw);
        let filters = self.filters(&mut variables, raw);
        let result_select = self.result_select(&mut variables, raw);
        let permissions = raw
            .permissions
            .as_ref()
            .map(|it| self.permissions(&mut variables, it));
        let kind = self.kind(&mut variables, raw);
        // Only now are all texts of the entry expanded and all of its secrets known.
        let transport = if variables.unset.is_empty() {
            match kind? {
                TransportKind::Stdio => Transport::Stdio(StdioLaunch {
                    secrets: variables.secrets,
                    ..stdio
                }),
                TransportKind::Remote(protocol) => Transport::Remote(RemoteEndpoint {
                    secrets: variables.secrets,
                    protocol,
                    ..remote
                }),
            }
        } else {
            Transport::Unset(variables.unset())
        };
        Some(Server {
            name: name.into(),
            transport,
            filters,
            permissions: permissions.unwrap_or_default(),
            times: times(raw),
            era: era(raw),
            max_result_chars: budget(raw.max_result_chars.or(self.max_result_chars)),
            result_select,
            list_bounds: list_bounds(raw),
            sanitize: raw.sanitize.unwrap_or(self.sanitize),
            pin: pin_mode(raw.pin).unwrap_or(self.pin),
            share: share(raw),
            learn_shapes: self.learn_shapes,
            written: WrittenEntry::of(raw),
        })
    }

    /// Returns the launch settings, for a server that is a program.
    fn stdio(&mut self, variables: &mut EntryVariables, raw: &RawServer) -> StdioLaunch {
        let mut line = match &raw.command {
            Some(RawCommand::Program(program)) => vec![self.text(variables, program)],
            Some(RawCommand::Line(line)) => self.texts(variables, line),
            // Without a command the entry is remote, and this launch is dropped.
            None => vec![String::new()],
        };
        let command = self.program(&line.remove(0));
        line.extend(self.arguments(variables, raw.args.as_deref().unwrap_or_default()));
        let cwd = self.path(variables, raw.cwd.as_ref());
        StdioLaunch {
            command,
            args: line,
            args_as_written: arguments_as_written(raw),
            env_as_written: env_as_written(raw),
            names_cwd: cwd.is_some(),
            cwd: cwd.unwrap_or_else(|| self.default_cwd(share(raw))),
            environment: ChildEnvironment {
                inherited: self.inherited(variables, raw),
                file: self.path(variables, raw.env_file.as_ref()),
                own: self.members(variables, raw.env.as_ref()),
            },
            secrets: Secrets::default(),
        }
    }

    /// Returns the working directory of a program whose entry names none. A program for all clients cannot be in the
    /// folder of one of them.
    fn default_cwd(&self, share: Share) -> PathBuf {
        match share {
            Share::Machine => self.folder.clone(),
            Share::Auto | Share::Project | Share::Client => {
                self.environment.start_directory().into()
            }
        }
    }

    /// Returns the endpoint, for a server with a URL.
    fn remote(&mut self, variables: &mut EntryVariables, raw: &RawServer) -> RemoteEndpoint {
        let url = raw.url.as_ref().map_or_else(String::new, |text| {
            let url = self.text(variables, text);
            // A bad value of a variable must fail only its server, so it does not count as an error of the file.
            if !text.written.contains("${") && !transport::is_http_url(&url) {
                let fault = ValueFault::Url { url: url.clone() };
                self.findings.add(text.place.clone(), fault);
            }
            url
        });
        RemoteEndpoint {
            oauth: self.oauth(variables, raw, &url),
            url,
            headers: self.members(variables, raw.headers.as_ref()),
            protocol: RemoteProtocol::Http,
            secrets: Secrets::default(),
        }
    }

    fn kind(&mut self, variables: &mut EntryVariables, raw: &RawServer) -> Option<TransportKind> {
        let kind = raw.kind.as_ref().map(|text| self.text(variables, text));
        let transport = raw
            .transport
            .as_ref()
            .map(|text| self.text(variables, text));
        let words_unset = [&raw.kind, &raw.transport]
            .into_iter()
            .flatten()
            .any(|word| {
                variables
                    .unset
                    .iter()
                    .any(|(place, _)| *place == word.place)
            });
        // The missing variable is already reported; a placeholder cannot decide the transport.
        if words_unset {
            return None;
        }
        let decision = transport::decide(Hints {
            kind: kind.as_deref(),
            transport: transport.as_deref(),
            has_command: raw.presence.command,
            has_url: raw.presence.url,
        });
        decision
            .map_err(|fault| {
                let word = raw.kind.as_ref().or(raw.transport.as_ref());
                let place = word.map_or(&raw.presence.place, |word| &word.place);
                self.findings.add(place.clone(), fault);
            })
            .ok()
    }

    fn filters(&mut self, variables: &mut EntryVariables, raw: &RawServer) -> ToolFilters {
        let mut list = |texts: &Option<Vec<Text>>| -> Option<Vec<String>> {
            texts.as_ref().map(|texts| self.texts(variables, texts))
        };
        let patterns = list(&raw.tool_filters);
        let included = list(&raw.include_tools);
        let mut excluded = list(&raw.exclude_tools).unwrap_or_default();
        excluded.extend(list(&raw.disabled_tools).unwrap_or_default());
        ToolFilters::new(patterns, included, excluded)
    }

    /// Returns the variables that the child inherits. Those that the entry lists by name are as secret as those that
    /// it refers to.
    fn inherited(
        &mut self,
        variables: &mut EntryVariables,
        raw: &RawServer,
    ) -> Vec<(OsString, OsString)> {
        let rule = match &raw.inherit_env {
            None | Some(RawInheritEnv::All(false)) => Inherit::SafeSet,
            Some(RawInheritEnv::All(true)) => Inherit::Everything,
            Some(RawInheritEnv::Names(names)) => {
                let names = self.texts(variables, names);
                Inherit::Names(names.iter().map(|name| Glob::new(name)).collect())
            }
        };
        let inherited = child_env::inherited(self.environment, &rule);
        if matches!(rule, Inherit::Names(_)) {
            for (name, value) in inherited
                .iter()
                .filter(|(name, _)| !child_env::is_safe(name))
            {
                let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
                variables.secrets.add(&name, &value);
            }
        }
        inherited
    }

    /// Returns the program. A name with a slash is a path relative to the folder of the file; others are looked up in
    /// PATH.
    fn program(&self, command: &str) -> String {
        let is_path = command.contains('/') || (cfg!(windows) && command.contains('\\'));
        if is_path {
            let path = clean(&self.folder.join(command));
            path.to_string_lossy().into_owned()
        } else {
            command.into()
        }
    }
}

fn is_disabled(raw: &RawServer) -> bool {
    raw.disabled == Some(true) || raw.enabled == Some(false)
}

fn era(raw: &RawServer) -> Option<Era> {
    match raw.era? {
        RawEra::Auto => None,
        RawEra::Legacy => Some(Era::Legacy),
        RawEra::Modern => Some(Era::Modern),
    }
}

/// Returns the number of characters of a result that are sent at once; 0 means all.
fn budget(characters: Option<u64>) -> Option<usize> {
    let characters = usize::try_from(characters?).ok()?;
    (characters > 0).then_some(characters)
}

/// Returns the bounds of a server's list of tools.
fn list_bounds(raw: &RawServer) -> ListBounds {
    let bound = |value: Option<u64>, default| {
        let value = value.and_then(|value| usize::try_from(value).ok());
        value.unwrap_or(default)
    };
    let ListBounds { tools, bytes } = ListBounds::default();
    ListBounds {
        tools: bound(raw.max_tools, tools),
        bytes: bound(raw.max_tool_list_bytes, bytes),
    }
}

fn pin_mode(raw: Option<RawPin>) -> Option<PinMode> {
    Some(match raw? {
        RawPin::Off => PinMode::Off,
        RawPin::Notice => PinMode::Notice,
        RawPin::Enforce => PinMode::Enforce,
    })
}

fn share(raw: &RawServer) -> Share {
    match raw.share {
        None | Some(RawShare::Auto) => Share::Auto,
        Some(RawShare::Machine) => Share::Machine,
        Some(RawShare::Project) => Share::Project,
        Some(RawShare::Client) => Share::Client,
    }
}

fn times(raw: &RawServer) -> ServerTimes {
    let given = |milliseconds: Option<u64>| milliseconds.map(Duration::from_millis);
    ServerTimes {
        connect: given(raw.connect_timeout_ms).unwrap_or(DEFAULT_CONNECT),
        call: given(raw.call_timeout_ms).unwrap_or(DEFAULT_CALL),
        max_call: given(raw.max_call_ms).unwrap_or(DEFAULT_MAX_CALL),
        idle: given(raw.idle_timeout_ms),
    }
}

#[cfg(test)]
mod tests;
