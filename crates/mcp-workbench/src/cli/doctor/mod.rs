//! `doctor`: starts every server, and says what is wrong with each and what to do.

mod examine;
mod finding;
mod kept_finding;
mod remedy;
mod report;
mod tool_finding;
mod whereabouts;

use std::{path::Path, process::ExitCode, sync::Arc};

use clap::Args;

use self::{
    finding::Finding,
    kept_finding::KeptFinding,
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
    config::{Config, Connect, Environment, Loaded, Toolbox, Transport},
    downstream::{KeptTools, ServerHandle},
    ident::{ServerName, ToolboxName},
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
    let cold = cold_servers(&loaded.config);
    let (config, mut found) = with_workbench(loaded.config, async |workbench| {
        let found = look_at(&workbench, None, &progress).await;
        // What has changed is told by the report.
        workbench.pins().tell(Scope::Everything);
        workbench.pins().record();
        let found = found.into_iter().map(|probed| Examined {
            handle: workbench
                .toolbox(probed.toolbox.as_str())
                .and_then(|toolbox| toolbox.server(&probed.server.name)),
            probed,
        });
        (workbench.config(), found.collect::<Vec<_>>())
    })?;
    // At the end everything that was told has been kept.
    let reports = config.toolboxes.values().map(|toolbox| {
        let is_own = |it: &Examined| it.probed.toolbox == toolbox.name;
        let (own, others) = found.drain(..).partition(is_own);
        found = others;
        examine_toolbox(toolbox, own, (&config, environment), &cold)
    });
    Ok(reports.collect())
}

/// A server that was looked at.
struct Examined {
    probed: Probed,
    handle: Option<Arc<ServerHandle>>,
}

/// The servers that are started when they are used, but of which nothing is known.
fn cold_servers(config: &Config) -> Vec<(ToolboxName, ServerName)> {
    let toolboxes = config.toolboxes.values();
    let on_use = toolboxes.filter(|toolbox| toolbox.connect == Connect::OnUse);
    let servers = on_use.flat_map(|toolbox| {
        let servers = toolbox.servers.values();
        servers.map(|server| (toolbox.name.clone(), server))
    });
    let cold = servers.filter(|(_, server)| {
        let can_start = !matches!(server.transport, Transport::Unset(_));
        can_start && KeptTools::of(config, server).is_none()
    });
    cold.map(|(toolbox, server)| (toolbox, server.name.clone()))
        .collect()
}

fn examine_toolbox(
    toolbox: &Toolbox,
    examined: Vec<Examined>,
    (config, environment): (&Config, &Environment),
    cold: &[(ToolboxName, ServerName)],
) -> ToolboxReport {
    let probed: Vec<&Probed> = examined.iter().map(|it| &it.probed).collect();
    let mut findings = examine::of_toolbox(&probed, config);
    let mut cold: Vec<String> = { cold.iter() }
        .filter(|(of, _)| *of == toolbox.name)
        .map(|(_, server)| server.to_string())
        .collect();
    let mut servers = Vec::new();
    for Examined { probed, handle } in examined {
        let mut findings = examine::of_server(&probed, config, environment);
        let not_kept = handle.and_then(|handle| handle.not_kept());
        if let Some(reason) = not_kept.filter(|_| toolbox.connect == Connect::OnUse) {
            cold.retain(|server| *server != probed.server.name.as_str());
            findings.push(Finding::Kept(KeptFinding::NotKept(reason)));
        }
        findings.sort_by_key(Finding::level);
        servers.push(ServerReport { probed, findings });
    }
    if !cold.is_empty() {
        findings.push(Finding::Kept(KeptFinding::Cold { servers: cold }));
    }
    ToolboxReport {
        name: toolbox.name.to_string(),
        findings,
        servers,
    }
}
