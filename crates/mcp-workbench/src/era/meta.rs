//! The members of `_meta` by which a modern request says who sends it.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use thiserror::Error;

use crate::wire::{Kind, RawJson};

/// Names the revision of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Names what the client can do, for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Names the program of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Names the least urgent log messages that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Names the program of the server, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Names the subscription that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What says that a request is modern.
const REQUEST_KEYS: [&str; 4] = [
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
];

/// Finds what all of them begin with.
static KEY_BEGIN: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("io.modelcontextprotocol"));
/// Finds how characters of them may be hidden.
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));

/// What a modern request says of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModernMeta {
    /// The revision that the client speaks.
    pub version: String,
    /// What the client can do, as it wrote it.
    pub capabilities: RawJson,
    /// What the client says that it is, as it wrote it.
    pub client_info: Option<RawJson>,
    /// The least urgent log messages that it wants, as it wrote it; none if it wants none.
    pub log_level: Option<String>,
}

/// What is wrong with the `_meta` of a modern request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MetaProblem {
    /// A member is missing.
    #[error("_meta: {0} is required")]
    Missing(&'static str),
    /// A member has the wrong type.
    #[error("_meta: {0} must be {1}")]
    WrongType(&'static str, &'static str),
    /// A member stands twice.
    #[error("_meta: {0} stands twice")]
    Doubled(&'static str),
}

impl ModernMeta {
    /// Reads the `_meta` of a request that is modern.
    pub fn read(meta: Option<&RawJson>) -> Result<Self, MetaProblem> {
        let version = member(meta, PROTOCOL_VERSION)?;
        let version = version.ok_or(MetaProblem::Missing(PROTOCOL_VERSION))?;
        let version = text(&version, PROTOCOL_VERSION)?;
        let capabilities = member(meta, CLIENT_CAPABILITIES)?;
        let capabilities = capabilities.ok_or(MetaProblem::Missing(CLIENT_CAPABILITIES))?;
        if capabilities.kind() != Kind::Object {
            return Err(MetaProblem::WrongType(CLIENT_CAPABILITIES, "an object"));
        }
        let client_info = member(meta, CLIENT_INFO)?;
        if client_info
            .as_ref()
            .is_some_and(|it| it.kind() != Kind::Object)
        {
            return Err(MetaProblem::WrongType(CLIENT_INFO, "an object"));
        }
        let log_level = member(meta, LOG_LEVEL)?;
        let log_level = log_level.map(|it| text(&it, LOG_LEVEL)).transpose()?;
        Ok(Self {
            version,
            capabilities,
            client_info,
            log_level,
        })
    }
}

/// The one member of this name.
fn member(meta: Option<&RawJson>, name: &'static str) -> Result<Option<RawJson>, MetaProblem> {
    let members = meta.and_then(RawJson::members).unwrap_or_default();
    let mut found = members.into_iter().filter(|member| member.key == name);
    let value = found.next().map(|member| member.value);
    match found.next() {
        Some(_) => Err(MetaProblem::Doubled(name)),
        None => Ok(value),
    }
}

fn text(value: &RawJson, name: &'static str) -> Result<String, MetaProblem> {
    let text = value
        .as_text()
        .ok_or(MetaProblem::WrongType(name, "a string"))?;
    Ok(text.into_owned())
}

/// Whether parameters have the `_meta` of a modern request.
pub fn are_modern(params: Option<&RawJson>) -> bool {
    params.is_some_and(|params| {
        // Almost no legacy request has such a key, and looking for the words costs next to nothing. They may
        // be written with escapes.
        let maybe = [&KEY_BEGIN, &ESCAPE].into_iter();
        let maybe = { maybe }.any(|it| it.find(params.as_bytes()).is_some());
        maybe && has_modern_keys(params.member("_meta").as_ref())
    })
}

/// Whether the `_meta` of a request makes it a modern one.
pub fn has_modern_keys(meta: Option<&RawJson>) -> bool {
    let members = meta.and_then(RawJson::members).unwrap_or_default();
    members
        .iter()
        .any(|member| REQUEST_KEYS.contains(&member.key.as_ref()))
}

/// The `_meta` of a modern request as a legacy server gets it; nothing if nothing is left.
pub fn without_modern_keys(meta: &RawJson) -> Option<RawJson> {
    let rest = meta.without_members(&REQUEST_KEYS);
    let empty = rest.members().is_none_or(|members| members.is_empty());
    (!empty).then_some(rest)
}
