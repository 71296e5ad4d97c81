//! The names by which scripts call tools: `tools.<server>.<tool>`. A server whose name two toolboxes have is
//! `tools["<toolbox>/<server>"]`. Names are compared, never parsed.

use std::{collections::HashMap, sync::Arc};

use ident::{ServerName, ToolIdentifier, ToolboxName};
use script::{Failure, tool_name};

use crate::{
    downstream::{ServerHandle, ToolDefinition, ToolList},
    near::{nearest, nearest_few},
    toolbox::Toolbox,
    visible::visible,
    workbench::Workbench,
};

/// The number of tools that an error suggests.
const MAX_SUGGESTIONS: usize = 3;

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
    // Over all toolboxes, open or not: opening one must not change the names of servers in another.
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
    let named = ToolIdentifier {
        toolbox: found.toolbox.clone(),
        server: found.server.clone(),
        tool: tool.into(),
    };
    match found.handle.status().tools {
        Some(list) => find_listed(&list, named, server),
        // The call waits until the server has listed its tools.
        None => Ok(named),
    }
}

/// Finds a tool whose server had not listed its tools when the script named it.
pub(super) fn find_again(
    workbench: &Workbench,
    named: ToolIdentifier,
) -> Result<ToolIdentifier, Failure> {
    let toolbox = workbench.toolbox(named.toolbox.as_str());
    let server = toolbox.and_then(|it| it.server(&named.server));
    match server.and_then(|it| it.status().tools) {
        Some(list) => {
            let server = named.server.to_string();
            find_listed(&list, named, &server)
        }
        None => Ok(named),
    }
}

/// Finds a tool in the list of its server, which the script calls `server`.
fn find_listed(
    list: &ToolList,
    named: ToolIdentifier,
    server: &str,
) -> Result<ToolIdentifier, Failure> {
    let tool = named.tool.as_str();
    if let Some(definition) = find_tool(list, tool) {
        let tool = definition.name.clone();
        return Ok(ToolIdentifier { tool, ..named });
    }
    // The pipeline refuses it and says why.
    if is_refused(list, tool) {
        return Ok(named);
    }
    let names = list.tools().iter().map(|it| it.name.as_str());
    Err(unknown_tool(server, tool, names))
}

/// Finds a tool by its exact name, or by a name without characters that need quotes.
pub(super) fn find_tool<'a>(list: &'a ToolList, tool: &str) -> Option<&'a ToolDefinition> {
    list.get(tool).or_else(|| {
        let tools = list.tools().iter();
        // A refused tool is not replaced by one with a similar name.
        only(tools.filter(|it| !is_refused(list, tool) && snake_case(it.name.as_str()) == tool))
    })
}

/// Returns whether the server has a tool of this name that is denied or withheld.
fn is_refused(list: &ToolList, tool: &str) -> bool {
    list.denied(tool).is_some() || list.withheld_as(tool).is_some()
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
        "Unknown server '{}'.{} (search_tools to find tools)",
        visible(name),
        near.unwrap_or_default()
    )))
}

fn unknown_tool<'a>(server: &str, tool: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let near = nearest_few(tool, names, MAX_SUGGESTIONS);
    let near = if near.is_empty() {
        String::new()
    } else {
        format!(" Did you mean: {}?", visible(&near.join(", ")))
    };
    not_found(format!(
        "Unknown tool {}.{near} (search_tools to find others)",
        visible(&tool_name(server, tool)),
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
