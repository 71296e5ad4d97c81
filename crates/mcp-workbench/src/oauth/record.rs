//! What is stored of a server that somebody has signed in to.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::Bearer;
use crate::config::Secrets;

/// The layout of a record; one of another layout is not read.
pub(super) const LAYOUT: u32 = 1;
/// How far a clock may be off before its times make no sense.
const SKEW: u64 = 300;
/// What is said to live longer, in seconds, is asked about again after a year.
const LONGEST_LIFE: u64 = 365 * 24 * 60 * 60;

/// What is stored of one account at one server. It shows no secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(super) layout: u32,
    /// The address of the server, without its fragment.
    pub(super) server: String,
    /// The authorization server that gave the token; none where it has no metadata (2025-03-26).
    pub(super) issuer: Option<String>,
    pub(super) client: RegisteredClient,
    /// The token, while it is good.
    pub(super) token: Option<Token>,
    /// The scopes that were granted.
    pub(super) scopes: Vec<String>,
    /// Those that the server has asked for since, and that the next sign-in asks for too.
    pub(super) needed: Vec<String>,
    /// Made at random at each sign-in: two of them never share what they see.
    pub(super) grant: String,
    /// Where the server describes itself, if it is not found without being told.
    pub(super) resource_metadata: Option<String>,
    /// When somebody signed in, in seconds since 1970.
    pub(super) signed_in_at: u64,
}

/// A client at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    /// The secret of a client that we have registered; one of the configuration is not stored.
    pub(super) secret: Option<String>,
    /// What it was registered for, if we have registered it.
    pub(super) redirect_uri: Option<String>,
}

/// A token as the authorization server gave it.
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
    /// When it came, in seconds since 1970.
    #[serde(default)]
    pub(super) received_at: u64,
}

impl Token {
    /// How long it was given for; none if that is not said or makes no sense.
    pub(super) fn life(&self) -> Option<Duration> {
        let life = self.expires_in.filter(|it| *it > 0)?;
        Some(Duration::from_secs(life.min(LONGEST_LIFE)))
    }

    /// How much of its life is left by the clock of this machine. None if its times make no sense, as after the clock was
    /// set: then the server says when it is over.
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
    /// The authorization server that gave the token; none where it does not say who it is.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// The scopes that were granted.
    pub(crate) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The scopes that the server has asked for since.
    pub(crate) fn needed_scopes(&self) -> &[String] {
        &self.needed
    }

    /// What tells this sign-in from all others.
    pub(crate) fn grant_id(&self) -> &str {
        &self.grant
    }

    /// When the token is over; none if that is not known.
    pub(crate) fn expires_at(&self) -> Option<SystemTime> {
        let token = self.token.as_ref()?;
        let received = UNIX_EPOCH + Duration::from_secs(token.received_at);
        received.checked_add(token.life()?)
    }

    /// Whether a new token can be got without anybody.
    pub(crate) fn can_refresh(&self) -> bool {
        let token = self.token.as_ref();
        token.is_some_and(|token| token.refresh.is_some())
    }

    /// Whether there is a token that may be good: one that is not over, or that can be made new.
    pub(crate) fn is_signed_in(&self) -> bool {
        let now = SystemTime::now();
        let token = self.token.as_ref();
        token.is_some_and(|it| it.refresh.is_some() || it.left(now) != Some(Duration::ZERO))
    }

    /// What must not appear in any text.
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

/// A moment in seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
