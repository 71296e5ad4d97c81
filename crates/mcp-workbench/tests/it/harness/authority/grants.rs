//! The grants of an authority, and the checks before them.

use std::collections::HashMap;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::digest::{SHA256, digest};
use url::form_urlencoded;

use super::{SECRET, Seen, knobs::Knobs};

/// A client that is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    /// Its secret, if it has one.
    pub(crate) secret: Option<String>,
    /// `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt`; empty: any.
    pub(crate) method: &'static str,
    /// The allowed redirect addresses; if empty, any address of this machine.
    pub(crate) redirects: Vec<String>,
}

/// The grant of a code or a token.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) client: String,
    pub(super) scope: String,
    pub(super) resource: String,
    /// The challenge and the redirect that belong to a code.
    pub(super) challenge: String,
    pub(super) redirect: String,
}

/// Everything that was issued.
#[derive(Debug, Default)]
pub(super) struct Grants {
    pub(super) clients: HashMap<String, Client>,
    pub(super) codes: HashMap<String, Grant>,
    pub(super) access: HashMap<String, Grant>,
    pub(super) refresh: HashMap<String, Grant>,
    pub(super) issued: Vec<String>,
}

impl Grants {
    /// A new secret of this kind.
    pub(super) fn secret(&mut self, kind: &str) -> String {
        let secret = format!("{SECRET}{kind}-{}", self.issued.len());
        self.issued.push(secret.clone());
        secret
    }

    /// The client that asks for a token, if it is who it says.
    pub(super) fn client_of(&self, seen: &Seen) -> Result<String, &'static str> {
        let basic = seen
            .header("authorization")
            .and_then(|it| it.strip_prefix("Basic "));
        let (id, secret, method) = if let Some(basic) = basic {
            let (id, secret) = basic_parts(basic).ok_or("invalid_client")?;
            (id, Some(secret), "client_secret_basic")
        } else if let Some(assertion) = seen.parameter("client_assertion") {
            let id = subject(&assertion).ok_or("invalid_client")?;
            (id, None, "private_key_jwt")
        } else {
            let id = seen.parameter("client_id").ok_or("invalid_client")?;
            match seen.parameter("client_secret") {
                Some(secret) => (id, Some(secret), "client_secret_post"),
                None => (id, None, "none"),
            }
        };
        // A client whose id is the address of its metadata is known by that.
        let by_address = Client {
            method: "none",
            ..Client::default()
        };
        let known = match self.clients.get(&id) {
            Some(known) => known,
            None if id.starts_with("https://") => &by_address,
            None => return Err("invalid_client"),
        };
        let is_method = known.method.is_empty() || known.method == method;
        if !is_method || (known.secret != secret && method != "private_key_jwt") {
            return Err("invalid_client");
        }
        Ok(id)
    }

    /// Takes a code, once.
    pub(super) fn redeem(&mut self, seen: &Seen, client: &str) -> Result<Grant, &'static str> {
        let code = seen.parameter("code").ok_or("invalid_request")?;
        let grant = self.codes.remove(&code).ok_or("invalid_grant")?;
        let verifier = seen.parameter("code_verifier").ok_or("invalid_request")?;
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let is_whole = grant.client == client
            && grant.challenge == challenge
            && (43..=128).contains(&verifier.len())
            && seen.parameter("redirect_uri").as_ref() == Some(&grant.redirect)
            && seen.parameter("resource").as_ref() == Some(&grant.resource);
        if is_whole {
            Ok(grant)
        } else {
            Err("invalid_grant")
        }
    }

    /// Takes a refresh token; one that was used before ends everything of its client.
    pub(super) fn renew(
        &mut self,
        seen: &Seen,
        client: &str,
        knobs: &Knobs,
    ) -> Result<Grant, &'static str> {
        let token = seen.parameter("refresh_token").ok_or("invalid_request")?;
        let Some(grant) = self.refresh.get(&token).cloned() else {
            if self.issued.contains(&token) {
                self.refresh.retain(|_, grant| grant.client != client);
                self.access.retain(|_, grant| grant.client != client);
            }
            return Err("invalid_grant");
        };
        if grant.client != client || seen.parameter("resource").as_ref() != Some(&grant.resource) {
            return Err("invalid_grant");
        }
        if knobs.rotates {
            self.refresh.remove(&token);
        }
        Ok(grant)
    }
}

/// The two parts of `Authorization: Basic`, which are written as in a form.
fn basic_parts(basic: &str) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let decoded = |part: &str| {
        let pair = format!("x={part}");
        let mut parsed = form_urlencoded::parse(pair.as_bytes());
        parsed.next().map(|(_, value)| value.into_owned())
    };
    Some((decoded(id)?, decoded(secret)?))
}

/// The subject of an assertion; who signed it is not looked at here.
fn subject(assertion: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    Some(claims["sub"].as_str()?.to_owned())
}
