//! Stored sign-ins: `auth status`, `logout`, and several accounts.

use std::{
    fs,
    sync::{Mutex, mpsc},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use tempfile::TempDir;

use super::{
    Login, json_of, printed, records, run,
    served::{ACCEPT, address, answer, browse, keeping_in, offer, send_open, showing},
    signed_in, text,
};
use crate::harness::{
    Script, Setup, TIMEOUT, Workbench,
    authority::{Authority, Protected},
    remote_server::Then,
};

/// A toolbox `dev` with two accounts at one server.
fn two_accounts(server: &Protected) -> Setup {
    let entry = |account: &str| json!({"url": server.url(), "oauth": {"account": account}});
    Setup::new()
        .toolbox("dev", "d")
        .entry("work", entry("work"))
        .entry("home", entry("home"))
}

fn states(setup: &Setup) -> Vec<Value> {
    let status = json_of(setup, &["auth", "status", "--json"]);
    let servers = status["servers"].as_array().unwrap().iter();
    servers.map(|server| server["state"].clone()).collect()
}

#[test]
fn two_accounts_at_one_server_are_separate() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let mut login = Login::start_with(two_accounts(&server), &["dev", "work"]);
    login.agree();
    assert!(login.ended().status.success());
    assert_eq!(states(login.setup()), ["signed_in", "not_signed_in"]);
    login.again(&["dev", "home"]);
    assert_eq!(states(login.setup()), ["signed_in", "signed_in"]);
    let files = records(login.setup());
    let texts: Vec<String> = files
        .iter()
        .map(|it| fs::read_to_string(it).unwrap())
        .collect();
    assert_eq!(texts.len(), 2);
    let token = |text: &String| serde_json::from_str::<Value>(text).unwrap()["token"].clone();
    assert_ne!(token(&texts[0]), token(&texts[1]));
    assert_eq!(
        printed(login.setup(), &["logout", "dev", "work"]),
        "signed out of dev/work\n"
    );
    assert_eq!(states(login.setup()), ["not_signed_in", "signed_in"]);
}

#[test]
fn signing_out_revokes_the_token_and_deletes_the_file() {
    for method in ["none", "client_secret_basic", "client_secret_post"] {
        let authority = Authority::start();
        let server = Protected::start(&authority);
        authority.set(|knobs| {
            knobs.registers_as = method;
            knobs.metadata = vec![("token_endpoint_auth_methods_supported", json!([method]))];
        });
        let login = signed_in(server.setup(&json!({})));
        assert_eq!(
            printed(login.setup(), &["logout", "dev", "fs"]),
            "signed out of dev/fs\n"
        );
        assert_eq!(records(login.setup()).len(), 0);
        assert_eq!(authority.asked("/revoke").len(), 1);
        assert_eq!(authority.refresh_tokens(), 0, "{method}");
        assert_eq!(
            printed(login.setup(), &["logout", "dev", "fs"]),
            "was not signed in to dev/fs\n"
        );
        assert_eq!(authority.asked("/revoke").len(), 1);
    }
}

#[test]
fn signing_out_works_without_the_authorization_server() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let login = signed_in(server.setup(&json!({})));
    authority.stop();
    let document = json_of(login.setup(), &["logout", "--all", "--json"]);
    let ended = json!({"toolbox": "dev", "server": "fs", "signedOut": true});
    assert_eq!(document, json!({"servers": [ended]}));
    assert_eq!(records(login.setup()).len(), 0);
}

#[test]
fn signing_out_of_all_deletes_every_record() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let setup = two_accounts(&server).entry("off", json!({"url": server.url(), "oauth": false}));
    let mut login = Login::start_with(setup, &["dev", "work"]);
    login.agree();
    assert!(login.ended().status.success());
    let said = printed(login.setup(), &["logout", "--all"]);
    assert_eq!(
        said,
        "signed out of dev/work\nwas not signed in to dev/home\n"
    );
    assert_eq!(records(login.setup()).len(), 0);
    for wrong in [
        &["logout"][..],
        &["logout", "dev"],
        &["logout", "dev", "work", "--all"],
    ] {
        assert_eq!(
            run(login.setup(), wrong).status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_server_in_two_toolboxes_needs_one_sign_in() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let setup = server
        .setup(&json!({}))
        .toolbox("ops", "o")
        .entry("same", json!({"url": server.url()}));
    let login = signed_in(setup);
    assert_eq!(states(login.setup()), ["signed_in", "signed_in"]);
}

#[test]
fn the_status_of_every_remote_server_is_shown() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let remote = json!({"url": "https://x.example/mcp"});
    let with = |key: &str, value: Value| {
        let mut entry = remote.clone();
        entry[key] = value;
        entry
    };
    let credentials =
        json!({"grant": "client_credentials", "clientId": "c", "clientSecret": "secret-3"});
    let setup = server
        .setup(&json!({"oauth": {"scopes": ["read"]}}))
        .server("program", &Script::new())
        .entry("my wiki", with("oauth", json!({"scopes": ["wiki"]})))
        .entry("open", remote.clone())
        .entry(
            "header",
            with("headers", json!({"authorization": "Bearer secret-1"})),
        )
        .entry("off", with("oauth", json!(false)))
        .entry("ci", with("oauth", credentials))
        .entry("unset", json!({"url": "https://${NOT_SET}/mcp"}));
    let login = signed_in(setup);
    let [record] = records(login.setup()).try_into().unwrap();
    let mut stored: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    stored["needed"] = json!(["write"]);
    stored["token"]["expires_in"] = json!(3600);
    stored["token"]["received_at"] = json!(4_102_441_200_u64);
    fs::write(&record, stored.to_string()).unwrap();
    let config = login.setup().config().display().to_string();
    let expected = format!(
        "{config}\n\n\
         dev/fs: signed in\n  at      {issuer}\n  scopes  read\n  \
         until   2100-01-01T00:00:00Z, then renewed automatically\n  needs   write\n  \
         hint    mcp-workbench login dev fs --config {config}\n\n\
         dev/my wiki: not signed in\n  hint    mcp-workbench login dev 'my wiki' --config {config}\n\n\
         dev/open: not signed in\n\n\
         dev/header: the entry has its own credentials\n\n\
         dev/off: sign-in is off in the entry\n\n\
         dev/ci: gets its tokens with its own credentials\n\n\
         dev/unset: the entry refers to values that are not set\n",
        issuer = authority.issuer(),
    );
    assert_eq!(printed(login.setup(), &["auth", "status"]), expected);
    let document = json_of(login.setup(), &["auth", "status", "--json"]);
    let first = json!({
        "toolbox": "dev",
        "server": "fs",
        "state": "signed_in",
        "issuer": authority.issuer(),
        "scopes": ["read"],
        "neededScopes": ["write"],
        "until": "2100-01-01T00:00:00Z",
        "renewed": true,
        "stored": record,
        "remedy": format!("mcp-workbench login dev fs --config {config}"),
    });
    assert_eq!(document["servers"][0], first);
    assert_eq!(document["servers"].as_array().unwrap().len(), 7);
}

