//! Conversions between stored records and published tokens.

use std::time::SystemTime;

use tokio::time::{Instant, sleep_until};

use super::{
    super::{
        authority::IssuedToken,
        record::{Record, Token, seconds},
    },
    PublishedToken, ahead,
};

/// Waits until a moment; forever if there is none.
pub(super) async fn due(next: Option<Instant>) {
    match next {
        Some(next) => sleep_until(next).await,
        None => std::future::pending().await,
    }
}

/// Returns the token of a record, as it is published.
pub(super) fn published_token(record: &Record) -> Option<PublishedToken> {
    let token = record.token.as_ref()?;
    let left = token.left(SystemTime::now());
    Some(PublishedToken {
        bearer: token.bearer()?,
        expires: left.and_then(|left| Instant::now().checked_add(left)),
        grant: record.grant.as_str().into(),
        scopes: record.scopes.clone().into(),
    })
}

/// Returns the time for a refresh before the token expires.
pub(super) fn due_time(token: &Token) -> Option<Instant> {
    let left = token.left(SystemTime::now())?;
    let delay = ahead::delay(token.life()?, left, ahead::chance())?;
    Instant::now().checked_add(delay)
}

/// Returns the record with the token that was just issued for it.
pub(super) fn renewed(record: Record, issued: IssuedToken) -> Record {
    let before = record.token.as_ref();
    let refresh = before.and_then(|token| token.refresh.clone());
    Record {
        token: Some(Token {
            received_at: seconds(SystemTime::now()),
            refresh: issued.token.refresh.clone().or(refresh),
            ..issued.token
        }),
        scopes: issued.scopes.unwrap_or(record.scopes),
        ..record
    }
}
