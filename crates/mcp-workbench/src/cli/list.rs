//! `list`: shows the toolboxes, their servers and, with `--tools`, the tools of the servers.

use std::{path::Path, process::ExitCode, time::Duration};

use clap::Args;
use ident::{ServerName, ToolboxName};
use rawjson::RawJson;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    CommandResult,
    check::server_target,
    configuration::{choose_toolbox, load_configuration},
    host::Sharing,
    output,
    probe::{ProbeResult, probe_others, with_workbench},
    terminal::{Column, Ink, OutputStyle, Progress, Table, count, cut},
};
use crate::{
    config::{Config, Environment, RemoteProtocol, Server, ToolMode, Toolbox, Transport},
    downstream::{ToolCache, ToolDefinition, ToolList},
    visible::visible,
};

/// The number of characters of a tool's name and parameters that are shown.
const SIGNATURE_WIDTH: usize = 60;

/// The age of cached tools is shown in days, once they are a day old.
const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

#[derive(Args)]
pub(super) struct ListArguments {
    /// Only this toolbox
    toolbox: Option<String>,

    /// Start the servers and list their tools; those of a shared host are not started again
    #[arg(long)]
    tools: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &ListArguments,
    environment: &Environment,
) -> CommandResult {
    let mut config = load_configuration(config, environment)?.config;
    choose_toolbox(&mut config, arguments.toolbox.as_deref())?;
    let listing = Listing::of(&config);
    let listing = if arguments.tools {
        let progress = Progress::on_stderr(environment, "starting servers");
        let sharing = Sharing::of(&config, environment);
        let found = with_workbench(config, async |workbench| {
            probe_others(&workbench, None, sharing.as_ref(), &progress).await
        })?;
        // The servers are listed in the order of the file, whatever the order in which they came up.
        listing.with_tools(&found)
    } else {
        listing
    };
    if arguments.json {
        output::json(&listing);
    } else {
        output::data(&listing.render(OutputStyle::of_stdout(environment)));
    }
    Ok(if listing.failed() > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the document that `list --tools --json` prints for these results.
pub(super) fn document(config: &Config, found: &[ProbeResult]) -> Value {
    json!(Listing::of(config).with_tools(found))
}

#[derive(Serialize)]
struct Listing {
    file: String,
    tool_mode: &'static str,
    toolboxes: Vec<ListedToolbox>,
}

#[derive(Serialize)]
struct ListedToolbox {
    #[serde(serialize_with = "as_text")]
    name: ToolboxName,
    description: String,
    servers: Vec<ListedServer>,
    /// The names of disabled servers.
    disabled: Vec<String>,
}

#[derive(Serialize)]
struct ListedServer {
    #[serde(serialize_with = "as_text")]
    name: ServerName,
    /// `stdio`, `http`, `sse`, or `unset` if a variable is not set.
    transport: &'static str,
    /// Its command line or address, without secrets.
    target: String,
    /// The entry of the tool cache, under the name that it had in 1.0.0.
    #[serde(rename = "kept")]
    cached: Option<CachedTools>,
    #[serde(flatten)]
    found: Option<ServerStatus>,
}

/// The entry of a server in the tool cache.
#[derive(Serialize)]
struct CachedTools {
    tools: usize,
    age_seconds: u64,
}

/// The result of starting a server.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum ServerStatus {
    Up {
        protocol: String,
        product: Option<String>,
        /// The definitions, as the server sent them.
        tools: Vec<Value>,
    },
    Failed {
        error: String,
    },
}

impl Listing {
    fn of(config: &Config) -> Self {
        let cache = ToolCache::of(config);
        Self {
            file: config.file.display().to_string(),
            tool_mode: match config.tool_mode {
                ToolMode::Proxy => "proxy",
                ToolMode::Dynamic => "dynamic",
                ToolMode::Native(_) => "native",
            },
            toolboxes: config
                .toolboxes
                .values()
                .map(|it| listed(&cache, it))
                .collect(),
        }
    }

    fn with_tools(mut self, found: &[ProbeResult]) -> Self {
        for toolbox in &mut self.toolboxes {
            for server in &mut toolbox.servers {
                let mut of_server = found.iter();
                let probed = of_server
                    .find(|it| it.toolbox == toolbox.name && it.server.name == server.name);
                server.found = probed.map(ServerStatus::of);
            }
        }
        self
    }

    fn servers(&self) -> impl Iterator<Item = &ListedServer> {
        self.toolboxes.iter().flat_map(|it| &it.servers)
    }

    fn failed(&self) -> usize {
        let found = self.servers().filter_map(|server| server.found.as_ref());
        found
            .filter(|found| matches!(found, ServerStatus::Failed { .. }))
            .count()
    }

    fn render(&self, style: OutputStyle) -> String {
        let mut text = format!("{}\n", visible(&self.file));
        if self.toolboxes.is_empty() {
            text.push_str("no toolboxes\n");
        }
        for toolbox in &self.toolboxes {
            let name = style.paint(Ink::Strong, &visible(toolbox.name.as_str()));
            let description = visible(&toolbox.description);
            let lead = if description.is_empty() { "" } else { ": " };
            text.push_str(&format!("\n{name}{lead}{description}\n"));
            if toolbox.servers.iter().any(|server| server.found.is_some()) {
                for server in &toolbox.servers {
                    text.push_str(&server.render(style));
                }
            } else if !toolbox.servers.is_empty() {
                text.push_str(&server_table(&toolbox.servers, style));
            } else if toolbox.disabled.is_empty() {
                text.push_str("  no servers\n");
            }
            if !toolbox.disabled.is_empty() {
                let names = visible(&toolbox.disabled.join(", ")).into_owned();
                text.push_str(&format!("  disabled: {names}\n"));
            }
        }
        text
    }
}

fn listed(cache: &ToolCache, toolbox: &Toolbox) -> ListedToolbox {
    let servers = toolbox.servers.values().map(|server| ListedServer {
        name: server.name.clone(),
        transport: transport_word(server),
        target: server_target(server),
        cached: cache
            .list(server)
            .map(|(list, age)| CachedTools::of(&list, age)),
        found: None,
    });
    ListedToolbox {
        name: toolbox.name.clone(),
        description: toolbox.description.clone(),
        servers: servers.collect(),
        disabled: toolbox.disabled.iter().map(ToString::to_string).collect(),
    }
}

fn transport_word(server: &Server) -> &'static str {
    match &server.transport {
        Transport::Stdio(_) => "stdio",
        Transport::Remote(endpoint) => match endpoint.protocol {
            RemoteProtocol::Http => "http",
            RemoteProtocol::Sse => "sse",
        },
        Transport::Unset(_) => "unset",
    }
}

