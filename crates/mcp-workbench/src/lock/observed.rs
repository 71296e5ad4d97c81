//! An observed server that may have to be written. Digests are computed on demand: for a first contact that is when the
//! file is written, so no request waits for it.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use ident::{ServerIdentifier, ToolName};
use rawjson::RawJson;

use super::{
    Digest, Launch, Observation, PinnedServer,
    canonical::{Canonical, canonical},
    programs::{Programs, ReusableDigests},
};
use crate::config::{Secrets, Server};

/// The size of the line of a tool in the lock file, without its name.
const TOOL_BYTES: usize = 100;

/// An observed server with its definitions.
#[derive(Debug)]
pub(super) struct ObservedServer {
    pub(super) place: ServerIdentifier,
    pub(super) start: ObservedLaunch,
    pub(super) product: Option<String>,
    /// The names and definitions of its tools. The definitions share the bytes of the tool list.
    pub(super) tools: Vec<(ToolName, RawJson)>,
    /// Values that no stored definition may contain.
    pub(super) secrets: Secrets,
    /// The observation, once it is computed.
    pub(super) observation: OnceLock<Observation>,
    /// The observation of the tools alone, once it is computed.
    pub(super) tools_only: OnceLock<Observation>,
}

/// The launch of an observed server.
#[derive(Debug, Clone)]
pub(super) enum ObservedLaunch {
    Known(Arc<Launch>),
    /// A launch that is not observed yet: the entry, and the digests of the programs that it may name.
    Unobserved(Arc<Server>, Arc<Programs>),
}

impl ObservedServer {
    /// Returns the observation to compare with the lock file. The first call computes it, which takes a moment.
    pub(super) fn observation(&self) -> &Observation {
        self.observation.get_or_init(|| {
            let product = self.product.as_deref();
            Observation {
                launch: match &self.start {
                    ObservedLaunch::Known(launch) => launch.saying(product),
                    ObservedLaunch::Unobserved(server, programs) => {
                        Launch::of(server, programs, ReusableDigests::Cached).saying(product)
                    }
                },
                tools: match self.tools_only.get() {
                    Some(known) => known.tools.clone(),
                    None => self.digests(),
                },
                ..Observation::default()
            }
        })
    }

    /// Returns the observation to compare with an earlier one of the same start, which has the same launch. Reads no
    /// file.
    pub(super) fn tools_only(&self) -> &Observation {
        self.tools_only.get_or_init(|| Observation {
            tools: self.digests(),
            ..Observation::default()
        })
    }

    /// Computes the digests for a comparison, which takes a moment. Reads no file.
    pub(super) fn compute_digests(&self) {
        match self.start {
            ObservedLaunch::Known(_) => {
                self.observation();
            }
            ObservedLaunch::Unobserved(..) => {
                self.tools_only();
            }
        }
    }

    fn digests(&self) -> Vec<(ToolName, Digest)> {
        let mut canonical = Canonical::default();
        let tools = self.tools.iter();
        tools
            .map(|(name, definition)| (name.clone(), canonical.digest(definition)))
            .collect()
    }

    /// Returns about how much the tools of the server take in the lock file, together with those that it has of the server.
    pub(super) fn lock_bytes(&self, known: Option<&PinnedServer>) -> usize {
        let names: HashSet<&str> = self.tools.iter().map(|(name, _)| name.as_str()).collect();
        let earlier = known.into_iter().flat_map(|it| it.tools.keys());
        let earlier = earlier.map(String::as_str).filter(|it| !names.contains(it));
        // Other characters may be escaped.
        let size = |name: &str| {
            if name.is_ascii() {
                name.len()
            } else {
                3 * name.len()
            }
        };
        let sizes = names
            .iter()
            .copied()
            .chain(earlier)
            .map(|it| size(it) + TOOL_BYTES);
        sizes.sum()
    }

    /// Returns true if the launch is not observed yet.
    pub(super) fn is_unobserved(&self) -> bool {
        matches!(self.start, ObservedLaunch::Unobserved(..))
    }

    /// Returns the canonical definitions that may be stored, and creates them one at a time.
    pub(super) fn texts(&self) -> impl Iterator<Item = (Digest, String)> {
        let digests = self.observation().tools.iter().map(|(_, digest)| *digest);
        let definitions = self.tools.iter().map(|(_, definition)| definition);
        let texts = digests.zip(definitions.map(canonical));
        texts.filter(|(_, text)| !self.secrets.occur_in_json(text))
    }
}