#[test]
fn an_expired_or_unreadable_record_is_reported_and_replaced() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let login = signed_in(server.setup(&json!({})));
    let [record] = records(login.setup()).try_into().unwrap();
    let mut stored: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    stored["token"] = json!({"access_token": "x", "expires_in": 1, "received_at": 1});
    fs::write(&record, stored.to_string()).unwrap();
    assert_eq!(states(login.setup()), ["ended"]);
    fs::write(&record, "{").unwrap();
    assert_eq!(states(login.setup()), ["unreadable"]);
    login.again(&["dev", "fs"]);
    assert_eq!(states(login.setup()), ["signed_in"]);
}

#[test]
fn status_without_remote_servers_says_so() {
    let setup = Setup::one(&Script::new());
    setup.write_config();
    let config = setup.config().display().to_string();
    assert_eq!(
        printed(&setup, &["auth", "status"]),
        format!("{config}\nno remote servers\n")
    );
    assert_eq!(
        printed(&setup, &["logout", "--all"]),
        "there is no server to sign out of\n"
    );
    let output = run(&setup, &["auth"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}

/// Opens the toolbox `dev` as a user who signs in to it again.
fn open_with_sign_in(setup: Setup) -> (Workbench, Vec<String>) {
    let mut workbench = showing(setup);
    let opening = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    answer(&mut workbench, &asked, ACCEPT);
    browse(&address(&asked));
    let names = workbench.tool_result(&opening).tool_names();
    (workbench, names)
}

/// Returns the tokens under which the server has seen calls of a tool.
fn tokens_of_calls(server: &Protected, tool: &str) -> Vec<String> {
    let calls = server.server().received("tools/call").into_iter();
    let calls = calls.filter(|it| it.message()["params"]["name"] == tool);
    calls.map(|it| it.bearer().unwrap().to_owned()).collect()
}

#[test]
fn a_call_is_never_sent_under_a_different_account() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let first_token = Mutex::new(None);
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let server = Protected::start_with(&authority, move |seen, out| {
        let token = seen.bearer().unwrap().to_owned();
        let is_first = *first_token.lock().unwrap().get_or_insert(token.clone()) == token;
        match seen.method().as_str() {
            // The second account does not have the tools `own` and `slow`.
            "tools/list" => {
                let names = if is_first { "own slow both" } else { "both" };
                let tools = names
                    .split(' ')
                    .map(|it| json!({"name": it, "inputSchema": {}}));
                let tools: Vec<Value> = tools.collect();
                Some(out.json(&seen.answer(&json!({ "tools": tools }).to_string())))
            }
            "tools/call" if seen.message()["params"]["name"] == "slow" && is_first => {
                let _test_is_over = released.lock().unwrap().recv_timeout(TIMEOUT);
                Some(out.reply("429 Too Many Requests\nRetry-After: 0", ""))
            }
            _ => None::<Then>,
        }
    });
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    let (mut workbench, names) = open_with_sign_in(setup());
    assert_eq!(names, ["own", "slow", "both"]);
    let slow = workbench.send_use("slow", "{}");
    server.server().wait("tools/call", 1);
    authority.revoke_all();
    let (_other, names) = open_with_sign_in(setup());
    assert_eq!(names, ["both"]);
    // The server refuses the token of the first account, and there is one of the second by now.
    let refused = workbench.use_tool("own", "{}");
    assert!(refused.failed(), "{}", refused.raw);
    assert!(!workbench.use_tool("both", "{}").failed());
    // The server asks for the call to be repeated, which would now happen under the second account.
    release.send(()).unwrap();
    let refused = workbench.tool_result(&slow);
    assert!(refused.failed(), "{}", refused.raw);
    let first = tokens_of_calls(&server, "slow");
    assert_eq!(first.len(), 1);
    assert_eq!(tokens_of_calls(&server, "own"), first);
    assert!(!tokens_of_calls(&server, "both").contains(&first[0]));
}
