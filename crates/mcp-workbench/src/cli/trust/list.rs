//! `trust list`: lists servers and tools with their pin state.

use std::{path::Path, process::ExitCode};

use clap::Args;
use serde::Serialize;

use super::{
    examine::{ExaminedServer, StartOutcome, TrustReview, choose_tool},
    remarks::Remark,
    selection::TrustSelection,
};
use crate::{
    cli::{
        CommandResult,
        configuration::StartLimit,
        output,
        terminal::{Column, Ink, OutputStyle, Table},
    },
    config::Environment,
    lock::{Lock, PinnedServer, Pins, launch_parts},
    visible::{revealed, visible},
};

#[derive(Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    chosen: TrustSelection,

    #[command(flatten)]
    limit: StartLimit,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The lock file compared with the current servers.
#[derive(Serialize)]
struct TrustListing {
    file: String,
    servers: Vec<ListedServer>,
}

#[derive(Serialize)]
struct ListedServer {
    toolbox: String,
    server: String,
    /// `off`, `notice` or `enforce`; `None` for a server that is no longer configured.
    pin: Option<&'static str>,
    state: PinState,
    /// The parts of its launch that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    launch: Vec<String>,
    /// The reason why its tools are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    tools: Vec<ListedTool>,
    /// Remarks of the scanner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<Remark>,
}

#[derive(Serialize)]
struct ListedTool {
    tool: String,
    state: PinState,
}

/// The state of a server or tool compared with its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PinState {
    Pinned,
    Changed,
    New,
    /// Only in the lock file.
    Gone,
    /// In the lock file, but its server is not up.
    Unknown,
}

/// Lists the selected servers. The exit code says if all of them are up.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &ListArguments,
    environment: &Environment,
) -> CommandResult {
    let chosen = &arguments.chosen;
    let subject = TrustReview::load(config, chosen, arguments.limit, environment)?;
    let lock = subject.lock.clone();
    let (pins, mut servers) = subject.examine(|subject, it| !subject.is_barred(it), environment)?;
    let chosen = &choose_tool(&mut servers, chosen)?;
    let failed = servers
        .iter()
        .any(|it| !matches!(it.found, StartOutcome::Up { .. }));
    let listed = servers.iter().map(|server| listed(server, chosen, &pins));
    let listing = TrustListing {
        file: pins
            .file()
            .map_or_else(String::new, |it| it.display().to_string()),
        servers: listed.chain(gone(&lock, &servers, chosen)).collect(),
    };
    if arguments.json {
        output::json(&listing);
    } else {
        output::data(&listing.render(OutputStyle::of_stdout(environment)));
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn listed(server: &ExaminedServer, chosen: &TrustSelection, pins: &Pins) -> ListedServer {
    let differences = server.differences();
    let pinned = server.pinned.clone().unwrap_or_default();
    let mut tools: Vec<(String, PinState)> = Vec::new();
    let mut error = None;
    match &server.found {
        StartOutcome::Up { observation, .. } => {
            tools.extend(observation.tools.iter().map(|(tool, _)| {
                let tool = tool.to_string();
                let state = match &tool {
                    tool if differences.changed.contains(tool) => PinState::Changed,
                    tool if differences.new.contains(tool) => PinState::New,
                    _ => PinState::Pinned,
                };
                (tool, state)
            }));
            tools.extend(
                differences
                    .gone
                    .iter()
                    .map(|tool| (tool.clone(), PinState::Gone)),
            );
        }
        StartOutcome::Failed(why) => error = Some(why.clone()),
        StartOutcome::NotStarted => {
            error = Some(format!(
                "not started, because its launch is not approved; `{}` shows it",
                pins.approve_command(&server.place)
            ));
        }
    }
    if error.is_some() {
        tools.extend(
            pinned
                .tools
                .keys()
                .map(|tool| (tool.clone(), PinState::Unknown)),
        );
    }
    ListedServer {
        toolbox: server.place.toolbox.to_string(),
        server: server.place.server.to_string(),
        pin: Some(server.mode.word()),
        state: match &server.pinned {
            None => PinState::New,
            Some(_) if differences.launch.is_empty() => PinState::Pinned,
            Some(_) => PinState::Changed,
        },
        // Everything differs from a pin that does not exist, so nothing is listed.
        launch: if server.pinned.is_some() {
            differences.launch
        } else {
            Vec::new()
        },
        error,
        tools: of_tools(tools, chosen),
        remarks: { server.older().map(Remark::of_server).into_iter() }
            .chain(server.remarks.iter().cloned())
            .filter(|it| it.tool.as_deref().is_none_or(|tool| chosen.has_tool(tool)))
            .collect(),
    }
}

fn of_tools(tools: Vec<(String, PinState)>, chosen: &TrustSelection) -> Vec<ListedTool> {
    let tools = tools.into_iter().filter(|(tool, _)| chosen.has_tool(tool));
    tools
        .map(|(tool, state)| ListedTool { tool, state })
        .collect()
}

/// Returns the servers that are only in the lock file.
fn gone(lock: &Lock, servers: &[ExaminedServer], chosen: &TrustSelection) -> Vec<ListedServer> {
    let gone = lock.servers().filter(|(place, _)| {
        chosen.has(place) && !servers.iter().any(|server| server.place == *place)
    });
    let listed = gone.map(|(place, pinned): (_, &PinnedServer)| {
        let tools = pinned
            .tools
            .keys()
            .map(|tool| (tool.clone(), PinState::Gone));
        ListedServer {
            toolbox: place.toolbox.to_string(),
            server: place.server.to_string(),
            pin: None,
            state: PinState::Gone,
            launch: Vec::new(),
            error: None,
            tools: of_tools(tools.collect(), chosen),
            remarks: Vec::new(),
        }
    });
    listed.collect()
}

impl TrustListing {
    fn render(&self, style: OutputStyle) -> String {
        let mut text = format!("{}\n", visible(&self.file));
        for server in &self.servers {
            let name = visible(&format!("{}/{}", server.toolbox, server.server)).into_owned();
            let name = style.paint(Ink::Strong, &name);
            let pin = server
                .pin
                .map_or_else(String::new, |pin| format!(" (pin: {pin})"));
            let pin = style.paint(Ink::Faint, &pin);
            text.push_str(&format!("\n{name}: {}{pin}\n", server.state.shown(style)));
            if !server.launch.is_empty() {
                let parts = launch_parts(&server.launch);
                text.push_str(&format!("  differs from the pin: {parts}\n"));
            }
            if let Some(error) = &server.error {
                text.push_str(&format!("  {error}\n"));
            }
            let mut table = Table::new([Column::Text(""), Column::Text("")]);
            for tool in &server.tools {
                table.row([
                    revealed(&tool.tool).into_owned(),
                    tool.state.word().to_owned(),
                ]);
            }
            if !server.tools.is_empty() {
                text.push_str(&table.render(style, "  "));
            }
            for remark in &server.remarks {
                text.push_str(&format!("  remark: {}\n", visible(&remark.text)));
            }
        }
        text
    }
}

impl PinState {
    fn word(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }

    fn shown(self, style: OutputStyle) -> String {
        let ink = match self {
            Self::Pinned => Ink::Good,
            Self::Changed => Ink::Bad,
            Self::New | Self::Gone | Self::Unknown => Ink::Notable,
        };
        style.paint(ink, self.word())
    }
}
