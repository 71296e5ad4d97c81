//! `login`: from the first request to the file, and every way in which it ends otherwise.

use std::{fs, net::TcpListener};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};
use url::Url;

use super::{Login, is_callback, records, rights, run, signed_in, text};
use crate::harness::{
    Script, Setup,
    authority::{Authority, Client, Issuer, NOISE, Protected, SECRET, User, follow},
    remote_server::{RemoteServer, Seen},
};

#[test]
fn signing_in_with_a_browser_reports_server_and_expiry() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    server.set(|knobs| knobs.challenge_scope = Some("read write".to_owned()));
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let page = login.agree();
    assert!(page.contains("You are signed in"), "{page}");
    assert!(!page.contains(SECRET), "{page}");
    let finished = login.ended();
    assert!(finished.status.success(), "{finished:?}");

    let [record] = records(login.setup()).try_into().unwrap();
    assert_eq!(rights(&record), 0o600);
    assert_eq!(rights(record.parent().unwrap()), 0o700);
    let said = finished.stdout;
    assert_eq!(said[0], "signed in to dev/fs");
    assert_eq!(said[1], format!("  at      {}", authority.issuer()));
    assert_eq!(said[2], "  scopes  read write");
    assert!(
        said[3].ends_with("Z, then renewed automatically"),
        "{said:?}"
    );
    assert_eq!(said[4], format!("  stored  {}", record.display()));
    assert_eq!(said.len(), 5);

    assert_eq!(authority.asked("/register").len(), 1);
    let [authorized]: [Seen; 1] = authority.asked("/authorize").try_into().unwrap();
    assert_eq!(authorized.parameter("resource"), Some(server.url()));
    assert_eq!(authorized.parameter("scope").as_deref(), Some("read write"));
    let [exchanged]: [Seen; 1] = authority.asked("/token").try_into().unwrap();
    assert_eq!(exchanged.parameter("resource"), Some(server.url()));
    assert!(server.seen().iter().all(|seen| seen.bearer().is_none()));
}

#[test]
fn with_json_stdout_is_one_document() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(|knobs| {
        knobs.refreshes = false;
        knobs.expires_in = Value::Null;
    });
    let more = ["--json", "--scope", "a", "--scope", "b"];
    let mut login = Login::start(server.setup(&json!({})), &more);
    login.agree();
    let finished = login.ended();
    let document: Value = serde_json::from_str(&finished.stdout.join("\n")).unwrap();
    let [record] = records(login.setup()).try_into().unwrap();
    let expected = json!({
        "toolbox": "dev",
        "server": "fs",
        "issuer": authority.issuer(),
        "scopes": ["a", "b"],
        "renewed": false,
        "stored": record,
    });
    assert_eq!(document, expected);
}

#[test]
fn without_a_browser_the_address_is_printed_and_the_redirect_can_be_pasted() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let mut login = Login::start(server.setup(&json!({})), &["--no-browser"]);
    let redirect = login.redirect();
    assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
    for (pasted, said) in [
        ("what is this?", "this is not the address"),
        (
            "http://127.0.0.1:1/callback?state=x&code=y",
            "a different sign-in",
        ),
    ] {
        login.workbench.send_line(pasted);
        login.workbench.wait_stderr(said);
    }
    login.workbench.send_line("");
    login.workbench.send_line(&format!("  {redirect} "));
    login.workbench.wait_exit();
    let finished = login.ended();
    assert!(finished.status.success(), "{finished:?}");
    assert_eq!(login.browser.called(), None);
    assert_eq!(authority.token_requests("authorization_code").len(), 1);
}

#[test]
fn a_browser_that_cannot_start_counts_as_none() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    for browser in ["/nowhere/browser", "false", ""] {
        let setup = server.setup(&json!({})).env("BROWSER", browser);
        setup.write_config();
        let config = setup.config();
        let arguments = ["login", "dev", "fs", "--config", config.to_str().unwrap()];
        let workbench = setup.start_with(&arguments);
        workbench.wait_stderr("open this address in a browser");
        workbench.signal(Signal::INT);
    }
}

#[test]
fn a_declined_sign_in_is_reported_in_terminal_and_browser() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(|knobs| knobs.user = User::Denies);
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let page = login.agree();
    assert!(page.contains("You are not signed in"), "{page}");
    assert!(!page.contains(NOISE), "{page}");
    let expected = "cannot sign in to dev/fs: sign-in was refused: access_denied\n  \
                    hint: start again, and agree in the browser";
    assert_eq!(login.refused(), expected);
}

#[test]
fn an_interrupt_ends_the_sign_in_and_stores_nothing() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let mut login = Login::start(server.setup(&json!({})), &[]);
    login.browser.address();
    login.workbench.wait_stderr("waiting for you");
    login.workbench.signal(Signal::INT);
    login.workbench.wait_exit();
    assert_eq!(login.refused(), "interrupted; nothing was changed");
}

#[test]
fn the_end_of_stdin_does_not_end_the_sign_in() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let mut login = Login::start(server.setup(&json!({})), &[]);
    login.workbench.close_stdin();
    login.agree();
    assert!(login.ended().status.success());
}

