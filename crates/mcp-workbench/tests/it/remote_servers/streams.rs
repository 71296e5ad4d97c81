//! Streams of events: what a server says during a call and without being asked, and streams that break.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::server::{RemoteServer, Seen, Then, tools};
use crate::{
    asking_back::attributed,
    harness::{Fault, Workbench},
};

/// A workbench whose client can answer questions.
fn connect(server: &RemoteServer) -> Workbench {
    let mut workbench = server.setup(&json!({})).start();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    workbench.ask("initialize", &params.to_string());
    workbench.notify("notifications/initialized", "{}");
    workbench.open("dev");
    workbench
}

#[test]
fn a_question_on_the_stream_of_a_call_is_answered_by_a_post() {
    let (answered, answer) = mpsc::channel::<String>();
    let answer = Mutex::new(answer);
    let server = RemoteServer::start(move |seen, out| {
        if seen.method().is_empty() && seen.body.contains("\"q1\"") {
            answered.send(seen.body.clone()).unwrap();
            return None;
        }
        (seen.method() == "tools/call").then(|| {
            out.stream();
            out.event(r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"who?","z":1e400}}"#);
            let told = answer.lock().unwrap().recv().unwrap();
            let result = format!(r#"{{"content":[],"told":{}}}"#, told.trim());
            out.event(&seen.answer(&result));
            Then::Close
        })
    });
    let mut workbench = connect(&server);
    let call = workbench.send_use("t", "{}");
    let question = workbench.notification("elicitation/create");
    assert_eq!(
        question.params.as_ref().unwrap().get(),
        attributed(r#"{"message":"who?","z":1e400}"#)
    );
    let id = question.id().unwrap();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"a":0.10}}}}}}"#
    ));
    let result = workbench.tool_result(&call);
    assert_eq!(
        result.raw,
        r#"{"content":[],"told":{"jsonrpc":"2.0","id":"q1","result":{"action":"accept","content":{"a":0.10}}}}"#
    );
}

#[test]
fn progress_and_logs_on_the_stream_come_before_the_answer() {
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| {
            let token = seen.message()["params"]["_meta"]["progressToken"].to_string();
            out.stream();
            for step in 1..=3 {
                out.event(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step}}}}}"#
                ));
            }
            out.event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#);
            out.event(&seen.answer(r#"{"content":[]}"#));
            Then::Close
        })
    });
    let mut workbench = connect(&server);
    let params = json!({
        "name": "use_tool",
        "arguments": {"tool": {"toolbox": "dev", "server": "fs", "tool": "t"}},
        "_meta": {"progressToken": "mine"},
    });
    let call = workbench.request("tools/call", &params.to_string());
    for step in 1..=3 {
        let report = workbench.next_message();
        assert_eq!(
            report.params(),
            json!({"progressToken": "mine", "progress": step})
        );
    }
    assert_eq!(
        workbench.next_message().method.as_deref(),
        Some("notifications/message")
    );
    assert!(workbench.next_message().answers(&call));
}

