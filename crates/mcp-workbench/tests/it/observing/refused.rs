//! Requests that reach no server are events too, each with its reason.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::document;
use crate::harness::{HttpClient, ModernClient, ModernRequest, Script, Served, Setup};

fn served() -> Served {
    let script = Script::named(&["read", "wipe"])
        .answers("read", r#"{"content":[{"type":"text","text":"hi"}]}"#);
    let rules = json!({"permissions": {"allow": ["read"], "deny": ["wipe"]}});
    let setup = Setup::new().toolbox("dev", "d");
    setup.server_with("fs", &script, &rules).serve()
}

/// Returns the last call: its method, its target or tool, its outcome and its code.
fn last(served: &Served) -> [Value; 4] {
    let calls = document(served, &["live", "calls", "--json"]);
    let last = calls["calls"].as_array().unwrap().last().unwrap().clone();
    let name = match &last["tool"] {
        Value::Null => &last["target"],
        tool => tool,
    };
    [&last["method"], name, &last["outcome"], &last["code"]].map(Clone::clone)
}

type Request = fn(&mut HttpClient);

#[test]
fn every_refusal_is_an_event_with_its_reason() {
    let served = served();
    document(&served, &["live", "calls", "--json"]);
    let mut client = served.client();
    client.open();
    let cases: [(Request, [&str; 4]); 7] = [
        (
            |it| drop(it.use_tool("wipe", "{}")),
            ["tools/call", "wipe", "denied", "permission_denied"],
        ),
        (
            |it| drop(it.use_tool("nothing", "{}")),
            ["tools/call", "nothing", "error", "tool_unknown"],
        ),
        (
            |it| drop(it.call("use_tool", r#"{"tool":7}"#)),
            ["tools/call", "use_tool", "tool_error", ""],
        ),
        (
            |it| drop(it.ask("tools/call", r#"{"name":"made_up","arguments":{}}"#)),
            ["tools/call", "made_up", "error", "tool_unknown"],
        ),
        (
            |it| drop(it.ask("tools/call", r#"{"arguments":{}}"#)),
            ["tools/call", "", "error", "refused"],
        ),
        (
            |it| drop(it.ask("prompts/get", r#"{"name":"nobody"}"#)),
            ["prompts/get", "nobody", "error", "refused"],
        ),
        (
            |it| drop(it.ask("no/such", "{}")),
            ["unknown", "", "error", "refused"],
        ),
    ];
    for (request, expected) in cases {
        request(&mut client);
        let expected = expected.map(|it| match it {
            "" => Value::Null,
            text => json!(text),
        });
        assert_eq!(last(&served), expected);
    }
}

#[test]
fn a_subscription_is_an_event_that_ends_with_its_acknowledgement() {
    let mut served = served();
    document(&served, &["live", "calls", "--json"]);
    served.ask_modern(&ModernRequest::new("tools/list"));
    let listen = ModernRequest::new("subscriptions/listen")
        .param("notifications", r#"{"toolsListChanged":true}"#);
    let mut stream = served.begin_modern("9", &listen);
    stream.head();
    stream.message();
    let expected = ["subscriptions/listen", "", "ok", ""].map(|it| match it {
        "" => Value::Null,
        text => json!(text),
    });
    assert_eq!(last(&served), expected);
    let refused = ModernRequest::new("subscriptions/listen");
    served.ask_modern(&refused);
    assert_eq!(last(&served)[2], "error");
}
