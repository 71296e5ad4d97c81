//! What the task of a server holds of the lock file.

use std::sync::{Arc, OnceLock};

use rawjson::RawJson;

use super::{
    Denial, Launch, Pins,
    found::{Found, Start},
    words,
};
use crate::{
    config::{PinMode, Secrets, Server},
    ident::ServerIdentifier,
};

/// The pins of a server that is being started, or runs.
#[derive(Debug, Clone)]
pub(crate) struct ServerPins {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    /// How it is started; nothing where it is not, and what it told in an earlier run is at hand.
    start: Option<Start>,
    /// What no definition may hold that is kept.
    secrets: Secrets,
}

/// What may be offered of a list of tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// Tools that may not be offered, and why.
    pub denied: Vec<(String, String)>,
    /// What is to be told about the others.
    pub notices: Vec<String>,
}

impl Ruling {
    pub(super) fn noticed(notice: Option<String>) -> Self {
        Self {
            denied: Vec::new(),
            notices: notice.into_iter().collect(),
        }
    }
}

impl ServerPins {
    /// The pins of a server that is started in this way.
    pub(crate) fn new(pins: Arc<Pins>, place: ServerIdentifier, launch: Launch) -> Self {
        let start = Some(Start::Known(Arc::new(launch)));
        Self {
            start,
            ..Self::at_rest(pins, place)
        }
    }

    /// The pins of a server that is started by this entry. In which way that is, is looked at when somebody wants to
    /// know.
    pub(crate) fn unlooked(pins: Arc<Pins>, place: ServerIdentifier, server: Arc<Server>) -> Self {
        let start = Some(Start::Unlooked(server, Arc::clone(&pins.programs)));
        Self {
            start,
            ..Self::at_rest(pins, place)
        }
    }

    /// The pins of a server that is not started: how it would be is looked at when it is.
    pub(crate) fn at_rest(pins: Arc<Pins>, place: ServerIdentifier) -> Self {
        Self {
            pins,
            place,
            start: None,
            secrets: Secrets::default(),
        }
    }

    /// The same for a server whose definitions are not kept where they repeat one of these.
    #[must_use]
    pub(crate) fn without_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Returns the mode that holds where the configuration has this one.
    pub(crate) fn mode(&self, configured: PinMode) -> PinMode {
        self.pins.mode(&self.place, configured)
    }

    /// Returns an error if the server may not be started. The mode is that of the configuration.
    pub(crate) fn admit(&self, configured: PinMode) -> Result<(), Denial> {
        let mode = self.mode(configured);
        if mode != configured {
            self.pins.held(&self.place, configured);
        }
        match mode {
            PinMode::Off | PinMode::Notice => Ok(()),
            PinMode::Enforce => match &self.start {
                Some(Start::Known(launch)) => self.pins.admit(&self.place, launch),
                // What was not looked at is not what was approved.
                Some(Start::Unlooked(..)) | None => {
                    self.pins.admit(&self.place, &Launch::default())
                }
            },
        }
    }

    /// Returns whether somebody has approved exactly this definition of a tool with its finding. That counts whatever is
    /// done about changes. `code` is that of the finding.
    pub(crate) fn releases(&self, tool: (&str, &RawJson), code: &str) -> bool {
        self.pins.releases(&self.place, tool, code)
    }

    /// Returns why a tool with a finding is withheld, with the commands that show and approve it.
    pub(crate) fn finding_reason(&self, tool: &str, finding: &str) -> String {
        words::finding_reason(self.pins.program(), &self.place, tool, finding)
    }

    /// Returns why a tool is withheld that nobody can approve, with the command that lists it.
    pub(crate) fn fault_reason(&self, fault: &str) -> String {
        words::fault_reason(self.pins.program(), &self.place, fault)
    }

    /// Returns which tools of a server that calls itself so may be offered, by the mode of the configuration. What is found
    /// is remembered.
    pub(crate) fn rule<'t>(
        &self,
        configured: PinMode,
        product: Option<&str>,
        tools: impl Iterator<Item = (&'t str, &'t RawJson)>,
    ) -> Ruling {
        let mode = self.mode(configured);
        let mut ruling = self.ruled(mode, product, tools);
        if mode != configured {
            ruling.notices.push(self.pins.held(&self.place, configured));
        }
        ruling
    }

    fn ruled<'t>(
        &self,
        mode: PinMode,
        product: Option<&str>,
        tools: impl Iterator<Item = (&'t str, &'t RawJson)>,
    ) -> Ruling {
        let start = match (mode, &self.start) {
            // What it told in an earlier run was taken up then.
            (PinMode::Off, _) | (PinMode::Notice, None) => return Ruling::default(),
            (PinMode::Notice | PinMode::Enforce, Some(start)) => start.clone(),
            (PinMode::Enforce, None) => {
                Start::Known(Arc::new(self.pins.approved_launch(&self.place)))
            }
        };
        let tools = tools.map(|(name, definition)| (name.to_owned(), definition.clone()));
        let found = Found {
            place: self.place.clone(),
            start,
            product: self.start.as_ref().and(product).map(str::to_owned),
            tools: tools.collect(),
            secrets: self.secrets.clone(),
            observation: OnceLock::new(),
            tools_only: OnceLock::new(),
        };
        match mode {
            PinMode::Enforce => self.pins.enforce(&found),
            PinMode::Notice | PinMode::Off => self.pins.notice(found),
        }
    }
}
