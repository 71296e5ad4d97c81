//! Credentials go to their origin only, and appear in no message.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::server::{RemoteServer, Then};
use crate::harness::{Fault, Setup, TOKEN as CLIENT_TOKEN, request_text, use_params};

const TOKEN: &str = "tok-4711-secret";

#[test]
fn credentials_do_not_follow_a_redirect_to_a_different_origin() {
    let fault = Fault::within(
        15,
        "T32a",
        "redirects to another origin with 301, 302, 303, 307 and 308",
        "none is followed: the other origin sees no request at all",
    );
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
            result.error().contains("the redirect was not followed"),
            "{}",
            result.error()
        );
        assert!(other.seen().is_empty(), "{status}");
    }
    fault.ends();
}

#[test]
fn headers_of_clients_do_not_reach_servers() {
    let fault = Fault::within(
        8,
        "T27",
        "a client over HTTP sends its token, a cookie and headers of its own",
        "none of it reaches the server; what is configured does",
    );
    let server = RemoteServer::start(|_, _| None);
    let served = server.setup(&json!({"headers": {"X-Key": "k1"}})).serve();
    let mut client = served.client();
    client.open();
    let use_t = request_text("\"t\"", "tools/call", &use_params("t", "{}"));
    let request = client
        .posting(&use_t)
        .header("cookie", "session=of-the-client")
        .header("x-key", "of-the-client")
        .header("x-forwarded-for", "of-the-client")
        .header("proxy-authorization", "Basic of-the-client");
    let response = served.connection().ask(&request);
    assert_eq!(response.head.status, 200, "{response:?}");
    assert_eq!(server.received("tools/call").len(), 1);
    for seen in server.seen() {
        let headers = format!("{:?}", seen.headers);
        for own in ["of-the-client", CLIENT_TOKEN, client.session.as_str()] {
            assert!(!headers.contains(own), "{headers}");
        }
        for name in ["authorization", "cookie", "x-forwarded-for", "origin"] {
            assert_eq!(seen.header(name), None, "{headers}");
        }
        assert_eq!(seen.header("x-key"), Some("k1"));
    }
    fault.ends();
}

#[test]
fn a_redirect_within_the_origin_is_followed_and_cached() {
    let fault = Fault::within(
        5,
        "F46d",
        "redirects within its origin with 307",
        "is followed and remembered; calls succeed",
    );
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
    fault.ends();
}

#[test]
fn values_of_variables_are_not_in_results_or_logs() {
    let fault = Fault::within(
        6,
        "V10",
        "answers a call with 500 and an echo of its address and headers",
        "[redacted] in the error; nowhere in the result or the log at trace",
    );
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
    fault.ends();
}

#[test]
fn an_address_is_never_shown_with_its_query() {
    let fault = Fault::within(
        8,
        "V11",
        "a password and a key in the url of a server that closes every connection",
        "neither is in the result or the log",
    );
    let closed = RemoteServer::start(|_, _| Some(Then::Close));
    let url = closed.url().replace("//", "//someone:pass-in-file@") + "?key=key-in-file";
    let mut workbench = closed.setup(&json!({"url": url})).connect();
    let result = workbench.open("dev");
    let finished = workbench.finish();
    for text in [&result.raw, &finished.stderr] {
        assert!(!text.contains("in-file"), "{text}");
    }
    fault.ends();
}

#[test]
fn an_invalid_header_is_reported_by_name() {
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

#[test]
fn a_proxy_is_used_for_other_machines() {
    let proxy = RemoteServer::start(|seen, out| match seen.verb.as_str() {
        "CONNECT" => Some(out.reply("403 Forbidden", "")),
        _ => None,
    });
    let address = format!("http://user:pass%20word@{}", proxy.authority());
    let entry = |url| json!({"url": url});
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .entry(
            "plain",
            entry("http://me:secret@plain.invalid:81/mcp?key=1"),
        )
        .toolbox("sealed", "d")
        .entry("sealed", entry("https://sealed.invalid/mcp"))
        .env("HTTP_PROXY", &address)
        .env("HTTPS_PROXY", &address)
        .connect();
    assert_eq!(workbench.open("dev").tool_names(), ["t", "u"]);
    let asked = proxy.received("tools/list").remove(0);
    assert_eq!(asked.path, "http://plain.invalid:81/mcp?key=1");
    assert_eq!(asked.header("host"), Some("plain.invalid:81"));
    assert_eq!(asked.header("authorization"), Some("Basic bWU6c2VjcmV0"));
    let credentials = Some("Basic dXNlcjpwYXNzIHdvcmQ=");
    assert_eq!(asked.header("proxy-authorization"), credentials);
    // What is encrypted goes through a tunnel, and nowhere if there is none.
    let result = workbench.open("sealed");
    assert_eq!(
        result.failure()["code"],
        "server_start_failed",
        "{}",
        result.raw
    );
    let tunnel = proxy.seen().into_iter().find(|seen| seen.verb == "CONNECT");
    let tunnel = tunnel.expect("a tunnel was asked for");
    assert_eq!(tunnel.path, "sealed.invalid:443");
    assert_eq!(tunnel.header("proxy-authorization"), credentials);
    assert_eq!(tunnel.header("authorization"), None);
}
