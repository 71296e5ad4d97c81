//! The stored record of a sign-in.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{Bearer, authority::KnownClient};
use crate::config::Secrets;

/// The layout of a record. Records of other layouts are not read.
pub(super) const LAYOUT: u32 = 1;
/// The clock skew, in seconds, up to which times are believed.
const SKEW: u64 = 300;
/// The longest lifetime that is believed, in seconds.
const LONGEST_LIFE: u64 = 365 * 24 * 60 * 60;

/// The sign-in of one account at one server. Its `Debug` output has no secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(super) layout: u32,
    /// The address of the server, without its fragment.
    pub(super) server: String,
    /// The issuer of the token; `None` if the server has no metadata (2025-03-26).
    pub(super) issuer: Option<String>,
    pub(super) client: RegisteredClient,
    /// The token, until it is revoked or expires without a refresh token.
    pub(super) token: Option<Token>,
    /// The scopes that were granted.
    pub(super) scopes: Vec<String>,
    /// Scopes that the server has asked for since; the next sign-in requests them too.
    pub(super) needed: Vec<String>,
    /// A random identifier of this sign-in. Cached tool lists are bound to it.
    pub(super) grant: String,
    /// The address of the resource metadata, if the server named it in a challenge.
    pub(super) resource_metadata: Option<String>,
    /// The time of the sign-in, in seconds since 1970.
    pub(super) signed_in_at: u64,
}

/// A client at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    /// The secret of a client that we have registered; one of the configuration is not stored.
    pub(super) secret: Option<String>,
    /// The redirect address that the workbench registered; `None` for a client of the configuration.
    pub(super) redirect_uri: Option<String>,
}

/// A token as the authorization server issued it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    #[serde(rename = "access_token")]
    pub(super) access: String,
    #[serde(
        rename = "refresh_token",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) refresh: Option<String>,
    /// In seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_in: Option<u64>,
    /// The time of the response, in seconds since 1970.
    #[serde(default)]
    pub(super) received_at: u64,
}

impl Token {
    /// Returns the lifetime; `None` if the response has none or an implausible one.
    pub(super) fn life(&self) -> Option<Duration> {
        let life = self.expires_in.filter(|it| *it > 0)?;
        Some(Duration::from_secs(life.min(LONGEST_LIFE)))
    }

    /// Returns the rest of the lifetime by the clock of this machine. `None` if the times are implausible, for example
    /// because the clock was set: then only the server knows when the token expires.
    pub(super) fn left(&self, now: SystemTime) -> Option<Duration> {
        let life = self.life()?;
        let now = seconds(now);
        if self.received_at > now + SKEW {
            return None;
        }
        let age = Duration::from_secs(now.saturating_sub(self.received_at));
        Some(life.saturating_sub(age))
    }

    pub(super) fn bearer(&self) -> Option<Bearer> {
        Bearer::new(&self.access)
    }
}

impl Record {
    /// Returns the issuer of the token; `None` if the server has no metadata.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Returns the client of the sign-in, with its issuer.
    pub(super) fn known_client(&self) -> KnownClient {
        KnownClient {
            issuer: self.issuer.clone(),
            client: self.client.clone(),
        }
    }

    pub(crate) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the scopes that the server has asked for since.
    pub(crate) fn needed_scopes(&self) -> &[String] {
        &self.needed
    }

    /// Returns the identifier of this sign-in.
    pub(crate) fn grant_id(&self) -> &str {
        &self.grant
    }

    /// Returns the time at which the token expires, if it is known.
    pub(crate) fn expires_at(&self) -> Option<SystemTime> {
        let token = self.token.as_ref()?;
        let received = UNIX_EPOCH + Duration::from_secs(token.received_at);
        received.checked_add(token.life()?)
    }

    /// Returns true if there is a refresh token.
    pub(crate) fn can_refresh(&self) -> bool {
        let token = self.token.as_ref();
        token.is_some_and(|token| token.refresh.is_some())
    }

    /// Returns true if there is a token that has not expired or can be refreshed.
    pub(crate) fn is_signed_in(&self) -> bool {
        let now = SystemTime::now();
        let token = self.token.as_ref();
        // A token counts if nobody here knows when it expires: the server will say so.
        token.is_some_and(|it| it.refresh.is_some() || it.left(now) != Some(Duration::ZERO))
    }

    /// Returns the values to redact in every text.
    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let token = self.token.as_ref();
        let values = [
            token.map(|it| &it.access),
            token.and_then(|it| it.refresh.as_ref()),
            self.client.secret.as_ref(),
        ];
        for value in values.into_iter().flatten() {
            secrets.add("token", value);
        }
        secrets
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("server", &self.server)
            .field("issuer", &self.issuer)
            .field("client_id", &self.client.id)
            .field("scopes", &self.scopes)
            .field("needed", &self.needed)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// Returns a time in seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
