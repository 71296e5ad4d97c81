//! The names by which scripts call tools: `tools.<server>.<tool>`. A server whose name two toolboxes have is
//! `tools["<toolbox>/<server>"]`. Names are compared, never parsed.

use std::{collections::HashMap, sync::Arc};

use ident::{ServerName, ToolIdentifier, ToolboxName};
use script::{Failure, tool_name};

use crate::{
    downstream::ServerHandle, near::nearest, toolbox::Toolbox, visible::visible,
    workbench::Workbench,
};

/// A server, and the name that scripts have for it.
pub(super) struct NamedServer {
    pub(super) name: String,
    pub(super) toolbox: ToolboxName,
    pub(super) server: ServerName,
    pub(super) handle: Arc<ServerHandle>,
    /// True if the toolbox is open.
    is_open: bool,
}

/// Returns all servers with their names, in the order of the file.
pub(super) fn servers(workbench: &Workbench) -> Vec<NamedServer> {
    let toolboxes = workbench.toolbox_names();
    let toolboxes: Vec<Arc<Toolbox>> = toolboxes
        .iter()
        .filter_map(|name| workbench.toolbox(name.as_str()))
        .collect();
    let mut servers = Vec::new();
    for toolbox in &toolboxes {
        for (server, handle) in toolbox.contents().servers() {
            servers.push(NamedServer {
                name: server.to_string(),
                toolbox: toolbox.name().clone(),
                server: server.clone(),
                handle: Arc::clone(handle),
                is_open: toolbox.is_usable(),
            });
        }
    }
    let mut holders: HashMap<ServerName, usize> = HashMap::new();
    for server in &servers {
        *holders.entry(server.server.clone()).or_default() += 1;
    }
    for server in &mut servers {
        if holders
            .get(&server.server)
            .is_some_and(|holders| *holders > 1)
        {
            server.name = format!("{}/{}", server.toolbox, server.server);
        }
    }
    servers
}

/// Finds the tool that a script names.
pub(super) fn find(
    workbench: &Workbench,
    server: &str,
    tool: &str,
) -> Result<ToolIdentifier, Failure> {
    let servers = servers(workbench);
    let found = find_server(&servers, server)?;
    let tools = found.handle.status().tools;
    let name = match &tools {
        Some(list) if list.get(tool).is_none() => {
            // A withheld tool is not replaced by one with a similar name.
            let is_known = list.denied(tool).is_some() || list.withheld_as(tool).is_some();
            let names = || list.tools().iter().map(|it| it.name.as_str());
            match only(names().filter(|it| !is_known && snake_case(it) == tool)) {
                Some(alias) => alias.to_owned(),
                None if is_known => tool.to_owned(),
                None => return Err(unknown_tool(server, tool, names())),
            }
        }
        _ => tool.to_owned(),
    };
    Ok(ToolIdentifier {
        toolbox: found.toolbox.clone(),
        server: found.server.clone(),
        tool: name.as_str().into(),
    })
}

/// Finds the server of a name: by its exact name, by its name in an open toolbox, or by a name without characters that
/// need quotes.
fn find_server<'a>(servers: &'a [NamedServer], name: &str) -> Result<&'a NamedServer, Failure> {
    let exact = servers.iter().find(|it| it.name == name);
    let plain = || servers.iter().filter(|it| it.server.as_str() == name);
    let open = || only(plain().filter(|it| it.is_open));
    let alias = || only(servers.iter().filter(|it| snake_case(&it.name) == name));
    if let Some(found) = exact.or_else(open).or_else(alias) {
        return Ok(found);
    }
    let several: Vec<&str> = plain().map(|it| it.name.as_str()).collect();
    if !several.is_empty() {
        let several: Vec<String> = several.iter().map(|it| tool_name(it, "…")).collect();
        return Err(not_found(format!(
            "Several toolboxes have a server '{}'. Write one of: {}",
            visible(name),
            several.join(", ")
        )));
    }
    let names = servers.iter().map(|it| it.name.as_str());
    let near = nearest(name, names).map(|it| format!(" Did you mean: {}?", visible(it)));
    Err(not_found(format!(
        "Unknown server '{}'.{} (tools.search finds tools)",
        visible(name),
        near.unwrap_or_default()
    )))
}

fn unknown_tool<'a>(server: &str, tool: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let near = nearest(tool, names).map(|it| format!(" Did you mean: {}?", visible(it)));
    not_found(format!(
        "Unknown tool {}.{} (tools.search finds others)",
        visible(&tool_name(server, tool)),
        near.unwrap_or_default()
    ))
}

fn not_found(message: String) -> Failure {
    Failure {
        code: "tool_unknown".to_owned(),
        outcome: Some("not_sent".to_owned()),
        message,
    }
}

/// Returns the only item, if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Returns a name with every character that needs quotes in a script replaced by `_`.
fn snake_case(name: &str) -> String {
    let characters = name.chars();
    let plain = characters.map(|it| if it.is_ascii_alphanumeric() { it } else { '_' });
    plain.collect()
}
