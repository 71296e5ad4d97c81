//! The shutdown of the workbench, which leaves nothing behind.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{
    Script, Setup, TIMEOUT, Workbench, alive, call_params, initialize_params, kill, poll,
    survivors, use_arguments,
};

/// The time for the whole process tree. Checks add a margin for a busy machine.
const TREE_GONE: Duration = Duration::from_secs(5);
const GUARD_DONE: Duration = Duration::from_secs(3);
const ROOM: Duration = Duration::from_millis(500);

/// The ways to end a workbench.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Eof,
    Signal(Signal),
}

const ENDS: [End; 4] = [
    End::Eof,
    End::Signal(Signal::TERM),
    End::Signal(Signal::INT),
    End::Signal(Signal::HUP),
];

fn end(workbench: &mut Workbench, end: End) -> Instant {
    match end {
        End::Eof => workbench.close_stdin(),
        End::Signal(signal) => workbench.signal(signal),
    }
    Instant::now()
}

/// A server with every kind of descendant that is hard to be rid of, and deaf itself.
fn stubborn() -> Script {
    let spawn = json!([
        {"spawn": {}},
        {"spawn": {"holdOutput": true}},
        {"spawn": {"ignoreTerm": true}},
        {"spawn": {"session": "own"}},
        {"spawn": {"session": "own", "ignoreTerm": true, "holdOutput": true}},
    ]);
    Script::new()
        .set("onStart", &spawn.to_string())
        .set("onEof", "\"ignore\"")
        .set("ignoreTerm", "true")
}

fn open_both() -> Workbench {
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server("fs", &stubborn())
        .server("plain", &Script::new())
        .connect();
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
    let mark = workbench.setup.mark.clone();
    // A process that is just becoming another program has no environment for a moment.
    let all = poll(TIMEOUT, || (survivors(&mark).len() == 7).then_some(()));
    assert!(all.is_some(), "two servers and five descendants");
    workbench
}

#[test]
fn the_process_tree_ends_within_five_seconds() {
    for way in ENDS {
        let mut workbench = open_both();
        let start = end(&mut workbench, way);
        let status = workbench.wait_exit();
        assert_eq!(status.code(), Some(0), "{way:?}");
        let left = survivors(&workbench.setup.mark);
        assert!(left.is_empty(), "{way:?} left {left:?}");
        let took = start.elapsed();
        assert!(took < TREE_GONE + ROOM, "{way:?} took {took:?}");
    }
}

#[test]
fn shutdown_does_not_wait_for_servers_that_ended_with_their_stdin() {
    for way in ENDS {
        let mut workbench = Setup::one(&Script::new()).connect();
        workbench.open("dev");
        let start = end(&mut workbench, way);
        assert_eq!(workbench.wait_exit().code(), Some(0), "{way:?}");
        let took = start.elapsed();
        assert!(took < Duration::from_secs(2), "{way:?} took {took:?}");
        let journal = workbench.journal("dev", "fs");
        assert_eq!(
            journal.events("exit"),
            ["0"],
            "{way:?}: by the end of its stdin"
        );
    }
}

#[test]
fn an_idle_workbench_ends_with_code_0() {
    for way in ENDS {
        let mut workbench = Setup::one(&Script::new()).connect();
        end(&mut workbench, way);
        assert_eq!(workbench.wait_exit().code(), Some(0), "{way:?}");
    }
}

#[test]
fn a_call_in_flight_that_does_not_finish_gets_an_error() {
    for way in ENDS {
        let script = Script::new().set("onEof", "\"ignore\"");
        let mut workbench = Setup::one(&script).connect();
        workbench.open("dev");
        let id = workbench.send_use("hang", "{}");
        let journal = workbench.journal("dev", "fs");
        poll(TIMEOUT, || journal.received("tools/call").pop()).unwrap();
        let start = end(&mut workbench, way);
        let result = workbench.tool_result(&id);
        let took = start.elapsed();
        assert!(took < Duration::from_millis(2500), "{way:?} took {took:?}");
        let text = result.error();
        assert!(
            text.starts_with("Error executing tool 'hang' in server 'fs' (toolbox 'dev'): "),
            "{way:?}: {text}"
        );
        assert_eq!(workbench.wait_exit().code(), Some(0), "{way:?}");
    }
}

