//! Servers across a reload: added, removed, changed, unchanged, and with running calls.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Edited, pid, wait_count};
use crate::{
    asking_back::{asks, connect},
    harness::{RemoteFixture, Script, Setup, TIMEOUT, Workbench, alive, kill, poll},
};

/// A server with a call that ends when the file `go` of the test is there.
fn waiting(setup: &Setup) -> Script {
    let go = json!(setup.path("go"));
    let until = format!(r#"[{{"awaitFile":{go}}},{{"answer":{{"content":[],"done":true}}}}]"#);
    Script::named(&["wait", "pid", "echo"]).on_call("wait", &until)
}

fn wait_gone(pid: u32) {
    let gone = poll(TIMEOUT, || (!alive(pid)).then_some(()));
    assert!(gone.is_some(), "process {pid} is still there");
}

/// A toolbox `dev` with the servers `fs` and `two`.
fn two_servers() -> Setup {
    Setup::one(&Script::new()).server("two", &Script::new())
}

#[test]
fn an_added_server_appears_and_the_others_keep_running() {
    let setup = two_servers();
    let full = Edited::of(&setup);
    let first = Edited::of(&setup).without(&["two"]);
    let mut workbench = setup.text(&first.text()).connect();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    full.take_up(&workbench);
    // By the next use, and by the next open.
    assert!(workbench.journal("dev", "two").pids().is_empty());
    let two = pid(&mut workbench, "two");
    let opened = workbench.open("dev").json();
    assert_eq!(opened["servers_connected"], 2);
    assert_eq!(pid(&mut workbench, "two"), two);
    assert_eq!(pid(&mut workbench, "fs"), before);
    assert_eq!(workbench.journal("dev", "fs").pids(), [before]);
}

#[test]
fn a_removed_server_stops_and_is_not_found() {
    let setup = two_servers();
    let less = Edited::of(&setup).without(&["two"]);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let (fs, two) = (pid(&mut workbench, "fs"), pid(&mut workbench, "two"));
    less.take_up(&workbench);
    let refused = workbench.use_tool_of(["dev", "two", "pid"], "{}");
    assert_eq!(refused.error(), "Server 'two' not found in toolbox 'dev'");
    wait_gone(two);
    assert_eq!(workbench.open("dev").json()["servers_connected"], 1);
    assert_eq!(pid(&mut workbench, "fs"), fs);
}

#[test]
fn a_removed_toolbox_is_unknown_and_closed_when_it_returns() {
    let setup = two_servers().toolbox("other", "Another");
    let full = Edited::of(&setup);
    let mut less = Edited::of(&setup);
    less.config["toolboxes"]
        .as_object_mut()
        .unwrap()
        .remove("dev");
    let mut workbench = setup.connect();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    less.take_up(&workbench);
    let missing = "Error: Toolbox 'dev' not found. Available toolboxes: other";
    assert_eq!(workbench.use_tool("pid", "{}").error(), missing);
    assert_eq!(workbench.open("dev").error(), missing);
    wait_gone(before);
    full.take_up(&workbench);
    assert_eq!(
        workbench.use_tool("pid", "{}").error(),
        "Error: Toolbox 'dev' is not open. Call open_toolbox first."
    );
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
}

#[test]
fn a_server_with_a_changed_launch_is_replaced() {
    let setup = two_servers();
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let (fs, two) = (pid(&mut workbench, "fs"), pid(&mut workbench, "two"));
    edited.fs()["env"]["COLOUR"] = json!("green");
    edited.take_up(&workbench);
    wait_gone(fs);
    // The toolbox is open, and the call starts the new server.
    let environment = workbench.use_tool("env", "{}").structured();
    assert_eq!(environment["COLOUR"], "green");
    assert_ne!(pid(&mut workbench, "fs"), fs);
    assert_eq!(pid(&mut workbench, "two"), two);
}

#[test]
fn calls_in_flight_finish_on_the_old_server() {
    let setup = Setup::new().toolbox("dev", "d");
    let script = waiting(&setup);
    let setup = setup.server("fs", &script).server("gone", &script);
    let mut edited = Edited::of(&setup).without(&["gone"]);
    edited.fs()["args"]
        .as_array_mut()
        .unwrap()
        .push(json!("--new"));
    let mut workbench = setup.connect();
    workbench.open("dev");
    let old = [pid(&mut workbench, "fs"), pid(&mut workbench, "gone")];
    let calls = ["fs", "gone"].map(|server| {
        let arguments =
            format!(r#"{{"tool":{{"toolbox":"dev","server":"{server}","tool":"wait"}}}}"#);
        workbench.send_call("use_tool", &arguments)
    });
    for server in ["fs", "gone"] {
        workbench.journal("dev", server).wait("in", 5);
    }
    edited.take_up(&workbench);
    // New calls go to the new server while the old one works.
    let new = pid(&mut workbench, "fs");
    assert_ne!(new, old[0]);
    let refused = workbench.use_tool_of(["dev", "gone", "pid"], "{}");
    assert_eq!(refused.error(), "Server 'gone' not found in toolbox 'dev'");
    assert!(old.into_iter().all(alive));
    workbench.setup.write("go", "");
    for id in calls {
        assert_eq!(
            workbench.tool_result(&id).raw,
            r#"{"content":[],"done":true}"#
        );
    }
    old.into_iter().for_each(wait_gone);
    assert_eq!(pid(&mut workbench, "fs"), new);
}

#[test]
fn an_open_in_progress_continues_with_the_new_configuration() {
    let silent = Script::new().on_method("initialize", "[]");
    let setup = Setup::one(&silent).server("two", &Script::new());
    let mut edited = Edited::of(&setup);
    let good = edited.servers()["two"].clone();
    *edited.fs() = good;
    let mut workbench = setup.connect();
    let id = workbench.send_call("open_toolbox", r#"{"toolbox":"dev"}"#);
    let stuck = workbench.journal("dev", "fs").wait("start", 1);
    assert_eq!(stuck.len(), 1);
    edited.take_up(&workbench);
    let opened = workbench.tool_result(&id).json();
    assert_eq!(opened["servers_connected"], 2);
    wait_gone(workbench.journal("dev", "fs").pids()[0]);
}

#[test]
fn changed_filters_apply_to_a_running_server() {
    let setup = Setup::one(&Script::named(&["echo", "pid", "fail"]));
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    let names = |workbench: &mut Workbench| workbench.open("dev").tool_names();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    edited.fs()["toolFilters"] = json!(["!fail"]);
    edited.take_up(&workbench);
    // At once, and not only after an open.
    assert_eq!(
        workbench.use_tool("fail", "{}").error(),
        "Tool 'fail' not found in server 'fs' (toolbox 'dev')"
    );
    assert_eq!(names(&mut workbench), ["echo", "pid"]);
    edited.fs()["toolFilters"] = json!(["fail", "pid"]);
    edited.take_up(&workbench);
    // What is offered in addition can be used without an open too.
    assert!(workbench.use_tool("fail", "{}").failed());
    assert_eq!(names(&mut workbench), ["pid", "fail"]);
    assert_eq!(workbench.journal("dev", "fs").pids(), [before]);
}

#[test]
fn changed_filters_apply_to_a_stopped_server_at_its_next_start() {
    let setup = Setup::one(&Script::named(&["echo", "pid"]));
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    for (times, filters) in [json!(["!echo"]), json!(["*"])].into_iter().enumerate() {
        let running = pid(&mut workbench, "fs");
        kill(running, Signal::KILL);
        wait_count(&workbench, "killed by signal 9", times + 1);
        edited.fs()["toolFilters"] = filters;
        edited.take_up(&workbench);
        let offered = workbench.use_tool("echo", "{}");
        assert_eq!(offered.failed(), times == 0, "{}", offered.raw);
    }
    assert_eq!(workbench.open("dev").tool_names(), ["echo", "pid"]);
}

#[test]
fn changed_timeouts_apply_to_a_running_server() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    edited.fs()["callTimeoutMs"] = json!(1000);
    edited.take_up(&workbench);
    let failed = workbench.use_tool("hang", "{}");
    assert_eq!(
        failed.failure()["code"],
        "call_timeout",
        "{}",
        failed.error()
    );
    assert_eq!(pid(&mut workbench, "fs"), before);
}

#[test]
fn the_next_open_has_the_changed_description_and_order() {
    let setup = two_servers();
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    let order = |opened: &Value| -> Vec<Value> {
        let tools = opened["tools"].as_array().unwrap().iter();
        let mut servers: Vec<Value> = tools.map(|tool| tool["server"].clone()).collect();
        servers.dedup();
        servers
    };
    assert_eq!(order(&workbench.open("dev").json()), ["fs", "two"]);
    let pids = [pid(&mut workbench, "fs"), pid(&mut workbench, "two")];
    edited.config["toolboxes"]["dev"]["description"] = json!("Other words");
    let fs = edited
        .servers()
        .as_object_mut()
        .unwrap()
        .remove("fs")
        .unwrap();
    edited.servers()["fs"] = fs;
    edited.take_up(&workbench);
    let opened = workbench.open("dev").json();
    assert_eq!(opened["description"], "Other words");
    assert_eq!(order(&opened), ["two", "fs"]);
    assert_eq!(
        [pid(&mut workbench, "fs"), pid(&mut workbench, "two")],
        pids
    );
}

#[test]
fn a_failed_server_starts_after_its_entry_is_fixed() {
    let setup = Setup::one(&Script::new());
    let good = Edited::of(&setup);
    let mut bad = Edited::of(&setup);
    bad.fs()["command"] = json!("/no/such/program");
    let mut workbench = setup.text(&bad.text()).connect();
    for _ in 0..6 {
        assert!(workbench.open("dev").failed());
    }
    good.take_up(&workbench);
    assert_eq!(workbench.open("dev").json()["servers_connected"], 1);
}

#[test]
fn disabling_removes_a_server_and_enabling_returns_it() {
    let setup = two_servers();
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let two = pid(&mut workbench, "two");
    edited.servers()["two"]["disabled"] = json!(true);
    edited.take_up(&workbench);
    wait_gone(two);
    assert_eq!(workbench.open("dev").json()["servers_connected"], 1);
    edited.servers()["two"]["disabled"] = json!(false);
    edited.take_up(&workbench);
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
}

#[test]
fn changed_roots_reach_a_starting_server() {
    let setup = Setup::one(&asks("roots/list", "{}")).top("roots", json!(["/old"]));
    let mut edited = Edited::of(&setup);
    let mut workbench = connect(setup, &json!({}));
    let told = |workbench: &mut Workbench, root: &str| {
        let result = workbench.use_tool("ask", "{}");
        let uri = format!(r#""uri":"file:///{root}""#);
        assert!(result.raw.contains(&uri), "{}", result.raw);
    };
    edited.config["roots"] = json!(["/new"]);
    edited.take_up(&workbench);
    told(&mut workbench, "old");
    kill(workbench.journal("dev", "fs").pids()[0], Signal::KILL);
    workbench.wait_stderr("killed by signal 9");
    told(&mut workbench, "new");
}

#[test]
fn changed_headers_start_a_new_session_of_a_remote_server() {
    let remote = RemoteFixture::start(&Script::named(&["echo"]));
    let setup = remote.setup();
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    edited.fs()["headers"] = json!({"X-Colour": "green"});
    edited.take_up(&workbench);
    assert!(!workbench.use_tool("echo", "{}").failed());
    assert_eq!(remote.journal().received("initialize").len(), 2);
    let last = remote.headers().pop().unwrap();
    assert_eq!(last["x-colour"], "green");
}

#[test]
fn connect_can_be_changed_by_a_reload() {
    let setup = two_servers();
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
    let started = |workbench: &Workbench| {
        let servers = ["fs", "two"];
        servers.map(|server| workbench.journal("dev", server).pids().len())
    };
    edited.config["connect"] = json!("on-use");
    edited.servers()["two"]["env"]["OTHER"] = json!("value");
    edited.take_up(&workbench);
    workbench.wait_stderr("`connect` changed");
    // The one runs; the other was never seen as it is now.
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
    assert_eq!(started(&workbench), [1, 2]);
    edited.servers()["two"]["env"]
        .as_object_mut()
        .unwrap()
        .remove("OTHER");
    edited.take_up(&workbench);
    edited.config["toolboxes"]["dev"]["connect"] = json!("on-open");
    edited.take_up(&workbench);
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
    assert_eq!(started(&workbench), [1, 3], "what runs is not touched");
}

#[test]
fn cached_tools_of_a_stopped_server_follow_its_entry() {
    let setup = Setup::one(&Script::named(&["read", "write"]))
        .top("connect", json!("on-use"))
        .top("toolMode", json!("dynamic"));
    setup.write_config();
    let warm = |setup: &Setup| {
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).arg("warm");
        assert!(command.output().unwrap().status.success());
    };
    warm(&setup);
    let mut edited = Edited::of(&setup);
    edited.fs()["env"]["OTHER"] = json!("value");
    edited.save();
    warm(&setup);
    edited.fs()["env"].as_object_mut().unwrap().remove("OTHER");
    let mut workbench = setup.connect();
    workbench.open("dev");
    let listed = |workbench: &mut Workbench| {
        let listed = workbench.ask("tools/list", "{}").result().to_string();
        ["dev__fs__read", "dev__fs__write"].map(|name| listed.contains(name))
    };
    assert_eq!(listed(&mut workbench), [true, true]);
    edited.fs()["toolFilters"] = json!(["write"]);
    edited.take_up(&workbench);
    assert_eq!(listed(&mut workbench), [false, true]);
    edited.fs()["toolFilters"] = json!(["read"]);
    edited.fs()["env"]["OTHER"] = json!("value");
    edited.take_up(&workbench);
    assert_eq!(listed(&mut workbench), [true, false]);
    assert_eq!(workbench.journal("dev", "fs").pids().len(), 2, "by `warm`");
}
