//! The tools of open toolboxes that clients call by a name in `tools/list`.
//!
//! Dynamic mode registers every tool, under a name with its toolbox and its server. A client with MCP Apps also sees the
//! tools with a user interface, in every mode and under their own names: it decides by the listed definition whether to
//! show an interface, and an interface calls the tools of its server by the names that the server knows.
//!
//! An own name that several servers use belongs to none of them. The call does not say which interface makes it, and one
//! server's interface must not reach another server.

use std::sync::Arc;

use ident::{ServerIdentifier, ToolIdentifier};
use rawjson::RawJson;

use super::Workbench;
use crate::{
    call::ClientHandle,
    config::MetaTool,
    downstream::{ToolDefinition, ToolList},
    era::{Era, UI_EXTENSION},
    native::ui_claims,
    toolbox::{Registry, Toolbox},
};

/// A tool with the name that it has in `tools/list`.
pub(super) struct RegisteredTool {
    pub(super) name: Arc<str>,
    pub(super) tool: ToolIdentifier,
    pub(super) definition: RawJson,
}

/// The tool that a client means by a name.
pub(crate) enum NamedTool {
    /// A registered tool, or a withheld one that would have the name, so that a call gets the reason.
    Registered(ToolIdentifier),
    /// A tool of a server with a user interface, by its own name.
    Own(ToolIdentifier),
    /// Several servers with user interfaces have a tool of this name.
    Shared(Vec<ServerIdentifier>),
    Unknown,
}

/// Returns the tool that a client means by a name that is not a meta-tool's.
pub(super) fn named(workbench: &Workbench, name: &str, client: &dyn ClientHandle) -> NamedTool {
    let knows_apps = knows_apps(client);
    if (workbench.is_dynamic() || knows_apps)
        && let Some(tool) = registered(workbench, name)
    {
        return NamedTool::Registered(tool);
    }
    if !knows_apps {
        return NamedTool::Unknown;
    }
    let owners = AppServers::of(workbench).owners(name);
    match &owners[..] {
        [] => NamedTool::Unknown,
        [owner] => NamedTool::Own(identifier(owner, name)),
        _ => NamedTool::Shared(owners),
    }
}

/// Returns the definition of the tool with a name, as its server sent it. A name that several servers use has none.
pub(super) fn definition(workbench: &Workbench, name: &str) -> Option<RawJson> {
    let tool = workbench.registry.lookup(name).or_else(|| {
        let owners = AppServers::of(workbench).owners(name);
        let [owner] = &owners[..] else { return None };
        Some(identifier(owner, name))
    })?;
    let catalogue = workbench.toolbox(tool.toolbox.as_str())?.catalogue();
    let mut lists = catalogue.lists().iter();
    let (_, list) = lists.find(|(server, _)| *server == tool.server)?;
    Some(list.get(tool.tool.as_str())?.definition.clone())
}

/// Returns the tools that a client sees beside the meta-tools, in the order of the file.
pub(super) fn shown(workbench: &Workbench, client: &dyn ClientHandle) -> Vec<RegisteredTool> {
    let knows_apps = knows_apps(client);
    // In the modern era opening a toolbox must not change the list of a client that did not ask for more.
    if workbench.is_dynamic() && client.era() == Era::Legacy {
        let now = Arc::clone(&workbench.now.borrow());
        let toolboxes = now.toolboxes.values();
        let tools = toolboxes.flat_map(|toolbox| register(&workbench.registry, toolbox));
        let claims = knows_apps.then(|| ui_claims(&workbench.open_servers()));
        let tools = tools.map(|(name, tool, definition)| RegisteredTool {
            definition: match &claims {
                Some(claims) => claims.distinct(&definition, &tool.server_identifier()),
                None => definition.definition,
            },
            name,
            tool,
        });
        return tools.collect();
    }
    if knows_apps {
        AppServers::of(workbench).tools(workbench)
    } else {
        Vec::new()
    }
}

