//! Values that come from files, and values that land where everybody can read them.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{Script, Setup};

#[test]
fn a_value_from_a_file_is_redacted_everywhere() {
    let actions =
        json!([{"error": {"code": -32000, "message": "the token hunter2-of-a-file is bad"}}]);
    let script = Script::named(&["t", "env"]).on_call("t", &actions.to_string());
    let keys = json!({"env": {"TOKEN": "${file:secrets/token}"}});
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &script, &keys);
    setup.write("config/secrets/token", "hunter2-of-a-file\n");
    let mut workbench = setup.connect();
    workbench.open("dev");
    let environment = workbench.use_tool("env", "{}").structured();
    assert_eq!(environment["TOKEN"], "hunter2-of-a-file");
    let failed = workbench.use_tool("t", "{}");
    assert!(
        failed.raw.contains("the token [redacted] is bad"),
        "{}",
        failed.raw
    );
}

#[test]
fn a_missing_secret_file_fails_its_server_only() {
    let keys = json!({"env": {"TOKEN": "${file:secrets/token}"}});
    let setup = Setup::one(&Script::new()).server_with("other", &Script::new(), &keys);
    let mut workbench = setup.connect();
    let opened = workbench.open("dev");
    let opened = opened.text();
    let reason = "file secrets/token does not exist (toolboxes.dev.mcpServers.other.env.TOKEN)";
    assert!(opened.contains(reason), "{opened}");
    assert!(opened.contains("\"servers_connected\":1"), "{opened}");
}

#[test]
fn an_unavailable_keyring_secret_fails_its_server_only() {
    let keys =
        json!({"env": {"TOKEN": "${keyring:no-such-secret}", "OTHER": "${keyring:x:-default}"}});
    let setup = Setup::one(&Script::new()).server_with("other", &Script::new(), &keys);
    let mut workbench = setup.connect();
    let opened = workbench.open("dev");
    let opened = opened.text();
    assert!(opened.contains("secret no-such-secret "), "{opened}");
    assert!(!opened.contains("secret x "), "{opened}");
    assert!(opened.contains("\"servers_connected\":1"), "{opened}");
}

#[test]
fn a_secret_in_the_arguments_is_warned_about() {
    let args = json!([
        "${API_TOKEN}",
        "${PROJECT}",
        "--key=${file:key}",
        "--token",
        "${OTHER}"
    ]);
    let keys = json!({"args": args});
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &Script::new(), &keys)
        .env("API_TOKEN", "hunter2-of-a-variable")
        .env("PROJECT", "the-project")
        .env("OTHER", "hunter2-behind-an-option");
    setup.write("config/key", "hunter2-of-a-file");
    setup.write_config();
    let config = setup.config();
    let config = config.to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["check", "--config", &config]);
    let finished = workbench.finish();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let said = format!("{}\n{}", finished.stdout.join("\n"), finished.stderr);
    let warned =
        |what: &str| said.contains(&format!("the value of {what} is passed as an argument"));
    assert!(warned("API_TOKEN") && warned("a file"), "{said}");
    assert!(warned("OTHER"), "{said}");
    assert!(!warned("PROJECT") && !said.contains("hunter2"), "{said}");
}
