//! The workbench is stopped (Ctrl-Z, a frozen machine) for longer than a time limit. Everything that arrived meanwhile counts
//! when it goes on.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Script, Setup, TIMEOUT, poll};

/// The limit that passes while the workbench is stopped. It must not pass before that on a slow machine.
const LIMIT_MS: u64 = 3000;

/// A server with the tool `t`. Whatever is asked is answered when the file `gate` exists; longer than the limit after that
/// the server makes a note.
fn answering_at_the_gate(setup: &Setup, result: &str) -> String {
    let gate = setup.path("gate");
    let gate = json!({"awaitFile": gate});
    let past = LIMIT_MS + 500;
    format!(r#"[{gate},{{"answer":{result}}},{{"sleepMs":{past}}},{{"journal":"past"}}]"#)
}

#[test]
fn answers_that_arrive_while_stopped_are_not_timeouts() {
    const CALLS: usize = 10;
    let setup = Setup::new().toolbox("dev", "d");
    let actions = answering_at_the_gate(&setup, r#"{"content":[]}"#);
    let script = Script::named(&["t"]).on_call("t", &actions);
    let entry = json!({"callTimeoutMs": LIMIT_MS});
    let mut workbench = setup.server_with("fs", &script, &entry).connect();
    workbench.open("dev");
    let calls: Vec<String> = (0..CALLS).map(|_| workbench.send_use("t", "{}")).collect();
    let journal = workbench.journal("dev", "fs");
    poll(TIMEOUT, || (journal.called().len() == CALLS).then_some(())).unwrap();
    workbench.signal(Signal::STOP);
    workbench.setup.write("gate", "");
    journal.wait("note", CALLS);
    workbench.signal(Signal::CONT);
    for call in calls {
        assert_eq!(workbench.tool_result(&call).raw, r#"{"content":[]}"#);
    }
    assert!(journal.received("notifications/cancelled").is_empty());
}

#[test]
fn a_server_that_starts_while_stopped_is_up() {
    let setup = Setup::new().toolbox("dev", "d");
    let tools = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let actions = answering_at_the_gate(&setup, tools);
    let script = Script::new().on_method("tools/list", &actions);
    let entry = json!({"connectTimeoutMs": LIMIT_MS});
    let mut workbench = setup.server_with("fs", &script, &entry).connect();
    let open = workbench.send_call("open_toolbox", r#"{"toolbox":"dev"}"#);
    let journal = workbench.journal("dev", "fs");
    let is_asked = || !journal.received("tools/list").is_empty();
    poll(TIMEOUT, || is_asked().then_some(())).unwrap();
    workbench.signal(Signal::STOP);
    workbench.setup.write("gate", "");
    journal.wait("note", 1);
    workbench.signal(Signal::CONT);
    assert_eq!(workbench.tool_result(&open).tool_names(), ["t"]);
    assert_eq!(journal.pids().len(), 1);
}