#[test]
fn a_call_in_flight_may_finish_within_a_second() {
    for way in ENDS {
        let script = Script::new().set("onEof", "\"finish\"");
        let mut workbench = Setup::one(&script).connect();
        workbench.open("dev");
        let id = workbench.send_use("sleep", r#"{"ms":400}"#);
        let journal = workbench.journal("dev", "fs");
        poll(TIMEOUT, || journal.received("tools/call").pop()).unwrap();
        end(&mut workbench, way);
        let result = workbench.tool_result(&id);
        assert!(!result.failed(), "{way:?}: {}", result.raw);
        assert_eq!(workbench.wait_exit().code(), Some(0), "{way:?}");
    }
}

#[test]
fn requests_can_be_piped_in() {
    let mut workbench = Setup::one(&Script::new()).start();
    workbench.request("initialize", &initialize_params("2025-11-25"));
    workbench.notify("notifications/initialized", "{}");
    let open = workbench.send_call("open_toolbox", r#"{"toolbox":"dev"}"#);
    let used = workbench.send_use("echo", r#"{"n":1}"#);
    workbench.close_stdin();
    assert_eq!(
        workbench.response("1").result()["serverInfo"]["name"],
        "mcp-workbench"
    );
    assert_eq!(workbench.tool_result(&open).json()["servers_connected"], 1);
    let result = workbench.tool_result(&used);
    assert_eq!(result.structured()["arguments"], json!({"n": 1}));
    let finished = workbench.finish();
    assert_eq!(finished.status.code(), Some(0));
    assert_eq!(finished.stdout, Vec::<String>::new());
}

#[test]
fn a_last_line_without_a_line_end_is_read() {
    let mut workbench = Setup::new().start();
    let params = initialize_params("2025-11-25");
    workbench.send_bytes(
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#).as_bytes(),
    );
    workbench.close_stdin();
    assert_eq!(
        workbench.response("1").result()["serverInfo"]["name"],
        "mcp-workbench"
    );
}

#[test]
fn process_trees_end_within_three_seconds_of_a_kill() {
    let mut workbench = open_both();
    workbench.signal(Signal::KILL);
    workbench.wait_exit();
    workbench.wait_no_survivors(GUARD_DONE + ROOM);
}

#[test]
fn a_killed_server_leaves_no_processes() {
    let mut workbench = Setup::one(&stubborn()).connect();
    workbench.open("dev");
    let journal = workbench.journal("dev", "fs");
    let pid = journal.pids()[0];
    kill(pid, Signal::KILL);
    poll(TREE_GONE, || (!alive(pid)).then_some(())).expect("the server is dead");
    // Its orphans are swept at the latest when the workbench ends.
    assert_eq!(workbench.finish().status.code(), Some(0));
    let left = survivors(&workbench.setup.mark);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_signal_during_an_open_ends_the_workbench_and_its_servers() {
    let script = Script::new().set("onStart", r#"["hang"]"#);
    let mut workbench = Setup::one(&script).connect();
    let params = call_params("open_toolbox", r#"{"toolbox":"dev"}"#);
    workbench.request("tools/call", &params);
    workbench.journal("dev", "fs").wait("start", 1);
    workbench.signal(Signal::TERM);
    assert_eq!(workbench.wait_exit().code(), Some(0));
    assert!(survivors(&workbench.setup.mark).is_empty());
}

#[test]
fn a_call_waits_for_an_open_in_progress() {
    let setup = Setup::new();
    let gate = json!([{"awaitFile": setup.path("gate")}]).to_string();
    let script = Script::new().set("onStart", &gate);
    let mut workbench = setup.toolbox("dev", "d").server("fs", &script).connect();
    let open = workbench.send_call("open_toolbox", r#"{"toolbox":"dev"}"#);
    let used = workbench.send_call("use_tool", &use_arguments(["dev", "fs", "pid"], None));
    workbench.ask("ping", "{}");
    workbench.setup.write("gate", "");
    assert!(!workbench.tool_result(&open).failed());
    assert!(!workbench.tool_result(&used).failed());
}
