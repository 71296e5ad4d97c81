//! Streams: what belongs to a request travels with it, connections may break and streams go on.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{
    Fault, HttpConnection, Script, Setup, TIMEOUT, initialize_params, poll, request_text,
    use_params,
};

/// A tool that reports progress, waits for a file, reports again and answers.
fn stepping(setup: &Setup) -> Script {
    let actions = json!([
        {"progress": {"progress": 1}},
        {"awaitFile": setup.path("gate")},
        {"progress": {"progress": 2}},
        {"answer": {"content": [], "done": true}},
    ]);
    Script::named(&["work"]).on_call("work", &actions.to_string())
}

fn with_steps() -> Setup {
    let setup = Setup::new();
    let script = stepping(&setup);
    setup.toolbox("dev", "d").server("fs", &script)
}

const WITH_TOKEN: &str = r#"{"progressToken":"t"}"#;

#[test]
fn progress_uses_the_stream_of_its_request_and_the_answer_ends_it() {
    let served = with_steps().serve();
    let (mut client, mut other) = (served.client(), served.client());
    client.open();
    let mut listening = client.listen(None);
    assert!(listening.head().is_stream());
    let mut stream = client.begin("5", "tools/call", &use_params("work", WITH_TOKEN));
    let head = stream.head();
    assert!(head.is_stream());
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let priming = stream.event().unwrap();
    assert_eq!((priming.data.as_str(), priming.retry.is_some()), ("", true));
    let first = stream.event().unwrap();
    assert_eq!(
        first.message().params(),
        json!({"progressToken": "t", "progress": 1})
    );
    served.workbench.setup.write("gate", "");
    assert_eq!(stream.message().params()["progress"], 2);
    let answer = stream.event().unwrap();
    assert_eq!(
        answer.message().line,
        r#"{"jsonrpc":"2.0","id":5,"result":{"content":[],"done":true}}"#
    );
    assert_eq!(stream.event(), None, "the answer ends the stream");
    let ids = [&priming.id, &first.id, &answer.id];
    assert_eq!(
        ids.iter().collect::<std::collections::HashSet<_>>().len(),
        3
    );
    assert_eq!(other.ask("ping", "{}").raw_result(), "{}");
    let own = listening.event().unwrap();
    assert_eq!(own.data, "", "only where to resume");
    assert!(!ids.contains(&&own.id), "ids are unique in the session");
}

#[test]
fn a_question_uses_the_stream_and_its_answer_is_posted() {
    let fault = Fault::within(
        10,
        "T30b",
        "a client answers the question that a server asked another client",
        "it is nobody's answer; the server gets the one of the client that was asked",
    );
    let ask = r#"[{"request":{"method":"elicitation/create","params":{"message":"who?"}}},
        {"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"told\":$REPLY}}"}]"#;
    let served = Setup::one(&Script::named(&["ask"]).on_call("ask", ask)).serve();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    let mut client = served.client_with(&params.to_string());
    client.open();
    let mut other = served.client_with(&params.to_string());
    let mut stream = client.begin("5", "tools/call", &use_params("ask", "{}"));
    assert!(stream.head().is_stream());
    stream.event();
    let question = stream.message();
    assert_eq!(question.method.as_deref(), Some("elicitation/create"));
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"n":1e400}}}}}}"#,
        question.id().unwrap()
    );
    assert_eq!(
        other.post(&reply).head.status,
        202,
        "another's answer is nobody's"
    );
    assert_eq!(client.post(&reply).head.status, 202);
    let answer = stream.message();
    assert!(
        answer.line.contains(r#""content":{"n":1e400}"#),
        "{}",
        answer.line
    );
    assert_eq!(stream.event(), None);
    fault.ends();
}

