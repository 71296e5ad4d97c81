//! Tokens while the workbench serves: refreshed before they are over, once for all who need them, cured once where they are
//! refused, and given up where nothing helps.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::served::{auth_required, code, keeping_in, protected, sign_in_elsewhere};
use crate::harness::{
    TIMEOUT,
    authority::{Authority, NOISE, Protected},
    poll,
};

#[test]
fn a_refused_token_is_refreshed_once_for_all_calls_in_the_same_session() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    // Each refresh gives another refresh token, and the authority ends everything at the second use of one.
    for round in 1..=3 {
        let mut workbench = setup().connect();
        workbench.open("dev");
        let handshakes = server.server().received("initialize").len();
        authority.end_access();
        let calls: Vec<String> = (0..20).map(|_| workbench.send_use("t", "{}")).collect();
        for call in calls {
            let result = workbench.tool_result(&call);
            assert!(!result.failed(), "{}", result.raw);
        }
        assert_eq!(authority.token_requests("refresh_token").len(), round);
        assert_eq!(server.server().received("initialize").len(), handshakes);
    }
    assert_eq!(authority.token_requests("authorization_code").len(), 1);
}

#[test]
fn a_token_is_refreshed_before_it_expires() {
    // An hour is given: one token is in its last quarter, the other is over.
    for age in [3000, 4000] {
        let state = TempDir::new().unwrap();
        let (authority, server) = protected();
        let setup = || keeping_in(state.path(), server.setup(&json!({})));
        sign_in_elsewhere(setup());
        make_older(state.path(), age);
        let before = server.seen().len();
        let old = authority.secrets();
        let mut workbench = setup().connect();
        assert_eq!(workbench.open("dev").tool_names(), ["t", "u"]);
        let refreshes = || authority.token_requests("refresh_token").len();
        assert!(poll(TIMEOUT, || (refreshes() > 0).then_some(())).is_some());
        assert!(!workbench.use_tool("t", "{}").failed());
        assert_eq!(
            (refreshes(), server.server().received("tools/call").len()),
            (1, 1)
        );
        if age == 4000 {
            let seen = server.seen();
            let mut later = seen[before..].iter();
            let first = later.find(|it| it.route() == "/mcp").unwrap();
            let first = first.bearer().unwrap().to_owned();
            assert!(!old.contains(&first), "what is over is not sent");
        }
    }
}

/// Makes the token that is stored older than it is.
fn make_older(state: &Path, seconds: u64) {
    let folder = state.join("mcp-workbench/signin");
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|it| it.unwrap().path());
    for file in files.filter(|it| it.extension().is_some_and(|it| it == "json")) {
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let received = record["token"]["received_at"].as_u64().unwrap();
        record["token"]["received_at"] = (received - seconds).into();
        fs::write(&file, record.to_string()).unwrap();
    }
}

#[test]
fn a_second_refusal_fails_the_call() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let server = Protected::start_with(&authority, |seen, out| {
        let refuses = seen.method() == "tools/call";
        refuses.then(|| out.reply("401 Unauthorized\nWWW-Authenticate: Bearer", NOISE))
    });
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let mut workbench = setup().connect();
    workbench.open("dev");
    let failed = workbench.use_tool("t", "{}");
    assert_eq!(code(&failed), auth_required("rejected"));
    assert!(failed.error().contains("login dev fs"), "{}", failed.raw);
    assert!(!failed.raw.contains(NOISE), "{}", failed.raw);
    assert_eq!(server.server().received("tools/call").len(), 2);
}

#[test]
fn a_revoked_sign_in_is_requested_again() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let mut workbench = setup().connect();
    workbench.open("dev");
    // If the request for the server's stream were refused first, the sign-in would end before the call is sent.
    server.server().wait_verb("GET");
    assert!(!workbench.use_tool("t", "{}").failed());
    authority.revoke_all();
    let failed = workbench.use_tool("t", "{}");
    assert_eq!(code(&failed), auth_required("rejected"));
    let words = "HTTP 401: not signed in (the last sign-in has expired)";
    assert!(failed.error().contains(words), "{}", failed.raw);
    let refreshes = authority.token_requests("refresh_token").len();
    assert_eq!(
        code(&workbench.use_tool("t", "{}")),
        auth_required("rejected")
    );
    assert_eq!(
        authority.token_requests("refresh_token").len(),
        refreshes,
        "what is known to be over is not tried again"
    );
    sign_in_elsewhere(setup());
    assert!(!workbench.use_tool("t", "{}").failed());
}

#[test]
fn an_unreachable_authorization_server_does_not_require_a_new_sign_in() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let mut workbench = setup().connect();
    workbench.open("dev");
    authority.end_access();
    let noise = NOISE.to_owned();
    authority.set(|knobs| knobs.token_answer = Some(("503 Service Unavailable", noise)));
    let failed = workbench.use_tool("t", "{}");
    assert_eq!(code(&failed), auth_required("rejected"));
    assert!(failed.error().contains("try again later"), "{}", failed.raw);
    assert!(!failed.raw.contains(NOISE), "{}", failed.raw);
    authority.set(|knobs| knobs.token_answer = None);
    // What has failed may not be tried again at once.
    let works = poll(TIMEOUT, || {
        (!workbench.use_tool("t", "{}").failed()).then_some(())
    });
    assert!(works.is_some(), "it comes back by itself");
}

#[test]
fn two_workbenches_share_one_refresh_token() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    for round in 1..=3 {
        let mut both = [setup().connect(), setup().connect()];
        for workbench in &mut both {
            workbench.open("dev");
        }
        authority.end_access();
        let calls = both
            .each_mut()
            .map(|workbench| workbench.send_use("t", "{}"));
        for (workbench, call) in both.iter_mut().zip(calls) {
            let result = workbench.tool_result(&call);
            assert!(!result.failed(), "{}", result.raw);
        }
        assert_eq!(authority.token_requests("refresh_token").len(), round);
    }
}
