//! The pins that the task of a server holds.

use std::sync::{Arc, OnceLock};

use ident::{ServerIdentifier, ToolName};
use rawjson::RawJson;

use super::{
    Denial, Launch, Pins,
    observed::{ObservedLaunch, ObservedServer},
    words,
};
use crate::config::{PinMode, Secrets, Server};

/// The pins of a server that is being started, or runs.
#[derive(Debug, Clone)]
pub(crate) struct ServerPins {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    /// The launch, or `None` if the server is not started and its cached tool list is used.
    start: Option<ObservedLaunch>,
    /// Values that no stored definition may contain.
    secrets: Secrets,
}

/// The verdict on a list of tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// The withheld tools, with the reasons.
    pub denied: Vec<(String, String)>,
    /// Notices about the other tools.
    pub notices: Vec<String>,
}

impl Ruling {
    pub(super) fn noticed(notices: impl IntoIterator<Item = String>) -> Self {
        Self {
            denied: Vec::new(),
            notices: notices.into_iter().collect(),
        }
    }
}

impl ServerPins {
    /// Creates the pins of a server with this launch.
    pub(crate) fn new(pins: Arc<Pins>, place: ServerIdentifier, launch: Launch) -> Self {
        let start = Some(ObservedLaunch::Known(Arc::new(launch)));
        Self {
            start,
            ..Self::at_rest(pins, place)
        }
    }

    /// Creates the pins of a server with this entry. The launch is observed on demand.
    pub(crate) fn unobserved(
        pins: Arc<Pins>,
        place: ServerIdentifier,
        server: Arc<Server>,
    ) -> Self {
        let start = Some(ObservedLaunch::Unobserved(
            server,
            Arc::clone(&pins.programs),
        ));
        Self {
            start,
            ..Self::at_rest(pins, place)
        }
    }

    /// Creates the pins of a server that is not started. Its launch is observed when it starts.
    pub(crate) fn at_rest(pins: Arc<Pins>, place: ServerIdentifier) -> Self {
        Self {
            pins,
            place,
            start: None,
            secrets: Secrets::default(),
        }
    }

    /// Sets the values that no stored definition may contain.
    #[must_use]
    pub(crate) fn without_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Returns the mode that applies where the configuration has this one.
    pub(crate) fn mode(&self, configured: PinMode) -> PinMode {
        self.pins.mode(&self.place, configured)
    }

    /// Returns an error if the server may not be started. The mode is that of the configuration.
    pub(crate) fn admit(&self, configured: PinMode) -> Result<(), Denial> {
        let mode = self.mode(configured);
        if mode != configured {
            self.pins.log_lowered(&self.place, configured);
        }
        match mode {
            PinMode::Off | PinMode::Notice => Ok(()),
            PinMode::Enforce => match &self.start {
                Some(ObservedLaunch::Known(launch)) => self.pins.admit(&self.place, launch),
                // A launch that was not observed is not an approved one.
                Some(ObservedLaunch::Unobserved(..)) | None => {
                    self.pins.admit(&self.place, &Launch::default())
                }
            },
        }
    }

    /// Returns true if the user has approved exactly this definition of a tool with its finding. This applies in every
    /// mode. `code` is that of the finding.
    pub(crate) fn releases(&self, tool: &str, definition: &RawJson, code: &str) -> bool {
        self.pins.releases(&self.place, tool, definition, code)
    }

    /// Returns the reason why a tool with a finding is withheld, with the commands that show and approve it.
    pub(crate) fn finding_reason(&self, tool: &str, finding: &str) -> String {
        words::finding_reason(self.pins.program(), &self.place, tool, finding)
    }

    /// Returns the reason why a tool that cannot be approved is withheld, with the command that lists it.
    pub(crate) fn fault_reason(&self, fault: &str) -> String {
        words::fault_reason(self.pins.program(), &self.place, fault)
    }

    /// Returns the verdict on the tools of a server with this product name, by the mode of the configuration. Records
    /// the observation.
    pub(crate) fn rule<'t>(
        &self,
        configured: PinMode,
        product: Option<&str>,
        tools: impl Iterator<Item = (ToolName, &'t RawJson)>,
    ) -> Ruling {
        let mode = self.mode(configured);
        let mut ruling = self.ruled(mode, product, tools);
        if mode != configured {
            ruling
                .notices
                .push(self.pins.log_lowered(&self.place, configured));
        }
        ruling
    }

    fn ruled<'t>(
        &self,
        mode: PinMode,
        product: Option<&str>,
        tools: impl Iterator<Item = (ToolName, &'t RawJson)>,
    ) -> Ruling {
        let start = match (mode, &self.start) {
            // A cached tool list was recorded in the run that cached it.
            (PinMode::Off, _) | (PinMode::Notice, None) => return Ruling::default(),
            (PinMode::Notice | PinMode::Enforce, Some(start)) => start.clone(),
            (PinMode::Enforce, None) => {
                ObservedLaunch::Known(Arc::new(self.pins.approved_launch(&self.place)))
            }
        };
        let tools = tools.map(|(name, definition)| (name, definition.clone()));
        let found = ObservedServer {
            place: self.place.clone(),
            start,
            // A server that was not started has not said its name.
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
