//! `warm`: starts servers to fill the tool cache, so that toolboxes that connect on use open without starting
//! anything.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use serde::Serialize;

use super::{
    CommandResult,
    configuration::{UnknownName, load_configuration},
    host::Sharing,
    output,
    probe::{ProbeResult, probe_others, with_workbench},
    terminal::{Ink, OutputStyle, Progress, count},
};
use crate::{
    config::{Config, Environment},
    downstream::ToolCache,
    server_cache::{CacheSize, NotCached},
    visible::visible,
};

#[derive(Args)]
pub(super) struct WarmArguments {
    /// Only these toolboxes
    toolboxes: Vec<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Starts the servers, stores their tools in the cache, and stops them.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &WarmArguments,
    environment: &Environment,
) -> CommandResult {
    let mut config = load_configuration(config, environment)?.config;
    choose(&mut config, &arguments.toolboxes)?;
    let (file, cache) = (config.file.clone(), ToolCache::of(&config));
    let progress = Progress::on_stderr(environment, "starting servers");
    let sharing = Sharing::of(&config, environment);
    let servers = with_workbench(config, async |workbench| {
        let found = probe_others(&workbench, None, sharing.as_ref(), &progress).await;
        // The handles outlive the workbench, because the cache is written while the servers stop.
        let handles = found.into_iter().map(|probed| {
            let toolbox = workbench.toolbox(probed.toolbox.as_str());
            let handle = toolbox.and_then(|toolbox| toolbox.server(&probed.server.name));
            (probed, handle)
        });
        handles.collect::<Vec<_>>()
    })?;
    // The cache is complete only now, after the shutdown of the servers.
    let servers = servers.into_iter().map(|(probed, handle)| {
        let not_cached = handle.and_then(|handle| handle.not_cached());
        WarmedServer::of(probed, not_cached.as_deref())
    });
    let report = WarmReport {
        file,
        servers: servers.collect(),
        place: cache.folder().map(|it| (it.to_owned(), cache.size())),
    };
    if arguments.json {
        output::json(&report.document());
    } else {
        output::data(&report.render(OutputStyle::of_stdout(environment)));
    }
    let lost = report
        .servers
        .iter()
        .filter(|it| it.cached.is_err())
        .count();
    if lost == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    output::remark(&format!(
        "{} not cached\n  hint: `mcp-workbench doctor` says how to fix a server that fails",
        count(lost, "server")
    ));
    Ok(ExitCode::FAILURE)
}

/// Removes all toolboxes that are not named; keeps all if none is named.
fn choose(config: &mut Config, names: &[String]) -> Result<(), UnknownName> {
    let mut names_of = names.iter();
    if let Some(name) = names_of.find(|name| !config.toolboxes.contains_key(name.as_str())) {
        return Err(UnknownName::toolbox(name, config));
    }
    let is_chosen = |known: &str| names.is_empty() || names.iter().any(|name| name == known);
    config
        .toolboxes
        .retain(|known, _| is_chosen(known.as_str()));
    Ok(())
}

/// The result of warming one server.
struct WarmedServer {
    toolbox: String,
    server: String,
    /// The number of tools it offers; `None` if it failed to start.
    tools: Option<usize>,
    took: Duration,
    /// The reason why the tools are not in the cache, if they are not.
    cached: Result<(), String>,
}

/// The results of all servers.
struct WarmReport {
    file: PathBuf,
    servers: Vec<WarmedServer>,
    /// The cache folder and its size.
    place: Option<(PathBuf, CacheSize)>,
}

impl WarmedServer {
    fn of(probed: ProbeResult, not_cached: Option<&NotCached>) -> Self {
        let cached = match (&probed.tools, not_cached) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(_), Some(reason)) => Err(format!("not cached: {reason}")),
            (Ok(_), None) => Ok(()),
        };
        Self {
            toolbox: probed.toolbox.to_string(),
            server: probed.server.name.to_string(),
            tools: probed.tools.ok().map(|list| list.tools().len()),
            took: probed.took,
            cached,
        }
    }

    fn render(&self, style: OutputStyle) -> String {
        let place = visible(&format!("{}/{}", self.toolbox, self.server)).into_owned();
        let seconds = self.took.as_secs_f64();
        let summary = self
            .tools
            .map(|tools| format!("{}, {seconds:.1} s", count(tools, "tool")));
        match (summary, &self.cached) {
            (Some(summary), Ok(())) => format!("{place}: {summary}\n"),
            (Some(summary), Err(reason)) => {
                format!(
                    "{place}: {summary}, {}\n",
                    style.paint(Ink::Bad, &visible(reason))
                )
            }
            (None, reason) => {
                let reason = reason.as_ref().err().map(String::as_str);
                let reason = visible(reason.unwrap_or_default()).into_owned();
                format!("{place}: {}: {reason}\n", style.paint(Ink::Bad, "failed"))
            }
        }
    }
}

impl WarmReport {
    /// Formats the report: one line per server, then the totals.
    fn render(&self, style: OutputStyle) -> String {
        let mut text: String = self.servers.iter().map(|it| it.render(style)).collect();
        let cached = self.servers.iter().filter(|it| it.cached.is_ok()).count();
        text.push_str(&format!(
            "\ncached the tools of {} of {}",
            cached,
            count(self.servers.len(), "server")
        ));
        if let Some((folder, size)) = &self.place {
            let folder = folder.display().to_string();
            text.push_str(&format!(
                "\n{} contains {}, {} kB",
                visible(&folder),
                count(size.servers, "server"),
                size.bytes.div_ceil(1000)
            ));
        }
        text.push('\n');
        text
    }

    /// Returns the report as a JSON document.
    fn document(&self) -> ReportDocument<'_> {
        let (folder, size) = match &self.place {
            Some((folder, size)) => (Some(folder.as_path()), *size),
            None => (None, CacheSize::default()),
        };
        let servers = self.servers.iter().map(|it| ServerDocument {
            toolbox: &it.toolbox,
            server: &it.server,
            tools: it.tools,
            milliseconds: it.took.as_millis(),
            cached: it.cached.is_ok(),
            error: it.cached.as_ref().err().map(String::as_str),
        });
        ReportDocument {
            file: &self.file,
            folder,
            folder_servers: size.servers,
            folder_bytes: size.bytes,
            servers: servers.collect(),
        }
    }
}

/// The JSON form of the report.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportDocument<'a> {
    file: &'a Path,
    /// The cache folder, with the number of servers and bytes in it.
    folder: Option<&'a Path>,
    folder_servers: usize,
    folder_bytes: u64,
    servers: Vec<ServerDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    toolbox: &'a str,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    milliseconds: u128,
    /// Under the name that it had in 1.0.0.
    #[serde(rename = "kept")]
    cached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}
