//! Loading the configuration for a command, with what a person should do where that fails.

use std::path::Path;

use thiserror::Error;

use crate::config::{Environment, LoadError, Loaded, LocateError, Problems, load, locate};

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
    let located =
        locate(flag, environment).map_err(|error| ConfigurationError::NotFound { error })?;
    load_file(&located.file, environment)
}

/// Loads a configuration file.
pub(super) fn load_file(
    file: &Path,
    environment: &Environment,
) -> Result<Loaded, ConfigurationError> {
    load(file, environment).map_err(|error| match error {
        LoadError::Invalid(problems) => ConfigurationError::Invalid { problems },
        error => ConfigurationError::NotUsable { error },
    })
}

fn hint(remedy: Option<&str>) -> String {
    remedy.map_or_else(String::new, |remedy| format!("\n  hint: {remedy}"))
}
