//! Token costs: the definitions of each server, the workbench itself, and opening a toolbox.

use std::sync::Arc;

use ident::ToolboxName;
use rawjson::{ObjectText, RawJson};

use super::estimate::tokens;
use crate::{
    call::ClientIdentity,
    cli::probe::ProbeResult,
    config::{Config, Detail, ToolMode, Toolbox},
    downstream::{ToolDefinition, ToolList},
    meta::{self, DEFAULT_HITS},
    toolbox::{Opened, ServerFailure, line, render_opened, shown_name},
    workbench::Workbench,
};

/// The members of a definition that clients show to their models.
const READ_BY_MODELS: [&str; 3] = ["name", "description", "inputSchema"];

/// The tokens of the first line of a `search_tools` result.
const HEADING: usize = 22;

pub(super) struct Costs {
    pub(super) file: String,
    /// The tokens of the workbench before anything is opened.
    pub(super) start: StartCost,
    /// The toolboxes, in the order of the file.
    pub(super) toolboxes: Vec<ToolboxCost>,
    /// The detail in which toolboxes are opened unless a call chooses.
    pub(super) open_detail: Detail,
    /// The toolbox of native mode.
    native: Option<ToolboxName>,
}

/// The tokens that a model reads of the workbench at the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartCost {
    /// The definitions of the meta-tools.
    pub(super) definitions: usize,
    pub(super) instructions: usize,
}

pub(super) struct ToolboxCost {
    pub(super) name: ToolboxName,
    /// The cost of opening it; `None` if it cannot be opened.
    pub(super) opened: Option<OpenCost>,
    pub(super) servers: Vec<ServerCost>,
}

/// The cost of opening a toolbox, by level of detail.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenCost([usize; Detail::ALL.len()]);

pub(super) struct ServerCost {
    pub(super) name: String,
    /// Each tool with its tokens, or the reason why the server failed.
    pub(super) tools: Result<Vec<(String, usize)>, String>,
    /// The tokens of the server's instructions.
    pub(super) instructions: usize,
    /// The tokens of the signatures of all tools, as a search shows them.
    signatures: usize,
}

impl StartCost {
    /// Counts the meta-tools and the instructions of a workbench.
    pub(super) fn of(workbench: &Workbench) -> Self {
        let definitions = meta::definitions(workbench, &ClientIdentity::default());
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
    /// Creates costs that contain only the start.
    pub(super) fn new(config: &Config, start: StartCost) -> Self {
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

    /// Adds a toolbox with its probed servers.
    pub(super) fn add(&mut self, toolbox: &Arc<Toolbox>, found: &[&ProbeResult]) {
        self.toolboxes.push(ToolboxCost {
            name: toolbox.name.clone(),
            opened: opened(toolbox, found).as_ref().map(OpenCost::of),
            servers: found.iter().map(|probed| ServerCost::of(probed)).collect(),
        });
    }

    /// Returns the cost of all servers without the workbench, each connected to the client itself.
    pub(super) fn flat(&self) -> usize {
        self.toolboxes.iter().map(ToolboxCost::flat).sum()
    }

    pub(super) fn tools(&self) -> usize {
        let servers = self.toolboxes.iter().flat_map(|it| &it.servers);
        servers.map(ServerCost::count).sum()
    }

    /// Returns the average cost of a `search_tools` result, if all tools are equally likely hits.
    pub(super) fn searched(&self) -> Option<usize> {
        let servers = self.toolboxes.iter().flat_map(|it| &it.servers);
        let signatures: usize = servers.map(|server| server.signatures).sum();
        let shown = DEFAULT_HITS.min(self.tools());
        let each = signatures.checked_div(self.tools())?;
        Some(shown * each + HEADING)
    }

    /// Returns the cost at the start through the workbench; in native mode that is a whole toolbox.
    pub(super) fn at_start(&self) -> usize {
        let shown = self
            .native
            .as_ref()
            .and_then(|name| self.toolboxes.iter().find(|it| it.name == *name));
        shown.map_or(self.start.total(), ToolboxCost::flat)
    }

    /// Returns true in native mode.
    pub(super) fn is_native(&self) -> bool {
        self.native.is_some()
    }

    /// Returns the servers that failed, with their errors.
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

    /// Returns the largest definitions, the largest first.
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

/// Returns the toolbox as `open_toolbox` would show it; `None` if all of its servers failed.
fn opened(toolbox: &Arc<Toolbox>, found: &[&ProbeResult]) -> Option<Opened> {
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
    // `open_toolbox` fails in this case, so there is no cost to report.
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
            let content = render_opened(opened, detail)
                .member("content")
                .and_then(|it| it.elements())
                .unwrap_or_default();
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

#[derive(Debug, serde::Serialize)]
pub(super) struct LargeTool<'a> {
    pub(super) toolbox: &'a str,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) tokens: usize,
}

impl ToolboxCost {
    /// Returns the cost of its servers without the workbench.
    pub(super) fn flat(&self) -> usize {
        self.servers.iter().map(ServerCost::total).sum()
    }
}

impl ServerCost {
    fn of(probed: &ProbeResult) -> Self {
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

    pub(super) fn count(&self) -> usize {
        self.tools.as_ref().map_or(0, Vec::len)
    }

    /// Returns the tokens of its definitions and instructions.
    pub(super) fn total(&self) -> usize {
        let tools = self.tools.iter().flatten().map(|(_, tokens)| tokens);
        tools.sum::<usize>() + self.instructions
    }
}

/// Counts the tools of a server as search hits.
fn signatures(probed: &ProbeResult) -> usize {
    let tools = probed.tools.iter().flat_map(|list| list.tools());
    let names = [probed.toolbox.as_str(), probed.server.name.as_str()];
    let place = names.map(shown_name).join(" ");
    let lines = tools.map(|tool| format!("{place} {}\n", line(tool, Detail::Signature)));
    lines.map(|line| tokens(&line)).sum()
}

fn tool_cost(tool: &ToolDefinition) -> (String, usize) {
    (tool.name.to_string(), read_by_models(&tool.definition))
}

/// Counts the members of a definition that models read.
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
    fn members_that_models_do_not_read_cost_nothing() {
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
