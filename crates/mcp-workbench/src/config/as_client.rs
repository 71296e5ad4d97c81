//! Clients of the configuration: a program that is started with `--as NAME`, or whose token has the name, gets the
//! configuration with the toolboxes, permissions and budget of that client, and nothing else of it.

use std::sync::Arc;

use ident::{ClientName, ToolboxName};
use thiserror::Error;

use super::{
    auth::ClientClaims,
    limits::Limits,
    permissions::{ClientRules, Permissions},
    resolved::{Config, Server, ToolMode, Toolbox},
};
use crate::{near::nearest, visible::visible};

/// A client of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredClient {
    /// The users that it stands for; `None` if only a name or a token makes somebody this client.
    pub claims: Option<ClientClaims>,
    /// The toolboxes that it gets; `None` for all.
    pub toolboxes: Option<Vec<ToolboxName>>,
    /// Rules for the tools of all of its servers, besides those of the servers.
    pub permissions: Permissions,
    pub budget: ClientBudget,
    /// Those of the file, as far as it has none of its own.
    pub limits: Limits,
}

/// The budget of a client for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientBudget {
    OfServers,
    /// Its own; `None` if results are sent whole.
    Own(Option<usize>),
}

/// The reason why a client cannot be served.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error(
        "there is no client `{}` in the configuration\n  hint: {}",
        visible(name),
        unknown_remedy(near.as_deref(), known)
    )]
    Unknown {
        name: String,
        near: Option<String>,
        known: Vec<String>,
    },
    #[error(
        "client `{client}` does not have the toolbox `{toolbox}`, which native mode shows\n  \
         hint: add it to the toolboxes of the client, or name another with --native"
    )]
    NotNative {
        client: ClientName,
        toolbox: ToolboxName,
    },
}

fn unknown_remedy(near: Option<&str>, known: &[String]) -> String {
    if known.is_empty() {
        return "it has no `clients`".to_owned();
    }
    let names = known
        .iter()
        .map(|it| format!("`{}`", visible(it)))
        .collect::<Vec<_>>()
        .join(", ");
    match near {
        Some(near) => format!("did you mean `{}`? Its clients are {names}", visible(near)),
        None => format!("its clients are {names}"),
    }
}

/// Returns the configuration as one of its clients gets it.
pub(crate) fn as_client(config: Config, name: &str) -> Result<Config, ClientError> {
    let Some((name, client)) = config.clients.get_key_value(name) else {
        let known = config.clients.keys().map(ClientName::as_str);
        return Err(ClientError::Unknown {
            near: nearest(name, known.clone()).map(str::to_owned),
            known: known.map(str::to_owned).collect(),
            name: name.to_owned(),
        });
    };
    let is_its_own = |toolbox: &ToolboxName| match &client.toolboxes {
        Some(toolboxes) => toolboxes.contains(toolbox),
        None => true,
    };
    // Native mode shows this toolbox and nothing else, so that a client without it would see nothing.
    if let ToolMode::Native(toolbox) = &config.tool_mode
        && !is_its_own(toolbox)
    {
        return Err(ClientError::NotNative {
            client: name.clone(),
            toolbox: toolbox.clone(),
        });
    }
    let toolboxes = config
        .toolboxes
        .iter()
        .filter(|(toolbox, _)| is_its_own(toolbox))
        .map(|(toolbox, all)| {
            let servers = all.servers.iter().map(|(server, entry)| {
                let entry = narrowed(entry, name, client);
                (server.clone(), Arc::new(entry))
            });
            let narrowed = Toolbox {
                servers: servers.collect(),
                ..Toolbox::clone(all)
            };
            (toolbox.clone(), Arc::new(narrowed))
        });
    Ok(Config {
        toolboxes: toolboxes.collect(),
        limits: client.limits,
        client: Some(name.clone()),
        whole: Some(config.toolboxes.clone()),
        ..config
    })
}

/// Returns a server with the rules and the budget of a client.
fn narrowed(server: &Server, name: &ClientName, client: &ConfiguredClient) -> Server {
    let mut server = server.clone();
    if !client.permissions.is_empty() {
        server.permissions.client = Some(Box::new(ClientRules {
            name: name.clone(),
            rules: client.permissions.clone(),
        }));
    }
    if let ClientBudget::Own(budget) = client.budget {
        server.max_result_chars = budget;
    }
    server
}
