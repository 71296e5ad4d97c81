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
fn only_what_may_be_answered_with_questions_is() {
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

#[test]
fn a_client_that_was_asked_while_it_opens_holds_up_nobody() {
    let actions = r#"[{"request":{"method":"roots/list"}},"builtIn"]"#;
    let script = Script::named(&["echo"])
        .answers("echo", r#"{"content":[]}"#)
        .on_method("tools/list", actions);
    let entry = json!({"connectTimeoutMs": 500});
    let setup = Setup::new().toolbox("dev", "d");
    let mut workbench = setup.server_with("fs", &script, &entry).start();
    let open = ModernRequest::open("dev").capabilities(CAN_ALL);
    let asked = workbench.ask_modern(&open);
    assert!(asks(&asked), "{}", asked.line);
    let used = workbench.call_modern(&ModernRequest::use_tool("echo", "{}"));
    assert!(used.failed(), "{}", used.raw);
}
