//! Selects a part of the configuration or lock file, and asks for confirmation.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use ident::ServerIdentifier;
use thiserror::Error;

use crate::{
    cli::{
        configuration::{ServerSelection, UnknownName},
        output,
    },
    config::Config,
    lock::Selection,
};

/// The selected servers and tools; everything if nothing is named.
#[derive(Args, Clone)]
pub(super) struct TrustSelection {
    /// Only this toolbox
    pub(super) toolbox: Option<String>,

    /// Only this server of it
    #[arg(requires = "toolbox")]
    pub(super) server: Option<String>,

    /// Only this tool of it
    #[arg(requires = "server")]
    pub(super) tool: Option<String>,
}

/// There is no terminal to ask on, and `--yes` is not given.
#[derive(Debug, Error)]
#[error("nothing was changed, because there is no terminal to confirm on\n  hint: add --yes")]
pub(super) struct NotConfirmed;

impl TrustSelection {
    /// Removes everything else from a configuration.
    pub(super) fn choose(&self, config: &mut Config) -> Result<(), UnknownName> {
        let place = ServerSelection {
            toolbox: self.toolbox.clone(),
            server: self.server.clone(),
        };
        place.choose(config)
    }

    /// Returns true if a server, or a tool of it, is selected.
    pub(super) fn has(&self, place: &ServerIdentifier) -> bool {
        let toolbox = self.toolbox.as_deref();
        let server = self.server.as_deref();
        toolbox.is_none_or(|it| it == place.toolbox.as_str())
            && server.is_none_or(|it| it == place.server.as_str())
    }

    /// Returns true if a tool is selected, by itself or with its server.
    pub(super) fn has_tool(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|it| it == tool)
    }

    /// Returns the selected part of a server.
    pub(super) fn selection(&self) -> Selection<'_> {
        self.tool
            .as_deref()
            .map_or(Selection::Whole, Selection::Tool)
    }
}

/// Asks for confirmation, unless it was given on the command line. Anything but a yes is a no.
pub(super) fn confirmed(question: &str, yes: bool) -> Result<bool, NotConfirmed> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(NotConfirmed);
    }
    output::prompt(&format!("{question} [y/N] "));
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let line = line.trim().to_ascii_lowercase();
    Ok(read.is_ok() && matches!(line.as_str(), "y" | "yes"))
}
