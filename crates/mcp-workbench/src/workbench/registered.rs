//! The tools of an open toolbox under the names that dynamic mode registers.

use std::sync::Arc;

use ident::ToolIdentifier;
use rawjson::RawJson;

use crate::toolbox::{Registry, Toolbox};

/// Registers every tool of an open toolbox, and returns them in the order of the file.
pub(super) fn register(
    registry: &Registry,
    toolbox: &Toolbox,
) -> Vec<(Arc<str>, ToolIdentifier, RawJson)> {
    let mut registered = Vec::new();
    for (server, list) in toolbox.catalogue().lists() {
        for tool in list.tools() {
            let identifier = ToolIdentifier {
                toolbox: toolbox.name().clone(),
                server: server.clone(),
                tool: tool.name.clone(),
            };
            let name = registry.register(&identifier);
            registered.push((name, identifier, tool.definition.clone()));
        }
    }
    registered
}

/// Returns the withheld tools of an open toolbox, in the order of the file.
pub(super) fn withheld(toolbox: &Toolbox) -> Vec<ToolIdentifier> {
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
