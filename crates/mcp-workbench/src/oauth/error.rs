//! The errors of OAuth as data. They hold the error codes of the standards, and nothing else from an authorization server:
//! no body, no code, no token, no address with parameters. So they can be shown and logged.

use std::io;

use thiserror::Error;

use crate::store::StoreError;

/// A request to an authorization server without a usable response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FetchFault {
    /// Only https is allowed, and http on this machine for a server on this machine.
    #[error("the address on '{host}' is not https")]
    Insecure { host: String },
    /// The address is inside of a network that the server itself is not in.
    #[error("refusing the internal address '{host}' that the server names")]
    Internal { host: String },
    #[error("'{host}' cannot be reached: {reason}")]
    Unreachable {
        host: String,
        /// The error of the system.
        reason: String,
    },
    #[error("timed out waiting for a response from '{host}'")]
    TooSlow { host: String },
    #[error("the response from '{host}' is too large")]
    TooLarge { host: String },
    /// The connection broke, or the response is not HTTP.
    #[error("the response from '{host}' is incomplete")]
    Broken { host: String },
    /// A status that may change in a while.
    #[error("'{host}' answered with status {status}")]
    Status { host: String, status: u16 },
}

/// The error codes of the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum OAuthCode {
    /// The user, or a policy of the server, refused.
    #[error("access_denied")]
    AccessDenied,
    /// The code or the refresh token is invalid, expired or revoked.
    #[error("invalid_grant")]
    InvalidGrant,
    /// The client is unknown, or its secret is wrong.
    #[error("invalid_client")]
    InvalidClient,
    /// The client may not do this.
    #[error("unauthorized_client")]
    UnauthorizedClient,
    /// A scope is unknown or not allowed.
    #[error("invalid_scope")]
    InvalidScope,
    /// No tokens are issued for this resource.
    #[error("invalid_target")]
    InvalidTarget,
    /// Something is missing or wrong in the request.
    #[error("invalid_request")]
    InvalidRequest,
    #[error("unsupported_grant_type")]
    UnsupportedGrantType,
    #[error("invalid_redirect_uri")]
    InvalidRedirectUri,
    #[error("invalid_client_metadata")]
    InvalidClientMetadata,
    #[error("server_error")]
    ServerError,
    #[error("temporarily_unavailable")]
    Unavailable,
    #[error("an unknown error")]
    Other,
}

impl OAuthCode {
    const ALL: [Self; 12] = [
        Self::AccessDenied,
        Self::InvalidGrant,
        Self::InvalidClient,
        Self::UnauthorizedClient,
        Self::InvalidScope,
        Self::InvalidTarget,
        Self::InvalidRequest,
        Self::UnsupportedGrantType,
        Self::InvalidRedirectUri,
        Self::InvalidClientMetadata,
        Self::ServerError,
        Self::Unavailable,
    ];

    pub(super) fn of(word: &str) -> Self {
        let mut known = Self::ALL.into_iter();
        known
            .find(|it| it.to_string() == word)
            .unwrap_or(Self::Other)
    }

    /// Returns true if the same request may succeed in a while.
    pub(super) fn is_transient(self) -> bool {
        matches!(self, Self::ServerError | Self::Unavailable)
    }
}

/// A record that cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum StoreFault {
    #[error("there is no state directory to store it in (hint: set XDG_STATE_HOME or HOME)")]
    NoPlace,
    #[error("the state directory cannot be used: {0}")]
    Io(io::ErrorKind),
    #[error("the keyring cannot be used: {0}")]
    #[cfg(all(feature = "keyring", not(test)))]
    Keyring(String),
    /// The record is damaged, or has a different layout.
    #[error("the stored sign-in cannot be read (hint: sign in again)")]
    Unreadable,
    /// The record is in the store that replicas share, and this is away.
    #[error(transparent)]
    Unreachable(#[from] StoreError),
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}

/// A failed attempt to sign in or to get a token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SignInError {
    #[error(transparent)]
    Fetch(#[from] FetchFault),
    /// The metadata of the server or its authorization server is invalid.
    #[error("the server has invalid OAuth metadata")]
    Metadata,
    /// The server has no metadata, and no authorization server at the default endpoints.
    #[error("the server has no OAuth metadata")]
    NotDescribed,
    /// A response is from a different authorization server than expected.
    #[error("the response is from a different authorization server than the request was sent to")]
    WrongIssuer,
    #[error(
        "the server names a different authorization server than \"issuer\" in \"oauth\" of its entry"
    )]
    UntrustedIssuer,
    /// The metadata does not offer PKCE with S256.
    #[error(
        "the authorization server does not support PKCE with S256, without which authorization codes can be stolen"
    )]
    NoPkce,
    /// The address to sign in at could harm the user who opens it.
    #[error("the address to sign in at is not https")]
    HostileAddress,
    /// There is no client id, and no registration endpoint.
    #[error(
        "the authorization server does not register clients (hint: register one there, and set `clientId` in `oauth` of the entry)"
    )]
    NoRegistration,
    #[error(
        "the authorization server refused to register the workbench: {code} (hint: register a client there, and set `clientId` in `oauth` of the entry)"
    )]
    RegistrationRefused { code: OAuthCode },
    /// The user or the authorization server refused.
    #[error("sign-in was refused: {code}")]
    Denied { code: OAuthCode },
    /// The token endpoint refused the code or the credentials.
    #[error("the authorization server issued no token: {code}")]
    NoToken { code: OAuthCode },
    /// The authorization server of the users does not exchange tokens for assertions.
    #[error(
        "the authorization server of the users issues no identity assertions (ID-JAG) for other authorization servers"
    )]
    NoAssertions,
    /// The text is not the address of a redirect.
    #[error("this is not the address that the sign-in redirects to")]
    NotARedirect,
    #[error("this address belongs to a different sign-in")]
    WrongState,
    /// The attempt timed out, or was finished before.
    #[error("this sign-in has ended (hint: start again)")]
    Over,
    /// The values of a sign-in do not fit into a cookie.
    #[error("the values of the sign-in are too long")]
    TooLong,
    #[error("`privateKey` cannot be used with `signingAlgorithm`")]
    UnusableKey,
    #[error("no sign-in is needed: the entry has its own credentials (`client_credentials`)")]
    NotNeeded,
    #[error(transparent)]
    Store(#[from] StoreFault),
}

impl SignInError {
    /// Returns true if a retry may succeed without a change by the user.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Fetch(fault) => !matches!(
                fault,
                FetchFault::Insecure { .. } | FetchFault::Internal { .. }
            ),
            Self::NoToken { code } => code.is_transient(),
            Self::Store(fault) => !matches!(fault, StoreFault::NoPlace),
            _ => false,
        }
    }
}

/// A missing token that only a sign-in can replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum SignedOut {
    #[error("nobody has signed in")]
    Never,
    /// The token expired or was revoked, and cannot be refreshed.
    #[error("the last sign-in has expired")]
    Ended,
    /// The server has a different authorization server now.
    #[error("the server has changed its authorization server")]
    OtherIssuer,
    /// The server refuses a token that was just issued for it.
    #[error("the server rejects the token that was issued for it")]
    Refused,
}

/// The reason why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum TokenFault {
    #[error(transparent)]
    SignedOut(#[from] SignedOut),
    #[error(transparent)]
    Trouble(#[from] SignInError),
}
