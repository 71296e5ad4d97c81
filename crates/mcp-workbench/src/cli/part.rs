//! The part of a configuration that is served: all of it, or that of one of its clients, in its own mode or natively.

use thiserror::Error;

use super::{configuration::UnknownName, reload::Source};
use crate::config::{ClientError, Config, Environment, Loaded, ToolMode, as_client};

/// Names the part of a configuration that is served.
#[derive(Clone, Default)]
pub(super) struct ServedPart {
    /// The client of `--as`, or of a token.
    pub(super) client: Option<String>,
    /// The toolbox of `--native`.
    pub(super) native: Option<String>,
}

/// Reasons why the part is not there.
#[derive(Debug, Error)]
pub(super) enum PartError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Toolbox(#[from] UnknownName),
}

impl ServedPart {
    /// Returns the part of a configuration.
    pub(super) fn of(&self, mut config: Config) -> Result<Config, PartError> {
        if let Some(name) = &self.native {
            let toolbox = config.toolboxes.get_key_value(name.as_str());
            let (toolbox, _) = toolbox.ok_or_else(|| UnknownName::toolbox(name, &config))?;
            config.tool_mode = ToolMode::Native(toolbox.clone());
        }
        match &self.client {
            Some(client) => Ok(as_client(config, client)?),
            None => Ok(config),
        }
    }
}

/// A configuration that is served. The demo has no source to reload.
pub(super) struct Served {
    pub(super) config: Config,
    pub(super) source: Option<Source>,
}

impl Served {
    /// Returns the part of a loaded configuration.
    pub(super) fn new(
        loaded: &Loaded,
        part: ServedPart,
        environment: Option<&Environment>,
    ) -> Result<Self, PartError> {
        Ok(Self {
            config: part.of(loaded.config.clone())?,
            source: environment.map(|environment| Source {
                file: loaded.config.file.clone(),
                environment: environment.clone(),
                #[cfg(unix)]
                process: None,
                part,
                fingerprint: loaded.fingerprint,
            }),
        })
    }
}
