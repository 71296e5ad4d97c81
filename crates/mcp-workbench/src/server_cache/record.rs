//! The content of one file of the cache.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use bytes::Bytes;
use rawjson::RawJson;
use serde::{Deserialize, Serialize};

use super::{key::CacheKey, seconds_now};
use crate::era::Era;

/// The layout of a file. A file of a different layout counts as empty.
const LAYOUT: u32 = 1;
/// Bound on the name and the version of a server that are stored.
const MAX_IDENTITY_CHARACTERS: usize = 100;
/// The age up to which a protocol counts: a server behind `npx` or a URL is updated without any change on this machine.
const PROTOCOL_LIFETIME: Duration = Duration::from_hours(7 * 24);
/// The age up to which tools count that no start of their server has confirmed.
pub(super) const TOOLS_LIFETIME: Duration = Duration::from_hours(30 * 24);
/// The interval at which unchanged tools are confirmed. Most starts therefore write nothing.
const CONFIRM_INTERVAL: Duration = Duration::from_hours(24);

/// The cache record of a server. Each part is independent of the others, and may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CachedServer {
    head: Head,
    /// The description of the server and its tools, as JSON.
    tools: Option<RawJson>,
    /// Canonical definitions by their digests, as JSON.
    definitions: Option<RawJson>,
    /// The shapes of results by tool, as JSON.
    shapes: Option<RawJson>,
}

/// The small parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<CachedProtocol>,
    /// The digests of program files, by file metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    programs: BTreeMap<String, String>,
    /// When a start last confirmed the tools, in seconds since 1970.
    #[serde(default)]
    confirmed: u64,
    /// Set if the server has asked its client something: elicitation, sampling or roots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asks_back: bool,
}

/// The head as it is written.
#[derive(Serialize, Deserialize)]
struct Envelope<'a, H> {
    layout: u32,
    /// The key of the file, so that a copy under a different name is not used.
    key: Cow<'a, str>,
    #[serde(flatten)]
    head: H,
}

/// The protocol that a server speaks, as it was found out by asking it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachedProtocol {
    #[serde(with = "EraWord")]
    pub(crate) era: Era,
    /// The server's name for itself.
    #[serde(flatten)]
    pub(crate) identity: ServerIdentity,
    /// When it was found out, in seconds since 1970.
    at: u64,
}

/// The name and version that a server gives itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerIdentity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// An era as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Era", rename_all = "camelCase")]
pub(crate) enum EraWord {
    Legacy,
    Modern,
}

impl ServerIdentity {
    /// Creates an identity of texts that may be of any length.
    pub(crate) fn new(name: Option<&str>, version: Option<&str>) -> Self {
        let cut = |text: &str| text.chars().take(MAX_IDENTITY_CHARACTERS).collect();
        Self {
            name: name.map(cut),
            version: version.map(cut),
        }
    }
}

impl CachedProtocol {
    /// Creates a protocol that was found out now.
    pub(crate) fn new(era: Era, identity: ServerIdentity) -> Self {
        Self {
            era,
            identity,
            at: seconds_now(),
        }
    }
}

impl CachedServer {
    /// Returns the protocol of the server, unless it was found out too long ago.
    pub(crate) fn protocol(&self) -> Option<&CachedProtocol> {
        let protocol = self.head.protocol.as_ref();
        protocol.filter(|it| age(it.at) <= PROTOCOL_LIFETIME)
    }

    pub(crate) fn set_protocol(&mut self, protocol: Option<CachedProtocol>) {
        self.head.protocol = protocol;
    }

    /// Returns whether the server has asked its client something in an earlier run.
    pub(crate) fn asks_back(&self) -> bool {
        self.head.asks_back
    }

    pub(crate) fn set_asks_back(&mut self) {
        self.head.asks_back = true;
    }

    /// Returns the digests of program files, by file metadata.
    pub(crate) fn programs(&self) -> &BTreeMap<String, String> {
        &self.head.programs
    }

    pub(crate) fn set_programs(&mut self, programs: BTreeMap<String, String>) {
        self.head.programs = programs;
    }

    /// Returns the tools and their age, unless no start has confirmed them for too long.
    pub(crate) fn tools(&self) -> Option<(&RawJson, Duration)> {
        let age = age(self.head.confirmed);
        let tools = self.tools.as_ref().filter(|_| age <= TOOLS_LIFETIME);
        tools.map(|tools| (tools, age))
    }

