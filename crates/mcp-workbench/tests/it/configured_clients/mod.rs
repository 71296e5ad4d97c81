//! Clients of the configuration: `--as NAME`, and tokens with a name.

mod matrix;
mod tokens;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench};

/// Two toolboxes, and a client `reviewer` that has one of them and may not write.
fn setup() -> Setup {
    let script = Script::new().tools(
        r#"[{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
            {"name":"write","inputSchema":{"type":"object"}}]"#,
    );
    let script = script
        .answers(
            "read",
            &json!({ "content": [{ "type": "text", "text": "x".repeat(500) }] }).to_string(),
        )
        .answers("write", r#"{"content":[]}"#);
    Setup::new()
        .toolbox("dev", "Development tools")
        .server("fs", &script)
        .toolbox("ops", "Operations")
        .server("db", &script)
        .top(
            "clients",
            json!({
                "reviewer": {
                    "toolboxes": ["dev"],
                    "permissions": { "deny": ["write"] },
                    "maxResultChars": 100,
                },
                "auditor": { "permissions": { "allow": ["@readOnly"] } },
                "idle": { "toolboxes": [] },
            }),
        )
}

fn start_as(setup: Setup, name: &str) -> Workbench {
    let mut workbench = setup.argument("--as").argument(name).start();
    workbench.initialize();
    workbench
}

#[test]
fn a_client_gets_its_own_toolboxes_permissions_and_budget() {
    let mut workbench = setup().argument("--as").argument("reviewer").start();
    let introduced = workbench.initialize();
    let instructions = introduced["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("**dev**") && !instructions.contains("ops"),
        "{instructions}"
    );
    let list = workbench.ask("tools/list", "{}");
    assert!(!list.line.contains("ops"), "{}", list.line);
    assert_eq!(workbench.open("dev").tool_names(), ["read"]);
    assert_eq!(
        workbench.open("ops").error(),
        "Error: Toolbox 'ops' not found. Available toolboxes: dev"
    );
    let denied = workbench.use_tool("write", "{}");
    assert_eq!(denied.failure()["code"], "permission_denied");
    assert_eq!(
        denied.error(),
        "Error executing tool 'write' in server 'fs' (toolbox 'dev'): the configuration does not permit this tool \
         (rule 'write', for client 'reviewer' under 'deny' of the client's permissions). Do not try to work around \
         this; tell the user, who can change the configuration"
    );
    let cut = workbench.use_tool("read", "{}");
    assert!(cut.raw.contains("[Cut by mcp-workbench"), "{}", cut.raw);
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/call").len(),
        1
    );
}

#[test]
fn the_stricter_of_both_permissions_counts() {
    let mut workbench = start_as(setup(), "auditor");
    assert_eq!(workbench.open("dev").tool_names(), ["read", "write"]);
    assert!(!workbench.use_tool("read", "{}").failed());
    let asked = workbench.use_tool("write", "{}");
    assert_eq!(asked.failure()["code"], "permission_required");
    let mut workbench = start_as(setup(), "idle");
    assert_eq!(
        workbench.open("dev").error(),
        "Error: Toolbox 'dev' not found. Available toolboxes: none"
    );
}

#[test]
fn without_a_name_everything_is_there() {
    let mut workbench = setup().connect();
    assert_eq!(workbench.open("ops").tool_names(), ["read", "write"]);
    assert!(!workbench.use_tool_of(["ops", "db", "write"], "{}").failed());
}

#[test]
fn an_unknown_name_is_refused() {
    for (arguments, expected) in [
        (
            &["--as", "reviewr"][..],
            "there is no client `reviewr` in the configuration\n  \
             hint: did you mean `reviewer`? Its clients are `reviewer`, `auditor`, `idle`",
        ),
        (
            &["--as", "nobody"],
            "there is no client `nobody` in the configuration\n  \
             hint: its clients are `reviewer`, `auditor`, `idle`",
        ),
        (
            &["serve", "--as", "nobody"],
            "there is no client `nobody` in the configuration",
        ),
        (
            &["serve", "--as", "reviewer", "--native", "ops"],
            "client `reviewer` does not have the toolbox `ops`, which native mode shows",
        ),
        (
            &["--as", "reviewer", "list"],
            "--as is an option of serving",
        ),
    ] {
        let setup = setup();
        setup.write_config();
        let config = setup.config();
        let mut all = vec!["--config", config.to_str().unwrap()];
        all.extend(arguments);
        let output = setup.command().args(all).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn native_mode_needs_a_toolbox_of_the_client() {
    let native = |toolbox: &str| {
        setup()
            .top("toolMode", json!("native"))
            .top("nativeToolbox", json!(toolbox))
    };
    let mut workbench = start_as(native("dev"), "reviewer");
    let list = workbench.ask("tools/list", "{}").result();
    assert_eq!(list["tools"].as_array().unwrap().len(), 1);
    let refused = workbench.call("write", "{}");
    assert_eq!(refused.failure()["code"], "permission_denied");
    let finished = native("ops")
        .argument("--as")
        .argument("reviewer")
        .start()
        .finish();
    assert!(
        finished
            .stderr
            .contains("client `reviewer` does not have the toolbox `ops`, which native mode shows"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_audit_log_has_the_name() {
    let setup = setup();
    let log = setup.path("audit.jsonl");
    let mut workbench = start_as(setup.top("audit", json!({ "file": log })), "reviewer");
    workbench.open("dev");
    workbench.use_tool("read", "{}");
    workbench.finish();
    let line = std::fs::read_to_string(&log).unwrap();
    let line: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert_eq!(
        line["client"],
        json!({ "as": "reviewer", "name": "it", "version": "1", "principal": "local" })
    );
}

#[test]
fn a_reload_applies_to_the_client() {
    let mut workbench = start_as(setup(), "reviewer");
    workbench.open("dev");
    let config = workbench.setup.config();
    let text = std::fs::read_to_string(&config).unwrap();
    let both = text.replace("\"dev\"\n      ],", "\"dev\",\n        \"ops\"\n      ],");
    assert_ne!(both, text);
    std::fs::write(&config, &both).unwrap();
    workbench.notification("notifications/tools/list_changed");
    assert_eq!(workbench.open("ops").tool_names(), ["read"]);
    // A file without the client is not applied.
    std::fs::write(&config, both.replace("\"reviewer\"", "\"other\"")).unwrap();
    workbench.wait_stderr("there is no client `reviewer` in the configuration");
    assert_eq!(workbench.open("ops").tool_names(), ["read"]);
}

#[test]
fn faults_of_clients_have_a_place_and_a_remedy() {
    let setup = setup().top(
        "clients",
        json!({ "a": { "toolboxes": ["dve"], "permisions": {} }, " ": {} }),
    );
    let finished = setup.start().finish();
    for part in [
        "clients.a.toolboxes[0]: there is no toolbox `dve`\n  hint: did you mean `dev`?",
        "clients.a.permisions: unknown key `permisions`\n  hint: did you mean `permissions`?",
        "the name of a client is empty",
    ] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}
