//! Authorization servers, servers and pages that are up to something. Each row is an attack; what must not happen is that
//! a browser gets to see a hostile address, or that a code or a token goes where it does not belong.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use url::Url;

use super::{Login, assert_no_exchange, is_callback, records};
use crate::harness::{
    authority::{Authority, Issuer, Knobs, METADATA, Protected, follow},
    remote_server::RemoteServer,
};

/// Signs in with a knob turned, which is to fail before the browser is called. What is said.
fn refused_before_the_browser(turn: impl FnOnce(&mut Knobs)) -> String {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(turn);
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let error = login.refused();
    assert_eq!(login.browser.called(), None, "{error}");
    assert_no_exchange(&authority);
    error
}

#[test]
fn t33_hostile_addresses_are_never_opened_in_the_browser() {
    for hostile in [
        "javascript:alert(1)",
        "JavaScript://x/%0aalert(1)",
        "file:///etc/passwd",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:msgbox(1)",
        "ms-settings:privacy",
        "smb://evil.example/share",
        "ftp://evil.example/",
        "-oProxyCommand=calc",
        "--version",
        "$(touch pwned)",
        "`touch pwned`",
        "http://evil.example/authorize",
        "http://127.0.0.1.evil.example/authorize",
        "https://127.0.0.1@evil.example/authorize",
        "https://me:secret@evil.example/authorize",
        "//evil.example/authorize",
        "/authorize",
        "",
        " ",
        "http:///",
        "https://",
        "intent://x#Intent;scheme=http;end",
    ] {
        let error = refused_before_the_browser(|knobs| {
            knobs.metadata = vec![("authorization_endpoint", json!(hostile))];
        });
        assert!(error.starts_with("cannot sign in to dev/fs: "), "{error}");
        let shown = hostile.trim();
        assert!(
            shown.is_empty() || !error.contains(shown),
            "{hostile}: {error}"
        );
    }
}

#[test]
fn t33_the_address_is_one_argument_of_the_browser() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let strange =
        "/authorize?x=$(touch pwned)&y=`touch pwned`;touch pwned|'\"<>&z=-x %s %PATH%\u{202e}";
    authority.set(|knobs| {
        let endpoint = format!("{}{strange}", authority.issuer());
        knobs.metadata = vec![("authorization_endpoint", json!(endpoint))];
    });
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let address = login.browser.address();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?&=%+".contains(&byte);
    assert!(address.bytes().all(plain), "{address}");
    assert!(address.starts_with(&authority.issuer()), "{address}");
    login.agree();
    assert!(login.ended().status.success());
    for folder in ["work", "home", "config"] {
        assert!(!login.setup().path(folder).join("pwned").exists());
    }
}

#[test]
fn t34_an_authority_with_a_wrong_issuer_gets_no_request() {
    for issuer in [
        "https://accounts.example.com",
        "http://127.0.0.1:1",
        "",
        "javascript:x",
    ] {
        let error = refused_before_the_browser(|knobs| {
            knobs.metadata = vec![("issuer", json!(issuer))];
        });
        assert!(error.contains("dev/fs"), "{error}");
        assert!(issuer.is_empty() || !error.contains(issuer), "{error}");
    }
}

#[test]
fn t34_without_s256_no_sign_in_starts() {
    for methods in [Value::Null, json!([]), json!(["plain"])] {
        let error = refused_before_the_browser(|knobs| {
            knobs.metadata = vec![("code_challenge_methods_supported", methods)];
        });
        assert!(error.contains("PKCE with S256"), "{error}");
    }
}

#[test]
fn t34_a_code_from_another_issuer_is_never_exchanged() {
    let other = Issuer::Other("https://other.example".to_owned());
    for issuer in [other, Issuer::Unsaid] {
        let authority = Authority::start();
        let server = Protected::start(&authority);
        authority.set(|knobs| knobs.redirect_issuer = issuer);
        let mut login = Login::start(server.setup(&json!({})), &[]);
        let page = login.agree();
        assert!(page.contains("You are not signed in"), "{page}");
        let error = login.refused();
        assert!(
            error.contains("a different authorization server"),
            "{error}"
        );
        assert_no_exchange(&authority);
    }
}

#[test]
fn t34_a_pasted_code_from_another_issuer_is_refused() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(|knobs| {
        knobs.redirect_issuer = Issuer::Other("https://other.example".to_owned());
    });
    let mut login = Login::start(server.setup(&json!({})), &["--no-browser"]);
    let redirect = login.redirect();
    login.workbench.send_line(&redirect);
    let error = login.refused();
    assert!(
        error.contains("a different authorization server"),
        "{error}"
    );
    assert_no_exchange(&authority);
}

