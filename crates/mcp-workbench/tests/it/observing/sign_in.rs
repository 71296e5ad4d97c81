//! Signing in from the page, which does what `login` does.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{act, cookie, document};
use crate::harness::{
    Served, TIMEOUT,
    authority::{Authority, Protected, follow},
    poll,
};

fn server(served: &Served) -> Value {
    document(served, &["live", "servers", "--json"])["servers"][0].clone()
}

#[test]
fn a_server_starts_when_its_user_comes_back_from_signing_in() {
    let authority = Authority::start();
    let protected = Protected::start(&authority);
    let served = protected.setup(&json!({})).serve();
    let cookie = cookie(&served);
    let place = |action: &str| json!({"toolbox": "dev", "server": "fs", "action": action});
    assert_eq!(act(&served, &cookie, "servers", &place("start")).0, 409);
    let failed = server(&served);
    assert_eq!(failed["state"], "failed");
    assert_eq!(failed["sign_in"], "mcp-workbench login dev fs");
    let (status, begun) = act(&served, &cookie, "servers", &place("sign_in"));
    assert_eq!(status, 200, "{begun}");
    let page = follow(begun["address"].as_str().unwrap(), |_| false).page;
    assert!(page.unwrap().body.contains("You are signed in"));
    let up = poll(TIMEOUT, || {
        Some(server(&served)).filter(|it| it["state"] == "up")
    });
    assert_eq!(up.expect("a server that is up")["sign_in"], Value::Null);
}

#[test]
fn a_sign_in_that_cannot_begin_says_why() {
    let served = super::served();
    let cookie = cookie(&served);
    let local = json!({"toolbox": "dev", "server": "fs", "action": "sign_in"});
    let (status, document) = act(&served, &cookie, "servers", &local);
    assert_eq!(status, 409);
    let error = document["error"].as_str().unwrap();
    assert!(error.contains("dev/fs"), "{error}");
}
