//! The members of `_meta` with which a modern request describes its client.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use rawjson::{Kind, RawJson};
use thiserror::Error;

use super::MODERN_REVISION;
use crate::wire::{CallOutline, Outlined};

/// The protocol revision of a request.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client capabilities for this request.
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The name and version of the client.
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The lowest level of log messages that the client wants for this request.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The name and version of the server, on results.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription that a notification belongs to.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Finds the common prefix of these keys.
static KEY_BEGIN: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("io.modelcontextprotocol"));
/// Finds escapes, with which a key may be spelled differently.
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));

/// The `_meta` of a request, parsed in one pass: the members that make the request modern, its progress token, and
/// the members to relay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestMeta {
    version: Option<RawJson>,
    capabilities: Option<RawJson>,
    client_info: Option<RawJson>,
    log_level: Option<RawJson>,
    /// The client's progress token, if it wants progress notifications.
    pub progress_token: Option<RawJson>,
    /// The other members, as the client wrote them; `None` if there are none.
    pub relayed: Option<RawJson>,
    /// The last member that appeared a second time.
    duplicate: Option<&'static str>,
}

/// The description of the client in a modern request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModernMeta {
    /// The protocol revision, a string.
    pub version: RawJson,
    /// The client capabilities, as the client wrote them.
    pub capabilities: RawJson,
    /// The name and version of the client, as it wrote them.
    pub client_info: Option<RawJson>,
    /// The lowest level of log messages that the client wants; `None` if it wants none.
    pub log_level: Option<String>,
}