/// Registers every tool of an open toolbox, and returns them in the order of the file.
pub(super) fn register(
    registry: &Registry,
    toolbox: &Toolbox,
) -> Vec<(Arc<str>, ToolIdentifier, ToolDefinition)> {
    let mut registered = Vec::new();
    for (server, list) in toolbox.catalogue().lists() {
        for tool in list.tools() {
            let identifier = ToolIdentifier {
                toolbox: toolbox.name().clone(),
                server: server.clone(),
                tool: tool.name.clone(),
            };
            let name = registry.register(&identifier);
            registered.push((name, identifier, tool.clone()));
        }
    }
    registered
}

/// The servers of open toolboxes with a tool that has a user interface, in the order of the file.
struct AppServers(Vec<(ServerIdentifier, Arc<ToolList>)>);

impl AppServers {
    fn of(workbench: &Workbench) -> Self {
        let servers = workbench.open_servers().into_iter();
        let lists = servers.filter_map(|it| Some((it.identifier, it.handle.status().tools?)));
        Self(lists.filter(|(_, list)| list.has_ui()).collect())
    }

    /// Returns the servers with a tool of this name, even if it may not be called: then the call gets the reason.
    fn owners(&self, name: &str) -> Vec<ServerIdentifier> {
        let has = |list: &ToolList| {
            list.get(name).is_some()
                || list.denied(name).is_some()
                || list.withheld_as(name).is_some()
        };
        let owners = self.0.iter().filter(|(_, list)| has(list));
        owners.map(|(server, _)| server.clone()).collect()
    }

    /// Returns the tools that have a user interface or are for one, with the names that clients see.
    fn tools(&self, workbench: &Workbench) -> Vec<RegisteredTool> {
        let claims = ui_claims(&workbench.open_servers());
        let tools = self.0.iter().flat_map(|(server, list)| {
            let tools = list.tools().iter().filter(|tool| tool.ui.is_some());
            tools.map(move |tool| (server, tool))
        });
        let tools = tools.map(|(server, tool)| {
            let name = tool.name.as_str();
            let identifier = identifier(server, name);
            RegisteredTool {
                name: if self.can_list(name, &workbench.registry) {
                    name.into()
                } else {
                    workbench.registry.register(&identifier)
                },
                definition: claims.distinct(tool, server),
                tool: identifier,
            }
        });
        tools.collect()
    }

    /// Returns true if a tool can be listed under its own name: no other tool has it, now or later.
    fn can_list(&self, name: &str, registry: &Registry) -> bool {
        // A name of this form could be registered later for a tool of another server.
        let is_like_ours = name.matches("__").count() > 1;
        registry.fits(name)
            && !is_like_ours
            && MetaTool::named(name).is_none()
            && self.owners(name).len() == 1
    }
}

/// Returns true if a client shows user interfaces.
fn knows_apps(client: &dyn ClientHandle) -> bool {
    client.capabilities().has_extension(UI_EXTENSION)
}

/// Returns the tool that is registered under a name, or the withheld tool that would have it.
fn registered(workbench: &Workbench, name: &str) -> Option<ToolIdentifier> {
    let registry = &workbench.registry;
    registry.lookup(name).or_else(|| {
        if !workbench.is_dynamic() {
            return None;
        }
        let now = Arc::clone(&workbench.now.borrow());
        let mut withheld = now.toolboxes.values().flat_map(|it| withheld(it));
        withheld.find(|tool| registry.could_name(tool, name))
    })
}

/// Returns the withheld tools of an open toolbox, in the order of the file.
fn withheld(toolbox: &Toolbox) -> Vec<ToolIdentifier> {
    let catalogue = toolbox.catalogue();
    let tools = catalogue.lists().iter().flat_map(|(server, list)| {
        list.withheld.iter().map(|it| ToolIdentifier {
            toolbox: toolbox.name().clone(),
            server: server.clone(),
            tool: it.name.clone(),
        })
    });
    tools.collect()
}

fn identifier(server: &ServerIdentifier, tool: &str) -> ToolIdentifier {
    ToolIdentifier {
        toolbox: server.toolbox.clone(),
        server: server.server.clone(),
        tool: tool.into(),
    }
}
