//! Derives findings from the configuration and the probed servers.

use std::{path::Path, sync::Arc, time::Duration};

use indexmap::IndexMap;

use super::{
    finding::{FileFinding, Finding, StartFinding},
    program_search::elsewhere,
    tool_finding::ToolFinding,
};
use crate::{
    cli::{check::server_target, probe::ProbeResult, shell::quoted},
    clients::{CLIENTS, NameFault, limits},
    config::{
        Config, Environment, Fault, LiteralPlace, Loaded, Problem, ReferenceFault, Server,
        ToolFilters, ToolMode, Transport,
    },
    downstream::{Cause, ConnectError, ToolList},
    lock::{Lowered, Pins},
    policy::scan::{self, ServerTools},
};

/// The duration from which a start is reported as slow: Codex waits 10 s, and people wait less.
const SLOW_START: Duration = Duration::from_secs(5);

/// The maximum number of scanner findings per server.
const MAX_SCANNER_FINDINGS: usize = 20;

/// The usual name of the workbench in clients.
const OWN_NAME: &str = "workbench";

/// Returns findings about the configuration file.
pub(super) fn of_configuration(loaded: &Loaded) -> Vec<Finding> {
    let config = &loaded.config;
    let unset = loaded
        .unset
        .iter()
        .filter(|it| !is_reported_with_server(it, config));
    let problems = loaded
        .warnings
        .iter()
        .chain(unset)
        .cloned()
        .map(FileFinding::Problem);
    let mut findings: Vec<Finding> = problems.map(Finding::File).collect();
    let places = literal_places(config);
    if !places.is_empty() && is_readable_by_all(&config.file) {
        let file = config.file.clone();
        findings.push(Finding::File(FileFinding::Exposed { file, places }));
    }
    let pins = Pins::new(config);
    let lowered = pins
        .lowered(config)
        .into_iter()
        .map(|Lowered { place, mode }| FileFinding::PinLowered {
            server: format!("{}/{}", place.toolbox, place.server),
            words: pins.lowered_notice(&place, mode),
        });
    findings.extend(lowered.map(Finding::File));
    findings
}

/// Returns true if a missing value is reported with its server.
fn is_reported_with_server(problem: &Problem, config: &Config) -> bool {
    if !matches!(&problem.fault, Fault::Reference(ReferenceFault::Missing(_))) {
        return false;
    }
    let servers = config.toolboxes.values().flat_map(|it| it.servers.values());
    let mut unset = servers.filter_map(|server| match &server.transport {
        Transport::Unset(variables) => Some(variables),
        _ => None,
    });
    unset.any(|variables| variables.iter().any(|it| it.path == problem.place.path))
}

fn literal_places(config: &Config) -> Vec<String> {
    let mut places = Vec::new();
    for toolbox in config.toolboxes.values() {
        for server in toolbox.servers.values() {
            let found = server.literal_secrets().into_iter();
            places.extend(found.map(|it| format!("{}/{}: {it}", toolbox.name, server.name)));
        }
    }
    places
}

