//! Requests to a modern server: their headers, their responses, and their ends.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pretty_assertions::assert_eq;

use super::{
    empty_result, heard, json, json_reply, link_over, modern_link,
    remote::{Remote, Script},
    reply, stream,
};
use crate::{call::Outcome, config::RemoteProtocol, era::Era, wire};

#[tokio::test]
async fn the_headers_repeat_parts_of_the_body() {
    const REVISION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
    for (method, params, given, expected) in [
        ("server/discover", "{}", "", None),
        ("tools/list", "{}", "", None),
        ("subscriptions/listen", r#"{"name":"n"}"#, "", None),
        ("tools/call", r#"{"name":"search"}"#, "", Some("search")),
        (
            "tools/call",
            r#"{"name":"search"}"#,
            "Paris",
            Some("search"),
        ),
        (
            "prompts/get",
            r#"{"name":"Größe"}"#,
            "",
            Some("=?base64?R3LDtsOfZQ==?="),
        ),
        (
            "resources/read",
            r#"{"uri":"file:///a b"}"#,
            "",
            Some("file:///a b"),
        ),
        (
            "tasks/get",
            r#"{"taskId":" t"}"#,
            "",
            Some("=?base64?IHQ=?="),
        ),
    ] {
        let remote = Remote::start(empty_result);
        let mut link = modern_link(&remote).await;
        let headers: Vec<_> = [("mcp-param-city".to_owned(), given.to_owned())].into();
        let headers = if given.is_empty() { &[][..] } else { &headers };
        link.request(7, method, json(params).into(), headers);
        assert_eq!(heard(&mut link).await, "on 7: answer 7 {}");
        let seen = remote.seen().remove(0);
        let mut wanted = vec![("mcp-method", method), REVISION];
        wanted.extend(expected.map(|name| ("mcp-name", name)));
        wanted.extend((!given.is_empty()).then_some(("mcp-param-city", given)));
        wanted.sort_unstable();
        let mut found = seen.headers("mcp-");
        found.sort_unstable();
        assert_eq!(found, wanted, "{method}");
        assert_eq!(
            seen.headers("accept"),
            [("accept", "application/json, text/event-stream")]
        );
        assert_eq!(
            seen.headers("authorization"),
            [("authorization", "Bearer x")]
        );
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        assert_eq!(seen.body.trim_end(), body);
    }
}

#[tokio::test]
async fn modern_sessions_are_ignored_and_only_requests_are_sent() {
    let remote = Remote::start(|seen| {
        let Script::Whole(answer) = empty_result(seen) else {
            unreachable!("it is whole");
        };
        Script::Whole(answer.replacen("\r\n", "\r\nMcp-Session-Id: s\r\n", 1))
    });
    let mut link = modern_link(&remote).await;
    for id in 1..=2 {
        link.request(id, "tools/list", json("{}").into(), &[]);
        assert_eq!(heard(&mut link).await, format!("on {id}: answer {id} {{}}"));
        link.send(wire::notification("notifications/roots/list_changed", None));
    }
    drop(link);
    assert_eq!(remote.methods(), ["tools/list", "tools/list"]);
    for seen in remote.seen() {
        assert_eq!(seen.headers("mcp-session-id"), []);
    }
}

#[tokio::test]
async fn an_error_body_of_an_error_status_is_the_response() {
    for (status, id, code) in [
        ("400 Bad Request", "5", -32020),
        ("400 Bad Request", "null", -32020),
        ("400 Bad Request", "null", -32021),
        ("400 Bad Request", "5", -32602),
        ("400 Bad Request", "null", -32602),
        ("404 Not Found", "5", -32601),
        ("404 Not Found", "null", -32601),
    ] {
        let error = format!(r#"{{"code":{code},"message":"m"}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        let remote = Remote::start(move |_| Script::Whole(json_reply(status, &body)));
        let mut link = modern_link(&remote).await;
        link.request(5, "tools/call", json("{}").into(), &[]);
        assert_eq!(heard(&mut link).await, format!("on 5: error 5 {error}"));
    }
}

#[tokio::test]
async fn unknown_errors_without_an_id_are_http_failures() {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#;
    let remote = Remote::start(|_| Script::Whole(json_reply("400 Bad Request", body)));
    let mut link = modern_link(&remote).await;
    link.request(5, "tools/call", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "5 failed: http_400, Rejected");
    assert_eq!(remote.methods(), ["tools/call"]);
}

#[tokio::test]
async fn a_broken_stream_fails_its_request_and_is_not_resumed() {
    let event =
        "id: 9\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";
    for method in [
        "tools/call",
        "tools/list",
        "resources/read",
        "subscriptions/listen",
    ] {
        let remote = Remote::start(move |_| Script::Cut(stream(event)));
        let mut link = modern_link(&remote).await;
        link.request(5, method, json("{}").into(), &[]);
        assert_eq!(
            heard(&mut link).await,
            "on 5: notification notifications/progress"
        );
        assert_eq!(heard(&mut link).await, "5 failed: connection_lost, Unknown");
        assert_eq!(remote.methods(), [method]);
    }
}

#[tokio::test]
async fn a_broken_body_is_not_requested_again_under_its_id() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{";
    let remote = Remote::start(move |_| Script::Cut(cut.to_owned()));
    let mut link = modern_link(&remote).await;
    link.request(5, "tools/list", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "5 failed: connection_lost, Unknown");
    assert_eq!(remote.methods(), ["tools/list"]);
}

#[tokio::test]
async fn repeatable_requests_without_a_response_are_sent_again() {
    let first = AtomicBool::new(true);
    let remote = Remote::start(move |seen| {
        if first.swap(false, Ordering::SeqCst) {
            Script::Cut(String::new())
        } else {
            empty_result(seen)
        }
    });
    let mut link = modern_link(&remote).await;
    link.request(5, "tools/list", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "on 5: answer 5 {}");
    assert_eq!(remote.methods(), ["tools/list", "tools/list"]);

    let remote = Remote::start(|_| Script::Cut(String::new()));
    let mut link = modern_link(&remote).await;
    link.request(5, "tools/call", json("{}").into(), &[]);
    assert_eq!(heard(&mut link).await, "5 failed: connection_lost, Unknown");
    assert_eq!(remote.methods(), ["tools/call"]);
}

#[tokio::test]
async fn a_subscription_is_read_until_it_ends() {
    let events = concat!(
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n",
        ": still here\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n\n",
    );
    let remote = Remote::start(move |_| Script::Cut(stream(events)));
    let mut link = modern_link(&remote).await;
    link.request(5, "subscriptions/listen", json("{}").into(), &[]);
    for expected in [
        "on 5: notification notifications/subscriptions/acknowledged",
        "on 5: notification notifications/tools/list_changed",
        "on 5: answer 5 {}",
    ] {
        assert_eq!(heard(&mut link).await, expected);
    }
}

#[tokio::test]
async fn a_subscription_outlasts_the_limit_of_calls() {
    let remote = Remote::start(|_| Script::Open(stream(": here\n\n")));
    let mut link = link_over(&remote, RemoteProtocol::Http, Duration::from_millis(1)).await;
    link.set_era(Era::Modern);
    link.request(5, "subscriptions/listen", json("{}").into(), &[]);
    link.request(6, "tools/call", json("{}").into(), &[]);
    let told = heard(&mut link).await;
    assert!(told.starts_with("6 failed: call_timeout"), "{told}");
}

#[tokio::test]
async fn withdrawing_a_request_closes_its_stream_and_posts_nothing() {
    let progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";
    for (method, begun) in [
        ("tools/call", String::new()),
        ("tools/call", stream(progress)),
        ("subscriptions/listen", stream(progress)),
    ] {
        let answered = !begun.is_empty();
        let mut remote = Remote::start(move |seen| match seen.method().as_str() {
            "tools/list" => empty_result(seen),
            _ => Script::Open(begun.clone()),
        });
        let mut link = modern_link(&remote).await;
        assert!(!link.cancels_by_notification());
        let request = link.request(5, method, json("{}").into(), &[]);
        if answered {
            let expected = "on 5: notification notifications/progress";
            assert_eq!(heard(&mut link).await, expected);
        } else {
            remote.next_request().await;
        }
        assert_eq!(link.withdraw(request), Outcome::Unknown);
        link.send(wire::notification("notifications/cancelled", None));
        remote.next_close().await;
        link.request(6, "tools/list", json("{}").into(), &[]);
        assert_eq!(heard(&mut link).await, "on 6: answer 6 {}");
        assert_eq!(remote.methods(), [method, "tools/list"]);
    }
}

#[tokio::test]
async fn redirects_preserve_headers_and_busy_servers_are_retried() {
    for first in [
        reply("307 Temporary Redirect\nLocation: /other", ""),
        reply("429 Too Many Requests\nRetry-After: 0", ""),
    ] {
        let first = Mutex::new(Some(first));
        let remote = Remote::start(move |seen| {
            let first = first.lock().unwrap().take();
            first.map_or_else(|| empty_result(seen), Script::Whole)
        });
        let mut link = modern_link(&remote).await;
        link.request(5, "tools/call", json(r#"{"name":"n"}"#).into(), &[]);
        assert_eq!(heard(&mut link).await, "on 5: answer 5 {}");
        let seen = remote.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].headers("mcp-"), seen[1].headers("mcp-"));
    }
}
