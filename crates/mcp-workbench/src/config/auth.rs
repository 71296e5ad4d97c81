//! The authorization server whose tokens clients over HTTP need.

use std::fmt;

#[cfg(test)]
use schemars::JsonSchema;
use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// The authorization server, as it names itself.
    pub issuer: String,
    /// The same as an address.
    pub issuer_url: Url,
    /// The audience that tokens must have.
    pub audience: String,
    /// The address of the workbench for its clients.
    pub resource: Url,
    /// The algorithms that tokens may be signed with.
    pub algorithms: Vec<TokenAlgorithm>,
    /// The scopes that every token must have.
    pub scopes: Vec<String>,
    /// The client of the workbench at the authorization server; `None` if it registers itself.
    pub client: Option<AuthClient>,
    /// The credentials for questions about tokens; `None` if signatures are checked instead.
    pub introspection: Option<Introspection>,
}

/// The client of the workbench at the authorization server.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthClient {
    pub id: String,
    pub secret: Option<String>,
}

/// Hides the secret.
impl fmt::Debug for AuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthClient")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The credentials of the workbench for questions about tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Introspection {
    pub client_id: String,
    pub client_secret: String,
}

/// Hides the secret.
impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// The users that a client of the configuration stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientClaims {
    /// The claims that a token must have, each by name and value. A claim that is a list must contain the value.
    pub claims: Vec<(String, String)>,
    /// The scopes that a token with these claims must have.
    pub scopes: Vec<String>,
}

/// An algorithm that tokens may be signed with. Only signatures with a private key prove that a token is the issuer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum TokenAlgorithm {
    #[cfg_attr(test, schemars(rename = "RS256"))]
    Rs256,
    #[cfg_attr(test, schemars(rename = "RS384"))]
    Rs384,
    #[cfg_attr(test, schemars(rename = "RS512"))]
    Rs512,
    #[cfg_attr(test, schemars(rename = "PS256"))]
    Ps256,
    #[cfg_attr(test, schemars(rename = "PS384"))]
    Ps384,
    #[cfg_attr(test, schemars(rename = "PS512"))]
    Ps512,
    #[cfg_attr(test, schemars(rename = "ES256"))]
    Es256,
    #[cfg_attr(test, schemars(rename = "ES384"))]
    Es384,
    #[cfg_attr(test, schemars(rename = "EdDSA"))]
    EdDsa,
}

impl TokenAlgorithm {
    pub(super) const NAMES: &'static [&'static str] = &[
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
    ];
    pub(crate) const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Returns the algorithm with a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut both = Self::NAMES.iter().zip(Self::ALL);
        both.find(|(it, _)| **it == name).map(|(_, it)| it)
    }
}
