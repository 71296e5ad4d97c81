//! `doctor`: starts every server and reports problems with hints.

mod cache_finding;
mod examine;
mod finding;
mod program_search;
mod remedy;
mod report;
mod tool_finding;

use std::{path::Path, process::ExitCode, sync::Arc};

use clap::Args;
use ident::{ServerName, ToolboxName};

pub(super) use examine::remedy_of;

use self::{
    cache_finding::CacheFinding,
    finding::{Finding, StartFinding},
    report::{DoctorReport, ServerReport, ToolboxReport},
};
use super::{
    CommandResult,
    configuration::{ServerSelection, StartLimit, load_configuration},
    host::Sharing,
    output,
    probe::{ProbeError, ProbeResult, probe_others_until, with_signals},
    terminal::{OutputStyle, Progress},
};
use crate::{
    config::{Config, Connect, Environment, Loaded, Toolbox, Transport},
    downstream::{ServerHandle, ToolCache},
    lock::NoticeScope,
};

#[derive(Args)]
pub(super) struct DoctorArguments {
    #[command(flatten)]
    selection: ServerSelection,

    #[command(flatten)]
    limit: StartLimit,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Examines the configuration and its servers.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &DoctorArguments,
    environment: &Environment,
) -> CommandResult {
    let mut loaded = load_configuration(config, environment)?;
    // The file is examined as a whole, even if only some servers are started.
    let configuration = examine::of_configuration(&loaded);
    arguments.selection.choose(&mut loaded.config)?;
    arguments.limit.apply(&mut loaded.config);
    let file = loaded.config.file.display().to_string();
    let sharing = Sharing::of(&loaded.config, environment);
    let toolboxes = examine_servers(loaded, environment, sharing.as_ref())?;
    let report = DoctorReport {
        file,
        configuration,
        toolboxes,
        sharing,
    };
    if arguments.json {
        output::json(&report.document());
    } else {
        output::data(&report.render(OutputStyle::of_stdout(environment)));
    }
    if report.is_interrupted() {
        return Err(ProbeError::Interrupted.into());
    }
    Ok(if report.is_healthy() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Starts the servers, examines them and stops them. A signal ends this early, and the findings so far are
/// reported.
fn examine_servers(
    loaded: Loaded,
    environment: &Environment,
    sharing: Option<&Sharing>,
) -> Result<Vec<ToolboxReport>, ProbeError> {
    let progress = Progress::on_stderr(environment, "starting servers");
    let cold = cold_servers(&loaded.config);
    let (config, mut found) = with_signals(loaded.config, async |workbench, signals| {
        let found = probe_others_until(&workbench, sharing, &progress, signals.next()).await;
        // The report shows the changes, so they are marked as announced.
        workbench.pins().mark_reported(NoticeScope::Everything);
        workbench.pins().record();
        let found = found.into_iter().map(|probed| ProbedServer {
            handle: workbench
                .toolbox(probed.toolbox.as_str())
                .and_then(|toolbox| toolbox.server(&probed.server.name)),
            probed,
        });
        (workbench.config(), found.collect::<Vec<_>>())
    })?;
    // The cache is complete only now, after the shutdown of the servers.
    let reports = config.toolboxes.values().map(|toolbox| {
        let is_own = |it: &ProbedServer| it.probed.toolbox == toolbox.name;
        let (own, others) = found.drain(..).partition(is_own);
        found = others;
        examine_toolbox(toolbox, own, &config, environment, &cold)
    });
    Ok(reports.collect())
}

struct ProbedServer {
    probed: ProbeResult,
    handle: Option<Arc<ServerHandle>>,
}

/// Returns the servers of toolboxes that connect on use which are not in the tool cache.
fn cold_servers(config: &Config) -> Vec<(ToolboxName, ServerName)> {
    let toolboxes = config.toolboxes.values();
    let on_use = toolboxes.filter(|toolbox| toolbox.connect == Connect::OnUse);
    let servers = on_use.flat_map(|toolbox| {
        let servers = toolbox.servers.values();
        servers.map(|server| (toolbox.name.clone(), server))
    });
    let cache = ToolCache::of(config);
    let cold = servers.filter(|(_, server)| {
        let can_start = !matches!(server.transport, Transport::Unset(_));
        can_start && cache.list(server).is_none()
    });
    cold.map(|(toolbox, server)| (toolbox, server.name.clone()))
        .collect()
}

fn examine_toolbox(
    toolbox: &Toolbox,
    examined: Vec<ProbedServer>,
    config: &Config,
    environment: &Environment,
    cold: &[(ToolboxName, ServerName)],
) -> ToolboxReport {
    let probed: Vec<&ProbeResult> = examined.iter().map(|it| &it.probed).collect();
    let mut findings = examine::of_toolbox(&probed, config);
    let mut cold: Vec<String> = cold
        .iter()
        .filter(|(of, _)| *of == toolbox.name)
        .map(|(_, server)| server.to_string())
        .collect();
    let mut servers = Vec::new();
    for ProbedServer { probed, handle } in examined {
        let mut findings = examine::of_server(&probed, config, environment);
        let stray = handle.as_ref().and_then(|handle| handle.stray_text());
        if let Some(text) = stray {
            let text = text.to_owned();
            findings.push(Finding::Start(StartFinding::StrayText { text }));
        }
        let not_cached = handle.and_then(|handle| handle.not_cached());
        if let Some(reason) = not_cached.filter(|_| toolbox.connect == Connect::OnUse) {
            // The more precise finding below replaces this one.
            cold.retain(|server| *server != probed.server.name.as_str());
            findings.push(Finding::Cache(CacheFinding::NotCached(reason)));
        }
        findings.sort_by_key(Finding::level);
        servers.push(ServerReport { probed, findings });
    }
    if !cold.is_empty() {
        findings.push(Finding::Cache(CacheFinding::Cold { servers: cold }));
    }
    ToolboxReport {
        name: toolbox.name.to_string(),
        findings,
        servers,
    }
}
