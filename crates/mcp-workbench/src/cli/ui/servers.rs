//! The state of all servers, in words.

use std::{fs, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cli::{check::server_target, doctor::remedy_of, shell::quoted},
    config::{Environment, Server},
    downstream::{Phase, ServerHandle},
    workbench::{OwnServer, Workbench, own_servers},
};

#[derive(Serialize)]
struct ListedServer {
    /// The client of the configuration that has it for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// The number that an action names, if the server was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<u64>,
    toolbox: String,
    server: String,
    target: String,
    /// `resting`, `starting`, `up` or `failed`.
    state: &'static str,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The command that signs in, if the server wants that.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The resident memory of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// The tools that are withheld.
    withheld: usize,
    /// The number of calls since this process began.
    calls: u64,
    stderr: Vec<String>,
}

/// Returns all servers of everybody in the order of the file, and then the others: those that clients have for themselves, and
/// further processes of one server.
pub(super) fn document(workbenches: &[Arc<Workbench>], environment: &Environment) -> Value {
    let config = workbenches[0].config();
    let mut listed = Vec::new();
    let known = own_servers(workbenches);
    for toolbox in config.toolboxes.values() {
        for server in toolbox.servers.values() {
            let own = known.iter().find(|own| {
                let place = own.server.identifier();
                own.client == config.client
                    && place.toolbox == toolbox.name
                    && place.server == server.name
            });
            let handle = own.map(|own| &own.server);
            let toolbox = toolbox.name.as_str();
            listed.push(ListedServer::of(toolbox, server, handle, environment));
        }
    }
    let is_listed = |listed: &[ListedServer], own: &OwnServer| {
        let number = Some(own.server.number());
        listed.iter().any(|it| it.instance == number)
    };
    for own in &known {
        if is_listed(&listed, own) {
            continue;
        }
        let (toolbox, entry) = (&own.server.identifier().toolbox, own.server.entry());
        let toolbox = toolbox.as_str();
        let server = ListedServer::of(toolbox, &entry.server, Some(&own.server), environment);
        listed.push(ListedServer {
            client: own.client.as_ref().map(ToString::to_string),
            ..server
        });
    }
    json!({ "servers": listed })
}

impl ListedServer {
    fn of(
        toolbox: &str,
        server: &Server,
        handle: Option<&Arc<ServerHandle>>,
        environment: &Environment,
    ) -> Self {
        let status = handle.map(|it| it.status()).unwrap_or_default();
        let login = || {
            let name = quoted(server.name.as_str());
            format!("mcp-workbench login {} {name}", quoted(toolbox))
        };
        let (state, error) = match &status.phase {
            Phase::Untried | Phase::Resting => ("resting", None),
            Phase::Starting => ("starting", None),
            Phase::Up => ("up", None),
            Phase::Failed(error) => ("failed", Some(error)),
        };
        let is_running = matches!(status.phase, Phase::Up | Phase::Starting);
        let process = handle.and_then(|it| it.process());
        let pid = process.as_ref().filter(|_| is_running).map(|it| it.pid);
        Self {
            client: None,
            instance: handle.map(|it| it.number()),
            toolbox: toolbox.to_owned(),
            server: server.name.to_string(),
            state,
            reason: error.map(ToString::to_string),
            remedy: error.map(|it| remedy_of(it, server, environment)),
            sign_in: error.and_then(|it| it.sign_in()).map(|_| login()),
            target: server_target(server),
            pid,
            memory_bytes: pid.and_then(resident_bytes),
            tools: status.tools.as_ref().map(|it| it.tools().len()),
            withheld: status.tools.as_ref().map_or(0, |it| it.withheld.len()),
            calls: handle.map_or(0, |it| it.calls()),
            stderr: process.map(|it| it.stderr()).unwrap_or_default(),
        }
    }
}

/// Returns the resident memory of a process, where the system reports it.
fn resident_bytes(pid: u32) -> Option<u64> {
    // A file of the kernel, which is read without waiting for a disk.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}
