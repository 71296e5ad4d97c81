//! The settings of an authority and a protected server. The defaults are correct behaviour.

use serde_json::{Value, json};

use super::METADATA;

/// The action of the user at the authorization page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Agrees: the page redirects at once.
    Agrees,
    /// Does not: the redirect says `access_denied`.
    Denies,
    /// Does nothing: there is a page and no redirect.
    Waits,
}

/// The issuer that is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Issuer {
    Right,
    Other(String),
    Unsaid,
}

/// The knobs of an authority.
#[derive(Debug, Clone)]
pub(crate) struct Knobs {
    /// The paths of its metadata.
    pub(crate) metadata_paths: Vec<String>,
    /// Members of the metadata that are other than they should be; `null` leaves one out.
    pub(crate) metadata: Vec<(&'static str, Value)>,
    /// A status and a body instead of the metadata.
    pub(crate) metadata_answer: Option<(&'static str, String)>,
    pub(crate) user: User,
    /// The `iss` of the redirect.
    pub(crate) redirect_issuer: Issuer,
    /// The `state` of the redirect, if not the one that came.
    pub(crate) redirect_state: Option<String>,
    /// How a client is registered: `none`, `client_secret_basic` or `client_secret_post`.
    pub(crate) registers_as: &'static str,
    /// The reported lifetime of a token; `null` for none. The token is valid until the test ends it, so that clocks
    /// that disagree can be tested.
    pub(crate) expires_in: Value,
    /// The scopes that are granted, if not those that were asked for.
    pub(crate) granted: Option<String>,
    /// True if there are refresh tokens.
    pub(crate) refreshes: bool,
    /// True if a refresh token can be used only once.
    pub(crate) rotates: bool,
    /// A status and a body instead of tokens.
    pub(crate) token_answer: Option<(&'static str, String)>,
    /// Requests at this path are sent on to these addresses, with 307.
    pub(crate) redirects: Vec<(&'static str, String)>,
    /// Requests at these paths are not answered while they are in this list.
    pub(crate) held: Vec<&'static str>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            metadata_paths: vec![METADATA.to_owned()],
            metadata: Vec::new(),
            metadata_answer: None,
            user: User::Agrees,
            redirect_issuer: Issuer::Right,
            redirect_state: None,
            registers_as: "none",
            expires_in: json!(3600),
            granted: None,
            refreshes: true,
            rotates: true,
            token_answer: None,
            redirects: Vec::new(),
            held: Vec::new(),
        }
    }
}

/// The knobs of a protected server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProtectedKnobs {
    /// Its challenge, in place of the right one; an empty one is left out.
    pub(crate) challenge: Option<String>,
    /// The scopes that its challenge names.
    pub(crate) challenge_scope: Option<String>,
    /// Members of its metadata that are other than they should be; `null` leaves one out.
    pub(crate) metadata: Vec<(&'static str, Value)>,
    /// True if it has no metadata at all.
    pub(crate) no_metadata: bool,
    /// True if it is its own authority, without metadata, as in revision 2025-03-26.
    pub(crate) is_own_authority: bool,
    /// Without this scope a call of a tool is refused as `insufficient_scope`.
    pub(crate) call_scope: Option<String>,
    /// True if it needs no token.
    pub(crate) is_open: bool,
    /// Requests at this path are sent on to these addresses, with 307.
    pub(crate) redirects: Vec<(&'static str, String)>,
}
