//! Servers whose authorization server takes an assertion about a user from the company's issuer (ID-JAG).

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    credentials::{Client, ERAS, serve},
    issuer::{ASSERTED, EXCHANGED, ID_JAG, Issuer},
};
use crate::harness::remote_server::{RemoteServer, usual};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The authorization server of a server: it takes assertions of the issuer from a client that it knows.
fn other_authority() -> RemoteServer {
    RemoteServer::start(|seen, out| {
        let url = format!("http://{}", seen.header("host").unwrap_or_default());
        if seen.route() != "/token" {
            let metadata = json!({
                "issuer": url, "token_endpoint": format!("{url}/token"),
                "authorization_endpoint": format!("{url}/authorize"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            });
            return Some(out.json(&metadata.to_string()));
        }
        let assertion = seen.parameter("assertion").unwrap_or_default();
        let about = assertion.strip_prefix(ASSERTED);
        let user = about.and_then(|it| it.strip_suffix(&format!("-for-{url}")));
        let is_known = seen
            .header("authorization")
            .is_some_and(|it| it.starts_with("Basic "));
        let is_grant = seen.parameter("grant_type").as_deref() == Some(JWT_BEARER);
        Some(match user.filter(|_| is_known && is_grant) {
            Some(user) => {
                let token = format!("{EXCHANGED}{user}");
                let answer =
                    json!({"access_token": token, "token_type": "Bearer", "expires_in": 300});
                out.json(&answer.to_string())
            }
            None => out.reply(
                "400 Bad Request\nContent-Type: application/json",
                r#"{"error":"invalid_grant"}"#,
            ),
        })
    })
}

/// A server that names its authorization server, and takes the tokens of that one.
fn protected_by(authority: &str) -> RemoteServer {
    let authority: Arc<str> = authority.into();
    RemoteServer::start(move |seen, out| {
        let origin = format!("http://{}", seen.header("host").unwrap_or_default());
        let is_good = seen.bearer().is_some_and(|it| it.starts_with(EXCHANGED));
        Some(
            if seen
                .route()
                .starts_with("/.well-known/oauth-protected-resource")
            {
                let metadata = json!({
                    "resource": format!("{origin}/mcp"), "authorization_servers": [*authority],
                });
                out.json(&metadata.to_string())
            } else if is_good {
                usual(seen, out)
            } else {
                out.reply("401 Unauthorized\nWWW-Authenticate: Bearer", "")
            },
        )
    })
}

fn entry(authority: &str) -> Value {
    json!({"oauth": {
        "per": "user", "exchange": true, "issuer": authority, "scopes": ["files"],
        "clientId": "workbench-there", "clientSecret": "${SECRET}",
    }})
}

#[test]
fn the_authorization_server_of_a_server_gets_an_assertion_and_no_token() {
    let other = other_authority();
    let authority = format!("http://{}", other.authority());
    let server = protected_by(&authority);
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let served = serve(server.setup(&entry(&authority)), &issuer, state.path());
    for (user, era) in ["ada", "bob"].into_iter().zip(ERAS) {
        let client = Client::new(&served, &issuer, user, era);
        let opened = client.open(|address| panic!("offered {address}"));
        assert_eq!(opened.tool_names(), ["t", "u"], "{era:?}");
        assert!(!client.use_tool().failed());
        let calls = server.received("tools/call");
        let bearer = calls.last().unwrap().bearer().unwrap();
        assert_eq!(bearer, format!("{EXCHANGED}{user}"));
    }
    let exchanges = issuer.asked("/token");
    assert_eq!(exchanges.len(), 2, "one for each user");
    for exchange in &exchanges {
        let parameter = |name: &str| exchange.parameter(name);
        assert_eq!(parameter("requested_token_type").as_deref(), Some(ID_JAG));
        assert_eq!(parameter("audience").as_deref(), Some(&*authority));
        assert_eq!(parameter("resource"), Some(server.url()));
        assert_eq!(parameter("scope").as_deref(), Some("files"));
    }
    for seen in other.seen().iter().chain(&server.seen()) {
        assert!(!format!("{seen:?}").contains("eyJ"), "{seen:?}");
    }
}

#[test]
fn a_server_that_names_an_authorization_server_of_its_own_choice_gets_nothing() {
    let (trusted, other) = (other_authority(), other_authority());
    let authority = format!("http://{}", trusted.authority());
    let server = protected_by(&format!("http://{}", other.authority()));
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let served = serve(server.setup(&entry(&authority)), &issuer, state.path());
    for era in ERAS {
        let client = Client::new(&served, &issuer, "ada", era);
        let opened = client.open(|address| panic!("offered {address}"));
        let words = "a different authorization server";
        assert!(opened.error().contains(words), "{}", opened.error());
    }
    let asked = |it: &RemoteServer| it.seen().iter().any(|seen| seen.route() == "/token");
    assert!(!asked(&other) && !asked(&trusted));
    assert!(server.seen().iter().all(|seen| seen.bearer().is_none()));
}
