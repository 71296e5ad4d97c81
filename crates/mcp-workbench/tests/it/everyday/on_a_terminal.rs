//! Output that appears only on a terminal.

use serde_json::json;

use super::{asks, terminal::OnTerminal};
use crate::harness::{Script, Setup};

/// The sequence that takes a live line away.
const ERASED: &str = "A\u{1b}[J";

/// A server whose list of tools waits for the file `gate`.
fn slow() -> Setup {
    let setup = Setup::new().toolbox("dev", "d");
    let gate = json!({"awaitFile": setup.path("gate")});
    let tools = json!({"answer": {"tools": []}});
    let script = Script::new().on_method("tools/list", &json!([gate, tools]).to_string());
    setup.server("fs", &script)
}

#[test]
fn a_workbench_that_waits_for_a_client_says_so() {
    let mut workbench = OnTerminal::start(Setup::one(&Script::new()), &[]);
    for words in [
        "waiting for an MCP client on stdin",
        "`mcp-workbench demo`",
        "`mcp-workbench init`",
        "`mcp-workbench --help`",
    ] {
        workbench.wait_for(words);
    }
    workbench.type_line("\u{4}");
    assert!(workbench.finish().success(), "{}", workbench.text());
}

#[test]
fn a_workbench_without_a_configuration_says_what_it_needs() {
    let mut workbench = OnTerminal::start_bare(Setup::new());
    assert_eq!(workbench.finish().code(), Some(1));
    for words in [
        "waits for an MCP client on stdin",
        "`mcp-workbench demo`",
        "`mcp-workbench init`",
        "`mcp-workbench --help`",
    ] {
        workbench.wait_for(words);
    }
}

#[test]
fn progress_is_shown_and_erased() {
    let mut doctor = OnTerminal::start(slow(), &["doctor"]);
    doctor.wait_for("s), 0 of 1 done");
    doctor.wait_for("  dev/fs");
    doctor.setup.write("gate", "");
    assert!(doctor.finish().success(), "{}", doctor.text());
    doctor.wait_for("nothing is wrong");
    let text = doctor.text();
    let (live, report) = text.rsplit_once(ERASED).expect("the live lines are erased");
    assert!(live.contains("starting servers"), "{text}");
    assert!(!report.contains("starting servers"), "{text}");
}

#[test]
fn a_quick_command_shows_no_progress() {
    let mut list = OnTerminal::start(Setup::one(&Script::new()), &["list"]);
    assert!(list.finish().success());
    list.wait_for("Development tools");
    assert!(!list.text().contains(ERASED), "{}", list.text());
}

#[test]
fn colour_can_be_switched_off() {
    let mut list = OnTerminal::start(Setup::one(&Script::new()), &["list"]);
    list.finish();
    list.wait_for("\u{1b}[1mdev\u{1b}[0m");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let setup = Setup::one(&Script::new()).env(name, value);
        let mut list = OnTerminal::start(setup, &["list"]);
        list.finish();
        list.wait_for("Development tools");
        assert!(!list.text().contains('\u{1b}'), "{name}: {}", list.text());
    }
}

#[test]
fn messages_and_progress_of_a_server_are_shown() {
    let setup = Setup::new().toolbox("dev", "d");
    let gate = setup.path("gate");
    let call = json!([
        {"log": {"level": "warning", "data": "it is late"}},
        {"progress": {"progress": 3, "total": 4, "message": "nearly"}},
        {"awaitFile": gate},
        {"answer": {"content": [{"type": "text", "text": "the result"}]}},
    ]);
    let setup = setup.server("fs", &Script::new().on_call("echo", &call.to_string()));
    let mut call = OnTerminal::start(setup, &["call", "dev", "fs", "echo"]);
    call.wait_for("warning: it is late");
    call.wait_for("calling dev/fs/echo (");
    call.wait_for("3 of 4, nearly");
    call.setup.write("gate", "");
    assert!(call.finish().success(), "{}", call.text());
    call.wait_for("the result");
}

#[test]
fn forms_of_servers_can_be_filled_in() {
    let form = json!({"message": "Who are you?", "requestedSchema": {"type": "object",
        "properties": {"age": {"type": "integer", "title": "Age"}}, "required": ["age"]}});
    let setup = Setup::one(&Script::new().on_call("echo", &asks(&form)));
    let mut call = OnTerminal::start(setup, &["call", "dev", "fs", "echo", "--json"]);
    call.wait_for("the server asks: Who are you?");
    call.wait_for("Age (required): ");
    call.type_line("old");
    call.wait_for("expected a whole number, found `old`");
    call.type_line("36");
    assert!(call.finish().success(), "{}", call.text());
    call.wait_for("accept");
    call.wait_for("36}");
}
