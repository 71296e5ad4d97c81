//! The servers that the clients of a shared configuration have in common now, for `doctor` and for commands that need not
//! start them.

use std::fmt::Write;

use serde::Serialize;

use crate::{
    cli::terminal::count,
    config::{Config, Environment, Server, Share},
    downstream::{ServerHandle, ToolCache},
    visible::visible,
};

/// The state of a shared configuration.
#[derive(Default, Serialize)]
pub(in crate::cli) struct Sharing {
    /// The process of the host; absent if none runs.
    host: Option<u32>,
    /// The number of its clients.
    clients: usize,
    /// The reason why clients are served alone, if no host is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The servers of the host.
    servers: Vec<SharedServer>,
    /// The servers of the configuration that every client has for itself.
    per_client: Vec<PerClient>,
}

#[derive(Serialize)]
struct SharedServer {
    toolbox: String,
    server: String,
    state: String,
    /// The number of clients that use it.
    clients: usize,
    /// The reason why there is another server of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    apart: Option<String>,
}

#[derive(Serialize)]
struct PerClient {
    toolbox: String,
    server: String,
    reason: &'static str,
}

impl Sharing {
    /// Asks the host of a configuration; `None` if the configuration is not shared and no client shares it by an option.
    pub(in crate::cli) fn of(config: &Config, environment: &Environment) -> Option<Self> {
        #[cfg(unix)]
        let has_host = crate::host::has_host(&config.file, environment);
        #[cfg(not(unix))]
        let has_host = false;
        if !config.shared && !has_host {
            return None;
        }
        let mut sharing = Self {
            per_client: per_client(config),
            ..Self::default()
        };
        #[cfg(unix)]
        sharing.ask_host(config, environment);
        #[cfg(not(unix))]
        {
            let _ = environment;
            sharing.problem = Some("this system cannot share servers between clients".into());
        }
        Some(sharing)
    }

    #[cfg(unix)]
    fn ask_host(&mut self, config: &Config, environment: &Environment) {
        let statuses = match super::ps::statuses(&config.file, environment) {
            Ok(statuses) => statuses,
            Err(error) => {
                self.problem = Some(error.to_string());
                return;
            }
        };
        // A host that takes no new clients is about to end, and another one takes its place.
        let Some(host) = statuses.into_iter().find(|host| !host.draining) else {
            return;
        };
        self.host = Some(host.pid);
        self.clients = host.clients.len();
        let servers = host.servers.into_iter().map(|it| SharedServer {
            toolbox: it.toolbox,
            server: it.server,
            state: it.state,
            clients: it.clients.len(),
            apart: it.apart,
        });
        self.servers = servers.collect();
    }

    /// Returns whether a server is up in the host.
    pub(in crate::cli) fn is_up(&self, server: &ServerHandle) -> bool {
        let place = server.identifier();
        self.servers.iter().any(|it| {
            it.state == "up"
                && it.toolbox == place.toolbox.as_str()
                && it.server == place.server.as_str()
        })
    }

    /// Explains what is shared, and why something is not.
    pub(in crate::cli) fn text(&self) -> String {
        let mut text = match (&self.problem, self.host) {
            (Some(problem), _) => {
                format!("\nshared: clients are served alone: {}\n", visible(problem))
            }
            (None, None) => "\nshared: no host runs; the first client starts it\n".to_owned(),
            (None, Some(pid)) => {
                let clients = count(self.clients, "client");
                format!("\nshared: host {pid} has {clients}\n")
            }
        };
        for it in &self.servers {
            let name = format!("{}/{}", visible(&it.toolbox), visible(&it.server));
            let users = count(it.clients, "client");
            let apart = it.apart.as_ref().map_or_else(String::new, |reason| {
                format!(", apart from others: {}", visible(reason))
            });
            let state = visible(&it.state);
            let _ = writeln!(text, "  {name}: {state}, used by {users}{apart}");
        }
        for it in &self.per_client {
            let name = format!("{}/{}", visible(&it.toolbox), visible(&it.server));
            let _ = writeln!(text, "  {name}: one for each client: {}", it.reason);
        }
        text
    }
}

/// Returns the servers that are never shared.
fn per_client(config: &Config) -> Vec<PerClient> {
    let cache = ToolCache::of(config);
    let reason = |server: &Server| match server.share {
        Share::Client => Some("`share` is `client`"),
        Share::Auto if cache.asks_back(server) => Some("it asks its client back"),
        Share::Auto | Share::Machine | Share::Project => None,
    };
    let mut found = Vec::new();
    for toolbox in config.toolboxes.values() {
        for server in toolbox.servers.values() {
            found.extend(reason(server).map(|reason| PerClient {
                toolbox: toolbox.name.to_string(),
                server: server.name.to_string(),
                reason,
            }));
        }
    }
    found
}
