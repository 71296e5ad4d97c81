//! `doctor`: starts every server, and says what is wrong with each and what to do.

mod examine;
mod finding;
mod remedy;
mod report;
mod tool_finding;
mod whereabouts;

use std::{path::Path, process::ExitCode};

use clap::Args;

use self::{
    finding::Finding,
    report::{Report, ServerReport, ToolboxReport},
};
use super::{
    Done,
    configuration::{choose_toolbox, load_configuration},
    output,
    probe::{Probed, look_at, with_workbench},
    terminal::{Look, Progress},
};
use crate::{
    config::{Config, Environment, Loaded},
    ident::ToolboxName,
    lock::Scope,
};

/// What is examined.
#[derive(Args)]
pub(super) struct DoctorArguments {
    /// Only this toolbox
    toolbox: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Examines the configuration and its servers.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &DoctorArguments,
    environment: &Environment,
) -> Done {
    let mut loaded = load_configuration(config, environment)?;
    let configuration = examine::of_configuration(&loaded);
    choose_toolbox(&mut loaded.config, arguments.toolbox.as_deref())?;
    let file = loaded.config.file.display().to_string();
    let toolboxes = examine_servers(loaded, environment)?;
    let report = Report {
        file,
        configuration,
        toolboxes,
    };
    if arguments.json {
        output::json(&report.document());
    } else {
        output::data(&report.render(Look::of_stdout(environment)));
    }
    Ok(if report.is_healthy() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Starts the servers, looks at them, and ends them.
fn examine_servers(
    loaded: Loaded,
    environment: &Environment,
) -> Result<Vec<ToolboxReport>, super::probe::ProbeError> {
    let progress = Progress::on_stderr(environment, "starting servers");
    with_workbench(loaded.config, async |workbench| {
        let mut found = look_at(&workbench, None, &progress).await;
        // What has changed is told by the report.
        workbench.pins().tell(Scope::Everything);
        workbench.pins().record();
        let config = workbench.config();
        let reports = config.toolboxes.keys().map(|name| {
            let (own, others) = found.drain(..).partition(|it| it.toolbox == *name);
            found = others;
            examine_toolbox(name, own, &config, environment)
        });
        reports.collect()
    })
}

fn examine_toolbox(
    name: &ToolboxName,
    probed: Vec<Probed>,
    config: &Config,
    environment: &Environment,
) -> ToolboxReport {
    let findings = examine::of_toolbox(&probed.iter().collect::<Vec<_>>(), config);
    let servers = probed.into_iter().map(|probed| {
        let mut findings = examine::of_server(&probed, config, environment);
        findings.sort_by_key(Finding::level);
        ServerReport { probed, findings }
    });
    ToolboxReport {
        name: name.to_string(),
        findings,
        servers: servers.collect(),
    }
}
