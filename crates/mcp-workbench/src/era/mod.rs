//! The two eras of the protocol and pure translations between them. Up to 2025-11-25 a connection begins with
//! `initialize`, and a server sends requests of its own. Since 2026-07-28 every request is self-contained, and a
//! server asks for input in place of a result. All differences in messages, headers and results are translated here
//! and nowhere else. Other modules decide whom to ask, when, and how long to wait.

mod cache;
mod error;
pub(crate) mod headers;
mod input;
mod meta;
mod result;
#[cfg(test)]
mod tests;

pub(crate) use cache::{CacheHints, CacheScope};
pub(crate) use error::{
    HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION, is_modern_code, to_modern_error,
    unsupported_version_data, url_elicitations,
};
pub(crate) use input::{
    INPUT_REQUESTS, INPUT_RESPONSES, InputRequest, InputRequired, REQUEST_STATE,
};
pub use meta::are_modern;
pub(crate) use meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, MetaProblem, PROTOCOL_VERSION, RequestMeta,
    SERVER_INFO, SUBSCRIPTION_ID,
};
pub(crate) use result::{
    ResultType, result_type, to_legacy_result, to_modern_result, without_type,
};

/// The revision that is spoken in the modern era.
pub(crate) const MODERN_REVISION: &str = "2026-07-28";

/// The revisions of the legacy era, oldest first.
pub(crate) const LEGACY_REVISIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The capability that has the protocol extensions of either side, by their names.
pub(crate) const EXTENSIONS: &str = "extensions";
/// The capability that has experimental features of either side, by their names.
pub(crate) const EXPERIMENTAL: &str = "experimental";
/// The extension for calls that outlive their request.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
pub(crate) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The extension of user interfaces, MCP Apps.
pub(crate) const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The era of a client or a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize` and sessions: the revisions up to 2025-11-25.
    Legacy,
    /// Every request by itself: 2026-07-28.
    Modern,
}