/// A problem with the `_meta` of a modern request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum MetaProblem {
    #[error("_meta: {0} is required")]
    Missing(&'static str),
    #[error("_meta: {0} must be {1}")]
    WrongType(&'static str, &'static str),
    #[error("_meta: {0} appears twice")]
    Duplicate(&'static str),
}

impl RequestMeta {
    /// Parses the `_meta` of a request. Anything but an object counts as empty.
    pub(crate) fn read(meta: &RawJson) -> Self {
        let mut read = Self::default();
        let (mut taken, mut others) = (false, Vec::new());
        meta.visit_members(|key, member, value| {
            let (slot, name) = match key {
                b"progressToken" => (&mut read.progress_token, "progressToken"),
                b"io.modelcontextprotocol/protocolVersion" => (&mut read.version, PROTOCOL_VERSION),
                b"io.modelcontextprotocol/clientCapabilities" => {
                    (&mut read.capabilities, CLIENT_CAPABILITIES)
                }
                b"io.modelcontextprotocol/clientInfo" => (&mut read.client_info, CLIENT_INFO),
                b"io.modelcontextprotocol/logLevel" => (&mut read.log_level, LOG_LEVEL),
                _ => {
                    others.push(member);
                    return;
                }
            };
            taken = true;
            // As everywhere, the first of two duplicates counts.
            match slot {
                Some(_) => read.duplicate = Some(name),
                None => *slot = Some(value),
            }
        });
        read.relayed = match (others.is_empty(), taken) {
            (true, _) => None,
            (false, false) => Some(meta.clone()),
            // Spliced from the client's own text, so that relayed members stay byte for byte the same.
            (false, true) => Some(meta.of_members(&others)),
        };
        read
    }

    /// Parses the `_meta` of a request, from its outline if it has the usual form.
    pub(crate) fn of_request(params: Option<&RawJson>, outline: &CallOutline) -> Option<Self> {
        let params = params?;
        if outline.is_usual() {
            Self::of_call(params, outline)
        } else {
            params.member("_meta").map(|meta| Self::read(&meta))
        }
    }

    /// Returns the revision that the request names, if it names one.
    pub(crate) fn version(&self) -> Option<&RawJson> {
        self.version.as_ref()
    }

    /// Parses the `_meta` of a call that has been outlined. The outline already has the usual members.
    pub(crate) fn of_call(params: &RawJson, outline: &CallOutline) -> Option<Self> {
        if !outline.has(Outlined::Meta) {
            return None;
        }
        let get = |member| outline.get(params, member);
        let read = || get(Outlined::Meta).map(|meta| Self::read(&meta));
        if outline.has_expected_meta() {
            return read();
        }
        // There are more unknown members than an outline has room for.
        let Ok(relayed) = outline.other_meta(params) else {
            return read();
        };
        Some(Self {
            version: get(Outlined::Version),
            capabilities: get(Outlined::Capabilities),
            client_info: get(Outlined::ClientInfo),
            log_level: get(Outlined::LogLevel),
            progress_token: get(Outlined::ProgressToken),
            relayed,
            duplicate: None,
        })
    }

    /// Returns whether a request is a modern one, without reading its `_meta` if it has an outline.
    pub(crate) fn makes_modern(params: Option<&RawJson>, outline: &CallOutline) -> bool {
        if outline.is_usual() && !outline.has_expected_meta() {
            // Any one of them: a request that lacks the others is a modern one with a mistake, and gets the error for
            // that.
            return [
                Outlined::Version,
                Outlined::Capabilities,
                Outlined::ClientInfo,
                Outlined::LogLevel,
            ]
            .into_iter()
            .any(|member| outline.has(member));
        }
        Self::of_request(params, outline).is_some_and(|meta| meta.is_modern())
    }

    /// Returns the capabilities that a request declares, without reading its `_meta` if it has an outline.
    pub(crate) fn declared(params: Option<&RawJson>, outline: &CallOutline) -> Option<RawJson> {
        if outline.is_usual() && !outline.has_expected_meta() {
            return outline.get(params?, Outlined::Capabilities);
        }
        Self::of_request(params, outline)?.capabilities
    }

    /// Returns whether these members make the request a modern one.
    pub(crate) fn is_modern(&self) -> bool {
        [
            &self.version,
            &self.capabilities,
            &self.client_info,
            &self.log_level,
        ]
        .into_iter()
        .any(Option::is_some)
    }

    /// Takes the description of the client out.
    pub(crate) fn take_modern(&mut self) -> Result<ModernMeta, MetaProblem> {
        // A duplicate progress token affects nothing but progress.
        if let Some(name) = self.duplicate.filter(|name| *name != "progressToken") {
            return Err(MetaProblem::Duplicate(name));
        }
        let version = self
            .version
            .take()
            .ok_or(MetaProblem::Missing(PROTOCOL_VERSION))?;
        if version.kind() != Kind::String {
            return Err(MetaProblem::WrongType(PROTOCOL_VERSION, "a string"));
        }
        let capabilities = self
            .capabilities
            .take()
            .ok_or(MetaProblem::Missing(CLIENT_CAPABILITIES))?;
        let is_object = |value: &RawJson| value.kind() == Kind::Object;
        if !is_object(&capabilities) {
            return Err(MetaProblem::WrongType(CLIENT_CAPABILITIES, "an object"));
        }
        if self.client_info.as_ref().is_some_and(|it| !is_object(it)) {
            return Err(MetaProblem::WrongType(CLIENT_INFO, "an object"));
        }
        let log_level = self.log_level.as_ref().map(|level| match level.as_text() {
            Some(level) => Ok(level.into_owned()),
            None => Err(MetaProblem::WrongType(LOG_LEVEL, "a string")),
        });
        Ok(ModernMeta {
            version,
            capabilities,
            client_info: self.client_info.take(),
            log_level: log_level.transpose()?,
        })
    }
}

impl ModernMeta {
    /// Returns whether the revision is the one that we support.
    pub(crate) fn is_current(&self) -> bool {
        // The fast path: the version is almost always written without escapes.
        let quoted = self.version.as_bytes();
        let plain = quoted
            .strip_prefix(b"\"")
            .and_then(|it| it.strip_suffix(b"\""));
        plain == Some(MODERN_REVISION.as_bytes())
            || self
                .version
                .as_text()
                .is_some_and(|it| it == MODERN_REVISION)
    }
}

/// Returns whether parameters have the `_meta` of a modern request.
pub fn are_modern(params: Option<&RawJson>) -> bool {
    params.is_some_and(|params| {
        // Almost no legacy request contains such a key, and the substring search costs next to nothing. The key may
        // be written with escapes.
        let maybe = [&KEY_BEGIN, &ESCAPE]
            .into_iter()
            .any(|it| it.find(params.as_bytes()).is_some());
        maybe
            && params
                .member("_meta")
                .is_some_and(|meta| RequestMeta::read(&meta).is_modern())
    })
}
