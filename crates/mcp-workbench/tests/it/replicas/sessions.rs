//! Sessions travel inside their ids.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::{KEY, alone};
use crate::harness::{
    HttpClient, Served, Setup, TOKEN, initialize_params, request_text, use_params,
};

const OTHER_TOKEN: &str = "another-token-of-the-tests";

fn ping(client: &mut HttpClient) -> u16 {
    client.post(&request_text("1", "ping", "{}")).head.status
}

/// A replica with two tokens.
fn with_tokens(setup: Setup) -> Served {
    let file = setup.write("tokens", &format!("{OTHER_TOKEN}\n{TOKEN}\n"));
    let file = file.to_str().unwrap().to_owned();
    setup.serve_with(&["--token-file", &file])
}

#[test]
fn a_session_continues_on_replicas_with_its_key_and_its_token() {
    let served = alone().serve();
    let client = served.client();
    let rotated = alone()
        .env("NEW_KEY", "another key of the replicas, long enough")
        .top(
            "seal",
            json!({"key": "${NEW_KEY}", "previousKey": "${SEAL_KEY}"}),
        );
    let another_key = alone().env("SEAL_KEY", &KEY.replace('0', "1"));
    let rows = [
        ("the same key", alone().serve(), TOKEN, 200),
        ("with other tokens", with_tokens(alone()), TOKEN, 200),
        ("a new key", rotated.serve(), TOKEN, 200),
        ("another principal", with_tokens(alone()), OTHER_TOKEN, 404),
        ("another key", another_key.serve(), TOKEN, 404),
        ("no key", Setup::new().serve(), TOKEN, 404),
    ];
    for (what, replica, token, status) in rows {
        let mut client = client.at(replica.address).with_token(token);
        assert_eq!(ping(&mut client), status, "{what}");
    }
}

#[test]
fn a_continued_session_has_the_revision_and_the_capabilities_of_its_client() {
    let (one, other) = (alone().serve(), alone().serve());
    let params = json!({
        "protocolVersion": "2025-03-26",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    let mut client = one.client_with(&params.to_string()).at(other.address);
    // Only this revision has batches.
    let batch = format!("[{}]", request_text("5", "ping", "{}"));
    assert_eq!(
        client.post(&batch).body.trim(),
        r#"[{"jsonrpc":"2.0","id":5,"result":{}}]"#
    );
    let asking = use_params("ask", "{}");
    let mut calling = client.begin("6", "tools/call", &asking);
    assert!(calling.head().is_stream());
    let question = calling.message();
    assert_eq!(question.method.as_deref(), Some("elicitation/create"));
    let id = question.id().unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#);
    assert_eq!(client.post(&answer).head.status, 202);
    assert!(calling.message().line.contains(r#""action":"decline""#));
}

#[test]
fn a_session_outlives_its_process_and_ends_where_it_is_deleted() {
    let mut served = alone().serve();
    let client = served.client();
    served.workbench.signal(Signal::KILL);
    served.workbench.wait_exit();
    let next = alone().serve();
    let mut client = client.at(next.address);
    assert_eq!(ping(&mut client), 200);
    let deleted = next.connection().ask(&client.bare("DELETE"));
    assert_eq!(deleted.head.status, 204);
    assert_eq!(ping(&mut client), 404);
}

#[test]
fn a_toolbox_is_open_on_every_replica() {
    let (one, other) = (alone().serve(), alone().serve());
    let mut client = one.client();
    client.open();
    let used = client.at(other.address).use_tool("plain", "{}");
    assert!(used.raw.contains(r#""plain":1"#), "{}", used.raw);
}

#[test]
fn a_client_that_declares_too_much_stays_on_its_replica() {
    let (one, other) = (alone().serve(), alone().serve());
    let params = initialize_params("2025-11-25");
    let large = format!(
        r#""capabilities":{{"experimental":{{"x":{{"y":"{}"}}}}"#,
        "y".repeat(5000)
    );
    let params = params.replacen(r#""capabilities":{"#, &large, 1);
    let mut client = one.client_with(&params);
    assert_eq!(ping(&mut client), 200);
    assert_eq!(ping(&mut client.at(other.address)), 404);
}
