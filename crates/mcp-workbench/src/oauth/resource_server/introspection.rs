//! Asks the authorization server about tokens (RFC 7662). Its word counts for a few seconds, and never longer than the token.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hyper::header::{AUTHORIZATION, HeaderValue};
use serde_json::{Map, Value};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::Instant,
};
use url::{Url, form_urlencoded};

use super::{Issuer, LEEWAY_SECONDS, TokenRefusal, now_seconds};
use crate::{
    config::{Auth, Introspection},
    oauth::{SignInError, fetch},
    sha256::Sha256,
    sync::lock,
};

/// For how long an answer counts. A token that was revoked is accepted for this long.
const CACHED: Duration = Duration::from_secs(10);
/// The most answers that are stored.
const MAX_CACHED: usize = 10_000;
/// The most questions at once.
const MAX_QUESTIONS: usize = 32;

pub(super) struct Introspector {
    issuer: Issuer,
    /// The address for questions, once it is known.
    endpoint: OnceCell<Url>,
    credentials: Introspection,
    /// The claims of active tokens by their digests.
    cached: Mutex<HashMap<[u8; 32], CachedClaims>>,
    questions: Semaphore,
}

struct CachedClaims {
    claims: Map<String, Value>,
    /// The time until which they count.
    until: Instant,
}

impl Introspector {
    pub(super) fn new(issuer: Issuer, credentials: Introspection) -> Self {
        Self {
            issuer,
            endpoint: OnceCell::new(),
            credentials,
            cached: Mutex::default(),
            questions: Semaphore::new(MAX_QUESTIONS),
        }
    }

    /// Returns the claims of a token that is active and was issued for us.
    pub(super) async fn claims(
        &self,
        auth: &Auth,
        token: &str,
    ) -> Result<Map<String, Value>, TokenRefusal> {
        // A digest, so that the cache contains no token that works.
        let digest = Sha256::digest(token.as_bytes());
        if let Some(claims) = self.known(&digest) {
            return Ok(claims);
        }
        let asked = {
            // Many unknown tokens must not become as many requests at once.
            let _turn = self.questions.acquire().await;
            self.ask(token).await
        };
        let claims = asked.map_err(|error| {
            tracing::warn!("failed to ask the authorization server about a token: {error}");
            TokenRefusal::Unavailable
        })?;
        let lifetime = check(auth, &claims, now_seconds())?;
        // Only active tokens are stored, so that made-up ones do not fill the cache.
        self.store(digest, &claims, CACHED.min(lifetime));
        Ok(claims)
    }

    fn known(&self, digest: &[u8; 32]) -> Option<Map<String, Value>> {
        let cached = lock(&self.cached);
        let known = cached.get(digest)?;
        (known.until > Instant::now()).then(|| known.claims.clone())
    }

    fn store(&self, digest: [u8; 32], claims: &Map<String, Value>, lifetime: Duration) {
        let now = Instant::now();
        let mut cached = lock(&self.cached);
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, known| known.until > now);
        }
        // A cache that is full of valid entries does not grow. Other tokens are asked about each time.
        if cached.len() < MAX_CACHED {
            let claims = claims.clone();
            let until = now + lifetime;
            cached.insert(digest, CachedClaims { claims, until });
        }
    }

    async fn ask(&self, token: &str) -> Result<Map<String, Value>, SignInError> {
        let find = || self.issuer.endpoint("introspection_endpoint");
        let url = self.endpoint.get_or_try_init(find).await?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let mut request = fetch::post(fetch::FORM, form);
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.authorization()?);
        let response = self.issuer.fetcher.fetch(url, request).await?;
        if !response.status().is_success() {
            return Err(SignInError::Metadata);
        }
        serde_json::from_slice(response.body()).map_err(|_| SignInError::Metadata)
    }

    /// Returns the header with the credentials, each encoded as in a form (RFC 6749, 2.3.1).
    fn authorization(&self) -> Result<HeaderValue, SignInError> {
        let encoded =
            |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
        let id = encoded(&self.credentials.client_id);
        let pair = format!("{id}:{}", encoded(&self.credentials.client_secret));
        let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
        let mut value = HeaderValue::try_from(value).map_err(|_| SignInError::Metadata)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Checks an answer, as the signature check does it for a token. Returns how long the token is still valid.
fn check(auth: &Auth, claims: &Map<String, Value>, now: u64) -> Result<Duration, TokenRefusal> {
    if claims.get("active") != Some(&Value::Bool(true)) {
        return Err(TokenRefusal::Invalid);
    }
    let is_ours = match claims.get("aud") {
        Some(Value::String(audience)) => *audience == auth.audience,
        Some(Value::Array(audiences)) => audiences.iter().any(|it| it == &auth.audience),
        // A token without an audience may be meant for any service of this issuer.
        _ => false,
    };
    // `iss` is optional in an answer (RFC 7662). If it is there, it must be right.
    let is_foreign = claims.get("iss").is_some_and(|it| it != &auth.issuer);
    if !is_ours || is_foreign {
        return Err(TokenRefusal::Invalid);
    }
    let begins_later = |it: &Value| it.as_u64().is_none_or(|it| it > now + LEEWAY_SECONDS);
    if claims.get("nbf").is_some_and(begins_later) {
        return Err(TokenRefusal::Invalid);
    }
    match claims.get("exp") {
        // The authorization server says that the token is active, and need not say for how long.
        None => Ok(CACHED),
        Some(end) => {
            let end = end.as_u64().unwrap_or(0) + LEEWAY_SECONDS;
            let lifetime = end.checked_sub(now).filter(|it| *it > 0);
            lifetime
                .map(Duration::from_secs)
                .ok_or(TokenRefusal::Invalid)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::oauth::resource_server::tests::auth;

    #[test]
    fn an_answer_counts_only_if_the_token_is_active_current_and_for_us() {
        let now = 1_000_000;
        let ours = json!({"active": true, "aud": "https://tools.example.com/mcp", "exp": now + 5});
        let changed = |name: &str, value: Value| {
            let mut claims = ours.clone();
            claims[name] = value;
            claims
        };
        for (claims, expected) in [
            (ours.clone(), Ok(Duration::from_secs(65))),
            (changed("active", json!(false)), Err(TokenRefusal::Invalid)),
            (changed("active", json!("true")), Err(TokenRefusal::Invalid)),
            (changed("aud", json!("other")), Err(TokenRefusal::Invalid)),
            (changed("aud", Value::Null), Err(TokenRefusal::Invalid)),
            (
                changed("aud", json!(["x", "https://tools.example.com/mcp"])),
                Ok(Duration::from_secs(65)),
            ),
            (
                changed("iss", json!("https://other")),
                Err(TokenRefusal::Invalid),
            ),
            (changed("exp", json!(now - 61)), Err(TokenRefusal::Invalid)),
            (changed("exp", json!("never")), Err(TokenRefusal::Invalid)),
            (changed("nbf", json!(now + 61)), Err(TokenRefusal::Invalid)),
        ] {
            let Value::Object(map) = &claims else {
                unreachable!("the test writes objects")
            };
            assert_eq!(check(&auth(), map, now), expected, "{claims}");
        }
    }
}
