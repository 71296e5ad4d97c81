//! Questions and log messages of servers during calls: they reach the client that made the call, and its answer reaches
//! the server.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench, kill};

/// The line before the message of a question of the server `fs` in the toolbox `dev`.
pub(crate) const ASKED_BY_FS: &str = "Question from server 'fs' in toolbox 'dev':\n";

/// Raw parameters of a question of that server, as the client gets them.
pub(crate) fn attributed(params: &str) -> String {
    let line = ASKED_BY_FS.replace('\n', "\\n");
    params.replace(r#""message":""#, &format!(r#""message":"{line}"#))
}

/// Returns a server that asks `method` during a call of `ask` and returns the response that it got.
pub(crate) fn asks(method: &str, params: &str) -> Script {
    let ask = format!(
        r#"[{{"request":{{"method":"{method}","params":{params}}}}},
            {{"line":"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"content\":[],\"told\":$REPLY}}}}"}}]"#
    );
    Script::named(&["ask"]).on_call("ask", &ask)
}

/// A workbench whose client has declared `capabilities`.
pub(crate) fn connect(setup: Setup, capabilities: &Value) -> Workbench {
    let mut workbench = setup.start();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "it", "version": "1"},
    });
    workbench.ask("initialize", &params.to_string());
    workbench.notify("notifications/initialized", "{}");
    workbench.open("dev");
    workbench
}

fn all() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": true}})
}

#[test]
fn questions_reach_the_client_and_answers_the_server_byte_for_byte() {
    let rows = [
        (
            "elicitation/create",
            r#"{"message":"who?","requestedSchema":{"type":"object","x-odd":1e400}}"#,
            r#"{"action":"accept","content":{"z":1,"a":123456789012345678901234567890}}"#,
        ),
        (
            "sampling/createMessage",
            r#"{"messages":[],"maxTokens":5,"unknown":[{}]}"#,
            r#"{"role":"assistant","content":{"type":"text","text":"ü"},"model":"m","more":0.10}"#,
        ),
        ("roots/list", "{}", r#"{"roots":[{"uri":"file:///x"}]}"#),
    ];
    for (method, params, answer) in rows {
        let mut workbench = connect(Setup::one(&asks(method, params)), &all());
        let call = workbench.send_use("ask", "{}");
        let question = workbench.notification(method);
        let asked = question.params.as_ref().unwrap().get();
        assert_eq!(asked, attributed(params), "{method}");
        workbench.send_line(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#,
            question.id().unwrap()
        ));
        let result = workbench.response(&call);
        assert!(
            result.line.contains(&format!(r#""result":{answer}"#)),
            "{}",
            result.line
        );
    }
}

#[test]
fn an_error_of_the_client_reaches_the_server_unchanged() {
    let mut workbench = connect(Setup::one(&asks("elicitation/create", "{}")), &all());
    let call = workbench.send_use("ask", "{}");
    let question = workbench.notification("elicitation/create");
    let error = r#"{"code":-1,"message":"user is away","data":{"z":1e400}}"#;
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
        question.id().unwrap()
    ));
    let result = workbench.response(&call);
    assert!(
        result.line.contains(&format!(r#""error":{error}"#)),
        "{}",
        result.line
    );
}

#[test]
fn a_server_learns_the_client_capabilities_and_is_refused_everything_else() {
    let capabilities = json!({"sampling": {"tools": {}}, "experimental": {"x": {}}});
    let mut workbench = connect(Setup::one(&asks("elicitation/create", "{}")), &capabilities);
    let result = workbench.use_tool("ask", "{}");
    assert!(result.raw.contains("-32601"), "{}", result.raw);
    let journal = workbench.journal("dev", "fs");
    let declared = journal.received("initialize")[0].params();
    assert_eq!(declared["capabilities"], capabilities);
}

#[test]
fn roots_can_come_from_the_configuration() {
    let setup = Setup::one(&asks("roots/list", "{}")).top("roots", json!(["/x y", "file:///z"]));
    let mut workbench = connect(setup, &json!({}));
    let result = workbench.use_tool("ask", "{}");
    let roots = r#""result":{"roots":[{"uri":"file:///x%20y"},{"uri":"file:///z"}]}"#;
    assert!(result.raw.contains(roots), "{}", result.raw);
    let declared = workbench.journal("dev", "fs").received("initialize")[0].params();
    assert_eq!(declared["capabilities"], json!({"roots": {}}));
}

#[test]
fn a_question_is_withdrawn_when_its_call_ends() {
    let ask = r#"[{"request":{"method":"elicitation/create","params":{}}}]"#;
    let script = Script::named(&["ask"]).on_call("ask", ask);
    let mut workbench = connect(Setup::one(&script), &all());
    workbench.send_use("ask", "{}");
    let question = workbench.notification("elicitation/create");
    for pid in workbench.journal("dev", "fs").pids() {
        kill(pid, Signal::KILL);
    }
    let withdrawn = workbench.notification("notifications/cancelled");
    assert_eq!(
        withdrawn.params()["requestId"].to_string(),
        question.id().unwrap()
    );
}

#[test]
fn log_messages_below_the_level_of_the_client_are_dropped() {
    let message = |level: &str| {
        format!(
            r#"{{"notify":{{"method":"notifications/message","params":{{"level":"{level}","data":{{"z":1e400}}}}}}}}"#
        )
    };
    let log = format!(
        r#"[{},{},{{"answer":{{"content":[]}}}}]"#,
        message("info"),
        message("error")
    );
    let script = Script::named(&["log"]).on_call("log", &log);
    let mut workbench = connect(Setup::one(&script), &json!({}));
    workbench.use_tool("log", "{}");
    for level in ["info", "error"] {
        let heard = workbench.notification("notifications/message");
        assert_eq!(
            heard.params.as_ref().unwrap().get(),
            format!(r#"{{"level":"{level}","data":{{"z":1e400}}}}"#)
        );
    }
    assert_eq!(
        workbench
            .ask("logging/setLevel", r#"{"level":"error"}"#)
            .raw_result(),
        "{}"
    );
    workbench.use_tool("log", "{}");
    let heard = workbench.notification("notifications/message");
    assert_eq!(
        heard.params.as_ref().unwrap().get(),
        r#"{"level":"error","data":{"z":1e400}}"#
    );
    assert_eq!(
        workbench
            .ask("logging/setLevel", r#"{"level":"loud"}"#)
            .error()
            .code,
        -32602
    );
}
