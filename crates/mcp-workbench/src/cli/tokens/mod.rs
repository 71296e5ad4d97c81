//! `tokens`: counts the tokens that tool definitions cost a model, with and without the workbench.

mod cost;
mod estimate;
mod report;

use std::{path::Path, process::ExitCode};

use clap::Args;
use serde_json::{Value, json};

use self::{
    cost::{Costs, StartCost},
    report::{document, render},
};
use super::{
    CommandResult,
    configuration::{UnknownName, load_configuration},
    host::Sharing,
    output,
    probe::{ProbeResult, probe_others, with_workbench},
    terminal::{OutputStyle, Progress, count},
};
use crate::{config::Environment, visible::visible, workbench::Workbench};

pub(super) use estimate::tokens;

#[derive(Args)]
pub(super) struct TokensArguments {
    /// Only this toolbox
    toolbox: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Counts the tokens of the configured servers.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &TokensArguments,
    environment: &Environment,
) -> CommandResult {
    let config = load_configuration(config, environment)?.config;
    let chosen = arguments.toolbox.as_deref();
    if let Some(name) = chosen.filter(|name| !config.toolboxes.contains_key(*name)) {
        return Err(UnknownName::toolbox(name, &config).into());
    }
    let progress = Progress::on_stderr(environment, "starting servers");
    let sharing = Sharing::of(&config, environment);
    let costs = with_workbench(config, async |workbench| {
        let found = probe_others(&workbench, chosen, sharing.as_ref(), &progress).await;
        costs(&workbench, chosen, &found)
    })?;
    if arguments.json {
        output::json(&document(&costs));
    } else {
        output::data(&render(&costs, OutputStyle::of_stdout(environment)));
    }
    let failed = costs.failed();
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for (place, error) in &failed {
        output::remark(&format!("{}: {error}", visible(place)));
    }
    output::remark(&format!(
        "{} not counted\n  hint: `mcp-workbench doctor` says how to fix this",
        count(failed.len(), "server")
    ));
    Ok(ExitCode::FAILURE)
}

/// Returns the document that `tokens --json` prints for these results.
pub(super) fn token_document(workbench: &Workbench, found: &[ProbeResult]) -> Value {
    json!(document(&costs(workbench, None, found)))
}

/// Counts the tokens of servers.
fn costs(workbench: &Workbench, chosen: Option<&str>, found: &[ProbeResult]) -> Costs {
    let config = workbench.config();
    let mut costs = Costs::new(&config, StartCost::of(workbench));
    for (name, toolbox) in &config.toolboxes {
        if chosen.is_none_or(|chosen| chosen == name.as_str()) {
            let own: Vec<&ProbeResult> = found.iter().filter(|it| it.toolbox == *name).collect();
            costs.add(toolbox, &own);
        }
    }
    costs
}
