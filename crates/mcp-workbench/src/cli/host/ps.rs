//! `ps`, `stop` and `restart`: the hosts of this user, their clients and their servers.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    thread::park_timeout,
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use thiserror::Error;

use crate::{
    cli::{CommandResult, configuration::find, output},
    config::Environment,
    host::{
        AttachError, ClientStatus, Connected, Demand, HostAnswer, HostFolder, HostStatus,
        LinkError, Selection, ServerStatus, connect, hosts,
    },
    toolbox::counted,
    visible::visible,
};

const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long a host may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(in crate::cli) struct PsArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print again every second
    #[arg(long)]
    watch: bool,
}

/// Arguments of `stop` and `restart`.
#[derive(Args)]
pub(in crate::cli) struct SelectionArguments {
    /// Only this server, as SERVER or TOOLBOX/SERVER; without it the host with all of its servers
    server: Option<String>,
}

/// Reasons why a host could not be asked.
#[derive(Debug, Error)]
enum AskError {
    #[error("cannot ask the host at {}: {error}", .socket.display())]
    NotConnected { socket: PathBuf, error: AttachError },
    #[error("the host at {} did not answer: {error}", .socket.display())]
    NoAnswer { socket: PathBuf, error: LinkError },
    #[error("the host refused: {0}")]
    Refused(String),
    #[error("no running server of a host is called `{0}`\n  hint: `mcp-workbench ps` shows them")]
    NoServer(String),
}

/// A host that can be asked.
struct HostSocket {
    place: HostFolder,
    path: PathBuf,
}

impl HostSocket {
    fn connect(&self) -> Result<Connected, AskError> {
        connect(&self.place, &self.path).map_err(|error| AskError::NotConnected {
            socket: self.path.clone(),
            error,
        })
    }

    fn ask(&self, connected: &mut Connected, demand: &Demand) -> Result<HostAnswer, AskError> {
        match connected.ask(demand) {
            Ok(HostAnswer::Refused { reason }) => Err(AskError::Refused(reason)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(AskError::NoAnswer {
                socket: self.path.clone(),
                error,
            }),
        }
    }

    fn status(&self) -> Result<HostStatus, AskError> {
        match self.ask(&mut self.connect()?, &Demand::Status)? {
            HostAnswer::Status(status) => Ok(*status),
            _ => Err(AskError::NoAnswer {
                socket: self.path.clone(),
                error: LinkError::Malformed,
            }),
        }
    }
}

/// Returns the hosts of the configuration that `--config` names, or all hosts of the user. Sockets without a process are left
/// out.
fn sockets(
    config: Option<&Path>,
    environment: &Environment,
) -> Result<Vec<HostSocket>, Box<dyn std::error::Error>> {
    let places = match config {
        Some(config) => vec![HostFolder::of(
            &find(Some(config), environment)?,
            environment,
        )?],
        None => hosts(environment),
    };
    let mut alive = Vec::new();
    for place in places {
        for path in place.sockets() {
            if HostFolder::is_alive(&path) {
                let place = place.clone();
                alive.push(HostSocket { place, path });
            }
        }
    }
    Ok(alive)
}

/// Returns the statuses of the hosts of a configuration.
pub(super) fn statuses(
    file: &Path,
    environment: &Environment,
) -> Result<Vec<HostStatus>, Box<dyn std::error::Error>> {
    let sockets = sockets(Some(file), environment)?;
    Ok(sockets.iter().filter_map(|it| it.status().ok()).collect())
}

pub(in crate::cli) fn ps(
    config: Option<&Path>,
    arguments: &PsArguments,
    environment: &Environment,
) -> CommandResult {
    loop {
        let mut statuses = Vec::new();
        for socket in sockets(config, environment)? {
            match socket.status() {
                Ok(status) => statuses.push(status),
                Err(error) => output::remark(&error.to_string()),
            }
        }
        let text = if arguments.json {
            json_line(&statuses, arguments.watch)
        } else {
            table(&statuses)
        };
        // Also ends when nobody reads any more, as in `ps --watch | head`.
        if !output::try_data(&text) || !arguments.watch {
            return Ok(ExitCode::SUCCESS);
        }
        park_timeout(WATCH_INTERVAL);
    }
}

/// The document of `ps --json`.
#[derive(Serialize)]
struct Document<'a> {
    hosts: &'a [HostStatus],
}

