//! Loading the configuration for a command, with what a person should do where that fails.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::config::{
    Environment, LoadError, Loaded, LocateError, Problems, load, locate, read_text,
};

/// Why there is no configuration to work with.
#[derive(Debug, Error)]
pub(super) enum ConfigurationError {
    /// No file was found.
    #[error("{error}\n  hint: {}", error.remedy())]
    NotFound { error: LocateError },
    /// The file cannot be read.
    #[error("{error}{}", hint(error.remedy()))]
    NotUsable { error: LoadError },
    /// Its content is wrong.
    #[error("the configuration cannot be used\n{problems}")]
    Invalid { problems: Problems },
}

/// Finds and loads the configuration; `flag` is the value of `--config`.
pub(super) fn load_configuration(
    flag: Option<&Path>,
    environment: &Environment,
) -> Result<Loaded, ConfigurationError> {
    load(&find(flag, environment)?, environment).map_err(not_usable)
}

/// Finds the configuration and reads its text, which may be wrong.
pub(super) fn read_configuration(
    flag: Option<&Path>,
    environment: &Environment,
) -> Result<(PathBuf, String), ConfigurationError> {
    let file = find(flag, environment)?;
    let text = read_text(&file, environment).map_err(not_usable)?;
    Ok((file, text))
}

fn find(flag: Option<&Path>, environment: &Environment) -> Result<PathBuf, ConfigurationError> {
    let located = locate(flag, environment);
    let located = located.map_err(|error| ConfigurationError::NotFound { error })?;
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
