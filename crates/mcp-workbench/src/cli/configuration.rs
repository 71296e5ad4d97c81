//! Loads the configuration for a command and selects a part of it. Errors say what to do next.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use ident::{ServerName, ToolboxName};
use thiserror::Error;

use super::{PROGRAM, shell::quoted};
use crate::{
    config::{
        Config, Environment, LoadError, Loaded, LocateError, Problems, Toolbox, load, load_again,
        locate, read_text,
    },
    near::nearest,
    visible::visible,
};

/// The servers that a command works on: all of them, those of one toolbox, or one server.
#[derive(Args, Clone)]
pub(super) struct ServerSelection {
    /// Only this toolbox
    pub(super) toolbox: Option<String>,

    /// Only this server of it
    #[arg(requires = "toolbox")]
    pub(super) server: Option<String>,
}

/// The time limit for the start of servers.
#[derive(Args, Clone, Copy, Default)]
pub(super) struct StartLimit {
    /// Time limit for the start of each server [default: its `connectTimeoutMs`]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

impl StartLimit {
    /// Sets the limit for every server of a configuration that was just loaded.
    pub(super) fn apply(self, config: &mut Config) {
        let Some(limit) = self.timeout.map(Duration::from_secs) else {
            return;
        };
        let unshared = "a configuration that was just loaded is not shared";
        for toolbox in config.toolboxes.values_mut() {
            let toolbox = Arc::get_mut(toolbox).expect(unshared);
            for server in toolbox.servers.values_mut() {
                Arc::get_mut(server).expect(unshared).times.connect = limit;
            }
        }
    }
}

impl ServerSelection {
    /// Removes all other servers from a configuration.
    pub(super) fn choose(&self, config: &mut Config) -> Result<(), UnknownName> {
        match (&self.toolbox, &self.server) {
            (Some(toolbox), Some(server)) => choose_server(config, toolbox, server),
            (toolbox, _) => choose_toolbox(config, toolbox.as_deref()),
        }
    }
}

/// Reasons why the configuration cannot be used.
#[derive(Debug, Error)]
pub(super) enum ConfigurationError {
    #[error("{error}\n  hint: {}", error.remedy())]
    NotFound { error: LocateError },
    /// The file cannot be read.
    #[error("{error}{}", hint(error.remedy()))]
    NotUsable { error: LoadError },
    #[error("the configuration is invalid\n{problems}")]
    Invalid { problems: Problems },
}

/// A toolbox or server on the command line that is not in the configuration.
#[derive(Debug, Error)]
#[error("{}\n  hint: {}", .what, .remedy)]
pub(super) struct UnknownName {
    what: String,
    remedy: String,
}

impl UnknownName {
    pub(super) fn toolbox(name: &str, config: &Config) -> Self {
        let what = format!("there is no toolbox `{}`", visible(name));
        // Commands take the toolbox first, and users often begin with the server.
        let mut toolboxes = config.toolboxes.values();
        if let Some(toolbox) = toolboxes.find(|it| it.servers.contains_key(name)) {
            let (server, of) = (visible(name), visible(toolbox.name.as_str()));
            return Self {
                what,
                remedy: format!(
                    "`{server}` is a server of the toolbox `{of}`; name the toolbox first"
                ),
            };
        }
        let known = config.toolboxes.keys().map(ToolboxName::as_str);
        Self {
            what,
            remedy: remedy(
                nearest(name, known),
                "name a toolbox of the configuration; `mcp-workbench list` shows them",
            ),
        }
    }

    /// Returns the error for an unknown or disabled server.
    pub(super) fn server(name: &str, toolbox: &Toolbox) -> Self {
        let (shown, of) = (visible(name), visible(toolbox.name.as_str()));
        // A disabled server is known, and the hint is the command that enables it.
        if toolbox.disabled.iter().any(|it| it.as_str() == name) {
            return Self {
                what: format!("the server `{shown}` of toolbox `{of}` is disabled"),
                remedy: format!(
                    "{PROGRAM} enable {} {}",
                    quoted(toolbox.name.as_str()),
                    quoted(name)
                ),
            };
        }
        let known = toolbox.servers.keys().map(ServerName::as_str);
        Self {
            what: format!("there is no server `{shown}` in toolbox `{of}`"),
            remedy: remedy(
                nearest(name, known),
                "name a server of the toolbox; `mcp-workbench list` shows them",
            ),
        }
    }
}

fn remedy(near: Option<&str>, otherwise: &str) -> String {
    match near {
        Some(near) => format!("did you mean `{}`?", visible(near)),
        None => otherwise.to_owned(),
    }
}

/// Removes all other toolboxes from the configuration; keeps all if `name` is `None`.
pub(super) fn choose_toolbox(config: &mut Config, name: Option<&str>) -> Result<(), UnknownName> {
    let Some(name) = name else { return Ok(()) };
    if !config.toolboxes.contains_key(name) {
        return Err(UnknownName::toolbox(name, config));
    }
    config.toolboxes.retain(|known, _| known.as_str() == name);
    Ok(())
}

/// Removes everything but one server of one toolbox from the configuration.
pub(super) fn choose_server(
    config: &mut Config,
    toolbox: &str,
    server: &str,
) -> Result<(), UnknownName> {
    choose_toolbox(config, Some(toolbox))?;
    for chosen in config.toolboxes.values_mut() {
        let Some((name, found)) = chosen.servers.get_key_value(server) else {
            return Err(UnknownName::server(server, chosen));
        };
        // The configuration shares its toolboxes, so the selected one is rebuilt.
        *chosen = Arc::new(Toolbox {
            name: chosen.name.clone(),
            description: chosen.description.clone(),
            servers: [(name.clone(), Arc::clone(found))].into(),
            connect: chosen.connect,
            disabled: Vec::new(),
        });
    }
    Ok(())
}

/// Finds and loads the configuration; `flag` is the value of `--config`.
pub(super) fn load_configuration(
    flag: Option<&Path>,
    environment: &Environment,
) -> Result<Loaded, ConfigurationError> {
    load(&find(flag, environment)?, environment).map_err(not_usable)
}

/// Loads a configuration file again, while the workbench serves.
pub(super) fn load_file_again(
    file: &Path,
    environment: &Environment,
) -> Result<Loaded, ConfigurationError> {
    load_again(file, environment).map_err(not_usable)
}

/// Finds the configuration file and reads its text without checking it.
pub(super) fn read_configuration(
    flag: Option<&Path>,
    environment: &Environment,
) -> Result<(PathBuf, String), ConfigurationError> {
    let file = find(flag, environment)?;
    let text = read_text(&file, environment).map_err(not_usable)?;
    Ok((file, text))
}

/// Finds the configuration file; `flag` is the value of `--config`.
pub(super) fn find(
    flag: Option<&Path>,
    environment: &Environment,
) -> Result<PathBuf, ConfigurationError> {
    let located =
        locate(flag, environment).map_err(|error| ConfigurationError::NotFound { error })?;
    Ok(located.file)
}

fn not_usable(error: LoadError) -> ConfigurationError {
    match error {
        LoadError::Invalid(problems) => ConfigurationError::Invalid { problems },
        error => ConfigurationError::NotUsable { error },
    }
}

fn hint(remedy: Option<&str>) -> String {
    remedy.map_or_else(String::new, |remedy| format!("\n  hint: {remedy}"))
}