/// Returns the document, on one line if others follow.
fn json_line(hosts: &[HostStatus], is_one_of_many: bool) -> String {
    let document = Document { hosts };
    let text = if is_one_of_many {
        serde_json::to_string(&document)
    } else {
        serde_json::to_string_pretty(&document)
    };
    text.expect("a status is plain data") + "\n"
}

fn table(statuses: &[HostStatus]) -> String {
    if statuses.is_empty() {
        return "no host runs\n".to_owned();
    }
    let hosts: Vec<String> = statuses.iter().map(host_text).collect();
    hosts.join("\n")
}

fn host_text(host: &HostStatus) -> String {
    let mut text = String::new();
    let draining = if host.draining {
        ", not accepting new clients"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "host {} of {} (version {}, up {}, {}{draining})",
        host.pid,
        visible(&host.config),
        visible(&host.build.version),
        duration(host.uptime_seconds),
        memory(host.memory_bytes),
    );
    for client in &host.clients {
        let _ = writeln!(text, "  client {}", client_text(client));
    }
    for server in &host.servers {
        let _ = writeln!(text, "  server {}", server_text(server));
    }
    text
}

fn client_text(client: &ClientStatus) -> String {
    format!(
        "#{} {} (pid {}) in {}: {} running, up {}",
        client.number,
        visible(client.program.as_deref().unwrap_or("unknown")),
        client.pid,
        visible(&client.folder),
        client.running,
        duration(client.uptime_seconds),
    )
}

fn server_text(server: &ServerStatus) -> String {
    let name = format!("{}/{}", visible(&server.toolbox), visible(&server.server));
    let mut parts = vec![visible(&server.state).into_owned()];
    parts.extend(server.pid.map(|pid| format!("pid {pid}")));
    parts.extend(server.memory_bytes.map(|bytes| memory(Some(bytes))));
    let count = |count: u64, what| counted(usize::try_from(count).unwrap_or(usize::MAX), what);
    parts.push(count(server.calls, "call"));
    parts.extend(
        server
            .uptime_seconds
            .map(|it| format!("up {}", duration(it))),
    );
    parts.push(count(server.restarts, "restart"));
    let clients: Vec<String> = server.clients.iter().map(|it| format!("#{it}")).collect();
    parts.push(format!("clients {}", clients.join(" ")));
    let apart = server
        .apart
        .as_deref()
        .map(|reason| format!("; not shared: {}", visible(reason)));
    format!("{name}: {}{}", parts.join(", "), apart.unwrap_or_default())
}

fn memory(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
        None => "memory unknown".to_owned(),
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

pub(in crate::cli) fn stop(
    config: Option<&Path>,
    arguments: &SelectionArguments,
    environment: &Environment,
) -> CommandResult {
    change(config, arguments, environment, "stopped", Demand::Stop)
}

pub(in crate::cli) fn restart(
    config: Option<&Path>,
    arguments: &SelectionArguments,
    environment: &Environment,
) -> CommandResult {
    change(config, arguments, environment, "restarted", Demand::Restart)
}

fn change(
    config: Option<&Path>,
    arguments: &SelectionArguments,
    environment: &Environment,
    done: &str,
    demand: fn(Selection) -> Demand,
) -> CommandResult {
    let selection = selection(arguments.server.as_deref());
    let mut changed = 0;
    let sockets = sockets(config, environment)?;
    for socket in &sockets {
        let mut connected = socket.connect()?;
        let answer = socket.ask(&mut connected, &demand(selection.clone()))?;
        if let HostAnswer::Done { servers } = answer {
            changed += servers;
        }
        if selection == Selection::default() {
            // A command that follows must not find the host that is about to end.
            connected.wait_for_end(END_TIMEOUT);
            let pid = connected.greeting.pid;
            output::data(&format!("{done} the host {pid} and its servers\n"));
        }
    }
    match &arguments.server {
        Some(name) if changed == 0 => Err(AskError::NoServer(visible(name).into_owned()).into()),
        Some(name) => {
            output::data(&format!("{done} {} ({changed})\n", visible(name)));
            Ok(ExitCode::SUCCESS)
        }
        None if sockets.is_empty() => {
            output::data("no host runs\n");
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Parses `SERVER` or `TOOLBOX/SERVER`.
fn selection(name: Option<&str>) -> Selection {
    let Some(name) = name else {
        return Selection::default();
    };
    let (toolbox, server) = match name.split_once('/') {
        Some((toolbox, server)) => (Some(toolbox.to_owned()), server),
        None => (None, name),
    };
    Selection {
        toolbox,
        server: Some(server.to_owned()),
    }
}
