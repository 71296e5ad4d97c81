//! How the workbench signs in to a remote server, as its entry says.

use std::fmt;

/// Whether the workbench signs in to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OAuth {
    /// It does not: the entry says so, or has credentials of its own.
    Off,
    /// It does, when the server asks for it.
    On(Box<OAuthSettings>),
}

impl OAuth {
    /// The keys under which the entry itself holds a credential, which no variable has given.
    pub fn literals(&self) -> &[&'static str] {
        match self {
            Self::On(settings) => &settings.literals,
            Self::Off => &[],
        }
    }
}

/// What an entry says about signing in; all of it can be left to the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The id of a client that is registered already.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The scopes to ask for; the server's if there are none.
    pub scopes: Vec<String>,
    /// The port that the browser comes back to; any that is free if there is none.
    pub callback_port: Option<u16>,
    /// The address of a document about us, which is a client id for servers that take one.
    pub client_metadata_url: Option<String>,
    /// A name that tells several accounts at one server apart.
    pub account: Option<String>,
    /// The only authorization server that is told anything, as it names itself; any that the server names if there is none.
    pub issuer: Option<String>,
    /// How a token is got.
    pub grant: OAuthGrant,
    /// The private key of the client, in PEM form.
    pub private_key: Option<String>,
    pub signing_algorithm: SigningAlgorithm,
    /// The keys of credentials that stand in the entry itself.
    pub literals: Vec<&'static str>,
}

/// How a token is got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OAuthGrant {
    /// A person signs in, in a browser.
    #[default]
    AuthorizationCode,
    /// With the credentials of the client, without a person.
    ClientCredentials,
}

/// What a private key signs with.
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

/// Shows no secrets.
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
            .field("signing_algorithm", &self.signing_algorithm)
            .finish_non_exhaustive()
    }
}
