//! What was found of a server and may have to be written. Nothing of it is worked out before somebody needs it: of a
//! server that is met for the first time, that is when it is written, and nobody waits for that.

use std::sync::{Arc, OnceLock};

use rawjson::RawJson;

use super::{
    Digest, Launch, Observation, canonical,
    programs::{Programs, Recall},
};
use crate::{
    config::{Secrets, Server},
    ident::ServerIdentifier,
};

/// What was found of a server, with the definitions themselves.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: ServerIdentifier,
    pub(super) start: Start,
    pub(super) product: Option<String>,
    /// The names and definitions of its tools. The definitions are those of its list, and no copies.
    pub(super) tools: Vec<(String, RawJson)>,
    /// What no definition may hold that is kept.
    pub(super) secrets: Secrets,
    /// What is compared, once it was.
    pub(super) observation: OnceLock<Observation>,
    /// The tools of it, once they were compared.
    pub(super) tools_only: OnceLock<Observation>,
}

/// How a server was started.
#[derive(Debug, Clone)]
pub(super) enum Start {
    Known(Arc<Launch>),
    /// In a way that nobody has looked at, by this entry; the programs are those that it may name.
    Unlooked(Arc<Server>, Arc<Programs>),
}

impl Found {
    /// What is compared with the lock file. The first time that takes a moment.
    pub(super) fn observation(&self) -> &Observation {
        self.observation.get_or_init(|| {
            let product = self.product.as_deref();
            Observation {
                launch: match &self.start {
                    Start::Known(launch) => launch.saying(product),
                    Start::Unlooked(server, programs) => {
                        Launch::of(server, programs, Recall::Cached).saying(product)
                    }
                },
                ..self.tools_only().clone()
            }
        })
    }

    /// What is compared with what was found earlier at the same start, which has the same launch. No file is read.
    pub(super) fn tools_only(&self) -> &Observation {
        self.tools_only.get_or_init(|| {
            let digest = |definition| Digest::of(canonical(definition).as_bytes());
            let tools = self.tools.iter();
            let tools = tools.map(|(name, definition)| (name.clone(), digest(definition)));
            Observation {
                tools: tools.collect(),
                ..Observation::default()
            }
        })
    }

    /// Returns whether nobody has looked at how the server was started.
    pub(super) fn is_unlooked(&self) -> bool {
        matches!(self.start, Start::Unlooked(..))
    }

    /// The canonical definitions that may be kept, one made after the other.
    pub(super) fn texts(&self) -> impl Iterator<Item = (Digest, String)> {
        let digests = self.observation().tools.iter().map(|(_, digest)| *digest);
        let definitions = self.tools.iter().map(|(_, definition)| definition);
        let texts = digests.zip(definitions.map(canonical));
        texts.filter(|(_, text)| !self.secrets.occur_in_json(text))
    }
}