#[test]
fn an_ambiguous_question_is_sent_to_no_client() {
    let fault = Fault::within(
        10,
        "T30c",
        "a server asks a question that may belong to the call of either of two clients",
        "the server is refused; neither client is asked",
    );
    let ask = r#"[{"request":{"method":"elicitation/create","params":{"message":"who?"}}},
        {"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"told\":$REPLY}}"}]"#;
    let served = Setup::one(&Script::named(&["ask", "hang"]).on_call("ask", ask)).serve();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    let [mut client, mut other] = [(); 2].map(|()| served.client_with(&params.to_string()));
    client.open();
    let mut hanging = other.begin("5", "tools/call", &use_params("hang", "{}"));
    let journal = served.workbench.journal("dev", "fs");
    poll(TIMEOUT, || (!journal.called().is_empty()).then_some(())).unwrap();
    let response = client
        .begin("5", "tools/call", &use_params("ask", "{}"))
        .response();
    let words = "this question could belong to several clients, and none of them was asked";
    assert!(response.body.contains(words), "{}", response.body);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(other.post(cancel).head.status, 202);
    for body in [response.body, hanging.response().body] {
        assert!(!body.contains(r#""method":"elicitation/create""#), "{body}");
    }
    fault.ends();
}

#[test]
fn a_broken_stream_is_resumed_and_a_disconnect_does_not_cancel() {
    let fault = Fault::within(
        10,
        "F53",
        "the client disconnects in the middle of a call",
        "the call goes on and is not cancelled; its stream is resumed without loss",
    );
    let served = with_steps().serve();
    let mut client = served.client();
    client.open();
    let mut stream = client.begin("5", "tools/call", &use_params("work", WITH_TOKEN));
    assert!(stream.head().is_stream());
    let priming = stream.event().unwrap();
    let first = stream.event().unwrap();
    drop(stream);
    let mut resumed = client.listen(Some(&first.id));
    assert!(resumed.head().is_stream());
    served.workbench.setup.write("gate", "");
    let rest: Vec<_> = std::iter::from_fn(|| resumed.event()).collect();
    let rest: Vec<_> = rest.iter().filter(|event| !event.data.is_empty()).collect();
    assert_eq!(rest.len(), 2);
    assert_eq!(rest[0].message().params()["progress"], 2);
    assert!(rest[1].message().answers("5"));
    // From the beginning, once more; and from its end there is nothing left.
    let again = client.listen(Some(&priming.id)).response();
    let again: Vec<_> = again
        .events()
        .into_iter()
        .filter(|it| !it.data.is_empty())
        .collect();
    assert_eq!(again.len(), 3);
    assert_eq!(&again[0], &first);
    assert_eq!(client.listen(Some(&rest[1].id)).head().status, 204);
    let journal = served.workbench.journal("dev", "fs");
    assert!(journal.received("notifications/cancelled").is_empty());
    fault.ends();
}

#[test]
fn a_silent_request_becomes_a_stream_that_can_be_resumed() {
    let setup = Setup::new();
    let wait = json!([{"awaitFile": setup.path("gate")}, {"answer": {"content": []}}]);
    let script = Script::named(&["wait"]).on_call("wait", &wait.to_string());
    let served = setup.toolbox("dev", "d").server("fs", &script).serve();
    let mut client = served.client();
    client.open();
    let mut stream = client.begin("5", "tools/call", &use_params("wait", "{}"));
    assert!(stream.head().is_stream());
    let priming = stream.event().unwrap();
    drop(stream);
    served.workbench.setup.write("gate", "");
    let mut resumed = client.listen(Some(&priming.id));
    resumed.head();
    resumed.event();
    assert!(resumed.message().answers("5"));
    // A client of an older revision gets nothing that it would take for a message.
    let mut old = served.client_with(&initialize_params("2025-06-18"));
    assert!(old.open().json()["servers_connected"] == 1);
    let mut listening = old.listen(None);
    assert!(listening.head().is_stream());
}

#[test]
fn only_streams_of_the_session_can_be_resumed() {
    let fault = Fault::within(
        10,
        "T26d",
        "a client resumes the stream of another session by its event id",
        "400",
    );
    let served = with_steps().serve();
    let (mut client, other) = (served.client(), served.client());
    client.open();
    let mut stream = client.begin("5", "tools/call", &use_params("work", WITH_TOKEN));
    stream.head();
    let priming = stream.event().unwrap();
    for unknown in ["", "x", "99-1", "1", "1-x", "-1"] {
        assert_eq!(
            client.listen(Some(unknown)).head().status,
            400,
            "{unknown:?}"
        );
    }
    assert_eq!(
        other.listen(Some(&priming.id)).head().status,
        400,
        "another's"
    );
    fault.ends();
}

#[test]
fn changes_are_sent_on_the_stream_of_every_session() {
    let setup = Setup::one(&Script::named(&["a"])).top("toolMode", json!("dynamic"));
    let served = setup.serve();
    let mut first = served.client();
    let second = served.client();
    let mut listening = first.listen(None);
    assert!(listening.head().is_stream());
    assert_eq!(listening.event().unwrap().data, "");
    first.open();
    let changed = "notifications/tools/list_changed";
    assert_eq!(listening.message().method.as_deref(), Some(changed));
    // What was said before the client listens waits for it, and comes once.
    let mut late = second.listen(None);
    late.head();
    let priming = late.event().unwrap();
    let told = late.event().unwrap();
    assert_eq!(told.message().method.as_deref(), Some(changed));
    drop(late);
    let mut again = second.listen(Some(&priming.id));
    again.head();
    again.event();
    assert_eq!(again.event().unwrap(), told);
}

#[test]
fn a_new_stream_replaces_the_old_one() {
    let served = Setup::new().serve();
    let client = served.client();
    let mut old = client.listen(None);
    old.head();
    old.event();
    let mut new = client.listen(None);
    assert_eq!(new.head().status, 200);
    assert_eq!(old.event(), None);
}

#[test]
fn a_cancelled_request_ends_without_an_answer() {
    let served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    client.open();
    let mut hanging: HttpConnection = client.begin("5", "tools/call", &use_params("hang", "{}"));
    let journal = served.workbench.journal("dev", "fs");
    poll(TIMEOUT, || (!journal.called().is_empty()).then_some(())).unwrap();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(client.post(cancel).head.status, 202);
    let response = hanging.response();
    assert!(!response.body.contains("result"), "{}", response.body);
    assert_eq!(
        client.post(&request_text("6", "ping", "{}")).head.status,
        200
    );
}
