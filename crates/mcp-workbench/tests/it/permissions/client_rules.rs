//! `mcp-workbench permissions`: the rules, the snippets for clients, and the answers to hooks.

use std::{
    io::Write,
    process::{Output, Stdio},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::setup;
use crate::harness::{Script, Setup};

fn rules() -> Value {
    json!({"allow": ["read", "@readOnly"], "ask": ["add"], "deny": ["wipe"]})
}

/// Runs the command, with this on its stdin.
fn run(setup: &Setup, arguments: &[&str], stdin: &str) -> Output {
    setup.write_config();
    let mut command = setup.command();
    command
        .arg("permissions")
        .args(arguments)
        .arg("--config")
        .arg(setup.config());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// A question as Claude Code puts it.
fn question(tool: &str, input: &Value) -> String {
    json!({
        "session_id": "abc123",
        "transcript_path": "/home/me/.claude/projects/x/abc123.jsonl",
        "cwd": "/home/me/x",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": input,
        "tool_use_id": "toolu_01",
    })
    .to_string()
}

fn using(toolbox: &str, server: &str, tool: &str) -> String {
    let tool = json!({"toolbox": toolbox, "server": server, "tool": tool});
    question(
        "mcp__workbench__use_tool",
        &json!({"tool": tool, "arguments": {}}),
    )
}

/// The decision of a hook; nothing if it has no opinion.
fn decision(setup: &Setup, arguments: &[&str], stdin: &str) -> Option<String> {
    let output = run(setup, &[&["--hook"], arguments].concat(), stdin);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    if text.is_empty() {
        return None;
    }
    let answer: Value = serde_json::from_str(text).unwrap();
    let answer = &answer["hookSpecificOutput"];
    assert_eq!(answer["hookEventName"], "PreToolUse");
    let reason = answer["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.starts_with("MCP Workbench: "), "{reason}");
    Some(answer["permissionDecision"].as_str().unwrap().to_owned())
}

#[test]
fn a_hook_is_answered_by_the_configuration() {
    let setup = setup(&rules());
    let rows = [
        (using("dev", "fs", "read"), Some("allow")),
        (using("dev", "fs", "add"), Some("ask")),
        (using("dev", "fs", "wipe"), Some("deny")),
        // What its server says of it is not known here.
        (using("dev", "fs", "other"), Some("ask")),
        (using("dev", "nowhere", "read"), Some("ask")),
        (using("nowhere", "fs", "read"), Some("ask")),
        (
            question("mcp__workbench__use_tool", &json!({"tool": "read"})),
            Some("ask"),
        ),
        (
            question("mcp__workbench__open_toolbox", &json!({"toolbox": "dev"})),
            Some("allow"),
        ),
        (
            question("mcp__workbench__search_tools", &json!({"query": "read"})),
            Some("allow"),
        ),
        (
            question("mcp__workbench__read_result", &json!({"result": "x"})),
            Some("allow"),
        ),
        (question("mcp__workbench__dev__fs__read", &json!({})), None),
        (question("mcp__other__use_tool", &json!({})), None),
        (question("Bash", &json!({"command": "ls"})), None),
        ("garbage".to_owned(), Some("ask")),
        (String::new(), Some("ask")),
    ];
    for (stdin, expected) in rows {
        assert_eq!(
            decision(&setup, &[], &stdin).as_deref(),
            expected,
            "{stdin}"
        );
    }
}

fn assert_decides(setup: &Setup, arguments: &[&str], (stdin, expected): (&str, &str)) {
    let decided = decision(setup, arguments, stdin);
    assert_eq!(decided.as_deref(), Some(expected), "{stdin}");
}

#[test]
fn a_hook_can_leave_the_question_to_the_workbench() {
    let setup = setup(&rules());
    let rows = [
        ("read", "allow"),
        ("add", "allow"),
        ("other", "allow"),
        ("wipe", "deny"),
    ];
    for (tool, expected) in rows {
        let stdin = using("dev", "fs", tool);
        assert_decides(&setup, &["--leave-questions"], (&stdin, expected));
    }
}

#[test]
fn a_hook_does_not_decide_for_a_server_without_permissions() {
    let rows = [&[][..], &["--leave-questions"]];
    for arguments in rows {
        let plain = Setup::one(&Script::named(&["read"]));
        assert_eq!(
            decision(&plain, arguments, &using("dev", "fs", "read")),
            None
        );
        let dynamic = warmed(plain.top("toolMode", json!("dynamic")));
        let registered = [("mcp__workbench__dev__fs__read", None)];
        assert_decisions(&dynamic, arguments, &registered);
        let native = [arguments, &["--toolbox", "dev"]].concat();
        assert_decisions(&dynamic, &native, &[("mcp__workbench__read", None)]);
    }
}

fn warmed(setup: Setup) -> Setup {
    setup.write_config();
    let mut command = setup.command();
    command.arg("warm").arg("--config").arg(setup.config());
    assert!(command.output().unwrap().status.success());
    setup
}

/// Adds a server with these tools and permissions to the last toolbox.
fn with_server(setup: Setup, name: &str, tools: &[&str], permissions: &Value) -> Setup {
    let entry = json!({ "permissions": permissions });
    let script = Script::named(tools);
    let script = tools.iter().fold(script, |script, tool| {
        script.answers(tool, r#"{"content":[]}"#)
    });
    setup.server_with(name, &script, &entry)
}

#[track_caller]
fn assert_decisions(setup: &Setup, arguments: &[&str], rows: &[(&str, Option<&str>)]) {
    for (tool, expected) in rows {
        let stdin = question(tool, &json!({}));
        let decided = decision(setup, arguments, &stdin);
        assert_eq!(decided.as_deref(), *expected, "{tool}");
    }
}

#[test]
fn a_hook_looks_registered_names_up_in_the_tool_cache() {
    let dynamic = setup(&rules()).top("toolMode", json!("dynamic"));
    let rows = [
        ("mcp__workbench__dev__fs__read", None),
        ("mcp__workbench__dev__fs__wipe", None),
    ];
    assert_decisions(&dynamic, &[], &rows);
    let rows = [
        ("mcp__workbench__dev__fs__read", Some("allow")),
        ("mcp__workbench__dev__fs__add", Some("ask")),
        ("mcp__workbench__dev__fs__wipe", Some("deny")),
        ("mcp__workbench__dev__fs__unlisted", None),
        ("mcp__workbench__dev__fs_cut_0a1b2c3d", None),
    ];
    assert_decisions(&warmed(dynamic), &[], &rows);
}

#[test]
fn a_hook_recognizes_cut_and_cleaned_names() {
    let setup = Setup::new().toolbox("dev", "d");
    let rules = json!({"allow": ["read file"], "deny": ["wipe.all"]});
    let setup = with_server(setup, "my fs", &["read file", "wipe.all"], &rules);
    let setup = warmed(setup.top("toolMode", json!("dynamic")));
    let mut workbench = setup.connect();
    let opened = workbench.open("dev").json();
    assert_eq!(opened["withheld"][0]["tool"], "wipe.all");
    let listed = workbench.ask("tools/list", "{}").result();
    let registered = listed["tools"].as_array().unwrap().last().unwrap()["name"].clone();
    let registered = registered.as_str().unwrap();
    assert!(
        registered.starts_with("dev__my_fs__read_file_"),
        "{registered}"
    );
    let stdin = question(&format!("mcp__workbench__{registered}"), &json!({}));
    let decided = decision(&workbench.setup, &[], &stdin);
    assert_eq!(decided.as_deref(), Some("allow"));
}

#[test]
fn a_hook_does_not_decide_about_an_ambiguous_name() {
    let allows = json!({"allow": ["c__d"]});
    let denies = json!({"deny": ["d"]});
    for first in ["b", "b__c"] {
        let setup = Setup::new().toolbox("a", "d");
        let order = match first {
            "b" => [("b", "c__d", &allows), ("b__c", "d", &denies)],
            _ => [("b__c", "d", &denies), ("b", "c__d", &allows)],
        };
        let setup = order
            .into_iter()
            .fold(setup, |setup, (server, tool, rules)| {
                with_server(setup, server, &[tool], rules)
            });
        let setup = warmed(setup.top("toolMode", json!("dynamic")));
        for arguments in [&[][..], &["--leave-questions"]] {
            let rows = [("mcp__workbench__a__b__c__d", None)];
            assert_decisions(&setup, arguments, &rows);
        }
        // `use_tool` says which one is meant.
        for (server, tool, expected) in [("b", "c__d", "allow"), ("b__c", "d", "deny")] {
            assert_decides(&setup, &[], (&using("a", server, tool), expected));
        }
        // The workbench runs the one and refuses the other.
        let mut workbench = setup.connect();
        workbench.open("a");
        assert!(!workbench.call("a__b__c__d", "{}").failed());
    }
}

#[test]
fn a_hook_decides_if_all_tools_of_an_ambiguous_name_have_the_same_rule() {
    let rules = json!({"deny": ["d", "c__d"]});
    let setup = Setup::new().toolbox("a", "d");
    let setup = with_server(setup, "b", &["c__d"], &rules);
    let setup = with_server(setup, "b__c", &["d"], &rules);
    let setup = warmed(setup.top("toolMode", json!("dynamic")));
    assert_decisions(&setup, &[], &[("mcp__workbench__a__b__c__d", Some("deny"))]);
}

#[test]
fn a_hook_recognizes_native_names() {
    let setup = Setup::new().toolbox("dev", "d");
    let rules = json!({"deny": ["wipe", "both"], "allow": ["read.it", "same", "a__b"]});
    let setup = with_server(
        setup,
        "fs",
        &["read.it", "wipe", "both", "same", "a__b"],
        &rules,
    );
    let setup = warmed(with_server(setup, "db", &["both", "same"], &json!({})));
    let rows = [
        ("mcp__wb__read_it", Some("allow")),
        ("mcp__wb__a__b", Some("allow")),
        ("mcp__wb__wipe", Some("deny")),
        // Only one server has it, so that it is never shown by this name.
        ("mcp__wb__fs__wipe", None),
        // One of two servers denies it, and either may have the name.
        ("mcp__wb__both", None),
        ("mcp__wb__fs__both", Some("deny")),
        // The server has no rules, so that the client decides.
        ("mcp__wb__db__both", None),
        ("mcp__wb__same", None),
        ("mcp__wb__db__same", None),
        ("mcp__wb__unlisted", None),
        ("mcp__wb__use_tool", None),
    ];
    assert_decisions(&setup, &["--toolbox", "dev", "--name", "wb"], &rows);
}

#[test]
fn a_hook_allows_nothing_of_a_server_with_a_similar_name() {
    // The tool `wipe` of a server that the client calls `workbench__other`.
    let foreign = [("mcp__workbench__other__wipe", None)];
    let left = ["--leave-questions"];
    let native = ["--leave-questions", "--toolbox", "dev"];
    for rules in [json!({}), rules()] {
        let proxy = warmed(setup(&rules));
        assert_decisions(&proxy, &left, &foreign);
        assert_decisions(&proxy, &native, &foreign);
        let dynamic = warmed(setup(&rules).top("toolMode", json!("dynamic")));
        assert_decisions(&dynamic, &left, &foreign);
    }
}

#[test]
fn the_export_for_cursor_says_that_its_list_is_replaced() {
    let output = run(&setup(&json!({})), &["--client", "cursor"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("replaces the one in Cursor's settings"),
        "{said}"
    );
}

#[test]
fn a_configuration_that_cannot_be_read_never_allows() {
    let setup = setup(&rules()).text("{ not json");
    assert_eq!(
        decision(&setup, &[], &using("dev", "fs", "read")).as_deref(),
        Some("ask")
    );
    assert_eq!(decision(&setup, &[], &question("Bash", &json!({}))), None);
}

#[test]
fn the_printed_hook_works() {
    let setup = setup(&rules());
    let output = run(&setup, &["--client", "claude-code"], "");
    let settings: Value = serde_json::from_str(stdout(&output)).unwrap();
    let group = &settings["hooks"]["PreToolUse"][0];
    assert_eq!(group["matcher"], "mcp__workbench__.*");
    let command = group["hooks"][0]["command"].as_str().unwrap();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let stdin = using("dev", "fs", "wipe");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn each_client_gets_its_own_export_or_an_error() {
    let setup = setup(&json!({}));
    let rows = [
        (
            "codex",
            "[mcp_servers.wb.tools.use_tool]\napproval_mode = \"approve\"\n",
        ),
        ("cursor", "\"wb:use_tool\""),
        (
            "gemini-cli",
            "mcpName = \"wb\"\ntoolName = \"use_tool\"\ndecision = \"allow\"\n",
        ),
        ("opencode", "\"wb_use_tool\": \"allow\""),
        ("cline", "\"autoApprove\""),
        ("roo", "\"alwaysAllow\""),
        ("kiro", "\"autoApprove\""),
    ];
    for (client, expected) in rows {
        let output = run(&setup, &["--client", client, "--name", "wb"], "");
        assert_eq!(output.status.code(), Some(0), "{client}");
        assert!(
            stdout(&output).contains(expected),
            "{client}: {}",
            stdout(&output)
        );
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("have no `permissions`: dev/fs"),
            "{client}: {stderr}"
        );
    }
    let output = run(&setup, &["--client", "zed"], "");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("cannot write permission rules for Zed"),
        "{stderr}"
    );
    assert!(stderr.contains("applies its own permissions"), "{stderr}");
}

#[test]
fn the_rules_are_shown() {
    let setup = setup(&rules()).toolbox("other", "o");
    let output = run(&setup, &["--toolbox", "dev"], "");
    let shown =
        "\ndev\n  fs\n    deny  wipe\n    ask   add\n    allow read, @readOnly\n    else  ask\n";
    assert!(stdout(&output).ends_with(shown), "{}", stdout(&output));
    let output = run(&setup, &["--json"], "");
    let document: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(
        document["toolboxes"],
        json!({
            "dev": {"fs": {"deny": ["wipe"], "ask": ["add"], "allow": ["read", "@readOnly"], "otherwise": "ask"}},
            "other": {},
        })
    );
}
