//! `call`, `list`, `search`, `doctor` and `log` beside a host: they use what runs there.

use std::process::{Output, Stdio};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Client, Machine};
use crate::harness::{Script, Setup, TIMEOUT, kill, poll};

fn script() -> Script {
    Script::named(&["one", "fail", "hang"])
        .answers("one", r#"{"content":[{"type":"text","text":"done"}]}"#)
        .answers(
            "fail",
            r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#,
        )
        .on_call("hang", r#"["awaitCancel"]"#)
}

fn machine() -> Machine {
    Machine::one(&script())
}

fn call(machine: &Machine, arguments: &[&str]) -> Output {
    let mut command = machine.command();
    command.arg("call").args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn commands_start_no_second_server() {
    let machine = machine();
    let mut client = machine.connect();
    client.open();
    assert_eq!(machine.run(&["call", "dev", "fs", "one"]), "done\n");
    // The host forgets the command.
    let alone = poll(TIMEOUT, || {
        (machine.host()["servers"][0]["clients"] == json!([1])).then_some(())
    });
    assert!(alone.is_some());
    let listed = machine.run(&["list", "--tools"]);
    assert!(listed.contains("one("), "{listed}");
    for (command, part) in [
        (&["search", "one"][..], "one"),
        (&["tokens"], "dev"),
        (&["warm"], "3 tools"),
        (&["run", "--types"], "one"),
    ] {
        let printed = machine.run(command);
        assert!(printed.contains(part), "{command:?}: {printed}");
    }
    let doctor = machine.run(&["doctor"]);
    for part in [
        "fs: up, 3 tools, protocol 2025-11-25, runs in the host",
        "has 1 client\n",
        "dev/fs: up, used by 1 client\n",
    ] {
        assert!(doctor.contains(part), "{part}: {doctor}");
    }
    assert_eq!(machine.journal().pids().len(), 1);
    assert!(!client.use_tool("one", "{}").failed());
}

#[test]
fn commands_use_the_host_of_clients_that_share_by_an_option() {
    let setup = Setup::new().toolbox("dev", "Development tools");
    let machine = Machine::not_shared(setup.server_with("fs", &script(), &json!({"cwd": "."})));
    // Without a host they create nothing.
    assert!(!machine.run(&["doctor"]).contains("shared:"));
    assert!(!machine.path("run/mcp-workbench").exists());
    let before = machine.journal().pids().len();
    let mut command = machine.command();
    command.args(["serve", "--shared"]);
    let mut client = Client::spawn(command);
    client.initialize();
    client.open();
    let done = call(&machine, &["dev", "fs", "one"]);
    assert!(done.status.success(), "{done:?}");
    assert!(machine.run(&["doctor"]).contains("shared: host "));
    assert_eq!(machine.journal().pids().len(), before + 1);
}

#[test]
fn a_call_joins_the_server_of_a_client_with_other_capabilities() {
    let machine = machine();
    let mut client = machine.start();
    client.initialize_with(&json!({"roots": {}, "elicitation": {}}));
    client.open();
    machine.run(&["call", "dev", "fs", "one"]);
    assert_eq!(machine.journal().pids().len(), 1);
}

#[test]
fn a_call_is_made_as_a_client_of_the_configuration() {
    let permissions = json!({"deny": ["fail"]});
    let clients = json!({"limited": {"permissions": permissions}});
    let setup = Setup::new().toolbox("dev", "d").top("clients", clients);
    let machine = Machine::new(setup.server_with("fs", &script(), &json!({"cwd": "."})));
    let rows: [(&[&str], i32, &str); 4] = [
        (&["dev", "fs", "one", "--as", "limited"], 0, ""),
        (&["dev", "fs", "fail"], 3, "no"),
        (&["dev", "fs", "fail", "--as", "limited"], 1, "fail"),
        (&["dev", "fs", "one", "--as", "nobody"], 1, "nobody"),
    ];
    let check = || {
        for (arguments, code, said) in rows {
            let done = call(&machine, arguments);
            let stderr = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(code), "{arguments:?}: {stderr}");
            assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        }
    };
    check();
    let mut client = machine.connect();
    client.open();
    check();
    // The denied calls never arrived, alone or in the host.
    assert_eq!(machine.journal().received("tools/call").len(), 4);
}

#[test]
fn a_call_ends_in_the_host_as_it_does_alone() {
    let rows: [(&[&str], i32, &str); 5] = [
        (&["dev", "fs", "one"], 0, "done\n"),
        (&["dev", "fs", "fail"], 3, ""),
        (&["dev", "fs", "none"], 1, ""),
        (&["dev", "none", "one"], 1, ""),
        (&["dev", "fs", "hang", "--timeout", "1"], 1, ""),
    ];
    let (alone, shared) = (machine(), machine());
    let _client = shared.connect();
    for (arguments, code, stdout) in rows {
        let [alone, shared] = [&alone, &shared].map(|machine| call(machine, arguments));
        assert_eq!(shared.status.code(), Some(code), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&shared.stdout), stdout);
        assert_eq!(shared.status, alone.status, "{arguments:?}");
        assert_eq!(
            String::from_utf8_lossy(&shared.stderr),
            String::from_utf8_lossy(&alone.stderr),
            "{arguments:?}"
        );
    }
    assert_eq!(alone.hosts(), Vec::<Value>::new(), "no host is started");
    // The call that took too long was cancelled.
    let cancelled = shared.journal().received("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
}

#[test]
fn a_call_whose_host_is_killed_has_an_unknown_outcome() {
    let machine = machine();
    let _client = machine.connect();
    let mut command = machine.command();
    command.args(["call", "dev", "fs", "hang"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    machine.wait_received("tools/call", 1);
    kill(machine.host_pid(), Signal::KILL);
    let status = poll(TIMEOUT, || child.try_wait().unwrap()).unwrap();
    assert_eq!(status.code(), Some(1));
    let said = child.wait_with_output().unwrap().stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("shared workbench process ended"), "{said}");
}

#[test]
fn doctor_explains_what_is_shared_and_what_is_not() {
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with(
            "fs",
            &script(),
            &json!({"env": {"T": "${TOKEN}"}, "cwd": "."}),
        )
        .server_with("own", &script(), &json!({"share": "client"}));
    let machine = Machine::new(setup);
    let clients = ["1", "2"].map(|token| machine.open_with("TOKEN", token));
    let mut command = machine.command();
    command.args(["doctor", "--json"]).env("TOKEN", "1");
    let document: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let sharing = &document["sharing"];
    assert_eq!(sharing["host"], machine.host_pid());
    assert_eq!(sharing["clients"], 2);
    let apart: Vec<&Value> = sharing["servers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["server"] == "fs")
        .map(|it| &it["apart"])
        .collect();
    assert_eq!(apart, ["variables differ: T", "variables differ: T"]);
    assert_eq!(
        sharing["per_client"],
        json!([{"toolbox": "dev", "server": "own", "reason": "`share` is `client`"}])
    );
    drop(clients);
}

#[test]
fn doctor_says_why_clients_are_served_alone() {
    let machine = machine();
    std::fs::remove_dir(machine.path("run")).unwrap();
    let doctor = machine.run(&["doctor"]);
    let said = "shared: clients are served alone: ";
    assert!(doctor.contains(said), "{doctor}");
}

#[test]
fn the_audit_log_has_the_calls_of_all_clients_once() {
    let setup = Setup::new()
        .top("audit", json!(true))
        .toolbox("dev", "Development tools")
        .server_with("fs", &script(), &json!({"cwd": "."}));
    let machine = Machine::new(setup);
    let mut clients = [machine.connect(), machine.connect()];
    for client in &mut clients {
        client.open();
        client.use_tool("one", "{}");
    }
    machine.run(&["call", "dev", "fs", "one"]);
    let written = poll(TIMEOUT, || {
        let mut command = machine.command();
        let log = command.args(["log", "--json", "--tool", "one"]).output();
        let count = String::from_utf8(log.unwrap().stdout)
            .unwrap()
            .lines()
            .count();
        (count >= 3).then_some(count)
    });
    assert_eq!(written, Some(3));
}
