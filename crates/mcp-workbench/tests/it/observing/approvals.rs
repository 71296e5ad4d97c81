//! A call that waits is decided by whoever answers first: its client, in both eras, or the page.

use std::{sync::Barrier, thread};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{act, cookie, document, page_document, served};
use crate::harness::{
    HttpClient, HttpConnection, InputRequired, Message, ModernClient, ModernRequest, Script,
    Served, Setup, TIMEOUT, poll, use_arguments,
};

const ASKABLE: &str = r#"{"elicitation":{"form":{}}}"#;
/// How often two answers are given at once.
const RACES: usize = 12;

/// Waits until a call waits for a decision; returns its number.
fn waiting(served: &Served) -> Value {
    let found = poll(TIMEOUT, || {
        let document = document(served, &["live", "approvals", "--json"]);
        let first = document["approvals"].as_array().unwrap().first().cloned();
        first.map(|it| it["id"].clone())
    });
    found.expect("a call that waits")
}

fn accept() -> Value {
    json!({"action": "accept", "content": {"decision": "once"}})
}

fn decline() -> Value {
    json!({"action": "decline"})
}

/// Returns the outcome of a call in words.
fn outcome(text: &str) -> &'static str {
    if text.contains("gone") {
        "ran"
    } else {
        assert!(text.contains("permission_refused"), "{text}");
        "refused"
    }
}

fn legacy_client(served: &Served) -> HttpClient {
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"asker","version":"1"}}"#;
    let mut client = served.client_with(params);
    client.open();
    client
}

/// Begins a call of a legacy client; returns it with the id of the question.
fn begin_legacy(client: &HttpClient) -> (HttpConnection, String) {
    let arguments = use_arguments(["dev", "fs", "wipe"], Some("{}"));
    let params = format!(r#"{{"name":"use_tool","arguments":{arguments}}}"#);
    let mut call = client.begin("7", "tools/call", &params);
    call.head();
    // The first event has no data; it says where to resume.
    call.event();
    let question = call.message();
    let id = question.id().expect("a question has an id").to_owned();
    (call, id)
}

fn answer_text(id: &str, answer: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{answer}}}"#)
}

fn modern_call() -> ModernRequest {
    ModernRequest::use_tool("wipe", "{}").capabilities(ASKABLE)
}

/// Opens the toolbox for all clients, which have no sessions in this era.
fn open_modern(served: &mut Served) {
    let opened = served.call_modern(&ModernRequest::open("dev").capabilities(ASKABLE));
    assert!(!opened.failed(), "{}", opened.raw);
}

fn modern_answer(asked: &InputRequired, answer: &Value) -> ModernRequest {
    modern_call().retry(asked, &asked.responses(|_, _| answer.to_string()))
}

#[test]
fn the_first_answer_counts_in_both_eras() {
    // The decision on the page, the later answer of the client, and what happens.
    for (decision, late, expected) in [("once", decline(), "ran"), ("deny", accept(), "refused")] {
        let mut served = served();
        let cookie = cookie(&served);
        let decide = |served: &Served| {
            let id = waiting(served);
            act(
                served,
                &cookie,
                "approvals",
                &json!({"id": id, "decision": decision}),
            )
            .0
        };

        let mut client = legacy_client(&served);
        let (mut call, question) = begin_legacy(&client);
        assert_eq!(decide(&served), 200);
        assert_eq!(outcome(&last_message(&mut call).line), expected, "legacy");
        client.post(&answer_text(&question, &late));

        let asked = served.ask_for_questions(&modern_call());
        assert_eq!(decide(&served), 200);
        let result = served.ask_modern(&modern_answer(&asked, &late));
        assert_eq!(outcome(&result.line), expected, "modern");
    }
}

#[test]
fn the_answer_of_a_modern_client_leaves_nothing_to_decide() {
    let mut served = served();
    open_modern(&mut served);
    let cookie = cookie(&served);
    let asked = served.ask_for_questions(&modern_call());
    let id = waiting(&served);
    let result = served.ask_modern(&modern_answer(&asked, &accept()));
    assert_eq!(outcome(&result.line), "ran");
    let late = json!({"id": id, "decision": "deny"});
    let (status, document) = act(&served, &cookie, "approvals", &late);
    assert_eq!(status, 409);
    let error = "it was decided already, or its client has gone";
    assert_eq!(document["error"], error);
}

#[test]
fn the_name_of_a_waiting_tool_hides_nothing() {
    let name = "wi\u{AD}pe";
    let rules = json!({"permissions": {"ask": ["*"]}});
    let setup = Setup::new().toolbox("dev", "d");
    let setup = setup.server_with("fs", &Script::named(&[name]), &rules);
    let mut served = setup.serve();
    open_modern(&mut served);
    served.ask_for_questions(&ModernRequest::use_tool(name, "{}").capabilities(ASKABLE));
    waiting(&served);
    let document = page_document(&served, &cookie(&served), "approvals");
    assert_eq!(document["approvals"][0]["tool"], "wi⟦U+00AD⟧pe");
}

#[test]
fn of_two_answers_at_once_exactly_one_counts() {
    let served = served();
    let cookie = cookie(&served);
    let mut client = legacy_client(&served);
    for _ in 0..RACES {
        let (mut call, question) = begin_legacy(&client);
        let decision = json!({"id": waiting(&served), "decision": "deny"});
        let start = Barrier::new(2);
        let status = thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                client.post(&answer_text(&question, &accept()));
            });
            start.wait();
            act(&served, &cookie, "approvals", &decision).0
        });
        // The page learns that it decided if, and only if, the call was refused.
        let expected = if status == 200 { "refused" } else { "ran" };
        assert_eq!(outcome(&last_message(&mut call).line), expected, "{status}");
    }
}

/// Returns the answer of a call, after everything else on its stream.
fn last_message(call: &mut HttpConnection) -> Message {
    loop {
        let message = call.message();
        if message.answers("7") {
            return message;
        }
    }
}
