//! When a legacy server may ask a modern client: in the middle of what may be answered with questions, and never
//! so that others wait for the client's answers.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::natively;
use crate::harness::{ModernClient, ModernRequest, Script, Setup, asks};

const CAN_ALL: &str = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;
const REPLY: &str =
    r#"{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"completion\":{},\"told\":$REPLY}}"}"#;

#[test]
fn only_requests_that_allow_questions_are_answered_with_them() {
    let actions = format!(r#"[{{"request":{{"method":"roots/list"}}}},{REPLY}]"#);
    let script = Script::new()
        .set(
            "capabilities",
            r#"{"tools":{},"prompts":{},"completions":{}}"#,
        )
        .on_method("prompts/list", r#"[{"answer":{"prompts":[{"name":"p"}]}}]"#)
        .on_method("prompts/get", &actions)
        .on_method("completion/complete", &actions);
    let mut workbench = natively(Setup::one(&script)).start();
    let get = ModernRequest::new("prompts/get").param("name", r#""p""#);
    let asked = workbench.ask_modern(&get.capabilities(CAN_ALL));
    assert!(asks(&asked), "{}", asked.line);
    let complete = ModernRequest::new("completion/complete")
        .param("ref", r#"{"type":"ref/prompt","name":"p"}"#)
        .param("argument", r#"{"name":"a","value":""}"#);
    let done = workbench.ask_modern(&complete.capabilities(CAN_ALL));
    assert_eq!(done.result()["resultType"], "complete");
    assert_eq!(done.result()["told"]["error"]["code"], -32601);
}

/// A server that wants to know the roots before it tells its tools.
fn curious() -> Script {
    let tell = r#"{"answer":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}"#;
    let actions = format!(r#"[{{"request":{{"method":"roots/list"}}}},{tell}]"#);
    Script::new()
        .answers("echo", r#"{"content":[]}"#)
        .on_method("tools/list", &actions)
}

#[test]
fn a_client_can_be_asked_during_an_open() {
    let mut workbench = Setup::one(&curious()).start();
    let open = ModernRequest::open("dev").capabilities(CAN_ALL);
    let opened = workbench.answer_all(&open, |_, _| r#"{"roots":[]}"#.to_owned());
    assert_eq!(opened.result().get("isError"), None, "{}", opened.line);
    let used = workbench.call_modern(&ModernRequest::use_tool("echo", "{}"));
    assert!(!used.failed(), "{}", used.raw);
}

#[test]
fn an_unanswered_question_during_an_open_does_not_block_calls() {
    let entry = json!({"connectTimeoutMs": 500});
    let setup = Setup::new().toolbox("dev", "d");
    let mut workbench = setup.server_with("fs", &curious(), &entry).start();
    let open = ModernRequest::open("dev").capabilities(CAN_ALL);
    let asked = workbench.ask_modern(&open);
    assert!(asks(&asked), "{}", asked.line);
    let used = workbench.call_modern(&ModernRequest::use_tool("echo", "{}"));
    assert!(used.failed(), "{}", used.raw);
}
