//! What goes to a server and what does not: credentials stay with their origin, and out of every message.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::server::{RemoteServer, Then};

const TOKEN: &str = "tok-4711-secret";

#[test]
fn credentials_do_not_follow_a_redirect_to_another_origin() {
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let other = RemoteServer::start(|_, _| None);
        let location = other.url();
        let server = RemoteServer::start(move |_, out| {
            Some(out.reply(&format!("{status}\nLocation: {location}"), ""))
        });
        let mut workbench = server
            .setup(&json!({"headers": {"Authorization": format!("Bearer {TOKEN}")}}))
            .connect();
        let result = workbench.open("dev");
        assert!(
            result.error().contains("which is not followed"),
            "{}",
            result.error()
        );
        assert!(other.seen().is_empty(), "{status}");
    }
}

#[test]
fn a_redirect_within_the_origin_is_followed_and_remembered() {
    let server = RemoteServer::start(|seen, out| {
        (seen.path == "/mcp").then(|| out.reply("307 Temporary Redirect\nLocation: /mcp/", ""))
    });
    let mut workbench = server
        .setup(&json!({"headers": {"X-Key": TOKEN}}))
        .connect();
    workbench.open("dev");
    assert!(!workbench.use_tool("t", "{}").failed());
    let seen = server.seen();
    let redirected = seen.iter().filter(|seen| seen.path == "/mcp");
    assert_eq!(redirected.count(), 1);
    assert!(seen.iter().all(|seen| seen.header("x-key") == Some(TOKEN)));
}

#[test]
fn values_of_variables_stay_out_of_results_and_the_log() {
    let server = RemoteServer::start(|seen, out| {
        let echo = format!("{:?} {}", seen.headers, seen.path);
        Some(match seen.method().as_str() {
            "tools/call" => out.reply("500 Oops\nContent-Type: text/plain", &echo),
            _ => return None,
        })
    });
    let url = format!("{}?key=${{KEY}}", server.url()).replace("//", "//user:${KEY}@");
    let setup = server
        .setup(&json!({"url": url, "headers": {"X-Key": "${KEY}"}}))
        .env("KEY", TOKEN);
    setup.write_config();
    let config = setup.config().to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["--config", &config, "--log-level", "trace"]);
    workbench.initialize();
    workbench.open("dev");
    let result = workbench.use_tool("t", "{}");
    assert!(server.received("tools/call")[0].path.contains(TOKEN));
    assert!(result.error().contains("[redacted]"), "{}", result.error());
    assert!(!result.raw.contains(TOKEN), "{}", result.raw);
    let finished = workbench.finish();
    assert!(!finished.stderr.contains(TOKEN), "{}", finished.stderr);
}

#[test]
fn an_address_is_never_shown_with_its_query() {
    let closed = RemoteServer::start(|_, _| Some(Then::Close));
    let url = closed.url().replace("//", "//someone:pass-in-file@") + "?key=key-in-file";
    let mut workbench = closed.setup(&json!({"url": url})).connect();
    let result = workbench.open("dev");
    let finished = workbench.finish();
    for text in [&result.raw, &finished.stderr] {
        assert!(!text.contains("in-file"), "{text}");
    }
}

#[test]
fn a_header_that_cannot_be_sent_is_told_by_its_name() {
    let server = RemoteServer::start(|_, _| None);
    let mut workbench = server
        .setup(&json!({"headers": {"X-Key": "a\u{1}b"}}))
        .connect();
    let result = workbench.open("dev");
    assert!(
        result.error().contains("header 'X-Key' cannot be sent"),
        "{}",
        result.error()
    );
    assert!(server.seen().is_empty());
}

#[test]
fn a_proxy_is_not_used_for_this_machine() {
    let proxy = RemoteServer::start(|_, _| Some(Then::Close));
    let server = RemoteServer::start(|_, _| None);
    let mut workbench = server
        .setup(&json!({}))
        .env("http_proxy", &format!("http://{}", proxy.authority()))
        .env("HTTP_PROXY", &format!("http://{}", proxy.authority()))
        .connect();
    assert_eq!(workbench.open("dev").tool_names(), ["t", "u"]);
    assert!(proxy.seen().is_empty());
}
