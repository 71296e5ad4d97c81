//! Progress goes to the client under its own token; a cancel goes to the server under its own id.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Message, Script, Setup, TIMEOUT, Workbench, poll};

const PROGRESS: &str = "notifications/progress";
const CANCELLED: &str = "notifications/cancelled";

fn opened(script: &Script) -> Workbench {
    let mut workbench = Setup::one(script).connect();
    workbench.open("dev");
    workbench
}

/// Sends a `use_tool` with a raw `_meta`.
fn send_with_meta(workbench: &mut Workbench, tool: &str, meta: &str) -> String {
    let arguments = format!(r#"{{"tool":{{"toolbox":"dev","server":"fs","tool":"{tool}"}}}}"#);
    let params = format!(r#"{{"name":"use_tool","arguments":{arguments},"_meta":{meta}}}"#);
    workbench.request("tools/call", &params)
}

/// A tool that reports progress 1 to `steps`, answers, and reports once more.
fn stepping(steps: u32) -> Script {
    let reports: Vec<String> = (1..=steps)
        .map(|n| {
            format!(r#"{{"progress":{{"progress":{n},"total":{steps},"message":"step {n}"}}}}"#)
        })
        .collect();
    let actions = format!(
        r#"[{},{{"answer":{{"content":[]}}}},{{"progress":{{"progress":999}}}}]"#,
        reports.join(",")
    );
    Script::named(&["work", "pid"]).on_call("work", &actions)
}

#[test]
fn progress_is_in_order_with_the_token_of_the_client_and_before_the_answer() {
    let tokens = [r#""a token/ü""#, "42", "0", r#""7""#, "-3"];
    let mut workbench = opened(&stepping(20));
    for token in tokens {
        let meta = format!(r#"{{"progressToken":{token}}}"#);
        let id = send_with_meta(&mut workbench, "work", &meta);
        let mut reports = Vec::new();
        loop {
            let message = workbench.next_message();
            if message.answers(&id) {
                break;
            }
            assert_eq!(
                message.method.as_deref(),
                Some(PROGRESS),
                "{}",
                message.line
            );
            reports.push(message.params());
        }
        let token: Value = serde_json::from_str(token).unwrap();
        let expected: Vec<Value> = (1..=20)
            .map(|n| {
                json!({"progressToken": token, "progress": n, "total": 20, "message": format!("step {n}")})
            })
            .collect();
        assert_eq!(reports, expected);
        // Another call of the same server comes after the late report.
        let after = workbench.send_use("pid", "{}");
        assert!(
            workbench.next_message().answers(&after),
            "nothing came between"
        );
    }
}

#[test]
fn without_a_token_there_is_no_progress() {
    let mut workbench = opened(&stepping(3));
    for meta in ["{}", r#"{"other":1}"#] {
        let id = send_with_meta(&mut workbench, "work", meta);
        assert!(workbench.next_message().answers(&id));
    }
}

#[test]
fn progress_tokens_of_two_calls_are_separate() {
    let mut workbench = opened(&stepping(5));
    let first = send_with_meta(&mut workbench, "work", r#"{"progressToken":"one"}"#);
    let second = send_with_meta(&mut workbench, "work", r#"{"progressToken":"two"}"#);
    workbench.response(&first);
    workbench.response(&second);
    for token in ["one", "two"] {
        let reports: Vec<Value> = workbench
            .untaken()
            .iter()
            .map(Message::params)
            .filter(|params| params["progressToken"] == token)
            .map(|params| params["progress"].clone())
            .collect();
        assert_eq!(reports, [1, 2, 3, 4, 5].map(Value::from), "{token}");
    }
}

#[test]
fn a_cancel_reaches_the_server_with_its_id_and_is_not_answered() {
    // The server answers all the same, too late.
    let script = Script::named(&["stubborn", "pid"])
        .on_call("stubborn", r#"["awaitCancel",{"answer":{"content":[]}}]"#);
    let mut workbench = opened(&script);
    let ids = ["\"a string\"", "4711"];
    for (n, id) in ids.into_iter().enumerate() {
        let params = r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"stubborn"}}}"#;
        workbench.send_request(id, "tools/call", params);
        let journal = workbench.journal("dev", "fs");
        let call = poll(TIMEOUT, || {
            journal.received("tools/call").into_iter().nth(n * 2)
        });
        let call = call.expect("the call reaches the server");
        workbench.notify(
            CANCELLED,
            &format!(r#"{{"requestId":{id},"reason":"enough"}}"#),
        );
        let cancelled = journal.wait("cancelled", n + 1);
        assert_eq!(Some(cancelled[n].as_str()), call.id());
        // Whatever the server said to the first call, its next answer comes after it.
        let after = workbench.send_use("pid", "{}");
        assert!(
            workbench.next_message().answers(&after),
            "the call is not answered"
        );
    }
    let finished = workbench.finish();
    assert_eq!(finished.stdout, Vec::<String>::new());
}

#[test]
fn a_cancel_of_an_unknown_request_is_ignored() {
    let rows = [
        r#"{"requestId":12345}"#,
        r#"{"requestId":"never"}"#,
        r#"{"requestId":null}"#,
        r#"{"reason":"no id"}"#,
        "{}",
        "[]",
    ];
    let mut workbench = opened(&Script::new());
    for params in rows {
        workbench.notify(CANCELLED, params);
        let id = workbench.request("ping", "{}");
        assert!(workbench.next_message().answers(&id), "after {params}");
    }
    // A call that has been answered cannot be cancelled any more.
    let id = workbench.send_use("pid", "{}");
    workbench.response(&id);
    workbench.notify(CANCELLED, &format!(r#"{{"requestId":{id}}}"#));
    assert!(!workbench.use_tool("pid", "{}").failed());
    assert_eq!(
        workbench.journal("dev", "fs").events("cancelled"),
        Vec::<String>::new()
    );
}

#[test]
fn string_and_number_ids_are_different() {
    let mut workbench = opened(&Script::new());
    let params = r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"sleep"},"arguments":{"ms":300}}}"#;
    workbench.send_request("\"77\"", "tools/call", params);
    workbench.notify(CANCELLED, r#"{"requestId":77}"#);
    assert!(!workbench.tool_result("\"77\"").failed());
}
