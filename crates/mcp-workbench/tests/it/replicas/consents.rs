//! Consents in the store: what a user has permitted on one replica is permitted on all.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    KEY,
    team::{Part, redis, store_url},
};
use crate::harness::{
    HttpClient, InputRequired, ModernClient, ModernRequest, Script, Served, Setup, TIMEOUT, asks,
    poll, use_params,
};

const ONCE: &str = r#"{"action":"accept","content":{"decision":"once"}}"#;
const SESSION: &str = r#"{"action":"accept","content":{"decision":"for this session"}}"#;
const FORMS: &str = r#"{"elicitation":{}}"#;

fn replica(redis: &Part, script: &Script) -> Served {
    let toolbox = Setup::new().toolbox("dev", "d");
    let asking = json!({"permissions": {"ask": ["wipe"]}});
    toolbox
        .server_with("fs", script, &asking)
        .env("SEAL_KEY", KEY)
        .top("seal", json!({"key": "${SEAL_KEY}"}))
        .top("replicaAddress", json!("http://127.0.0.1:0"))
        .top("store", json!(store_url(redis)))
        .serve()
}

fn wiping() -> Script {
    let answer = r#"{"content":[{"type":"text","text":"done"}]}"#;
    Script::named(&["wipe"]).answers("wipe", answer)
}

fn calling() -> ModernRequest {
    ModernRequest::use_tool("wipe", "{}").capabilities(FORMS)
}

fn client(served: &Served) -> HttpClient {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    let mut client = served.client_with(&params.to_string());
    client.open();
    client
}

/// Calls the tool in a session, which asks, and answers for the session.
fn permit(client: &mut HttpClient) {
    let mut stream = client.begin("5", "tools/call", &use_params("wipe", "{}"));
    assert!(stream.head().is_stream());
    stream.event();
    let question = stream.message();
    assert_eq!(question.method.as_deref(), Some("elicitation/create"));
    let id = question.id().unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{SESSION}}}"#);
    client.post(&answer);
    assert!(stream.message().line.contains("done"));
}

#[test]
fn a_consent_for_the_session_is_valid_on_every_replica() {
    let Some(redis) = redis() else { return };
    let (one, other) = (replica(&redis, &wiping()), replica(&redis, &wiping()));
    let mut user = client(&one);
    permit(&mut user);
    let mut elsewhere = user.at(other.address);
    assert!(!elsewhere.use_tool("wipe", "{}").failed());
    // Another session of the same token is asked.
    permit(&mut client(&other));
}

#[test]
fn a_consent_of_a_modern_client_is_valid_on_every_replica() {
    let Some(mut redis) = redis() else { return };
    let mut replicas = [(); 3].map(|()| replica(&redis, &wiping()));
    let decide = |_: &str, _: &Value| SESSION.to_owned();
    let done = replicas[0].answer_all(&calling(), decide);
    assert!(done.line.contains("done"), "{}", done.line);
    assert!(!replicas[1].call_modern(&calling()).failed());
    redis.stop();
    assert!(
        !replicas[1].call_modern(&calling()).failed(),
        "it is known here by now"
    );
    let asked = replicas[2].ask_modern(&calling());
    assert!(asks(&asked), "without the store: {}", asked.line);
}

#[test]
fn a_permitted_call_may_be_repeated_on_another_replica_once() {
    let Some(redis) = redis() else { return };
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s1"}]}}]"#;
    let script = Script::named(&["wipe"])
        .set("era", r#""modern""#)
        .on_call("wipe", rounds);
    let (mut one, mut other) = (replica(&redis, &script), replica(&redis, &script));
    let permission = InputRequired::of(&one.ask_modern(&calling()));
    let permitted = calling().retry(&permission, &permission.responses(|_, _| ONCE.to_owned()));
    let question = InputRequired::of(&one.ask_modern(&permitted));
    poll(TIMEOUT, || (redis.size() > 0).then_some(())).expect("a shared consent");
    let repeated = calling().retry(&question, &question.responses(|_, _| ONCE.to_owned()));
    let done = other.ask_modern(&repeated);
    // The server of that replica is another process, which has not asked.
    assert!(done.line.contains("Unknown requestState"), "{}", done.line);
    for replica in [&mut one, &mut other] {
        let again = replica.ask_modern(&repeated);
        assert!(asks(&again), "{}", again.line);
    }
}
