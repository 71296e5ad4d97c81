//! The OAuth settings of a remote server.

use std::fmt;

/// The sign-in of the workbench to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuth {
    /// Off: the entry disables it, or has credentials of its own.
    Off,
    /// On demand, when the server asks for it.
    On(Box<OAuthSettings>),
}

impl OAuth {
    /// Returns the keys with literal credentials in the entry.
    pub fn literals(&self) -> &[&'static str] {
        match self {
            Self::On(settings) => &settings.literals,
            Self::Off => &[],
        }
    }

    /// Returns whether every user has credentials of their own.
    pub fn is_per_user(&self) -> bool {
        matches!(self, Self::On(settings) if settings.per == CredentialsPer::User)
    }
}

/// The OAuth settings of an entry. All of them are optional.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The id of a registered client.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The scopes to request; empty for those of the server.
    pub scopes: Vec<String>,
    /// The port of the browser's redirect; `None` for any free one.
    pub callback_port: Option<u16>,
    /// The URL of a client metadata document, which is the client id for servers that support it.
    pub client_metadata_url: Option<String>,
    /// A name that distinguishes several accounts at one server.
    pub account: Option<String>,
    /// The only authorization server that may be used, as it names itself; `None` for any that the server names.
    pub issuer: Option<String>,
    pub grant: OAuthGrant,
    /// The owner of the credentials.
    pub per: CredentialsPer,
    /// The exchange of the user's token for one of the server; `None` if users sign in.
    pub exchange: Option<TokenExchange>,
    /// The private key of the client, in PEM form.
    pub private_key: Option<String>,
    pub signing_algorithm: SigningAlgorithm,
    /// The keys with literal credentials in the entry.
    pub literals: Vec<&'static str>,
}

/// The owner of the credentials for a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CredentialsPer {
    /// The user of this machine: all clients use the same credentials.
    #[default]
    Machine,
    /// The user who makes a call.
    User,
}

/// The exchange of a user's token for one of the server (RFC 8693).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenExchange {
    /// The name of the server at the authorization server; `None` if its address is enough.
    pub audience: Option<String>,
}

/// The way to get a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OAuthGrant {
    /// A person signs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client authenticates itself, without a person.
    ClientCredentials,
}

/// The algorithm of a private key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// RSA with SHA-384.
    Rs384,
    /// RSA with SHA-512.
    Rs512,
    /// ECDSA on P-256.
    #[default]
    Es256,
    /// ECDSA on P-384.
    Es384,
}

/// Hides secrets.
impl fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthSettings")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("callback_port", &self.callback_port)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("account", &self.account)
            .field("issuer", &self.issuer)
            .field("grant", &self.grant)
            .field("per", &self.per)
            .field("exchange", &self.exchange)
            .field("signing_algorithm", &self.signing_algorithm)
            .finish_non_exhaustive()
    }
}
