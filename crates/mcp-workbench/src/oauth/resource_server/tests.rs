use std::sync::OnceLock;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::task::TaskTracker;

use super::*;

pub(super) fn auth() -> Auth {
    Auth {
        client: None,
        issuer: "https://id.example.com".into(),
        issuer_url: Url::parse("https://id.example.com").unwrap(),
        audience: "https://tools.example.com/mcp".into(),
        resource: Url::parse("https://tools.example.com/mcp").unwrap(),
        algorithms: TokenAlgorithm::ALL.to_vec(),
        scopes: Vec::new(),
        introspection: None,
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The keys of an issuer: one of either kind.
struct IssuerKeys {
    edwards: Ed25519KeyPair,
    elliptic: EcdsaKeyPair,
}

fn issuer_keys() -> &'static IssuerKeys {
    static KEYS: OnceLock<IssuerKeys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let random = SystemRandom::new();
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let elliptic = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        IssuerKeys {
            edwards: Ed25519KeyPair::from_pkcs8(edwards.as_ref()).unwrap(),
            elliptic: EcdsaKeyPair::from_pkcs8(algorithm, elliptic.as_ref(), &random).unwrap(),
        }
    })
}

impl IssuerKeys {
    fn document(&self) -> Value {
        let point = self.elliptic.public_key().as_ref();
        json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "use": "sig", "x": encode(self.edwards.public_key())},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "x": encode(&point[1..33]), "y": encode(&point[33..])},
            {"kty": "oct", "kid": "secret", "k": encode("a shared secret")},
            {"kty": "unknown", "kid": "other"},
        ]})
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let text = format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        );
        let signature = if header["alg"] == "ES256" {
            let signature = self.elliptic.sign(&SystemRandom::new(), text.as_bytes());
            signature.unwrap().as_ref().to_vec()
        } else {
            self.edwards.sign(text.as_bytes()).as_ref().to_vec()
        };
        format!("{text}.{}", encode(signature))
    }
}

fn claims() -> Value {
    json!({
        "iss": "ISSUER",
        "aud": "https://tools.example.com/mcp",
        "sub": "ada",
        "exp": now_seconds() + 300,
    })
}

fn header() -> Value {
    json!({"alg": "EdDSA", "kid": "ed", "typ": "at+jwt"})
}

/// Serves the metadata and the keys of an issuer. Returns its address.
async fn serve_issuer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let address = issuer.clone();
    TaskTracker::new().spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let document = if request.starts_with("GET /keys ") {
                issuer_keys().document()
            } else {
                json!({
                    "issuer": address,
                    "token_endpoint": format!("{address}/token"),
                    "jwks_uri": format!("{address}/keys"),
                })
            };
            let body = document.to_string();
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    issuer
}

async fn resource_server(change: impl FnOnce(&mut Auth)) -> (ResourceServer, String) {
    let issuer = serve_issuer().await;
    let mut auth = auth();
    auth.issuer_url = Url::parse(&issuer).unwrap();
    auth.issuer.clone_from(&issuer);
    change(&mut auth);
    let (server, task) = ResourceServer::new(auth, Vec::new());
    TaskTracker::new().spawn(task.run());
    (server, issuer)
}

/// Makes tokens of an issuer, from a header and claims.
struct TokenMaker {
    issuer: String,
}

impl TokenMaker {
    fn token(&self, header: &Value, claims: &Value) -> String {
        let claims = claims.to_string().replace("ISSUER", &self.issuer);
        issuer_keys().token(header, &serde_json::from_str(&claims).unwrap())
    }

    fn with_header(&self, name: &str, value: Value) -> String {
        self.token(&with(header(), name, value), &claims())
    }

    fn with_claim(&self, name: &str, value: Value) -> String {
        self.token(&header(), &with(claims(), name, value))
    }

    fn without_claim(&self, name: &str) -> String {
        self.token(&header(), &without(claims(), name))
    }
}

fn with(mut value: Value, name: &str, member: Value) -> Value {
    value[name] = member;
    value
}

fn without(mut value: Value, name: &str) -> Value {
    value.as_object_mut().unwrap().remove(name);
    value
}

#[tokio::test]
async fn tokens_of_the_issuer_for_us_are_accepted() {
    let (server, issuer) = resource_server(|_| {}).await;
    let tokens = TokenMaker { issuer };
    let now = now_seconds();
    for token in [
        tokens.token(&header(), &claims()),
        tokens.token(&without(header(), "kid"), &claims()),
        tokens.token(&json!({"alg": "ES256", "kid": "ec"}), &claims()),
        tokens.with_claim("exp", json!(now - 30)),
        tokens.with_claim("nbf", json!(now + 30)),
        tokens.with_claim("aud", json!(["x", "https://tools.example.com/mcp"])),
    ] {
        let user = server.check(&token).await;
        assert_eq!(&*user.unwrap().subject, "ada", "{token}");
    }
}

