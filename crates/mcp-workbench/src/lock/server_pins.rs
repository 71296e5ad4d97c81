//! What the task of a server holds of the lock file.

use std::sync::Arc;

use super::{Denial, Digest, Launch, Observation, Pins, canonical, state::Found};
use crate::{
    config::{PinMode, Secrets},
    ident::ServerIdentifier,
    wire::RawJson,
};

/// The pins of a server that is being started, or runs.
#[derive(Debug, Clone)]
pub struct ServerPins {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    /// How it is started; nothing where it is not, and what it told in an earlier run is at hand.
    launch: Option<Arc<Launch>>,
    /// What no definition may hold that is kept.
    secrets: Secrets,
}

/// What may be offered of a list of tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ruling {
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
    pub fn new(pins: Arc<Pins>, place: ServerIdentifier, launch: Launch) -> Self {
        Self {
            pins,
            place,
            launch: Some(Arc::new(launch)),
            secrets: Secrets::default(),
        }
    }

    /// The pins of a server that is not started: how it would be is looked at when it is.
    pub fn at_rest(pins: Arc<Pins>, place: ServerIdentifier) -> Self {
        Self {
            pins,
            place,
            launch: None,
            secrets: Secrets::default(),
        }
    }

    /// The same for a server whose definitions are not kept where they repeat one of these.
    #[must_use]
    pub fn without_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Whether the server may be started.
    pub fn admit(&self, mode: PinMode) -> Result<(), Denial> {
        match mode {
            PinMode::Off | PinMode::Notice => Ok(()),
            PinMode::Enforce => {
                let launch = self.launch.as_deref().cloned().unwrap_or_default();
                self.pins.admit(&self.place, &launch)
            }
        }
    }

    /// Which tools of a server that calls itself so may be offered. What is found is remembered.
    pub fn rule<'t>(
        &self,
        mode: PinMode,
        product: Option<&str>,
        tools: impl Iterator<Item = (&'t str, &'t RawJson)>,
    ) -> Ruling {
        let launch = match (mode, &self.launch) {
            // What it told in an earlier run was taken up then.
            (PinMode::Off, _) | (PinMode::Notice, None) => return Ruling::default(),
            (PinMode::Notice | PinMode::Enforce, Some(launch)) => launch.saying(product),
            (PinMode::Enforce, None) => self.pins.approved_launch(&self.place),
        };
        let mut found = Found {
            place: self.place.clone(),
            observation: Observation {
                launch,
                tools: Vec::new(),
            },
            texts: Vec::new(),
        };
        for (name, definition) in tools {
            let text = canonical(definition);
            let digest = Digest::of(text.as_bytes());
            found.observation.tools.push((name.to_owned(), digest));
            if !self.secrets.stand_in_json(&text) {
                found.texts.push((digest, text));
            }
        }
        match mode {
            PinMode::Enforce => self.pins.enforce(&found),
            PinMode::Notice | PinMode::Off => self.pins.notice(found),
        }
    }
}
