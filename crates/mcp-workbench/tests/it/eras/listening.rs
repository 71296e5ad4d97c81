//! `subscriptions/listen`: the accepted filters, the notifications, and the subscriptions at servers.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{modern, natively, silent, telling};
use crate::harness::{
    Message, ModernClient, ModernRequest, Script, Setup, TIMEOUT, Workbench, poll,
};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UPDATED: &str = "notifications/resources/updated";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A client of a workbench that shows one server, or two.
fn connect(servers: &[(&str, Script)]) -> Workbench {
    let setup = natively(Setup::new().toolbox("dev", "d"));
    let setup = servers
        .iter()
        .fold(setup, |setup, (name, script)| setup.server(name, script));
    let mut workbench = setup.start();
    workbench.initialize();
    workbench
}

/// Begins to listen, and gives what was accepted.
fn listen(workbench: &mut Workbench, id: &str, filter: &Value) -> Value {
    let params = modern(json!({"notifications": filter}), &json!({}));
    workbench.send_request(id, "subscriptions/listen", &params);
    let first = tagged(workbench, id);
    assert_eq!(first.method.as_deref(), Some(ACKNOWLEDGED));
    first.params()["notifications"].clone()
}

/// Returns true if a message belongs to the request with this raw id.
fn belongs(message: &Message, id: &str) -> bool {
    let id: Value = serde_json::from_str(id).unwrap();
    message.method.is_some() && message.params()["_meta"][SUBSCRIPTION_ID] == id
}

/// Waits for what is said next to a request that listens.
fn tagged(workbench: &mut Workbench, id: &str) -> Message {
    workbench.message(|message| message.params.is_some() && belongs(message, id))
}

fn call(workbench: &mut Workbench, tool: &str) {
    let params = json!({"name": tool, "arguments": {}}).to_string();
    assert!(!workbench.ask("tools/call", &params).is_error());
}

fn cancel(workbench: &mut Workbench, id: &str) {
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{id}}}"#),
    );
}

/// Waits until a server has received so many messages of a method, and gives their URIs.
fn uris(workbench: &Workbench, method: &str, count: usize) -> Vec<Value> {
    let journal = workbench.journal("dev", "a");
    let received = poll(TIMEOUT, || {
        let received = journal.received(method);
        (received.len() >= count).then_some(received)
    });
    let received = received.unwrap_or_else(|| panic!("no {count} {method}"));
    { received.iter() }
        .map(|it| it.params()["uri"].clone())
        .collect()
}

#[test]
fn outside_native_mode_only_tool_list_changes_can_be_subscribed_to() {
    for mode in ["proxy", "dynamic"] {
        let setup = Setup::one(&telling()).top("toolMode", json!(mode));
        let mut workbench = setup.start();
        workbench.initialize();
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["u:1"],
        });
        assert_eq!(
            listen(&mut workbench, "\"l\"", &filter),
            json!({"toolsListChanged": true}),
            "{mode}"
        );
        workbench.open("dev");
        let finished = workbench.finish();
        let answer = finished.stdout.iter().find(|it| it.contains(r#""id":"l""#));
        assert_eq!(
            answer.unwrap(),
            r#"{"jsonrpc":"2.0","id":"l","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#
        );
        let tagged = finished
            .stdout
            .iter()
            .filter(|it| it.contains("list_changed"));
        assert!({ tagged }.all(|it| !it.contains(SUBSCRIPTION_ID)), "{mode}");
    }
}

#[test]
fn only_notifications_that_servers_can_send_are_accepted() {
    let filter = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": false,
        "resourceSubscriptions": ["u:1", "s:1", "v:1", "u:1"], "unheardOf": true,
    });
    let mut workbench = connect(&[("a", telling()), ("b", silent())]);
    assert_eq!(
        listen(&mut workbench, "70", &filter),
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["u:1"]})
    );
    let mut workbench = connect(&[("b", silent())]);
    assert_eq!(
        listen(&mut workbench, "70", &filter),
        json!({"toolsListChanged": true})
    );
}

