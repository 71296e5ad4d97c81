//! `trust diff`: shows how servers and tools differ from the pinned ones.

use std::{collections::BTreeMap, path::Path, process::ExitCode};

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{
    examine::{ExaminedServer, StartOutcome, TrustReview, choose_tool},
    readable,
    selection::TrustSelection,
};
use crate::{
    cli::{CommandResult, configuration::StartLimit, editing::unified, output, terminal::count},
    config::Environment,
    lock::{Digest, Launch, Pins},
    visible::{revealed, visible},
};

#[derive(Args)]
pub(super) struct DiffArguments {
    #[command(flatten)]
    chosen: TrustSelection,

    #[command(flatten)]
    limit: StartLimit,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The difference of a server from its pin.
#[derive(Serialize)]
struct ServerDifference {
    toolbox: String,
    server: String,
    /// As it is printed without `--json`; empty if there is none.
    difference: String,
    /// Remarks of the scanner about changes.
    remarks: Vec<String>,
    /// The reason why the server is not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ServerDifference {
    fn of(server: &ExaminedServer, pins: &Pins, chosen: &TrustSelection) -> Self {
        let difference = difference(server, pins, chosen);
        let remarks = if difference.is_empty() {
            Vec::new()
        } else {
            server.remarks_on_changes(chosen)
        };
        let error = match &server.found {
            StartOutcome::Failed(error) => Some(error.clone()),
            StartOutcome::Up { .. } | StartOutcome::NotStarted => None,
        };
        Self {
            toolbox: server.place.toolbox.to_string(),
            server: server.place.server.to_string(),
            remarks: remarks.into_iter().map(str::to_owned).collect(),
            difference,
            error,
        }
    }

    fn differs(&self) -> bool {
        !self.difference.is_empty() || self.error.is_some()
    }

    fn print(&self) {
        let name = format!("{}/{}", self.toolbox, self.server);
        let name = visible(&name);
        output::data(&self.difference);
        for remark in &self.remarks {
            output::remark(&format!("{name}: remark: {remark}"));
        }
        if let Some(error) = &self.error {
            output::remark(&format!("{name}: not compared: {error}"));
        }
    }
}

/// Shows the differences. The exit code says if there are any, like that of `diff`.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &DiffArguments,
    environment: &Environment,
) -> CommandResult {
    let chosen = &arguments.chosen;
    let subject = TrustReview::load(config, chosen, arguments.limit, environment)?;
    let (pins, mut servers) = subject.examine(|subject, it| !subject.is_barred(it), environment)?;
    let chosen = &choose_tool(&mut servers, chosen)?;
    let differences: Vec<ServerDifference> = servers
        .iter()
        .map(|it| ServerDifference::of(it, &pins, chosen))
        .collect();
    let differs = differences.iter().any(ServerDifference::differs);
    if arguments.json {
        output::json(&json!({ "servers": differences }));
        return Ok(ExitCode::from(u8::from(differs)));
    }
    for difference in &differences {
        difference.print();
    }
    if !differs {
        let compared = match chosen.tool {
            Some(_) => count(1, "tool"),
            None => count(servers.len(), "server"),
        };
        output::remark(&format!("{compared} as pinned"));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Prints the scanner's remarks about changes.
pub(super) fn remark_on(server: &ExaminedServer, chosen: &TrustSelection) {
    for remark in server.remarks_on_changes(chosen) {
        output::remark(&format!("{}: remark: {remark}", name_of(server)));
    }
}

/// Returns the toolbox and name of a server.
pub(super) fn name_of(server: &ExaminedServer) -> String {
    let (toolbox, name) = (server.place.toolbox.as_str(), server.place.server.as_str());
    visible(&format!("{toolbox}/{name}")).into_owned()
}

/// Returns the difference between a server and its pin; empty if there is none.
pub(super) fn difference(server: &ExaminedServer, pins: &Pins, chosen: &TrustSelection) -> String {
    let name = name_of(server);
    let differences = server.differences();
    let mut text = String::new();
    // Approving one tool also approves the launch of its server.
    if !differences.launch.is_empty() {
        text.push_str(&launches(server, &name));
    }
    let StartOutcome::Up { texts, .. } = &server.found else {
        if let StartOutcome::NotStarted = server.found {
            text.push_str(&format!(
                "{name}: not started, because its launch is not approved\n"
            ));
        }
        return text;
    };
    let changed = differences.changed.iter().chain(&differences.new);
    for tool in changed.filter(|tool| chosen.has_tool(tool)) {
        text.push_str(&tool_difference(server, pins, tool, texts));
    }
    for tool in differences.gone.iter().filter(|tool| chosen.has_tool(tool)) {
        text.push_str(&format!("{name}/{}: gone\n", revealed(tool)));
    }
    text
}

fn launches(server: &ExaminedServer, name: &str) -> String {
    let before = server
        .pinned
        .as_ref()
        .map(|it| readable::launch(&it.launch));
    let now: &Launch = match &server.found {
        StartOutcome::Up { observation, .. } => &observation.launch,
        StartOutcome::Failed(_) | StartOutcome::NotStarted => &server.launch,
    };
    let before = before.unwrap_or_default();
    unified(Path::new(name), &before, &readable::launch(now))
}

fn tool_difference(
    server: &ExaminedServer,
    pins: &Pins,
    tool: &str,
    texts: &BTreeMap<String, String>,
) -> String {
    let name = format!("{}/{}", name_of(server), revealed(tool));
    let now = texts.get(tool).map_or("", String::as_str);
    let pinned = server.pinned.as_ref().and_then(|it| it.tools.get(tool));
    let before = match pinned.and_then(|it| it.pinned) {
        // Only the finding is not approved, so the whole definition is shown for review.
        Some(digest) if digest == Digest::of(now.as_bytes()) => String::new(),
        None => String::new(),
        Some(digest) => match pins.text(&server.place, digest) {
            None => format!("was {digest} (its text is not on this machine)\n"),
            Some(text) => {
                let (old, new) = (readable::definition(&text), readable::definition(now));
                if old == new {
                    // They differ only in how a number is written.
                    return unified(Path::new(&name), &format!("{text}\n"), &format!("{now}\n"));
                }
                old
            }
        },
    };
    unified(Path::new(&name), &before, &readable::definition(now))
}
