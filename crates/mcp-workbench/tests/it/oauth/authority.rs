//! The authority of the tests is strict: a client gets a token only if it has done everything right. Otherwise passing
//! tests would prove nothing about the workbench.

use std::process::Command;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pretty_assertions::assert_eq;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use crate::harness::{
    HttpConnection, HttpRequest, HttpResponse,
    authority::{
        Authority, Browser, Client, Issuer, METADATA, NOISE, Protected, SECRET, User, follow,
    },
};

const REDIRECT: &str = "http://127.0.0.1:1/callback";
const VERIFIER: &str = "0123456789012345678901234567890123456789012";

/// Sends a request to an address of this machine.
fn send(verb: &str, url: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
    let url = Url::parse(url).unwrap();
    let path = &url[url::Position::BeforePath..];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request = HttpRequest::new(verb, path).header("host", host);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let address = host.parse().unwrap();
    HttpConnection::open(address).ask(&request.body(body))
}

fn token(authority: &Authority, parameters: &[(&str, &str)]) -> (u16, Value) {
    let form = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let response = send(
        "POST",
        &format!("{}/token", authority.issuer()),
        &kind,
        &form,
    );
    let body = serde_json::from_str(&response.body).unwrap();
    (response.head.status, body)
}

/// Returns the address that the user is sent to.
fn authorization(authority: &Authority, resource: &str, client: &str) -> Url {
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()));
    let mut url = Url::parse(&format!("{}/authorize", authority.issuer())).unwrap();
    url.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", "0123456789abcdef"),
        ("scope", "read"),
        ("resource", resource),
    ]);
    url
}

/// The parameters of the redirect after the user has been somewhere.
fn redirected(url: &Url) -> Vec<(String, String)> {
    let visit = follow(url.as_str(), |url| url.path() == "/callback");
    let last = Url::parse(visit.last()).unwrap();
    last.query_pairs().into_owned().collect()
}

fn value(pairs: &[(String, String)], name: &str) -> String {
    let found = pairs.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn known(authority: &Authority) {
    authority.know_client("known", Client::default());
}

/// The status of a request to the server with this token.
fn status(server: &Protected, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
    send("POST", &server.url(), &[("authorization", &bearer)], ping)
        .head
        .status
}

#[test]
fn a_correct_sign_in_works_once() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let refused = send("POST", &server.url(), &[], "{}");
    let challenge = refused.head.header("www-authenticate").unwrap().to_owned();
    assert_eq!(refused.head.status, 401);
    assert!(challenge.contains("resource_metadata="), "{challenge}");
    let metadata = server
        .url()
        .replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let metadata: Value = serde_json::from_str(&send("GET", &metadata, &[], "").body).unwrap();
    assert_eq!(
        metadata["authorization_servers"],
        json!([authority.issuer()])
    );
    assert_eq!(metadata["resource"], server.url());

    let registration = json!({"redirect_uris": [REDIRECT]}).to_string();
    let register = format!("{}/register", authority.issuer());
    let client: Value =
        serde_json::from_str(&send("POST", &register, &[], &registration).body).unwrap();
    let client = client["client_id"].as_str().unwrap().to_owned();
    let pairs = redirected(&authorization(&authority, &server.url(), &client));
    assert_eq!(value(&pairs, "iss"), authority.issuer());
    assert_eq!(value(&pairs, "state"), "0123456789abcdef");

    let code = value(&pairs, "code");
    let url = server.url();
    let right = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", &code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", REDIRECT),
        ("resource", &url),
    ];
    let (first, answer) = token(&authority, &right);
    assert_eq!((first, &answer["scope"]), (200, &json!("read")));
    let access = answer["access_token"].as_str().unwrap();
    assert_eq!(status(&server, access), 200);
    assert_eq!(token(&authority, &right).0, 400, "a code is good once");

    server.set(|knobs| knobs.call_scope = Some("write".to_owned()));
    assert_eq!(status(&server, access), 403);
    server.set(|knobs| knobs.call_scope = None);
    let other = Protected::start(&authority);
    assert_eq!(
        status(&other, access),
        401,
        "a token is good for one server"
    );
    authority.end_access();
    assert_eq!(status(&server, access), 401);
    assert!(authority.secrets().iter().all(|it| it.starts_with(SECRET)));
    assert_eq!(authority.token_requests("authorization_code").len(), 2);
    assert_eq!(server.server().received("tools/call").len(), 3);
}