fn server_table(servers: &[ListedServer], style: OutputStyle) -> String {
    let columns = [
        Column::Text("server"),
        Column::Text("transport"),
        Column::Text("cached"),
        Column::Text("target"),
    ];
    let mut table = Table::new(columns);
    for server in servers {
        let name = visible(server.name.as_str()).into_owned();
        let cached = server
            .cached
            .as_ref()
            .map_or_else(|| "no".to_owned(), CachedTools::words);
        let transport = server.transport.to_owned();
        table.row([name, transport, cached, server.target.clone()]);
    }
    table.render(style, "  ")
}

impl CachedTools {
    fn of(list: &ToolList, age: Duration) -> Self {
        Self {
            tools: list.tools().len(),
            age_seconds: age.as_secs(),
        }
    }

    /// Formats the number of tools, and the age from one day on.
    fn words(&self) -> String {
        let tools = count(self.tools, "tool");
        match self.age_seconds / SECONDS_OF_A_DAY {
            0 => tools,
            days => format!("{tools}, {} old", count(as_size(days), "day")),
        }
    }
}

fn as_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl ListedServer {
    /// Returns the text for the server with its tools.
    fn render(&self, style: OutputStyle) -> String {
        let name = visible(self.name.as_str());
        match &self.found {
            None => format!("  {name}\n"),
            Some(ServerStatus::Failed { error }) => {
                format!("  {name}: {} {error}\n", style.paint(Ink::Bad, "failed:"))
            }
            Some(ServerStatus::Up {
                protocol, tools, ..
            }) => {
                let mut text = format!("  {name}: {}", count(tools.len(), "tool"));
                let protocol = format!(" (protocol {})", visible(protocol));
                text.push_str(&style.paint(Ink::Faint, &protocol));
                text.push('\n');
                if !tools.is_empty() {
                    text.push_str(&tool_table(tools, style));
                }
                text
            }
        }
    }
}

fn tool_table(tools: &[Value], style: OutputStyle) -> String {
    let mut table = Table::new([Column::Text(""), Column::Text("")]);
    for tool in tools {
        let description = tool["description"].as_str().unwrap_or_default();
        table.row([signature(tool), visible(description).into_owned()]);
    }
    table.render(style, "    ")
}

/// Returns the name and parameters of a tool. Optional parameters get a question mark.
fn signature(tool: &Value) -> String {
    let schema = &tool["inputSchema"];
    // Without `required` all parameters are optional, as in JSON Schema.
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let parameters: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| {
            let mark = if is_required(name) { "" } else { "?" };
            format!("{name}{mark}")
        })
        .collect();
    let name = tool["name"].as_str().unwrap_or_default();
    let text = format!("{name}({})", parameters.join(", "));
    cut(&visible(&text), SIGNATURE_WIDTH)
}

impl ServerStatus {
    fn of(probed: &ProbeResult) -> Self {
        match &probed.tools {
            Ok(list) => Self::Up {
                protocol: list.introduction.revision.clone(),
                product: list.introduction.product.clone(),
                tools: list.tools().iter().map(definition).collect(),
            },
            Err(error) => Self::Failed {
                error: error.to_string(),
            },
        }
    }
}

/// Returns the definition as a value, or as a string if it is not valid Unicode.
fn definition(tool: &ToolDefinition) -> Value {
    let definition: &RawJson = &tool.definition;
    serde_json::from_str(definition.as_str()).unwrap_or_else(|_| definition.as_str().into())
}

/// Serializes a name as a string.
fn as_text<Kind, S: serde::Serializer>(
    name: &ident::Name<Kind>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_str())
}