    /// Stores the tools that a server has listed now.
    pub(crate) fn set_tools(&mut self, tools: RawJson) {
        let tools = Some(tools);
        if self.tools != tools || age(self.head.confirmed) > CONFIRM_INTERVAL {
            self.head.confirmed = seconds_now();
        }
        self.tools = tools;
    }

    /// Returns canonical definitions by their digests.
    pub(crate) fn definitions(&self) -> BTreeMap<String, String> {
        let definitions = self
            .definitions
            .as_ref()
            .and_then(|it| serde_json::from_slice(it.as_bytes()).ok());
        definitions.unwrap_or_default()
    }

    pub(crate) fn set_definitions(&mut self, definitions: Option<RawJson>) {
        self.definitions = definitions;
    }

    /// Returns the shapes of results.
    pub(crate) fn shapes(&self) -> Option<&RawJson> {
        self.shapes.as_ref()
    }

    pub(crate) fn set_shapes(&mut self, shapes: Option<RawJson>) {
        self.shapes = shapes;
    }

    /// Removes the parts that can be large or contain text of the server.
    pub(super) fn leave_out_lists(&mut self) {
        self.tools = None;
        self.definitions = None;
        self.shapes = None;
        self.head.confirmed = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the size of the parts, which is about that of the file.
    pub(super) fn bytes(&self) -> usize {
        self.texts().map(|text| text.len()).sum()
    }

    /// Returns the texts of all parts.
    pub(super) fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let head = serde_json::to_string(&self.head).expect("a head is plain data");
        let lists = [&self.tools, &self.definitions, &self.shapes]
            .into_iter()
            .flatten()
            .map(|it| Cow::Borrowed(it.as_str()));
        std::iter::once(Cow::Owned(head)).chain(lists)
    }

    /// Returns the text of the file of a key, in pieces: a list of tools may be large, and is not copied.
    pub(super) fn pieces(&self, key: &CacheKey) -> Vec<Cow<'_, [u8]>> {
        let envelope = Envelope {
            layout: LAYOUT,
            key: key.as_str().into(),
            head: &self.head,
        };
        let envelope = serde_json::to_string(&envelope).expect("a head is plain data");
        let mut pieces = vec![Cow::Owned(format!("{{\"head\":{envelope}").into_bytes())];
        // The lists are on a line of their own, for `parse_head`. Shapes are our own text, without line ends.
        let parts = [
            (&b",\"shapes\":"[..], &self.shapes),
            (&b",\n\"tools\":"[..], &self.tools),
            (&b",\n\"definitions\":"[..], &self.definitions),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                pieces.push(name.into());
                pieces.push(Cow::Borrowed(part.as_bytes().as_ref()));
            }
        }
        pieces.push(b"}"[..].into());
        pieces
    }

    /// Parses the first line of a file, behind which the lists are. Earlier versions wrote one line, which has them too.
    pub(super) fn parse_head(mut line: Vec<u8>, key: &CacheKey) -> Option<Self> {
        if line.ends_with(b",\n") {
            line.truncate(line.len() - 2);
            line.push(b'}');
        }
        Self::parse(line, key)
    }

    /// Parses the text of a file. Returns `None` if it is broken, or has a different layout or key.
    pub(super) fn parse(text: Vec<u8>, key: &CacheKey) -> Option<Self> {
        let text = RawJson::parse(&Bytes::from(text)).ok()?;
        let members = text.members()?;
        let member = |name: &str| Some(members.iter().find(|it| it.key == name)?.value.clone());
        let head = member("head")?;
        let envelope: Envelope<'_, Head> = serde_json::from_slice(head.as_bytes()).ok()?;
        if envelope.layout != LAYOUT || envelope.key != key.as_str() {
            return None;
        }
        Some(Self {
            head: envelope.head,
            tools: member("tools"),
            definitions: member("definitions"),
            shapes: member("shapes"),
        })
    }
}

/// Returns how long ago a moment was. A clock that was set back must not make a part last forever.
fn age(at: u64) -> Duration {
    Duration::from_secs(seconds_now().abs_diff(at))
}
