//! What the task of a server holds of the lock file.

use std::sync::Arc;

use super::{Denial, Digest, Launch, Observation, Pins, canonical, state::Found};
use crate::{config::PinMode, ident::ServerIdentifier, wire::RawJson};

/// The pins of a server that is being started, or runs.
#[derive(Debug, Clone)]
pub struct ServerPins {
    pins: Arc<Pins>,
    place: ServerIdentifier,
    /// How it is started.
    launch: Arc<Launch>,
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
            launch: Arc::new(launch),
        }
    }

    /// Whether the server may be started.
    pub fn admit(&self, mode: PinMode) -> Result<(), Denial> {
        match mode {
            PinMode::Off | PinMode::Notice => Ok(()),
            PinMode::Enforce => self.pins.admit(&self.place, &self.launch),
        }
    }

    /// Which tools of a server that calls itself so may be offered. What is found is remembered.
    pub fn rule<'t>(
        &self,
        mode: PinMode,
        product: Option<&str>,
        tools: impl Iterator<Item = (&'t str, &'t RawJson)>,
    ) -> Ruling {
        if mode == PinMode::Off {
            return Ruling::default();
        }
        let mut found = Found {
            place: self.place.clone(),
            observation: Observation {
                launch: self.launch.saying(product),
                tools: Vec::new(),
            },
            texts: Vec::new(),
        };
        for (name, definition) in tools {
            let text = canonical(definition);
            let digest = Digest::of(text.as_bytes());
            found.observation.tools.push((name.to_owned(), digest));
            found.texts.push((digest, text));
        }
        match mode {
            PinMode::Enforce => self.pins.enforce(&found),
            PinMode::Notice | PinMode::Off => self.pins.notice(found),
        }
    }
}
