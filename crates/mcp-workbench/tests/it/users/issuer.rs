//! An authorization server for the users of the workbench: it serves its metadata and its keys, signs users in whose browser
//! says who they are, issues signed tokens and exchanges them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use url::Url;

use crate::harness::remote_server::{Out, RemoteServer, Seen, Then};

/// The audience of the workbench.
pub(super) const AUDIENCE: &str = "https://tools.example.com/mcp";
/// The prefix of tokens that were exchanged; the user comes after it.
pub(super) const EXCHANGED: &str = "exchanged-for-";

/// The scope for which a token is exchanged for itself.
pub(super) const ECHO: &str = "echo";
/// The type of an assertion about a user for another authorization server.
pub(super) const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The prefix of such assertions; the user and the authorization server come after it.
pub(super) const ASSERTED: &str = "assertion-about-";

pub(super) struct Issuer {
    pub(super) url: String,
    server: RemoteServer,
    shared: Arc<Shared>,
}

struct Shared {
    keys: [Ed25519KeyPair; 2],
    /// The key that is in use.
    current: AtomicUsize,
    /// The users and the challenges of codes.
    codes: Mutex<HashMap<String, (String, String)>>,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn key() -> Ed25519KeyPair {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

impl Issuer {
    pub(super) fn start() -> Self {
        let shared = Arc::new(Shared {
            keys: [key(), key()],
            current: AtomicUsize::default(),
            codes: Mutex::default(),
        });
        let answering = Arc::clone(&shared);
        let server = RemoteServer::start(move |seen, out| Some(answering.answer(seen, out)));
        Self {
            url: format!("http://{}", server.authority()),
            server,
            shared,
        }
    }

    /// Replaces the key that signs tokens.
    pub(super) fn rotate(&self) {
        self.shared.current.store(1, Ordering::Relaxed);
    }

    /// Issues a token with claims, over the usual ones.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.shared.token(&self.url, claims)
    }

    /// The requests at this path so far.
    pub(super) fn asked(&self, path: &str) -> Vec<Seen> {
        let mut seen = self.server.seen();
        seen.retain(|seen| seen.route() == path);
        seen
    }
}

impl Shared {
    fn token(&self, issuer: &str, claims: &Value) -> String {
        let mut all = json!({"iss": issuer, "aud": AUDIENCE, "sub": "ada", "exp": now() + 300});
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        let current = self.current.load(Ordering::Relaxed);
        let header = json!({"alg": "EdDSA", "kid": format!("key {current}")});
        let text = format!("{}.{}", encode(header.to_string()), encode(all.to_string()));
        let signature = self.keys[current].sign(text.as_bytes());
        format!("{text}.{}", encode(signature))
    }

    fn answer(&self, seen: &Seen, out: &mut Out) -> Then {
        let url = format!("http://{}", seen.header("host").unwrap_or_default());
        match (seen.verb.as_str(), seen.route()) {
            ("GET", "/keys") => {
                let current = self.current.load(Ordering::Relaxed);
                let keys = json!({"keys": [{
                    "kty": "OKP", "crv": "Ed25519", "kid": format!("key {current}"),
                    "x": encode(self.keys[current].public_key()),
                }]});
                out.json(&keys.to_string())
            }
            ("GET", "/authorize") => self.authorize(&url, seen, out),
            ("POST", "/register") => out.reply(
                "201 Created\nContent-Type: application/json",
                r#"{"client_id":"workbench"}"#,
            ),
            ("POST", "/token") => self.issue(&url, seen, out),
            _ => {
                let metadata = json!({
                    "issuer": url,
                    "authorization_endpoint": format!("{url}/authorize"),
                    "token_endpoint": format!("{url}/token"),
                    "registration_endpoint": format!("{url}/register"),
                    "jwks_uri": format!("{url}/keys"),
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                });
                out.json(&metadata.to_string())
            }
        }
    }

    /// Signs the user of a browser in, whose cookie says who that is.
    fn authorize(&self, url: &str, seen: &Seen, out: &mut Out) -> Then {
        let parameter = |name: &str| seen.parameter(name).unwrap_or_default();
        let user = seen
            .header("cookie")
            .and_then(|it| it.strip_prefix("user="));
        let mut codes = self.codes.lock().unwrap();
        let code = format!("code-{}", codes.len());
        let challenge = parameter("code_challenge");
        codes.insert(code.clone(), (user.unwrap().to_owned(), challenge));
        let mut target = Url::parse(&parameter("redirect_uri")).unwrap();
        target.query_pairs_mut().extend_pairs([
            ("code", code.as_str()),
            ("state", &parameter("state")),
            ("iss", url),
        ]);
        out.reply(&format!("302 Found\nLocation: {target}"), "")
    }

    fn issue(&self, url: &str, seen: &Seen, out: &mut Out) -> Then {
        let parameter = |name: &str| seen.parameter(name).unwrap_or_default();
        let token = match parameter("grant_type").as_str() {
            "authorization_code" => {
                let code = self.codes.lock().unwrap().remove(&parameter("code"));
                code.filter(|(_, challenge)| {
                    *challenge == encode(digest(&SHA256, parameter("code_verifier").as_bytes()))
                })
                .map(|(user, _)| self.token(url, &json!({"sub": user, "scope": "tools"})))
            }
            "urn:ietf:params:oauth:grant-type:token-exchange" => {
                let is_client = seen
                    .header("authorization")
                    .is_some_and(|it| it.starts_with("Basic "));
                let token = parameter("subject_token");
                let user = subject(&token).filter(|_| is_client);
                if parameter("requested_token_type") == ID_JAG {
                    let user = user.unwrap();
                    let answer = json!({
                        "access_token": format!("{ASSERTED}{user}-for-{}", parameter("audience")),
                        "issued_token_type": ID_JAG, "token_type": "N_A", "expires_in": 300,
                    });
                    return out.json(&answer.to_string());
                }
                user.map(|user| match parameter("scope").as_str() {
                    ECHO => token,
                    _ => format!("{EXCHANGED}{user}"),
                })
            }
            _ => None,
        };
        match token {
            Some(token) => {
                let answer =
                    json!({"access_token": token, "token_type": "Bearer", "expires_in": 300});
                out.json(&answer.to_string())
            }
            None => out.reply(
                "400 Bad Request\nContent-Type: application/json",
                r#"{"error":"invalid_grant"}"#,
            ),
        }
    }
}

/// Returns the user of a token.
fn subject(token: &str) -> Option<String> {
    let claims = BASE64_URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1)?)
        .ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(claims["sub"].as_str()?.to_owned())
}
