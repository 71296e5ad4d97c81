//! Streams of legacy clients in the store: they can be resumed after their replica has gone.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::{
    calls, reachable,
    team::{Part, redis, store_url},
};
use crate::harness::{
    HttpClient, Message, Served, TIMEOUT, initialize_params, poll, request_text, use_params,
};

fn replica(redis: &Part) -> Served {
    let setup = reachable().top("store", json!(store_url(redis)));
    setup.serve()
}

/// Begins a call that waits, and loses the connection. Returns the id of the last event.
fn interrupted(served: &Served, client: &HttpClient) -> String {
    let mut calling = client.begin("7", "tools/call", &use_params("wait", "{}"));
    assert!(calling.head().is_stream());
    let last = calling.event().expect("where to resume").id;
    poll(TIMEOUT, || (calls(served) == 1).then_some(())).expect("a call");
    last
}

/// Resumes a stream, and returns its last message.
fn resumed(client: &HttpClient, last: &str) -> Message {
    let events = client.listen(Some(last)).response().events();
    events.last().expect("an event").message()
}

fn kill(served: &mut Served) {
    served.workbench.signal(Signal::KILL);
    served.workbench.wait_exit();
}

#[test]
fn the_answer_of_a_replica_that_is_gone_is_in_the_store() {
    let Some(redis) = redis() else { return };
    let (mut one, other) = (replica(&redis), replica(&redis));
    let client = one.client_with(&initialize_params("2025-11-25"));
    let elsewhere = client.at(other.address);
    let last = interrupted(&one, &client);
    one.workbench.setup.write("gate", "");
    // The answer, and the end of the stream.
    poll(TIMEOUT, || (redis.size() == 2).then_some(())).expect("an answer");
    kill(&mut one);
    for _ in 0..2 {
        let answer = resumed(&elsewhere, &last);
        assert!(answer.answers("7"), "{}", answer.line);
        assert!(answer.line.contains(r#""waited":1"#), "{}", answer.line);
    }
    let mut stranger = other.client();
    assert_eq!(
        stranger.post(&request_text("1", "ping", "{}")).head.status,
        200
    );
    assert_eq!(calls(&other), 0, "nothing ran again");
}

#[test]
fn without_its_answer_in_the_store_the_outcome_is_unknown() {
    let Some(mut redis) = redis() else { return };
    let (mut one, other) = (replica(&redis), replica(&redis));
    let client = one.client_with(&initialize_params("2025-11-25"));
    let elsewhere = client.at(other.address);
    let last = interrupted(&one, &client);
    kill(&mut one);
    let unknown = |when: &str| {
        let answer = resumed(&elsewhere, &last);
        assert!(answer.answers("7"), "{when}: {}", answer.line);
        let error = &answer.result()["_meta"]["mcp-workbench/error"];
        let expected = json!({"code": "replica_gone", "outcome": "unknown"});
        assert_eq!(*error, expected, "{when}");
    };
    unknown("the call had not ended");
    redis.stop();
    unknown("the store is away");
}
