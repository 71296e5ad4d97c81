//! `list`.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{document, exit_code, run};
use crate::harness::{Script, Setup};

fn two_toolboxes() -> Setup {
    Setup::one(&Script::named(&["read", "write"]))
        .toolbox("ops", "Operations\u{1b}[2J")
        .entry("gone", json!({"command": "no-such-program-anywhere"}))
}

#[test]
fn list_starts_no_server() {
    let setup = two_toolboxes();
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &["list"]);
    assert_eq!(exit_code(&finished), 0, "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    let text = finished.stdout.join("\n");
    for part in [
        "dev: Development tools",
        "ops: Operations⟦U+001B⟧[2J",
        "gone    stdio      no      no-such-program-anywhere",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(journal.lines().is_empty());
}

#[test]
fn one_toolbox_can_be_listed_and_a_wrong_name_gets_a_suggestion() {
    let (finished, _setup) = run(two_toolboxes(), &["list", "dev", "--json"]);
    let listed = document(&finished);
    assert_eq!(listed["toolboxes"].as_array().unwrap().len(), 1);
    assert_eq!(listed["toolboxes"][0]["name"], "dev");
    let (finished, _setup) = run(two_toolboxes(), &["list", "devv"]);
    assert_eq!(exit_code(&finished), 1);
    assert_eq!(finished.stdout, Vec::<String>::new());
    assert!(
        finished.stderr.contains("did you mean `dev`?"),
        "{}",
        finished.stderr
    );
}

#[test]
fn disabled_servers_are_named() {
    let setup = || {
        Setup::new()
            .toolbox("ops", "Operations")
            .entry("off", json!({"command": "x", "disabled": true}))
    };
    let (finished, _setup) = run(setup(), &["list"]);
    let text = finished.stdout.join("\n");
    assert!(text.ends_with("ops: Operations\n  disabled: off"), "{text}");
    let (finished, _setup) = run(setup(), &["list", "--json"]);
    assert_eq!(
        document(&finished)["toolboxes"][0]["disabled"],
        json!(["off"])
    );
    let (finished, _setup) = run(setup(), &["check"]);
    let text = finished.stdout.join("\n");
    assert!(text.ends_with("ops: Operations\n  off: disabled"), "{text}");
    let (finished, _setup) = run(setup(), &["call", "ops", "off", "tool"]);
    assert_eq!(exit_code(&finished), 1);
    assert_eq!(
        finished.stderr,
        "error: the server `off` of toolbox `ops` is disabled\n  hint: mcp-workbench enable ops off\n"
    );
}

#[test]
fn json_has_tools_as_their_servers_describe_them_and_failures_per_server() {
    let (finished, _setup) = run(two_toolboxes(), &["list", "--tools", "--json"]);
    assert_eq!(exit_code(&finished), 1, "a server failed");
    assert_eq!(finished.stderr, "");
    let listed = document(&finished);
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let up = &listed["toolboxes"][0]["servers"][0];
    assert_eq!(up["status"], "up");
    assert_eq!(up["protocol"], "2025-11-25");
    assert_eq!(up["tools"], json!([tool("read"), tool("write")]));
    let failed = &listed["toolboxes"][1]["servers"][0];
    assert_eq!(failed["status"], "failed");
    assert_eq!(
        failed["error"],
        "command 'no-such-program-anywhere' not found"
    );
}

#[test]
fn tools_are_listed_for_people() {
    let (finished, _setup) = run(two_toolboxes(), &["list", "--tools"]);
    let text = finished.stdout.join("\n");
    for part in [
        "fs: 2 tools (protocol 2025-11-25)",
        "    read()\n    write()",
        "gone: failed: command 'no-such-program-anywhere' not found",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn credentials_are_not_shown() {
    let setup = Setup::new()
        .env("TOKEN", "hunter2-from-a-variable")
        .toolbox("dev", "d")
        .entry(
            "a",
            json!({"command": "x", "args": ["--token", "hunter2-literal"]}),
        )
        .entry("b", json!({"command": "x", "args": ["--token=${TOKEN}"]}))
        .entry(
            "c",
            json!({"url": "https://example.com/mcp?api_key=hunter2-literal"}),
        )
        .entry("d", json!({"url": "https://me:hunter2@example.com/mcp"}));
    let (finished, _setup) = run(setup, &["list"]);
    let text = finished.stdout.join("\n");
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.matches("[redacted]").count(), 4, "{text}");
}

#[test]
fn cached_tools_are_listed_with_their_age() {
    let setup = two_toolboxes();
    let warmed = |setup: &Setup, arguments: &[&str]| {
        setup.write_config();
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).args(arguments);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let cached = |listed: &str, toolbox: usize| {
        let listed: serde_json::Value = serde_json::from_str(listed).unwrap();
        listed["toolboxes"][toolbox]["servers"][0]["kept"].clone()
    };
    assert_eq!(cached(&warmed(&setup, &["list", "--json"]), 0), json!(null));
    warmed(&setup, &["warm", "dev"]);
    let listed = warmed(&setup, &["list", "--json"]);
    assert_eq!(cached(&listed, 0)["tools"], 2);
    assert_eq!(cached(&listed, 1), json!(null));
    let text = warmed(&setup, &["list"]);
    assert!(text.contains("fs      stdio      2 tools  "), "{text}");

    let servers = fs::read_dir(setup.path("cache/mcp-workbench/servers")).unwrap();
    let servers = servers.map(|it| it.unwrap().path());
    for file in servers.filter(|it| it.extension().is_some_and(|it| it == "json")) {
        let mut cached: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let confirmed = cached["head"]["confirmed"].as_u64().unwrap();
        cached["head"]["confirmed"] = json!(confirmed - 50 * 60 * 60);
        fs::write(&file, cached.to_string()).unwrap();
    }
    let text = warmed(&setup, &["list"]);
    assert!(text.contains("  2 tools, 2 days old  "), "{text}");
}