#[tokio::test]
async fn all_other_tokens_are_refused() {
    let (server, issuer) = resource_server(|_| {}).await;
    let tokens = TokenMaker { issuer };
    let now = now_seconds();
    let good = tokens.token(&header(), &claims());
    let (text, signature) = good.rsplit_once('.').unwrap();
    let secret = json!({"alg": "HS256", "kid": "secret"});
    let other_kind = json!({"alg": "ES256", "kid": "ed"});
    for (what, token) in [
        ("no token", String::new()),
        ("opaque", "abcdef".into()),
        ("no signature", format!("{text}.")),
        ("cut signature", format!("{text}.{}", &signature[..10])),
        ("long", "x".repeat(MAX_TOKEN_BYTES + 1)),
        ("no algorithm", tokens.with_header("alg", json!("none"))),
        ("shared secret", tokens.token(&secret, &claims())),
        ("key of another kind", tokens.token(&other_kind, &claims())),
        ("unknown key", tokens.with_header("kid", json!("x"))),
        (
            "must be understood",
            tokens.with_header("crit", json!(["x"])),
        ),
        ("other issuer", tokens.with_claim("iss", json!("x"))),
        ("no issuer", tokens.without_claim("iss")),
        ("other audience", tokens.with_claim("aud", json!("x"))),
        ("no audience", tokens.without_claim("aud")),
        ("expired", tokens.with_claim("exp", json!(now - 61))),
        ("no end", tokens.without_claim("exp")),
        ("end as text", tokens.with_claim("exp", json!("x"))),
        ("not yet", tokens.with_claim("nbf", json!(now + 90))),
        ("no user", tokens.without_claim("sub")),
        ("empty user", tokens.with_claim("sub", json!(""))),
        (
            "bound to a key",
            tokens.with_claim("cnf", json!({"jkt": "x"})),
        ),
    ] {
        let refused = server.check(&token).await;
        assert_eq!(refused, Err(TokenRefusal::Invalid), "{what}");
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_allowed_is_refused() {
    let (server, issuer) = resource_server(|auth| {
        auth.algorithms = vec![TokenAlgorithm::Es256];
    })
    .await;
    let mut claims = claims();
    claims["iss"] = json!(issuer);
    let keys = issuer_keys();
    let refused = server.check(&keys.token(&header(), &claims)).await;
    assert_eq!(refused, Err(TokenRefusal::Invalid));
    let elliptic = keys.token(&json!({"alg": "ES256"}), &claims);
    assert!(server.check(&elliptic).await.is_ok());
}

#[tokio::test]
async fn all_needed_scopes_are_named_if_one_is_missing() {
    let (server, issuer) = resource_server(|auth| {
        auth.scopes = vec!["tools".into(), "more".into()];
    })
    .await;
    let mut claims = claims();
    claims["iss"] = json!(issuer);
    claims["scope"] = json!("tools");
    let refused = server.check(&issuer_keys().token(&header(), &claims)).await;
    assert_eq!(
        refused,
        Err(TokenRefusal::MissingScopes(vec![
            "tools".into(),
            "more".into()
        ]))
    );
}

#[tokio::test]
async fn without_the_authorization_server_tokens_cannot_be_checked() {
    let mut auth = auth();
    auth.issuer_url = Url::parse("http://127.0.0.1:1").unwrap();
    let (server, task) = ResourceServer::new(auth, Vec::new());
    TaskTracker::new().spawn(task.run());
    let token = issuer_keys().token(&header(), &claims());
    assert_eq!(server.check(&token).await, Err(TokenRefusal::Unavailable));
}

#[test]
fn the_metadata_names_the_authorization_server_and_all_scopes() {
    let mut auth = auth();
    auth.scopes = vec!["tools".into()];
    let clients = vec![(
        "admins".into(),
        ClientClaims {
            claims: Vec::new(),
            scopes: vec!["admin".into(), "tools".into()],
        },
    )];
    let (server, _) = ResourceServer::new(auth, clients);
    let metadata: Value = serde_json::from_str(&server.metadata()).unwrap();
    assert_eq!(
        metadata,
        json!({
            "resource": "https://tools.example.com/mcp",
            "authorization_servers": ["https://id.example.com"],
            "bearer_methods_supported": ["header"],
            "resource_name": "MCP Workbench",
            "scopes_supported": ["admin", "tools"],
        })
    );
    let url = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";
    assert_eq!(server.metadata_url().as_str(), url);
}
