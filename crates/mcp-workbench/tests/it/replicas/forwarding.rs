//! Requests that belong to another replica: they are forwarded to it, and if it is gone, the outcome is unknown.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{alone, calls, reachable};
use crate::harness::{
    HttpConnection, InputRequired, Message, ModernClient, ModernRequest, Served, Setup, TOKEN,
    use_params,
};

const OTHER_TOKEN: &str = "another-token-of-the-tests";
const ELICITATION: &str = r#"{"elicitation":{}}"#;

fn calling() -> ModernRequest {
    ModernRequest::use_tool("ask", "{}").capabilities(ELICITATION)
}

/// Asks at a replica. Returns the request with the answer to its question.
fn answered(served: &mut Served) -> ModernRequest {
    let asked = served.ask_modern(&calling());
    let asked = InputRequired::of(&asked);
    let responses = asked.responses(|_, _| r#"{"action":"decline"}"#.to_owned());
    calling().retry(&asked, &responses)
}

fn error(answer: &Message) -> Value {
    answer.result()["_meta"]["mcp-workbench/error"].clone()
}

fn unknown() -> Value {
    json!({"code": "replica_gone", "outcome": "unknown"})
}

#[test]
fn an_answer_reaches_the_call_that_another_replica_has_parked() {
    let (mut one, mut other) = (reachable().serve(), reachable().serve());
    let retry = answered(&mut one);
    let done = other.ask_modern(&retry);
    assert!(done.line.contains(r#""action":"decline""#), "{}", done.line);
    assert_eq!(
        (calls(&one), calls(&other)),
        (1, 0),
        "the call was made once"
    );
    // The handle was good once, wherever it comes.
    let again = other.ask_modern(&retry);
    assert!(again.line.contains("already used"), "{}", again.line);
}

#[test]
fn a_parked_call_that_cannot_be_reached_has_an_unknown_outcome() {
    let mut killed = reachable().serve();
    let (mut one, mut other) = (alone().serve(), reachable().serve());
    let retry = answered(&mut one);
    assert_eq!(error(&other.ask_modern(&retry)), unknown(), "no address");
    let retry = answered(&mut killed);
    killed.workbench.signal(Signal::KILL);
    killed.workbench.wait_exit();
    assert_eq!(error(&other.ask_modern(&retry)), unknown(), "it is gone");
    assert_eq!(calls(&other), 0);
}

#[test]
fn a_forwarded_request_is_its_senders_and_nobody_can_forge_one() {
    let with_tokens = |setup: Setup| {
        let file = setup.write("tokens", &format!("{TOKEN}\n{OTHER_TOKEN}\n"));
        let file = file.to_str().unwrap().to_owned();
        setup.serve_with(&["--token-file", &file])
    };
    let (mut one, other) = (with_tokens(reachable()), with_tokens(reachable()));
    let retry = answered(&mut one);
    let post = other.modern_post("7", &retry);
    let stranger = format!("Bearer {OTHER_TOKEN}");
    let refused = other
        .connection()
        .ask(&post.clone().with("authorization", &stranger));
    assert!(
        refused.body.contains("unknown, already used or expired"),
        "{}",
        refused.body
    );
    for forged in ["", "x", TOKEN] {
        let request = one.modern_post("8", &retry).without("authorization");
        let request = request.with("mcp-workbench-forwarded", forged);
        assert_eq!(
            one.connection().ask(&request).head.status,
            401,
            "{forged:?}"
        );
    }
    let done = other.connection().ask(&post);
    assert!(done.body.contains(r#""action":"decline""#), "{}", done.body);
}

/// Reads the next message of a stream, and the id of its event.
fn next(stream: &mut HttpConnection) -> (String, Message) {
    loop {
        let event = stream.event().expect("a message");
        // The first event only says where to resume.
        if !event.data.is_empty() {
            return (event.id.clone(), event.message());
        }
    }
}

/// Reads the question of a call.
fn question(calling: &mut HttpConnection) -> (String, Message) {
    assert!(calling.head().is_stream());
    next(calling)
}

fn client_params() -> String {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    })
    .to_string()
}

fn declined(question: &Message) -> String {
    let id = question.id().unwrap();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#)
}

#[test]
fn in_a_session_answers_and_streams_find_their_replica() {
    let (one, other) = (reachable().serve(), reachable().serve());
    let client = one.client_with(&client_params());
    let mut elsewhere = client.at(other.address);
    let mut calling = client.begin("7", "tools/call", &use_params("ask", "{}"));
    let (last, asked) = question(&mut calling);
    drop(calling);
    let mut resumed = elsewhere.listen(Some(&last));
    assert!(resumed.head().is_stream());
    assert_eq!(elsewhere.post(&declined(&asked)).head.status, 202);
    let (_, answer) = next(&mut resumed);
    assert!(answer.answers("7"), "{}", answer.line);
    assert!(
        answer.line.contains(r#""action":"decline""#),
        "{}",
        answer.line
    );
    assert_eq!((calls(&one), calls(&other)), (1, 0));
}

#[test]
fn a_stream_of_a_replica_that_is_gone_ends_with_an_unknown_outcome() {
    let (mut one, other) = (reachable().serve(), reachable().serve());
    let client = one.client_with(&client_params());
    let elsewhere = client.at(other.address);
    let mut calling = client.begin("7", "tools/call", &use_params("ask", "{}"));
    let (last, _) = question(&mut calling);
    let mut resumed = elsewhere.listen(Some(&last));
    assert!(resumed.head().is_stream());
    one.workbench.signal(Signal::KILL);
    one.workbench.wait_exit();
    // One was being forwarded, and one comes too late for that.
    let late = elsewhere.listen(Some(&last)).response().events();
    let late = late.last().unwrap().message();
    for answer in [next(&mut resumed).1, late] {
        assert!(answer.answers("7"), "{}", answer.line);
        assert_eq!(error(&answer), unknown());
    }
}

#[test]
fn no_replica_takes_the_event_of_another_for_its_own() {
    let (one, other) = (alone().serve(), alone().serve());
    let client = one.client_with(&client_params());
    let mut elsewhere = client.at(other.address);
    elsewhere.open();
    let mut calling = client.begin("7", "tools/call", &use_params("ask", "{}"));
    let (last, _) = question(&mut calling);
    let (_, number) = last.rsplit_once('.').unwrap();
    for forged in [number, &format!("x.{number}"), &format!(".{number}")] {
        assert_eq!(
            elsewhere.listen(Some(forged)).head().status,
            400,
            "{forged}"
        );
    }
}
