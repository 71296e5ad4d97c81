//! Hostile servers and authorities: the addresses that they name are not contacted, their tokens are for them alone,
//! and no user is sent where they want.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::served::{
    ACCEPT, address, answer, auth_required, browse, code, keeping_in, offer, protected, send_open,
    showing, sign_in_elsewhere,
};
use crate::harness::{
    Fault, Workbench,
    authority::{Authority, Issuer, METADATA, NOISE, Protected, SECRET},
    remote_server::RemoteServer,
};

/// Opens the toolbox as a client that shows addresses; it must fail as without them, and nobody may be asked.
fn is_not_offered(workbench: &mut Workbench, why: &str) {
    let opening = send_open(workbench);
    let failed = workbench.tool_result(&opening);
    assert_eq!(code(&failed), auth_required("not_sent"));
    let mut untaken = workbench.untaken().iter();
    assert!(!untaken.any(|it| it.method.as_deref() == Some("elicitation/create")));
    workbench.wait_stderr(why);
    for text in [NOISE, SECRET] {
        assert!(!failed.raw.contains(text), "{}", failed.raw);
        assert!(!workbench.stderr().contains(text));
    }
}

/// Addresses inside of networks, in some of their spellings.
const INSIDE: &[&str] = &[
    "http://169.254.169.254/x",
    "https://169.254.169.254/x",
    "https://2852039166/x",
    "https://0xa9fea9fe/x",
    "https://[::ffff:169.254.169.254]/x",
    "https://10.0.0.1/x",
    "https://192.168.0.1/x",
    "https://100.64.0.1/x",
    "https://[fd00::1]/x",
    "https://[fe80::1]/x",
];

#[test]
fn metadata_at_internal_addresses_is_not_requested() {
    let fault = Fault::within(
        40,
        "T31",
        "names internal addresses for its metadata, by a challenge, by a list or by a redirect",
        "auth_required; nothing is asked there, and nobody is offered anything",
    );
    for inside in INSIDE {
        let (authority, server) = protected();
        let challenge = format!("Bearer resource_metadata=\"{inside}\"");
        server.set(|knobs| {
            knobs.challenge = Some(challenge);
            knobs.no_metadata = true;
        });
        is_not_offered(
            &mut showing(server.setup(&json!({}))),
            "failed to sign in to server",
        );

        server.set(|knobs| {
            knobs.challenge = None;
            knobs.no_metadata = false;
            knobs.metadata = vec![("authorization_servers", json!([inside]))];
        });
        is_not_offered(
            &mut showing(server.setup(&json!({}))),
            "failed to sign in to server",
        );
        assert_eq!(authority.asked("/authorize").len(), 0);
    }
    fault.ends();
}

#[test]
fn a_redirect_to_an_internal_address_is_not_followed() {
    let (authority, server) = protected();
    let to = "https://169.254.169.254/latest".to_owned();
    server.set(|knobs| {
        knobs.redirects = vec![("/.well-known/oauth-protected-resource/mcp", to.clone())];
    });
    is_not_offered(
        &mut showing(server.setup(&json!({}))),
        "failed to sign in to server",
    );
    server.set(|knobs| knobs.redirects = Vec::new());
    authority.set(|knobs| knobs.redirects = vec![(METADATA, to)]);
    is_not_offered(
        &mut showing(server.setup(&json!({}))),
        "failed to sign in to server",
    );
}

#[test]
fn a_token_does_not_follow_a_redirect_to_a_different_origin() {
    let fault = Fault::within(
        10,
        "T32",
        "redirects a call to another origin after a sign-in",
        "http_307; the other origin sees nothing",
    );
    let state = TempDir::new().unwrap();
    let (_authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let other = RemoteServer::start(|_, _| None);
    let mut workbench = setup().connect();
    workbench.open("dev");
    server.set(|knobs| knobs.redirects = vec![("/mcp", other.url())]);
    let failed = workbench.use_tool("t", "{}");
    assert_eq!(failed.failure()["code"], "http_307", "{}", failed.raw);
    let mut next = setup().connect();
    assert!(next.open("dev").failed());
    assert_eq!(other.seen().len(), 0, "{:?}", other.seen());
    fault.ends();
}

#[test]
fn a_token_goes_to_its_own_server_only() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let (mine, other) = (Protected::start(&authority), Protected::start(&authority));
    let setup = || keeping_in(state.path(), mine.setup(&json!({})));
    sign_in_elsewhere(setup());
    let both = setup().entry("second", json!({"url": other.url()}));
    let mut workbench = both.connect();
    assert_eq!(workbench.open("dev").json()["servers_connected"], 1);
    let sent = other.seen();
    assert!(!sent.is_empty());
    assert!(sent.iter().all(|it| it.bearer().is_none()), "{sent:?}");
}

#[test]
fn wrong_issuers_states_and_missing_pkce_are_refused() {
    let fault = Fault::within(
        40,
        "T34",
        "answers for another issuer, with another state, or without S256",
        "auth_required; no code is redeemed, and no token is stored",
    );
    // What is wrong before anybody is sent anywhere.
    for metadata in [
        ("issuer", json!("https://other.example")),
        ("code_challenge_methods_supported", Value::Null),
        ("code_challenge_methods_supported", json!(["plain"])),
        ("authorization_endpoint", json!("javascript:alert(1)")),
        ("authorization_endpoint", json!("file:///etc/passwd")),
    ] {
        let (authority, server) = protected();
        authority.set(|knobs| knobs.metadata = vec![metadata.clone()]);
        is_not_offered(
            &mut showing(server.setup(&json!({}))),
            "failed to sign in to server",
        );
        assert_eq!(authority.asked("/token").len(), 0);
    }
    // What is wrong when the browser comes back.
    for issuer in [
        Issuer::Other("https://other.example".to_owned()),
        Issuer::Unsaid,
    ] {
        let (authority, server) = protected();
        authority.set(|knobs| knobs.redirect_issuer = issuer);
        let mut workbench = showing(server.setup(&json!({})));
        let opening = send_open(&mut workbench);
        let asked = offer(&mut workbench);
        answer(&mut workbench, &asked, ACCEPT);
        let page = browse(&address(&asked));
        assert!(!page.contains("You are signed in"), "{page}");
        let redeemed = authority.asked("/token").len();
        assert_eq!(redeemed, 0, "the code is not redeemed");
        // Nobody is left waiting for a right one.
        let failed = workbench.tool_result(&opening);
        assert_eq!(code(&failed), auth_required("not_sent"));
        assert!(server.seen().iter().all(|it| it.bearer().is_none()));
    }
    fault.ends();
}

#[test]
fn a_redirect_of_another_attempt_is_refused_and_the_right_one_works() {
    let (authority, server) = protected();
    let mut workbench = showing(server.setup(&json!({})));
    let opening = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    answer(&mut workbench, &asked, ACCEPT);
    authority.set(|knobs| knobs.redirect_state = Some("0123456789abcdef".to_owned()));
    let page = browse(&address(&asked));
    assert!(page.contains("No sign-in in progress"), "{page}");
    authority.set(|knobs| knobs.redirect_state = None);
    let page = browse(&address(&asked));
    assert!(page.contains("You are signed in"), "{page}");
    assert_eq!(workbench.tool_result(&opening).tool_names(), ["t", "u"]);
}
