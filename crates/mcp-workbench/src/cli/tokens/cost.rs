//! What things cost: the definitions of each server, the workbench itself, and opening a toolbox.

use std::sync::Arc;

use super::estimate::tokens;
use crate::{
    cli::probe::Probed,
    config::{Config, Detail, ToolMode, Toolbox},
    downstream::{ToolDefinition, ToolList},
    ident::ToolboxName,
    meta::{self, DEFAULT_HITS},
    toolbox::{Opened, ServerFailure, line, render_opened, shown_name},
    wire::{ObjectText, RawJson},
    workbench::Workbench,
};

/// The members of a definition that clients put before their models.
const READ_BY_MODELS: [&str; 3] = ["name", "description", "inputSchema"];

/// The tokens of the first line of an answer of `search_tools`.
const HEADING: usize = 22;

pub(super) struct Costs {
    pub(super) file: String,
    /// What a model has to read of the workbench before anything is opened.
    pub(super) start: Start,
    /// The toolboxes, in the order of the file.
    pub(super) toolboxes: Vec<ToolboxCost>,
    /// The detail in which toolboxes are opened unless a call chooses.
    pub(super) open_detail: Detail,
    /// The toolbox that native mode shows as it is.
    native: Option<ToolboxName>,
}

/// What a model reads of the workbench at the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// The definitions of the meta-tools.
    pub(super) definitions: usize,
    pub(super) instructions: usize,
}

pub(super) struct ToolboxCost {
    pub(super) name: ToolboxName,
    /// What `open_toolbox` answers; nothing if it cannot be opened.
    pub(super) opened: Option<OpenCost>,
    pub(super) servers: Vec<ServerCost>,
}

/// What opening a toolbox costs, by level of detail.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenCost([usize; Detail::ALL.len()]);

pub(super) struct ServerCost {
    pub(super) name: String,
    /// Each tool with its tokens, or why the server is not up.
    pub(super) tools: Result<Vec<(String, usize)>, String>,
    /// What the server says of itself.
    pub(super) instructions: usize,
    /// The signatures of all tools, as a search shows them.
    signatures: usize,
}

impl Start {
    /// What the meta-tools and the instructions of a workbench cost.
    pub(super) fn of(workbench: &Workbench) -> Self {
        let definitions = meta::definitions(workbench);
        let instructions = meta::instructions(&workbench.config());
        Self {
            definitions: definitions.iter().map(read_by_models).sum(),
            instructions: tokens(&instructions),
        }
    }

    pub(super) fn total(self) -> usize {
        self.definitions + self.instructions
    }
}

impl Costs {
    /// Nothing counted but the start.
    pub(super) fn new(config: &Config, start: Start) -> Self {
        Self {
            file: config.file.display().to_string(),
            start,
            toolboxes: Vec::new(),
            open_detail: config.open_detail,
            native: match &config.tool_mode {
                ToolMode::Native(toolbox) => Some(toolbox.clone()),
                ToolMode::Proxy | ToolMode::Dynamic => None,
            },
        }
    }

    /// Adds a toolbox with what was found of its servers.
    pub(super) fn add(&mut self, toolbox: &Arc<Toolbox>, found: &[&Probed]) {
        self.toolboxes.push(ToolboxCost {
            name: toolbox.name.clone(),
            opened: opened(toolbox, found).as_ref().map(OpenCost::of),
            servers: found.iter().map(|probed| ServerCost::of(probed)).collect(),
        });
    }

    /// What all servers cost together where each is a server of the client.
    pub(super) fn flat(&self) -> usize {
        self.toolboxes.iter().map(ToolboxCost::flat).sum()
    }

    /// How many tools there are.
    pub(super) fn tools(&self) -> usize {
        let servers = self.toolboxes.iter().flat_map(|it| &it.servers);
        servers.map(ServerCost::count).sum()
    }

    /// What an answer of `search_tools` costs on average, if any tool is as likely as another to be found.
    pub(super) fn searched(&self) -> Option<usize> {
        let servers = self.toolboxes.iter().flat_map(|it| &it.servers);
        let signatures: usize = servers.map(|server| server.signatures).sum();
        let shown = DEFAULT_HITS.min(self.tools());
        let each = signatures.checked_div(self.tools())?;
        Some(shown * each + HEADING)
    }

    /// What a model has to read at the start through the workbench: in native mode a whole toolbox.
    pub(super) fn at_start(&self) -> usize {
        let shown = self.native.as_ref();
        let shown = shown.and_then(|name| self.toolboxes.iter().find(|it| it.name == *name));
        shown.map_or(self.start.total(), ToolboxCost::flat)
    }

    /// Whether a toolbox is shown as it is.
    pub(super) fn is_native(&self) -> bool {
        self.native.is_some()
    }

    /// The servers that are not up, and why.
    pub(super) fn failed(&self) -> Vec<(String, &str)> {
        let mut failed = Vec::new();
        for toolbox in &self.toolboxes {
            for server in &toolbox.servers {
                if let Err(error) = &server.tools {
                    failed.push((format!("{}/{}", toolbox.name, server.name), error.as_str()));
                }
            }
        }
        failed
    }