#[cfg(unix)]
fn is_readable_by_all(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

/// On other systems the user's own directory is already private.
#[cfg(not(unix))]
fn is_readable_by_all(_: &Path) -> bool {
    false
}

/// Returns findings about one server.
pub(super) fn of_server(
    probed: &ProbeResult,
    config: &Config,
    environment: &Environment,
) -> Vec<Finding> {
    let server = &probed.server;
    let secrets = server.literal_secrets().into_iter();
    // Secrets belong in `env` and `headers`; a readable file is a separate finding. OAuth client credentials are
    // reported, because they are not the user's alone.
    let exposed = secrets.filter(|place| {
        matches!(
            place,
            LiteralPlace::Argument(_) | LiteralPlace::Url | LiteralPlace::OAuth(_)
        )
    });
    let mut findings: Vec<Finding> = exposed
        .map(|place| Finding::File(FileFinding::LiteralSecret { place }))
        .collect();
    let places = tilde_places(server);
    if !places.is_empty() {
        findings.push(Finding::File(FileFinding::Tilde { places }));
    }
    match &probed.tools {
        // The user interrupted the start, which says nothing about the server.
        Err(_) if probed.is_unfinished() => {}
        Err(error) => {
            let failures = of_failure(error, server, environment);
            findings.extend(failures.into_iter().map(Finding::Start));
        }
        Ok(list) => {
            if probed.took >= SLOW_START {
                findings.push(Finding::Start(StartFinding::Slow { took: probed.took }));
            }
            let of_tools = of_list(list, server)
                .into_iter()
                .chain(of_definitions(list))
                .chain(of_names(list, probed, config));
            findings.extend(of_tools.map(Finding::Tools));
        }
    }
    findings
}

/// Returns the keys of an entry whose values begin with `~`, which nothing expands.
fn tilde_places(server: &Server) -> Vec<String> {
    let Transport::Stdio(launch) = &server.transport else {
        return Vec::new();
    };
    let named = |name: &str, is_tilde: bool| is_tilde.then(|| name.to_owned());
    let file = launch.environment.file.as_deref();
    let keys = [
        named("command", has_tilde(Path::new(&launch.command))),
        named("cwd", launch.names_cwd && has_tilde(&launch.cwd)),
        named("envFile", file.is_some_and(has_tilde)),
    ];
    let starts = |word: &str| word == "~" || word.starts_with("~/");
    let args = launch
        .args
        .iter()
        .enumerate()
        .filter(|(_, word)| starts(word))
        .map(|(index, _)| format!("args[{index}]"));
    let env = launch
        .environment
        .own
        .iter()
        .filter(|(_, value)| starts(value))
        .map(|(name, _)| format!("env.{name}"));
    keys.into_iter().flatten().chain(args).chain(env).collect()
}

/// Returns true if a path has a `~` where a shell would have put the home directory.
pub(super) fn has_tilde(path: &Path) -> bool {
    path.components().any(|it| it.as_os_str() == "~")
}

/// Returns the hint for a server that failed.
pub(in crate::cli) fn remedy_of(
    error: &Arc<ConnectError>,
    server: &Server,
    environment: &Environment,
) -> String {
    let findings = of_failure(error, server, environment);
    let remedies: Vec<String> = findings.iter().map(StartFinding::remedy).collect();
    remedies.join("; ")
}

/// Returns the reasons why a server failed.
fn of_failure(
    error: &Arc<ConnectError>,
    server: &Server,
    environment: &Environment,
) -> Vec<StartFinding> {
    match &**error {
        ConnectError::Unset(variables) => {
            variables.iter().cloned().map(StartFinding::Unset).collect()
        }
        // The most common failure: the program is often installed, but not on the server's PATH.
        ConnectError::CommandNotFound { command } => vec![StartFinding::CommandNotFound {
            command: command.clone(),
            elsewhere: elsewhere(command, environment),
        }],
        _ => vec![StartFinding::NotUp {
            error: Arc::clone(error),
            by_hand: by_hand(server),
        }],
    }
}

/// Returns the command line of a server without secrets.
fn by_hand(server: &Server) -> String {
    let command = server_target(server);
    match &server.transport {
        Transport::Stdio(launch) if launch.names_cwd => {
            let cwd = quoted(&launch.cwd.display().to_string());
            format!("cd {cwd} && {command}")
        }
        _ => command,
    }
}

fn of_list(list: &ToolList, server: &Server) -> Vec<ToolFinding> {
    let mut findings = Vec::new();
    if list.tools().is_empty() {
        findings.push(ToolFinding::None {
            is_filtered: server.filters != ToolFilters::default(),
        });
    }
    let withheld = list.withheld.iter().cloned();
    findings.extend(withheld.filter_map(|it| {
        let (tool, reason) = (it.tool, it.reason);
        match it.cause {
            Cause::Definition | Cause::Finding(_) => Some(ToolFinding::Withheld { tool, reason }),
            Cause::NotApproved => Some(ToolFinding::NotApproved { tool, reason }),
            // The configuration asks for it.
            Cause::NotPermitted => None,
        }
    }));
    findings.extend(list.incomplete.clone().map(ToolFinding::Incomplete));
    findings.extend(list.notices.iter().cloned().map(ToolFinding::Notice));
    let withheld = list.withheld.iter().map(|it| it.tool.as_str());
    let names = list.tools().iter().map(|it| it.name.as_str());
    let known: Vec<&str> = names.chain(withheld).collect();
    // An incomplete list says nothing about the tools after its end.
    if list.incomplete.is_none() {
        let unknown = server.unknown_selects(&known);
        findings.extend(unknown.map(|it| ToolFinding::UnknownSelect(it.to_string())));
    }
    findings
}

/// Returns scanner findings about offered tools. Withheld tools are reported as withheld.
fn of_definitions(list: &ToolList) -> Vec<ToolFinding> {
    let of_tools = list.tools().iter().flat_map(|tool| {
        let findings = scan::scan(&tool.definition).into_iter();
        findings.map(|finding| ToolFinding::Definition {
            tool: tool.name.to_string(),
            finding,
        })
    });
    let instructions = list.introduction.instructions.as_deref();
    let instructions = instructions
        .map(scan::instructions)
        .unwrap_or_default()
        .into_iter()
        .map(ToolFinding::Instructions);
    let mut findings: Vec<ToolFinding> = instructions.chain(of_tools).collect();
    let count = findings.len().saturating_sub(MAX_SCANNER_FINDINGS);
    if count > 0 {
        findings.truncate(MAX_SCANNER_FINDINGS);
        findings.push(ToolFinding::MoreDefinitions { count });
    }
    findings
}

/// Returns scanner findings about the tools of several servers together.
fn of_several(probed: &[&ProbeResult]) -> Vec<ToolFinding> {
    let lists = probed.iter().filter_map(|probed| {
        let list = probed.tools.as_ref().ok()?;
        let tools = list.tools().iter();
        Some(ServerTools {
            server: probed.server.name.as_str(),
            tools: tools.map(|it| (it.name.as_str(), &it.definition)).collect(),
        })
    });
    let lists: Vec<ServerTools<'_>> = lists.collect();
    let findings = scan::across(&lists).into_iter();
    findings.map(ToolFinding::Across).collect()
}

/// Returns true if clients see the tools of a toolbox under their own names.
fn is_shown(config: &Config, probed: &ProbeResult) -> bool {
    matches!(&config.tool_mode, ToolMode::Native(shown) if *shown == probed.toolbox)
}

/// Returns findings about names that clients cannot use. Dynamic mode makes valid names itself.
fn of_names(list: &ToolList, probed: &ProbeResult, config: &Config) -> Vec<ToolFinding> {
    if config.tool_mode == ToolMode::Dynamic {
        return Vec::new();
    }
    let is_shown = is_shown(config, probed);
    // One finding for all tools and clients, not one per tool.
    let (mut long, mut refused) = (AffectedTools::default(), AffectedTools::default());
    for client in CLIENTS {
        let Some(limit) = limits(client.name).name else {
            continue;
        };
        for tool in list.tools() {
            match limit.fault(OWN_NAME, tool.name.as_str()) {
                Some(NameFault::TooLong { .. }) => long.add(tool.name.as_str(), client.title),
                Some(NameFault::Character { .. }) => refused.add(tool.name.as_str(), client.title),
                None => {}
            }
        }
    }
    let mut findings = Vec::new();
    if !long.tools.is_empty() {
        findings.push(ToolFinding::LongNames {
            tools: long.tools,
            clients: long.clients,
            is_shown,
        });
    }
    // Outside of native mode clients never see these characters.
    if is_shown && !refused.tools.is_empty() {
        findings.push(ToolFinding::RefusedNames {
            tools: refused.tools,
            clients: refused.clients,
        });
    }
    findings
}

/// Tools with a problem, and the clients that it affects.
#[derive(Default)]
struct AffectedTools {
    tools: Vec<String>,
    clients: Vec<&'static str>,
}

impl AffectedTools {
    fn add(&mut self, tool: &str, client: &'static str) {
        if !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
        if !self.clients.contains(&client) {
            self.clients.push(client);
        }
    }
}

/// Returns findings about the servers of one toolbox together.
pub(super) fn of_toolbox(probed: &[&ProbeResult], config: &Config) -> Vec<Finding> {
    let mut by_name: IndexMap<&str, Vec<String>> = IndexMap::new();
    let mut count = 0;
    for probed in probed {
        for tool in probed.tools.iter().flat_map(|list| list.tools()) {
            count += 1;
            let servers = by_name.entry(tool.name.as_str()).or_default();
            servers.push(probed.server.name.to_string());
        }
    }
    let duplicates = by_name.into_iter().filter(|(_, servers)| servers.len() > 1);
    let mut findings: Vec<ToolFinding> = duplicates
        .map(|(tool, servers)| ToolFinding::DuplicateTool {
            tool: tool.to_owned(),
            servers,
        })
        .collect();
    findings.extend(of_several(probed));
    if probed
        .first()
        .is_some_and(|probed| is_shown(config, probed))
    {
        let over = CLIENTS.iter().filter_map(|client| {
            let most = limits(client.name).tools?.most;
            (count > most).then_some((client.title, most))
        });
        let clients: Vec<_> = over.collect();
        if !clients.is_empty() {
            findings.push(ToolFinding::TooMany { count, clients });
        }
    }
    findings.into_iter().map(Finding::Tools).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn a_start_is_slow_from_a_threshold_on() {
        let environment = Environment::new([], "/start".into(), None);
        let text =
            r#"{"toolboxes": {"a": {"description": "d", "mcpServers": {"b": {"command": "x"}}}}}"#;
        let loaded = parse(text, Path::new("c.json"), &environment).unwrap();
        let config = &loaded.config;
        let (name, toolbox) = config.toolboxes.first().unwrap();
        let codes = |took: Duration| {
            let probed = ProbeResult {
                is_hosted: false,
                toolbox: name.clone(),
                server: Arc::clone(&toolbox.servers[0]),
                tools: Ok(Arc::default()),
                took,
            };
            let findings = of_server(&probed, config, &environment);
            findings.iter().map(Finding::code).collect::<Vec<_>>()
        };
        assert_eq!(codes(SLOW_START), ["slow_start", "no_tools"]);
        assert_eq!(codes(SLOW_START / 2), ["no_tools"]);
    }
}
