//! Why somebody is not signed in, as data. Nothing here holds what an authorization server has said beyond the codes that
//! the standards define, and no code, token or address with parameters: the words can be shown and logged.

use std::io;

use thiserror::Error;

/// Why a request to an authorization server got no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FetchFault {
    /// Only https is asked, and http only on this machine for a server that is on this machine.
    #[error("the address on '{host}' is not https")]
    Insecure { host: String },
    /// It is an address inside of a network that the server itself is not in.
    #[error("'{host}' is an internal address, which this server may not name")]
    Internal { host: String },
    #[error("'{host}' cannot be reached: {reason}")]
    Unreachable {
        host: String,
        /// Why, in the words of the system.
        reason: String,
    },
    #[error("'{host}' did not answer in time")]
    TooSlow { host: String },
    /// The answer is too long.
    #[error("the answer of '{host}' is too long")]
    TooLarge { host: String },
    /// The connection broke, or what came is not HTTP.
    #[error("the answer of '{host}' broke off")]
    Broken { host: String },
    /// It answered that it cannot answer now.
    #[error("'{host}' answered with status {status}")]
    Status { host: String, status: u16 },
}

/// The codes of the standards for a request that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum OAuthCode {
    /// The person, or the server's rules, said no.
    #[error("access_denied")]
    AccessDenied,
    /// The code or the refresh token is not good any more.
    #[error("invalid_grant")]
    InvalidGrant,
    /// The client is not known, or its secret is wrong.
    #[error("invalid_client")]
    InvalidClient,
    /// The client may not do this.
    #[error("unauthorized_client")]
    UnauthorizedClient,
    /// A scope is not known or not allowed.
    #[error("invalid_scope")]
    InvalidScope,
    /// The server's address is not one that tokens are given for.
    #[error("invalid_target")]
    InvalidTarget,
    /// Something is missing or wrong in the request.
    #[error("invalid_request")]
    InvalidRequest,
    /// The way of getting a token is not supported.
    #[error("unsupported_grant_type")]
    UnsupportedGrantType,
    /// The redirect address is not accepted.
    #[error("invalid_redirect_uri")]
    InvalidRedirectUri,
    /// The description of the client is not accepted.
    #[error("invalid_client_metadata")]
    InvalidClientMetadata,
    /// It has failed by itself.
    #[error("server_error")]
    ServerError,
    /// It cannot answer now.
    #[error("temporarily_unavailable")]
    Unavailable,
    /// None of these.
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

    /// What a code on the wire means.
    pub(super) fn of(word: &str) -> Self {
        let mut known = Self::ALL.into_iter();
        known
            .find(|it| it.to_string() == word)
            .unwrap_or(Self::Other)
    }

    /// Whether it may be different in a while.
    pub(super) fn is_transient(self) -> bool {
        matches!(self, Self::ServerError | Self::Unavailable)
    }
}

/// Why what is stored cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum StoreFault {
    /// There is no state directory.
    #[error("there is no state directory to keep it in (hint: set XDG_STATE_HOME or HOME)")]
    NoPlace,
    #[error("the state directory cannot be used: {0}")]
    Io(io::ErrorKind),
    #[error("the keyring cannot be used: {0}")]
    #[cfg(all(feature = "keyring", not(test)))]
    Keyring(String),
    /// What is there is not ours or is broken.
    #[error("what is stored cannot be read (hint: sign in again)")]
    Unreadable,
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}

/// Why signing in, or getting a token, failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SignInError {
    /// A request got no answer.
    #[error(transparent)]
    Fetch(#[from] FetchFault),
    /// The address of the entry is none that can be signed in to.
    #[error("the address of the server cannot be used")]
    UnusableUrl,
    /// What the server or its authorization server says of itself is of no use.
    #[error("what the server says about signing in cannot be used")]
    Metadata,
    /// The server says nothing about signing in, and nobody is where it would be by default.
    #[error("the server does not say where to sign in")]
    NotDescribed,
    /// An answer is from another authorization server than the one that was asked.
    #[error("another authorization server answered than the one that was asked")]
    WrongIssuer,
    /// The server wants us to trust another authorization server than its entry does.
    #[error(
        "the server names another authorization server than \"issuer\" in \"oauth\" of its entry"
    )]
    UntrustedIssuer,
    /// The authorization server does not say that it protects codes (PKCE with S256).
    #[error(
        "the authorization server does not support PKCE with S256, without which codes can be stolen"
    )]
    NoPkce,
    /// The address to sign in at could harm whoever opens it.
    #[error("the address to sign in at is not https")]
    HostileAddress,
    /// We have no client id there, and cannot get one.
    #[error(
        "the authorization server registers no clients by itself (hint: register one there, and set `clientId` in `oauth` of the entry)"
    )]
    NoRegistration,
    /// It refused to register us.
    #[error(
        "the authorization server refused to register the workbench: {code} (hint: register a client there, and set `clientId` in `oauth` of the entry)"
    )]
    RegistrationRefused { code: OAuthCode },
    /// The person, or the server, said no.
    #[error("signing in was refused: {code}")]
    Denied { code: OAuthCode },
    /// It gave no token for the code, or for the credentials.
    #[error("the authorization server gave no token: {code}")]
    NoToken { code: OAuthCode },
    /// What was pasted is no address that the browser was sent back to.
    #[error("this is not the address that the browser was sent back to")]
    NotARedirect,
    /// It belongs to another attempt.
    #[error("this address belongs to another attempt to sign in")]
    WrongState,
    /// It was tried for too long, or is over.
    #[error("this attempt to sign in is over (hint: begin again)")]
    Over,
    /// The private key of the entry is of no use.
    #[error("`privateKey` is no key that `signingAlgorithm` can sign with")]
    UnusableKey,
    /// The entry gets its tokens by itself.
    #[error("nobody has to sign in: the entry has credentials of its own (`client_credentials`)")]
    NotNeeded,
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

impl SignInError {
    /// Whether it may be different in a while, without anybody doing anything.
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

/// Why there is no token although the server wants one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum SignedOut {
    #[error("nobody has signed in")]
    Never,
    /// The token is over or was taken back, and there is no way to another.
    #[error("the last sign-in is over")]
    Ended,
    /// The server now has another authorization server.
    #[error("the server has changed its authorization server")]
    OtherIssuer,
    /// The server does not take a token that was just got for it.
    #[error("the server does not accept the token that was given for it")]
    Refused,
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum TokenFault {
    /// Somebody has to sign in.
    #[error(transparent)]
    SignedOut(#[from] SignedOut),
    /// It could not be got now.
    #[error(transparent)]
    Trouble(#[from] SignInError),
}