#[test]
fn t34_a_wrong_state_is_ignored_and_the_right_one_works_once() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(|knobs| knobs.redirect_state = Some("x".repeat(43)));
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let visit = follow(&login.browser.address(), |_| false);
    assert_eq!(visit.page.unwrap().head.status, 400);
    login
        .workbench
        .wait_stderr("a different sign-in; still waiting");
    assert_no_exchange(&authority);
    assert_eq!(records(login.setup()).len(), 0);
    authority.set(|knobs| knobs.redirect_state = None);
    login.agree();
    assert!(login.ended().status.success());
    assert_eq!(authority.token_requests("authorization_code").len(), 1);
}

#[test]
fn t34_a_code_does_not_follow_a_redirect_to_a_different_origin() {
    let elsewhere = RemoteServer::start(|_, out| Some(out.reply("200 OK", "{}")));
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(|knobs| {
        knobs.redirects = vec![("/token", format!("http://{}/token", elsewhere.authority()))];
    });
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let page = login.agree();
    assert!(page.contains("You are not signed in"), "{page}");
    login.refused();
    assert_eq!(elsewhere.seen().len(), 0);
}

#[test]
fn t31_internal_addresses_get_no_request() {
    for internal in [
        "http://169.254.169.254/latest",
        "https://169.254.169.254/",
        "https://10.0.0.1/",
        "https://[fd00::1]/",
        "https://[::ffff:169.254.169.254]/",
        "http://2852039166/",
    ] {
        let authority = Authority::start();
        let server = Protected::start(&authority);
        server.set(|knobs| {
            knobs.metadata = vec![("authorization_servers", json!([internal]))];
        });
        let error = Login::start(server.setup(&json!({})), &[]).refused();
        assert!(error.contains("dev/fs"), "{internal}: {error}");
        assert_eq!(authority.seen().len(), 0, "{internal}");

        for endpoint in ["token_endpoint", "registration_endpoint"] {
            refused_before_the_browser(|knobs| {
                knobs.metadata = vec![(endpoint, json!(format!("{internal}x")))];
            });
        }
    }
}

#[test]
fn t31_redirected_metadata_requests_contain_no_secret() {
    let elsewhere = RemoteServer::start(|_, out| Some(out.reply("404 Not Found", "")));
    let at = format!("http://{}/metadata", elsewhere.authority());
    let authority = Authority::start();
    let server = Protected::start(&authority);
    authority.set(|knobs| knobs.redirects = vec![(METADATA, at)]);
    Login::start(server.setup(&json!({})), &[]).refused();
    let seen = elsewhere.seen();
    assert!(
        seen.iter()
            .all(|seen| seen.verb == "GET" && seen.body.is_empty()),
        "{seen:?}"
    );
}

#[test]
fn t34_metadata_of_a_different_server_is_refused() {
    for resource in ["https://other.example/mcp", "http://127.0.0.1:1/mcp", ""] {
        let authority = Authority::start();
        let server = Protected::start(&authority);
        server.set(|knobs| knobs.metadata = vec![("resource", json!(resource))]);
        let mut login = Login::start(server.setup(&json!({})), &[]);
        login.refused();
        assert_eq!(login.browser.called(), None, "{resource}");
        assert_no_exchange(&authority);
    }
}

#[test]
fn invalid_answers_are_refused_and_not_repeated() {
    for (status, body) in [
        ("200 OK", "<html>noise-from-elsewhere</html>".to_owned()),
        ("200 OK", "[]".to_owned()),
        ("200 OK", "x".repeat(3_000_000)),
        (
            "500 Internal Server Error",
            "noise-from-elsewhere".to_owned(),
        ),
    ] {
        refused_before_the_browser(|knobs| knobs.metadata_answer = Some((status, body.clone())));
        let authority = Authority::start();
        let server = Protected::start(&authority);
        authority.set(|knobs| knobs.token_answer = Some((status, body)));
        let mut login = Login::start(server.setup(&json!({})), &[]);
        login.agree();
        login.refused();
    }
}

#[test]
fn the_redirect_port_serves_only_the_redirect() {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    let mut login = Login::start(server.setup(&json!({})), &[]);
    let right = follow(&login.browser.address(), is_callback)
        .last()
        .to_owned();
    for path in [
        "/",
        "/callback",
        "/callback/x?code=1&state=2",
        "/other?code=1&state=2",
    ] {
        let stray = Url::parse(&right).unwrap().join(path).unwrap();
        let page = follow(stray.as_str(), |_| false).page.unwrap();
        assert!(page.head.status >= 400, "{path}");
    }
    let page = follow(&right, |_| false).page.unwrap();
    assert_eq!(page.head.status, 200);
    assert_eq!(page.head.header("referrer-policy"), Some("no-referrer"));
    assert!(login.ended().status.success());
    let [record] = records(login.setup()).try_into().unwrap();
    assert!(
        fs::read_to_string(record)
            .unwrap()
            .contains("secret-access")
    );
}