#[test]
fn login_says_why_a_server_has_no_sign_in() {
    let setup = Setup::one(&Script::new())
        .entry(
            "header",
            json!({"url": "https://x.example", "headers": {"Authorization": "Bearer secret-1"}}),
        )
        .entry("user", json!({"url": "https://me:secret-2@x.example"}))
        .entry("off", json!({"url": "https://x.example", "oauth": false}))
        .entry("unset", json!({"url": "https://${NOT_SET}/mcp"}))
        .entry(
            "disabled",
            json!({"url": "https://x.example", "disabled": true}),
        )
        .entry(
            "ci",
            json!({"url": "https://x.example", "oauth":
            {"grant": "client_credentials", "clientId": "c", "clientSecret": "secret-3"}}),
        );
    setup.write_config();
    let config = setup.config().display().to_string();
    for (toolbox, server, said) in [
        (
            "dev",
            "fs",
            "dev/fs has no sign-in: it is a program on this machine",
        ),
        (
            "dev",
            "header",
            "dev/header has no sign-in: its entry has an `Authorization` header",
        ),
        (
            "dev",
            "user",
            "dev/user has no sign-in: its entry has an `Authorization` header, or a user",
        ),
        (
            "dev",
            "off",
            "dev/off has no sign-in: its entry has `\"oauth\": false`",
        ),
        (
            "dev",
            "unset",
            "dev/unset cannot be reached: variable NOT_SET is not set",
        ),
        (
            "dev",
            "disabled",
            "the server `disabled` of toolbox `dev` is disabled",
        ),
        (
            "dev",
            "ci",
            &format!("hint: `mcp-workbench doctor dev --config {config}` tries them"),
        ),
        ("dev", "heade", "did you mean `header`?"),
        ("devv", "fs", "did you mean `dev`?"),
    ] {
        for command in ["login", "logout"] {
            let output = run(&setup, &[command, toolbox, server]);
            let stderr = text(&output.stderr);
            if command == "logout" && server == "ci" {
                assert!(output.status.success(), "{stderr}");
                continue;
            }
            assert_eq!(output.status.code(), Some(1));
            assert!(stderr.contains(said), "{command} {server}: {stderr}");
        }
    }
    let output = run(&setup, &["login", "dev"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_unreachable_server_is_named_with_a_hint() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let entry = json!({"url": format!("http://{address}/mcp")});
    let setup = Setup::new().toolbox("dev", "d").entry("fs", entry);
    let error = Login::start(setup, &[]).refused();
    assert!(error.contains("'127.0.0.1' cannot be reached"), "{error}");
    assert!(error.contains("the network and the proxy"), "{error}");
}

#[test]
fn a_server_without_oauth_metadata_is_reported_with_a_hint() {
    let open = RemoteServer::start(|_, _| None);
    let closed = RemoteServer::start(|_, out| Some(out.reply("401 Unauthorized", NOISE)));
    let silent = RemoteServer::start(|seen, out| {
        (seen.path != "/mcp").then(|| out.reply("404 Not Found", NOISE))
    });
    for server in [open, closed, silent] {
        let mut login = Login::start(server.setup(&json!({})), &[]);
        let expected = "cannot sign in to dev/fs: the server has no OAuth metadata\n  \
                        hint: the server may have no OAuth; if it needs a key, set it in `headers` of the entry";
        assert_eq!(login.refused(), expected);
        assert_eq!(login.browser.called(), None);
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let setup = server.setup(&json!({"oauth": {"callbackPort": port}}));
    let error = Login::start(setup, &[]).refused();
    assert!(
        error.contains(&format!("`callbackPort` of the entry says {port}")),
        "{error}"
    );
    assert_eq!(authority.seen().len(), 0);
}

#[test]
fn a_registered_client_is_used_with_its_port_and_its_secret_is_not_stored() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let client = Client {
        secret: Some("secret-of-mine".to_owned()),
        redirects: vec![format!("http://127.0.0.1:{port}/callback")],
        ..Default::default()
    };
    authority.know_client("mine", client);
    let setup = server
        .setup(&json!({"oauth":
            {"clientId": "mine", "clientSecret": "${MY_SECRET}", "callbackPort": port}}))
        .env("MY_SECRET", "secret-of-mine");
    let login = signed_in(setup);
    assert_eq!(authority.asked("/register").len(), 0);
    let [record] = records(login.setup()).try_into().unwrap();
    assert!(
        !fs::read_to_string(record)
            .unwrap()
            .contains("secret-of-mine")
    );
}

#[test]
fn a_server_of_the_first_revision_is_its_own_authority() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    server.set(|knobs| knobs.is_own_authority = true);
    authority.set(|knobs| knobs.redirect_issuer = Issuer::Unsaid);
    let mut login = Login::start(server.setup(&json!({})), &[]);
    login.agree();
    let finished = login.ended();
    assert!(finished.status.success(), "{finished:?}");
    let visited = follow(&login.printed(), is_callback).addresses;
    let visited = Url::parse(&visited[0]).unwrap();
    assert_eq!(
        visited.origin(),
        Url::parse(&server.url()).unwrap().origin()
    );
    assert_eq!(authority.seen().len(), 0);
}

#[test]
fn signing_in_again_replaces_the_record() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let login = signed_in(server.setup(&json!({})));
    let [record] = records(login.setup()).try_into().unwrap();
    let before: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    login.again(&["dev", "fs"]);
    assert_eq!(records(login.setup()), std::slice::from_ref(&record));
    let after: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    assert_ne!(before["grant"], after["grant"]);
    assert_ne!(before["token"], after["token"]);
}