#[test]
fn each_subscriber_gets_its_own_notifications_with_its_id() {
    let mut workbench = connect(&[("a", telling())]);
    listen(&mut workbench, "70", &json!({"promptsListChanged": true}));
    listen(&mut workbench, "\"b\"", &json!({"toolsListChanged": true}));
    let both = json!({"promptsListChanged": true, "resourcesListChanged": true});
    listen(&mut workbench, "72", &both);
    for tool in ["prompts", "resources", "retool"] {
        call(&mut workbench, tool);
    }
    let mut heard = |id: &str| tagged(&mut workbench, id).method.unwrap();
    assert_eq!(heard("70"), "notifications/prompts/list_changed");
    assert_eq!(heard("72"), "notifications/prompts/list_changed");
    assert_eq!(heard("72"), "notifications/resources/list_changed");
    assert_eq!(heard("\"b\""), "notifications/tools/list_changed");
    let others = workbench.untaken().iter();
    let others = others.filter(|it| it.line.contains(SUBSCRIPTION_ID));
    assert_eq!(others.count(), 0, "nothing else is sent");
}

#[test]
fn a_cancelled_subscription_gets_no_notifications_and_no_answer() {
    let mut workbench = connect(&[("a", telling())]);
    let filter = json!({"promptsListChanged": true});
    listen(&mut workbench, "70", &filter);
    listen(&mut workbench, "71", &filter);
    cancel(&mut workbench, "70");
    call(&mut workbench, "prompts");
    tagged(&mut workbench, "71");
    let finished = workbench.finish();
    let said = finished.stdout.iter();
    let said = said.filter(|it| it.contains(r#""id":70"#) || it.contains(r#"subscriptionId":70"#));
    assert_eq!(said.count(), 0);
}

#[test]
fn a_resource_update_keeps_the_members_of_its_server() {
    let mut workbench = connect(&[("a", telling())]);
    listen(
        &mut workbench,
        "70",
        &json!({"resourceSubscriptions": ["u:1"]}),
    );
    listen(
        &mut workbench,
        "71",
        &json!({"resourceSubscriptions": ["u:2"]}),
    );
    call(&mut workbench, "update");
    let updated = tagged(&mut workbench, "70");
    assert_eq!(updated.method.as_deref(), Some(UPDATED));
    assert_eq!(
        updated.params(),
        json!({"uri": "u:1", "_meta": {"own": 1, SUBSCRIPTION_ID: 70}})
    );
    let others = workbench.untaken().iter();
    assert_eq!(others.filter(|it| it.line.contains(UPDATED)).count(), 0);
}

#[test]
fn a_resource_is_unsubscribed_when_its_last_subscriber_leaves() {
    let mut workbench = connect(&[("a", telling())]);
    let one = json!({"resourceSubscriptions": ["u:1"]});
    listen(&mut workbench, "70", &one);
    let two = json!({"resourceSubscriptions": ["u:1", "u:2"]});
    listen(&mut workbench, "71", &two);
    workbench.ask("resources/subscribe", r#"{"uri":"u:1"}"#);
    cancel(&mut workbench, "71");
    assert_eq!(uris(&workbench, "resources/unsubscribe", 1), ["u:2"]);
    workbench.ask("resources/unsubscribe", r#"{"uri":"u:1"}"#);
    call(&mut workbench, "update");
    tagged(&mut workbench, "70");
    assert_eq!(uris(&workbench, "resources/unsubscribe", 1), ["u:2"]);
    cancel(&mut workbench, "70");
    assert_eq!(uris(&workbench, "resources/unsubscribe", 2), ["u:2", "u:1"]);
}

#[test]
fn a_resource_is_unsubscribed_when_the_session_ends() {
    let setup = natively(Setup::new().toolbox("dev", "d")).server("a", &telling());
    let served = setup.serve();
    let (mut first, mut second) = (served.client(), served.client());
    for client in [&mut first, &mut second] {
        client.ask("resources/subscribe", r#"{"uri":"u:1"}"#);
    }
    first.ask("resources/subscribe", r#"{"uri":"u:2"}"#);
    for client in [&first, &second] {
        let ended = served.connection().ask(&client.bare("DELETE"));
        assert_eq!(ended.head.status, 204);
        uris(&served.workbench, "resources/unsubscribe", 1);
    }
    assert_eq!(
        uris(&served.workbench, "resources/unsubscribe", 2),
        ["u:2", "u:1"]
    );
}

#[test]
fn over_http_notifications_use_the_stream_of_the_request() {
    let setup = natively(Setup::new().toolbox("dev", "d")).server("a", &telling());
    let served = setup.serve();
    let listen = |id: &str, filter: Value| {
        let request = ModernRequest::new("subscriptions/listen");
        let request = request.param("notifications", &filter.to_string());
        let mut stream = served.begin_modern(id, &request);
        assert!(stream.head().is_stream());
        stream
    };
    let mut prompts = listen("70", json!({"promptsListChanged": true}));
    let mut resource = listen("71", json!({"resourceSubscriptions": ["u:1"]}));
    for stream in [&mut prompts, &mut resource] {
        assert_eq!(stream.message().method.as_deref(), Some(ACKNOWLEDGED));
    }
    for tool in ["update", "prompts"] {
        served.modern_response("1", &ModernRequest::call(tool, "{}"));
    }
    let told = prompts.message();
    assert!(belongs(&told, "70") && told.line.contains("prompts/list_changed"));
    let told = resource.message();
    assert!(belongs(&told, "71") && told.line.contains(UPDATED));
    served.workbench.signal(Signal::TERM);
    for (stream, id) in [(&mut prompts, "70"), (&mut resource, "71")] {
        let answer = stream.message();
        assert!(answer.answers(id), "{}", answer.line);
        assert_eq!(stream.event(), None);
    }
}

#[test]
fn the_acknowledgement_precedes_all_notifications() {
    let log = json!({"method": "notifications/message", "params": {"level": "error", "data": "d"}});
    let actions = json!([{"notify": log}, {"answer": {}}]).to_string();
    let script = telling().on_method("resources/subscribe", &actions);
    let setup = natively(Setup::new().toolbox("dev", "d")).server("a", &script);
    let mut workbench = setup.start();
    let request = ModernRequest::new("subscriptions/listen")
        .param("notifications", r#"{"resourceSubscriptions":["u:1"]}"#)
        .log_level("debug");
    workbench.send_modern(&request);
    let first = workbench.next_message();
    assert_eq!(first.method.as_deref(), Some(ACKNOWLEDGED));
}

#[test]
fn the_number_of_subscriptions_is_bounded() {
    let mut workbench = Setup::new().start();
    for id in 0..256 {
        listen(&mut workbench, &id.to_string(), &json!({}));
    }
    let request = ModernRequest::new("subscriptions/listen").param("notifications", "{}");
    let refused = workbench.ask_modern(&request);
    assert_eq!(refused.error().code, -32603, "{}", refused.line);
    cancel(&mut workbench, "7");
    // A cancelled request gets no answer.
    let listening = poll(TIMEOUT, || {
        let id = workbench.send_modern(&request);
        let first = workbench.message(|it| it.answers(&id) || it.line.contains(ACKNOWLEDGED));
        first.method
    });
    assert_eq!(listening.as_deref(), Some(ACKNOWLEDGED));
}

#[test]
fn an_invalid_filter_is_refused() {
    let mut workbench = connect(&[("a", silent())]);
    for (params, message) in [
        (json!({}), "notifications: Expected object"),
        (
            json!({"notifications": []}),
            "notifications: Expected object",
        ),
        (
            json!({"notifications": {"toolsListChanged": 1}}),
            "notifications.toolsListChanged: Expected boolean",
        ),
        (
            json!({"notifications": {"resourceSubscriptions": ["u:1", 1]}}),
            "notifications.resourceSubscriptions: Expected array of strings",
        ),
    ] {
        let refused = workbench.ask("subscriptions/listen", &modern(params, &json!({})));
        let error = refused.error();
        assert_eq!((error.code, error.message.as_str()), (-32602, message));
    }
}
