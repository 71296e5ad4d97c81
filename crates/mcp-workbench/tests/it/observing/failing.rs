//! Servers that hang, fail or are stopped while they start: the page and its commands say what is known.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{act, command, cookie, document, page_document, stdout};
use crate::harness::{Script, Served, Setup, TIMEOUT, poll};

/// The server `fs` works, `late` never answers its first request, `broken` ends, and `missing` does not exist.
fn served() -> Served {
    let hangs = r#"[{"stderr":"waiting for the database"},"hang"]"#;
    let ends = r#"[{"stderr":"no such table"},{"exit":3}]"#;
    let late = Script::named(&["never"])
        .on_method("initialize", hangs)
        .on_method("server/discover", hangs);
    let broken = Script::named(&["never"])
        .on_method("initialize", ends)
        .on_method("server/discover", ends);
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("fs", &Script::named(&["read"]))
        .server("late", &late)
        .server("broken", &broken)
        .entry("missing", json!({"command": "no-such-program-anywhere"}));
    setup.serve()
}

fn server(served: &Served, name: &str) -> Value {
    let document = document(served, &["live", "servers", "--json"]);
    let mut servers = document["servers"].as_array().unwrap().iter();
    servers.find(|it| it["server"] == name).unwrap().clone()
}

/// Begins to start a server, without waiting for the end of that.
fn start(served: &Served, name: &str) -> std::process::Child {
    let setup = &served.workbench.setup;
    let mut command = setup.command();
    command.arg("--config").arg(setup.config());
    let start = command.args(["live", "start", "dev", name]);
    start.stderr(std::process::Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_server_that_hangs_shows_its_process_and_can_be_stopped() {
    let served = served();
    let starting = start(&served, "late");
    let shown = poll(TIMEOUT, || {
        let late = server(&served, "late");
        let has_said = late["stderr"].as_array().is_some_and(|it| !it.is_empty());
        (late["state"] == "starting" && has_said).then_some(late)
    });
    let shown = shown.expect("a server that is starting");
    assert!(shown["pid"].is_u64(), "{shown}");
    assert_eq!(shown["stderr"][0], "waiting for the database");
    stdout(&served, &["live", "stop", "dev", "late"]);
    let stopped = server(&served, "late");
    assert_eq!(stopped["state"], "failed");
    assert_eq!(stopped["reason"], "it was stopped while it was starting");
    assert_eq!(stopped["pid"], Value::Null);
    let refused = starting.wait_with_output().unwrap();
    assert!(!refused.status.success());
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("stopped while it was starting"), "{stderr}");
}

#[test]
fn a_server_that_failed_has_its_reason_its_remedy_and_its_stderr() {
    let served = served();
    for name in ["broken", "missing"] {
        let started = command(&served, &["live", "start", "dev", name]);
        assert!(!started.status.success(), "{name}");
    }
    let broken = server(&served, "broken");
    assert_eq!(broken["state"], "failed");
    assert_eq!(broken["stderr"], json!(["no such table"]));
    assert_eq!(broken["pid"], Value::Null);
    let missing = server(&served, "missing");
    let reason = "command 'no-such-program-anywhere' not found";
    assert_eq!(missing["reason"], reason);
    let remedy = "install it, or write its full path as \"command\"";
    assert_eq!(missing["remedy"], remedy);
}

#[test]
fn a_server_that_hangs_does_not_hide_the_tools_of_others() {
    let served = served();
    let cookie = cookie(&served);
    let tools = page_document(&served, &cookie, "tools");
    let servers = tools["toolboxes"][0]["servers"].as_array().unwrap();
    let [fs, late, broken, missing] = &servers[..] else {
        panic!("{servers:?}");
    };
    assert_eq!(fs["tools"][0]["name"], "read");
    assert_eq!(late["error"], "still starting");
    assert_eq!(broken["status"], "failed");
    assert_eq!(missing["status"], "failed");
    let tokens = page_document(&served, &cookie, "tokens");
    assert_eq!(tokens["tools"], 1);
    let found = page_document(&served, &cookie, "search?q=read");
    assert_eq!(found["hits"][0]["tool"], "read");
    assert_eq!(found["failed"].as_array().unwrap().len(), 3);
    // The tools are those of the running workbench: no process was started besides its own.
    let starts = served.workbench.journal("dev", "fs").received("initialize");
    assert_eq!(starts.len(), 1);
    let place = json!({"toolbox": "dev", "server": "late", "action": "stop"});
    assert_eq!(act(&served, &cookie, "servers", &place).0, 200);
}