    /// The largest definitions with their places, the largest first.
    pub(super) fn largest(&self, most: usize) -> Vec<LargeTool<'_>> {
        let mut all = Vec::new();
        for toolbox in &self.toolboxes {
            for server in &toolbox.servers {
                let tools = server.tools.iter().flatten();
                all.extend(tools.map(|(tool, tokens)| LargeTool {
                    toolbox: toolbox.name.as_str(),
                    server: &server.name,
                    tool,
                    tokens: *tokens,
                }));
            }
        }
        all.sort_by_key(|tool| std::cmp::Reverse(tool.tokens));
        all.truncate(most);
        all
    }
}

/// The toolbox as `open_toolbox` would show it; nothing if none of several servers is up.
fn opened(toolbox: &Arc<Toolbox>, found: &[&Probed]) -> Option<Opened> {
    let mut catalogue = Vec::new();
    let mut failures = Vec::new();
    for probed in found {
        let server = probed.server.name.clone();
        match &probed.tools {
            Ok(list) => catalogue.push((server, Arc::clone(list))),
            Err(error) => failures.push(ServerFailure {
                toolbox: toolbox.name.clone(),
                server,
                error: Arc::clone(error),
            }),
        }
    }
    if catalogue.is_empty() && !failures.is_empty() {
        return None;
    }
    let connected = catalogue.len();
    Some(Opened::new(
        Arc::clone(toolbox),
        catalogue,
        connected,
        failures,
    ))
}

impl OpenCost {
    fn of(opened: &Opened) -> Self {
        Self(Detail::ALL.map(|detail| {
            let content = render_opened(opened, detail).member("content");
            let content = content.and_then(|it| it.elements()).unwrap_or_default();
            let text = content.first().and_then(|it| it.member("text"));
            let text = text.as_ref().and_then(RawJson::as_text);
            tokens(&text.unwrap_or_default())
        }))
    }

    /// Returns the cost in a detail.
    pub(super) fn in_detail(self, detail: Detail) -> usize {
        self.0[detail as usize]
    }
}

/// A tool among the largest.
#[derive(Debug, serde::Serialize)]
pub(super) struct LargeTool<'a> {
    pub(super) toolbox: &'a str,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) tokens: usize,
}

impl ToolboxCost {
    /// What its servers cost where each is a server of the client.
    pub(super) fn flat(&self) -> usize {
        self.servers.iter().map(ServerCost::total).sum()
    }
}

impl ServerCost {
    fn of(probed: &Probed) -> Self {
        let instructions = |list: &ToolList| {
            let instructions = list.introduction.instructions.as_deref();
            tokens(instructions.unwrap_or_default())
        };
        Self {
            name: probed.server.name.to_string(),
            instructions: probed.tools.as_ref().map_or(0, |list| instructions(list)),
            tools: match &probed.tools {
                Ok(list) => Ok(list.tools().iter().map(tool_cost).collect()),
                Err(error) => Err(error.to_string()),
            },
            signatures: signatures(probed),
        }
    }

    /// How many tools it has.
    pub(super) fn count(&self) -> usize {
        self.tools.as_ref().map_or(0, Vec::len)
    }

    /// Its definitions and its instructions.
    pub(super) fn total(&self) -> usize {
        let tools = self.tools.iter().flatten().map(|(_, tokens)| tokens);
        tools.sum::<usize>() + self.instructions
    }
}

/// What the tools of a server cost as hits of a search.
fn signatures(probed: &Probed) -> usize {
    let tools = probed.tools.iter().flat_map(|list| list.tools());
    let names = [probed.toolbox.as_str(), probed.server.name.as_str()];
    let place = names.map(shown_name).join(" ");
    let lines = tools.map(|tool| format!("{place} {}\n", line(tool, Detail::Signature)));
    lines.map(|line| tokens(&line)).sum()
}

fn tool_cost(tool: &ToolDefinition) -> (String, usize) {
    (tool.name.to_string(), read_by_models(&tool.definition))
}

/// The tokens of what a model reads of a definition.
fn read_by_models(definition: &RawJson) -> usize {
    let members = definition.members().unwrap_or_default();
    let read = members
        .iter()
        .filter(|member| READ_BY_MODELS.contains(&member.key.as_ref()));
    let text = read.fold(ObjectText::new(), ObjectText::relay).finish();
    tokens(text.minified().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_do_not_read_costs_nothing() {
        let cost = |text: &str| read_by_models(&RawJson::parse(&text.to_owned().into()).unwrap());
        let plain = cost(r#"{"name":"a","description":"b c","inputSchema":{"type":"object"}}"#);
        assert!(plain > 5);
        assert_eq!(
            cost(
                r#"{"name": "a", "_meta": {"x": "y"}, "description": "b c",
                "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}"#
            ),
            plain
        );
    }
}