#[test]
fn a_broken_stream_is_resumed_and_the_call_is_not_sent_again() {
    let mut fault = Fault::within(
        8,
        "F44b",
        "breaks the stream of a call three times, once in the middle of an event",
        "is resumed after the last whole event; the call is sent once and succeeds",
    );
    let call: Arc<Mutex<Option<Seen>>> = Arc::default();
    let resumes = AtomicUsize::new(0);
    let server = RemoteServer::start(move |seen, out| {
        if seen.method() == "tools/call" {
            *call.lock().unwrap() = Some(seen.clone());
            out.stream();
            out.raw("id: e1\nretry: 10\ndata:\n\n");
            return Some(Then::Close);
        }
        let last = seen.header("last-event-id")?.to_owned();
        out.stream();
        match (resumes.fetch_add(1, Ordering::SeqCst), last.as_str()) {
            (0, "e1") => out.raw(": nothing yet\n\n"),
            (1, "e1") => out.raw(
                "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\nid: e3\ndata: {\"half",
            ),
            (2, "e2") => {
                let answer = call
                    .lock()
                    .unwrap()
                    .take()
                    .unwrap()
                    .answer(r#"{"content":[],"n":1.0}"#);
                out.raw(&format!("id: e4\ndata: {answer}\n\n"));
            }
            other => panic!("{other:?}"),
        }
        Some(Then::Close)
    });
    let mut workbench = connect(&server);
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.raw, r#"{"content":[],"n":1.0}"#);
    assert_eq!(server.received("tools/call").len(), 1);
    fault.ends();
}

#[test]
fn a_stream_that_cannot_be_resumed_fails_the_call_after_a_few_tries() {
    let fault = Fault::within(
        15,
        "F44c",
        "breaks the stream of a call and refuses to resume it with 503 or 405",
        "five tries, or one; then connection_lost, unknown; the call is sent once",
    );
    for (head, expected) in [
        ("503 Service Unavailable", 5),
        ("405 Method Not Allowed", 1),
    ] {
        let server = RemoteServer::start(move |seen, out| {
            if seen.method() == "tools/call" {
                out.stream();
                out.raw("retry: 1\nid: e1\ndata:\n\n");
                return Some(Then::Close);
            }
            seen.header("last-event-id").map(|_| out.reply(head, ""))
        });
        let mut workbench = connect(&server);
        let result = workbench.use_tool("t", "{}");
        assert_eq!(
            result.failure()["code"],
            "connection_lost",
            "{}",
            result.raw
        );
        assert_eq!(result.failure()["outcome"], "unknown");
        assert_eq!(server.received("tools/call").len(), 1);
        let resumes = server
            .seen()
            .into_iter()
            .filter(|seen| seen.header("last-event-id").is_some());
        assert_eq!(resumes.count(), expected, "{head}");
    }
    fault.ends();
}

#[test]
fn a_changed_list_is_announced_on_the_server_stream() {
    let (announce, announced) = mpsc::channel::<()>();
    let announced = Mutex::new(announced);
    let lists = AtomicUsize::new(0);
    let server = RemoteServer::start(move |seen, out| {
        if seen.verb == "GET" {
            out.stream();
            let _ended = announced.lock().unwrap().recv();
            out.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            out.wait_closed();
            return Some(Then::Close);
        }
        (seen.method() == "tools/list").then(|| {
            let more = lists.fetch_add(1, Ordering::SeqCst) > 0;
            let list = if more {
                tools().replace("\"u\"", "\"new\"")
            } else {
                tools()
            };
            out.json(&seen.answer(&list))
        })
    });
    let mut workbench = connect(&server);
    server.wait_verb("GET");
    announce.send(()).unwrap();
    server.wait("tools/list", 2);
    assert_eq!(workbench.open("dev").tool_names(), ["t", "new"]);
}

#[test]
fn a_call_waits_until_the_server_stream_is_open() {
    let listening = AtomicBool::new(false);
    let server = RemoteServer::start(move |seen, out| {
        if seen.verb == "GET" {
            thread::park_timeout(std::time::Duration::from_millis(100));
            listening.store(true, Ordering::SeqCst);
            out.stream();
            out.wait_closed();
            return Some(Then::Close);
        }
        (seen.method() == "tools/call").then(|| {
            let listening = listening.load(Ordering::SeqCst);
            out.json(&seen.answer(&json!({"content": [], "listening": listening}).to_string()))
        })
    });
    let mut workbench = connect(&server);
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.raw, r#"{"content":[],"listening":true}"#);
}

#[test]
fn endless_comments_do_not_keep_a_call_alive() {
    let mut fault = Fault::within(
        5,
        "T35b",
        "sends comments on the stream of a call without end (callTimeoutMs 500)",
        "call_timeout",
    );
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| {
            out.stream();
            for _ in 0..2000 {
                out.raw(": still here\n\n");
                thread::park_timeout(std::time::Duration::from_millis(5));
            }
            Then::Close
        })
    });
    let mut workbench = server.setup(&json!({"callTimeoutMs": 500})).connect();
    workbench.open("dev");
    fault.begins();
    let result = workbench.use_tool("t", "{}");
    assert_eq!(result.failure()["code"], "call_timeout", "{}", result.raw);
    fault.ends();
}

#[test]
fn an_oversized_answer_fails_its_call_only() {
    let mut fault = Fault::within(
        15,
        "T35c",
        "answers with 20 MiB, as JSON and as one event",
        "frame_too_large, unknown; the next call succeeds",
    );
    let server = RemoteServer::start(|seen, out| {
        let stream = match seen.body.contains("\"t\"") {
            _ if seen.method() != "tools/call" => return None,
            true if seen.body.contains("stream") => true,
            true => false,
            false => return None,
        };
        if stream {
            out.stream();
            out.raw("data: ");
        } else {
            out.raw(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
            );
        }
        let part = "x".repeat(1024 * 1024);
        for _ in 0..20 {
            out.raw(&part);
        }
        Some(Then::Close)
    });
    let mut workbench = connect(&server);
    fault.begins();
    for arguments in ["{}", r#"{"stream":1}"#] {
        let result = workbench.use_tool("t", arguments);
        assert_eq!(
            result.failure()["code"],
            "frame_too_large",
            "{}",
            result.raw
        );
        assert_eq!(result.failure()["outcome"], "unknown");
        assert!(!workbench.use_tool("u", "{}").failed());
    }
    fault.ends();
}

#[test]
fn a_cancel_sends_a_notification_and_closes_the_stream() {
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| {
            out.stream();
            out.wait_closed();
            Then::Close
        })
    });
    let mut workbench = connect(&server);
    let call = workbench.send_use("t", "{}");
    let sent = server.wait("tools/call", 1);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{call}}}"#),
    );
    let cancelled = server.wait("notifications/cancelled", 1);
    assert_eq!(
        cancelled[0].message()["params"]["requestId"].to_string(),
        sent[0].id()
    );
}
