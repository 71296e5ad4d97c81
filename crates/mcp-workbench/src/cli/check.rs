//! `check`: reports whether the configuration is valid, what it contains, and which servers will fail.

use std::{fmt::Write, path::Path, process::ExitCode};

use ident::ToolName;

use super::{CommandResult, configuration::load_configuration, output, shell::quoted};
use crate::{
    config::{Config, Environment, LiteralPlace, Loaded, REDACTED, Server, ToolMode, Transport},
    downstream::ToolCache,
    lock::{Lowered, Pins},
    visible::visible,
};

/// Checks the configuration. Problems go to stderr, the summary of the configuration to stdout.
pub(super) fn run(config: Option<&Path>, environment: &Environment) -> CommandResult {
    let loaded = load_configuration(config, environment)?;
    output::data(&describe(&loaded)?);
    // Unset variables are not an error of the file, so the summary above is still printed.
    for problem in loaded.warnings.iter().chain(&loaded.unset) {
        output::remark(&problem.to_string());
    }
    let pins = Pins::new(&loaded.config);
    for Lowered { place, mode } in pins.lowered(&loaded.config) {
        let name = format!("{}/{}", place.toolbox, place.server);
        let words = pins.lowered_notice(&place, mode);
        output::remark(&format!("{}: {words}", visible(&name)));
    }
    for remark in unknown_selects(&loaded.config) {
        output::remark(&remark);
    }
    if loaded.unset.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    output::remark(&match loaded.unset.len() {
        1 => "1 variable is not set".to_owned(),
        count => format!("{count} variables are not set"),
    });
    Ok(ExitCode::FAILURE)
}

/// Returns a remark for each filter under `resultSelect` whose tool its server did not have when it was last started.
fn unknown_selects(config: &Config) -> Vec<String> {
    let cache = ToolCache::of(config);
    let toolboxes = config.toolboxes.values();
    let servers = toolboxes.flat_map(|toolbox| {
        let servers = toolbox.servers.values();
        servers.map(move |server| (toolbox, server))
    });
    let with_filters = servers.filter(|(_, server)| !server.result_select.is_empty());
    let remarks = with_filters.flat_map(|(toolbox, server)| {
        let tools = cache.tool_names(server);
        let names: Vec<&str> = tools.iter().map(ToolName::as_str).collect();
        let place = format!("{}/{}", toolbox.name, server.name);
        // Without a cached list nothing is known about the tools of the server.
        let unknown = server.unknown_selects(&names).filter(|_| !names.is_empty());
        unknown
            .map(|it| format!("{}: {it}", visible(&place)))
            .collect::<Vec<_>>()
    });
    remarks.collect()
}

fn describe(loaded: &Loaded) -> Result<String, std::fmt::Error> {
    let config = &loaded.config;
    let mode = match &config.tool_mode {
        ToolMode::Proxy => "proxy".to_owned(),
        ToolMode::Dynamic => "dynamic".to_owned(),
        ToolMode::Native(toolbox) => format!("native with {}", visible(toolbox.as_str())),
    };
    let servers: usize = config
        .toolboxes
        .values()
        .map(|toolbox| toolbox.servers.len())
        .sum();
    let mut text = String::new();
    writeln!(text, "{}: valid", config.file.display())?;
    writeln!(
        text,
        "toolboxes: {}, servers: {servers}, tool mode: {mode}",
        config.toolboxes.len()
    )?;
    for toolbox in config.toolboxes.values() {
        let (name, description) = (toolbox.name.as_str(), &toolbox.description);
        let lead = if description.is_empty() { "" } else { ": " };
        writeln!(text, "\n{}{lead}{}", visible(name), visible(description))?;
        for server in toolbox.servers.values() {
            writeln!(
                text,
                "  {}: {}",
                visible(server.name.as_str()),
                server_target(server)
            )?;
        }
        for name in &toolbox.disabled {
            writeln!(text, "  {}: disabled", visible(name.as_str()))?;
        }
    }
    Ok(text)
}

/// Returns the command line or URL of a server, without values from variables and without literal credentials.
pub(super) fn server_target(server: &Server) -> String {
    // Literal secrets look like any other argument, so they are hidden by position; values of variables are
    // redacted by value.
    let literal = server.literal_secrets();
    let text = match &server.transport {
        Transport::Stdio(launch) => {
            let args = launch.args.iter().enumerate().map(|(index, word)| {
                quoted(&if literal.contains(&LiteralPlace::Argument(index)) {
                    hidden(word)
                } else {
                    launch.secrets.redact(word).into_owned()
                })
            });
            let command = quoted(&launch.secrets.redact(&launch.command));
            std::iter::once(command)
                .chain(args)
                .collect::<Vec<_>>()
                .join(" ")
        }
        Transport::Remote(endpoint) if literal.contains(&LiteralPlace::Url) => {
            // Credentials are in the query or in front of the `@`; both are replaced.
            let url = endpoint.url.split('?').next().unwrap_or_default();
            match url
                .split_once("://")
                .and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1)))
            {
                Some((scheme, rest)) => format!("{scheme}://{REDACTED}@{rest}"),
                None => format!("{url}?{REDACTED}"),
            }
        }
        Transport::Remote(endpoint) => endpoint.secrets.redact(&endpoint.url).into_owned(),
        Transport::Unset(variables) => {
            let names = variables.iter().map(|it| it.value.name());
            format!(
                "cannot start, not set: {}",
                names.collect::<Vec<_>>().join(", ")
            )
        }
    };
    visible(&text).into_owned()
}

/// Hides the value of an argument, and keeps the name in front of `=`.
fn hidden(argument: &str) -> String {
    match argument.split_once('=') {
        Some((name, _)) => format!("{name}={REDACTED}"),
        None => REDACTED.to_owned(),
    }
}
