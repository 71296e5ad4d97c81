//! Connecting to servers, failures of some or all of them, and a second open.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Message, Script, Setup, TIMEOUT, poll};

/// A way to fail, and the reported reason.
struct Failure {
    script: Script,
    keys: Value,
    reason: &'static str,
}

fn failures() -> [Failure; 5] {
    let start = |actions: &str| Script::new().set("onStart", actions);
    [
        Failure {
            script: Script::new(),
            keys: json!({"command": "no-such-command-anywhere"}),
            reason: "command 'no-such-command-anywhere' not found",
        },
        Failure {
            script: start(
                r#"[{"stderr":"reading settings"},{"stderr":"no database given"},{"exit":3}]"#,
            ),
            keys: json!({}),
            reason: "exited with code 3 before answering initialize; stderr: reading settings | no database given",
        },
        Failure {
            script: Script::new().on_method(
                "initialize",
                r#"[{"stderr":"cannot say hello"},{"exit":0}]"#,
            ),
            keys: json!({}),
            reason: "exited with code 0 before answering initialize; stderr: cannot say hello",
        },
        Failure {
            script: start(r#"["hang"]"#),
            keys: json!({"connectTimeoutMs": 1000}),
            reason: "connection timeout after 1 s",
        },
        Failure {
            script: Script::new().on_method("tools/list", r#"["hang"]"#),
            keys: json!({"connectTimeoutMs": 2000}),
            reason: "connection timeout after 2 s",
        },
    ]
}

#[test]
fn a_failed_server_is_reported_with_its_reason_and_does_not_affect_others() {
    for failure in failures() {
        let mut workbench = Setup::new()
            .toolbox("dev", "Development tools")
            .server_with("database", &failure.script, &failure.keys)
            .server("fs", &Script::named(&["pid"]))
            .connect();
        let result = workbench.open("dev");
        assert_eq!(result.tool_names(), ["pid"]);
        let opened = result.json();
        assert_eq!(opened["servers_connected"], 1);
        let line = format!(
            "Failed to connect to server 'database' in toolbox 'dev': {}",
            failure.reason
        );
        assert_eq!(opened["_errors"], json!([line]));
        assert!(!workbench.use_tool("pid", "{}").failed());
    }
}

#[test]
fn only_the_end_of_a_long_stderr_is_reported() {
    let lines: Vec<String> = (0..100)
        .map(|n| format!(r#"{{"stderr":"line {n} {}"}}"#, "x".repeat(40)))
        .collect();
    let actions = format!("[{},{{\"exit\":1}}]", lines.join(","));
    let mut workbench = Setup::one(&Script::new().set("onStart", &actions)).connect();
    let result = workbench.open("dev");
    let (_, tail) = result.error().split_once("; stderr: ").unwrap();
    assert!(tail.chars().count() <= 500, "{tail}");
    assert!(
        tail.ends_with(&format!("line 99 {}", "x".repeat(40))),
        "{tail}"
    );
    assert!(tail.contains(" | line 98 "), "{tail}");
}

#[test]
fn when_all_servers_fail_the_toolbox_is_not_open() {
    let missing = json!({"command": "no-such-command-anywhere"});
    let exits = Script::new().set("onStart", r#"[{"stderr":"bad"},{"exit":9}]"#);
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server_with("a", &Script::new(), &missing)
        .server("b", &exits)
        .connect();
    assert_eq!(
        workbench.open("dev").error(),
        "Error opening toolbox 'dev': Failed to connect to server 'a' in toolbox 'dev': command 'no-such-command-anywhere' not found; Failed to connect to server 'b' in toolbox 'dev': exited with code 9 before answering initialize; stderr: bad"
    );
    assert_eq!(
        workbench.use_tool_of(["dev", "b", "echo"], "{}").error(),
        "Error: Toolbox 'dev' is not open. Call open_toolbox first."
    );
}

#[test]
fn opening_again_retries_only_those_that_failed() {
    let setup = Setup::new();
    let file = setup.path("tried");
    let once = json!([{"once": {"file": file, "actions": [{"exit": 1}]}}]).to_string();
    let mut workbench = setup
        .toolbox("dev", "d")
        .server("steady", &Script::named(&["a"]))
        .server_with(
            "shaky",
            &Script::named(&["b"]).set("onStart", &once),
            &json!({"era": "legacy"}),
        )
        .connect();
    let first = workbench.open("dev").json();
    assert_eq!(first["servers_connected"], 1);
    assert_eq!(first["_errors"].as_array().map(Vec::len), Some(1));
    let second = poll(TIMEOUT, || {
        let opened = workbench.open("dev");
        (opened.json()["servers_connected"] == 2).then_some(opened)
    });
    let second = second.expect("the retried server comes up");
    assert_eq!(second.tool_names(), ["a", "b"]);
    assert_eq!(second.json().get("_errors"), None);
    assert_eq!(workbench.journal("dev", "steady").pids().len(), 1);
    assert_eq!(workbench.journal("dev", "shaky").pids().len(), 2);
}

#[test]
fn an_open_toolbox_stays_open_when_its_servers_cannot_be_started_again() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    let script = workbench.setup.path("fixtures/0.json");
    let working = std::fs::read_to_string(&script).unwrap();
    workbench.setup.write("fixtures/0.json", "broken");
    workbench.use_tool("crash", "{}");
    let refused = workbench.use_tool("echo", "{}");
    assert_eq!(refused.failure()["code"], "server_start_failed");
    let again = workbench.open("dev");
    let again = again.error();
    assert!(
        again.starts_with("Error opening toolbox 'dev': "),
        "{again}"
    );
    workbench.setup.write("fixtures/0.json", &working);
    let answered = poll(TIMEOUT, || {
        let result = workbench.use_tool("echo", "{}");
        if result.failed() {
            assert_ne!(result.failure()["code"], "toolbox_not_open");
            return None;
        }
        Some(())
    });
    assert!(answered.is_some(), "the server never came back");
}

#[test]
fn a_second_open_is_answered_from_memory() {
    let mut workbench = Setup::one(&Script::named(&["a"])).connect();
    let first = workbench.open("dev").raw;
    assert_eq!(workbench.open("dev").raw, first);
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.pids().len(), 1);
    assert_eq!(journal.received("initialize").len(), 1);
    assert_eq!(journal.received("notifications/initialized").len(), 1);
    assert_eq!(journal.received("tools/list").len(), 1);
}

#[test]
fn concurrent_opens_connect_once() {
    let setup = Setup::new();
    let gate = json!([{"awaitFile": setup.path("gate")}]).to_string();
    let script = Script::named(&["a"]).set("onStart", &gate);
    let mut workbench = setup.toolbox("dev", "d").server("fs", &script).connect();
    let ids: Vec<String> = (0..5)
        .map(|_| workbench.send_call("open_toolbox", r#"{"toolbox":"dev"}"#))
        .collect();
    workbench.ask("ping", "{}");
    workbench.setup.write("gate", "");
    for id in &ids {
        assert_eq!(workbench.tool_result(id).tool_names(), ["a"]);
    }
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.pids().len(), 1);
    assert_eq!(journal.received("tools/list").len(), 1);
}

#[test]
fn servers_are_connected_in_parallel() {
    let setup = Setup::new();
    let (one, two) = (setup.path("one"), setup.path("two"));
    // Each waits for the other: started one after the other, the first would never be up.
    let meet = |mine, other| json!([{"touch": mine}, {"awaitFile": other}]).to_string();
    let first = Script::named(&["a"]).set("onStart", &meet(&one, &two));
    let second = Script::named(&["b"]).set("onStart", &meet(&two, &one));
    let mut workbench = setup
        .toolbox("dev", "d")
        .server("first", &first)
        .server("second", &second)
        .connect();
    assert_eq!(workbench.open("dev").tool_names(), ["a", "b"]);
}

#[test]
fn each_toolbox_has_its_own_connection_and_environment() {
    let script = Script::new();
    let mut workbench = Setup::new()
        .toolbox("one", "d")
        .server_with("fs", &script, &json!({"env": {"WHO": "first"}}))
        .toolbox("two", "d")
        .server_with("fs", &script, &json!({"env": {"WHO": "second"}}))
        .connect();
    for (toolbox, who) in [("one", "first"), ("two", "second")] {
        workbench.open(toolbox);
        let result = workbench.use_tool_of([toolbox, "fs", "env"], "{}");
        assert_eq!(result.structured()["WHO"], who);
    }
    let pid_of = |toolbox| workbench.journal(toolbox, "fs").pids();
    assert_eq!((pid_of("one").len(), pid_of("two").len()), (1, 1));
    assert_ne!(pid_of("one"), pid_of("two"));
}

#[test]
fn the_handshake_offers_2025_11_25_and_accepts_older_revisions() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let script = Script::named(&["a"]).set("protocolVersion", &format!("\"{version}\""));
        let mut workbench = Setup::new()
            .toolbox("dev", "d")
            .server_with("fs", &script, &json!({"era": "legacy"}))
            .connect();
        assert_eq!(workbench.open("dev").tool_names(), ["a"], "{version}");
        let journal = workbench.journal("dev", "fs");
        let initialize = &journal.received("initialize")[0];
        assert_eq!(initialize.params()["protocolVersion"], "2025-11-25");
        let methods: Vec<_> = journal
            .events("in")
            .into_iter()
            .filter_map(|line| Message::parse(line).method)
            .collect();
        assert_eq!(
            methods,
            ["initialize", "notifications/initialized", "tools/list"]
        );
    }
}

#[test]
fn requests_of_a_starting_server_are_answered() {
    let rows = [
        ("ping", r#""result":{}"#),
        ("unheard/of", r#""code":-32601"#),
    ];
    for (method, answer) in rows {
        let asks =
            format!(r#"[{{"request":{{"method":"{method}"}}}},{{"answer":{{"content":[]}}}}]"#);
        let script = Script::named(&["ask"]).on_call("ask", &asks);
        let mut workbench = Setup::one(&script).connect();
        workbench.open("dev");
        workbench.use_tool("ask", "{}");
        let lines = workbench.journal("dev", "fs").events("in");
        let reply = lines.iter().find(|line| line.contains("\"fixture-1\""));
        let reply = reply.expect("an answer to the server's request");
        assert!(reply.contains(answer), "{reply}");
    }
}

/// A server that is up as soon as the file `gate` exists.
fn gated(setup: &Setup, tools: &[&str]) -> Script {
    let gate = json!([{"awaitFile": setup.path("gate")}]).to_string();
    Script::named(tools).set("onStart", &gate)
}

#[test]
fn an_open_does_not_wait_for_bad_servers_once_a_good_one_is_up() {
    let setup = Setup::new();
    let silent = gated(&setup, &["late"]);
    let crashing = Script::new().set("onStart", r#"[{"exit":3}]"#);
    let mut workbench = setup
        .top("openWaitMs", json!(300))
        .toolbox("dev", "d")
        .server("good", &Script::named(&["a"]))
        .server("silent", &silent)
        .server_with("crashing", &crashing, &json!({"era": "legacy"}))
        .connect();
    let failed =
        |server: &str| format!("Failed to connect to server '{server}' in toolbox 'dev': ");
    let silent = format!("{}still starting", failed("silent"));
    let crashing = failed("crashing");
    for arguments in [
        json!({"toolbox": "dev"}),
        json!({"toolbox": "dev"}),
        json!({"toolbox": "dev", "detail": "names"}),
        json!({"toolbox": "dev", "detail": "full"}),
    ] {
        let opened = workbench.call("open_toolbox", &arguments.to_string());
        for part in [&silent, &crashing] {
            assert!(opened.text().contains(part), "{}", opened.text());
        }
        if arguments["detail"] != "names" {
            assert_eq!(opened.json()["servers_connected"], 1);
            assert_eq!(opened.tool_names(), ["a"]);
        }
    }
    assert_eq!(workbench.journal("dev", "good").pids().len(), 1);
    workbench.setup.write("gate", "");
    let seen = poll(TIMEOUT, || {
        (workbench.open("dev").tool_names() == ["a", "late"]).then_some(())
    });
    assert!(seen.is_some(), "the silent server never came");
    assert_eq!(workbench.journal("dev", "silent").pids().len(), 1);
}

/// Five failures open the breaker in any case. The pauses before the four retries, 250 ms to 2 s, are what the back-off adds.
#[test]
fn opening_again_respects_the_back_off_of_a_crashing_server() {
    let crashing = Script::new().set("onStart", r#"[{"exit":3}]"#);
    let mut workbench = Setup::one(&Script::named(&["a"]))
        .server_with("crashing", &crashing, &json!({"era": "legacy"}))
        .connect();
    let start = Instant::now();
    let tripped = poll(TIMEOUT, || {
        let errors = workbench.open("dev").json()["_errors"].clone();
        let error = errors[0].as_str().unwrap_or_default();
        assert!(error.contains("exited with code 3"), "{error}");
        error.contains("failed 5 times").then_some(())
    });
    assert!(tripped.is_some(), "the breaker never opened");
    assert!(
        start.elapsed() >= Duration::from_millis(3750),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(workbench.journal("dev", "crashing").pids().len(), 5);
}