#[test]
fn missing_or_different_values_in_the_exchange_are_refused() {
    let authority = Authority::start();
    known(&authority);
    let right = [
        ("grant_type", "authorization_code"),
        ("client_id", "known"),
        ("code_verifier", VERIFIER),
        ("redirect_uri", REDIRECT),
        ("resource", "r"),
    ];
    for (wrong, _) in right {
        let code = value(
            &redirected(&authorization(&authority, "r", "known")),
            "code",
        );
        let other = right.map(|(name, value)| (name, if name == wrong { "other" } else { value }));
        let mut other = other.to_vec();
        other.push(("code", &code));
        assert_ne!(token(&authority, &other).0, 200, "{wrong}");
    }
}

#[test]
fn an_invalid_authorization_request_gets_no_code() {
    let authority = Authority::start();
    known(&authority);
    for (name, other) in [
        ("response_type", "token"),
        ("code_challenge_method", "plain"),
        ("code_challenge", ""),
        ("resource", ""),
        ("state", "short"),
    ] {
        let mut url = authorization(&authority, "r", "known");
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let pairs = pairs.into_iter().map(|(known, value)| {
            let value = if known == name {
                other.to_owned()
            } else {
                value
            };
            (known, value)
        });
        let pairs: Vec<_> = pairs.collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
        assert_eq!(
            value(&redirected(&url), "error"),
            "invalid_request",
            "{name}"
        );
    }
    let unknown = authorization(&authority, "r", "unknown");
    let page = follow(unknown.as_str(), |_| false).page.unwrap();
    assert_eq!((page.head.status, page.body.as_str()), (400, NOISE));
}

#[test]
fn reusing_a_refresh_token_revokes_the_grant() {
    let authority = Authority::start();
    known(&authority);
    let refreshed = |refresh: &str| {
        let parameters = [
            ("grant_type", "refresh_token"),
            ("client_id", "known"),
            ("refresh_token", refresh),
            ("resource", "r"),
        ];
        let (status, answer) = token(&authority, &parameters);
        (
            status,
            answer["refresh_token"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let code = value(
        &redirected(&authorization(&authority, "r", "known")),
        "code",
    );
    let (_, answer) = token(
        &authority,
        &[
            ("grant_type", "authorization_code"),
            ("client_id", "known"),
            ("code", &code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
            ("resource", "r"),
        ],
    );
    let first = answer["refresh_token"].as_str().unwrap().to_owned();
    let (status, second) = refreshed(&first);
    assert_eq!(status, 200);
    assert_eq!(refreshed(&first).0, 400);
    assert_eq!(
        refreshed(&second).0,
        400,
        "ended by the second use of the first"
    );
    authority.revoke_all();
    assert_eq!(authority.asked("/token").len(), 4);
}

#[test]
fn the_settings_of_redirect_and_metadata_work() {
    let authority = Authority::start();
    known(&authority);
    let url = authorization(&authority, "r", "known");
    authority.set(|knobs| knobs.user = User::Denies);
    assert_eq!(value(&redirected(&url), "error"), "access_denied");
    authority.set(|knobs| knobs.user = User::Waits);
    assert_eq!(
        follow(url.as_str(), |_| false).page.unwrap().head.status,
        200
    );
    authority.set(|knobs| {
        knobs.user = User::Agrees;
        knobs.redirect_issuer = Issuer::Other("https://other.example".to_owned());
        knobs.redirect_state = Some("mine".to_owned());
        knobs.metadata = vec![("code_challenge_methods_supported", Value::Null)];
    });
    let pairs = redirected(&url);
    assert_eq!(value(&pairs, "iss"), "https://other.example");
    assert_eq!(value(&pairs, "state"), "mine");
    authority.set(|knobs| knobs.redirect_issuer = Issuer::Unsaid);
    assert_eq!(value(&redirected(&url), "iss"), "");
    let metadata = format!("{}{METADATA}", authority.issuer());
    let metadata: Value = serde_json::from_str(&send("GET", &metadata, &[], "").body).unwrap();
    assert_eq!(metadata["code_challenge_methods_supported"], Value::Null);
    assert_eq!(metadata["issuer"], authority.issuer());
    authority.stop();
}

#[test]
fn the_browser_records_its_arguments() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let setup = server.setup(&json!({}));
    assert!(setup.config_text().contains(&server.url()));
    let browser = Browser::new(&setup);
    assert_eq!(browser.called(), None);
    let ran = Command::new(&browser.program).arg("https://a b").status();
    assert!(ran.unwrap().success());
    assert_eq!(browser.address(), "https://a b");
    assert_eq!(server.seen().len(), 0);
}
