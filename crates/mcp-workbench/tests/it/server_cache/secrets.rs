//! Two accounts never share a list, and no value of a variable is on disk.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{command, lists, open, session, starts, warm, warmed};
use crate::harness::{Script, Setup};

const CANARY: &str = "canary-4f1d9c";

/// All that is in a folder, names included.
fn everything_in(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        text.push_str(&path.to_string_lossy());
        if path.is_dir() {
            text.push_str(&everything_in(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    text
}

/// A server whose entry takes a variable in three ways.
fn with_variable(script: &Script, value: &str) -> Setup {
    Setup::new()
        .toolbox("dev", "Development tools")
        .server_with(
            "fs",
            script,
            &json!({"env": {"TOKEN": "${ACCOUNT}"}, "args": ["${ACCOUNT}"]}),
        )
        .top("connect", json!("on-use"))
        .env("ACCOUNT", value)
}

#[test]
fn a_different_account_has_its_own_list() {
    let setup = warmed(with_variable(&Script::named(&["echo"]), "one"));
    let mut workbench = setup.env("ACCOUNT", "two").connect();
    assert_eq!(open(&mut workbench).0, 1, "it is asked itself");
    assert_eq!(starts(&workbench, "fs"), 2);
}

#[test]
fn a_different_inherited_variable_has_its_own_list() {
    let rows: [(&str, &str, &str); 3] = [
        ("GH_TOKEN", "one", "two"),
        ("HOME", "/tmp", "/"),
        ("XDG_CONFIG_HOME", "/tmp/a", "/tmp/b"),
    ];
    for (name, one, two) in rows {
        let keys = json!({"inheritEnv": ["GH_TOKEN"]});
        let setup = Setup::new()
            .toolbox("dev", "d")
            .server_with("fs", &Script::named(&["echo"]), &keys)
            .top("connect", json!("on-use"))
            .env(name, one);
        let setup = warmed(setup);
        let said = session(&setup, &[("open_toolbox", r#"{"toolbox":"dev"}"#)]);
        assert!(
            said.contains(r#"\"servers_connected\":0"#),
            "{name}: {said}"
        );
        let mut workbench = setup.env(name, two).connect();
        assert_eq!(open(&mut workbench).0, 1, "{name}");
    }
}

#[test]
fn no_value_of_a_variable_is_on_disk() {
    let setup = warmed(with_variable(&Script::named(&["echo"]), CANARY));
    assert_eq!(lists(&setup).len(), 1);
    let kept = everything_in(&setup.path("cache"));
    assert!(!kept.contains(CANARY), "{kept}");
    let entry = setup.config_text();
    assert!(
        entry.contains("/fixtures/") && !kept.contains("/fixtures/"),
        "{kept}"
    );
}

#[test]
fn a_list_that_contains_a_secret_is_not_cached() {
    let repeats = format!(
        r#"[{{"name":"echo","description":"as {CANARY}","inputSchema":{{"type":"object"}}}}]"#
    );
    let script = Script::new().tools(&repeats);
    let literal = Setup::new().toolbox("dev", "d").server_with(
        "fs",
        &script,
        &json!({"env": {"API_TOKEN": CANARY}}),
    );
    for setup in [with_variable(&script, CANARY), literal] {
        let output = warm(&setup);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let reason = "not cached: its tool list contains a value that may be a secret";
        assert!(text.contains(reason), "{text}");
        assert!(!everything_in(&setup.path("cache")).contains(CANARY));
        for trust in ["revoke", "approve"] {
            let output = command(&setup, &["trust", trust, "--yes"]).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        assert!(!everything_in(&setup.path("cache")).contains(CANARY));
        // It is connected as if it had never been seen.
        let mut workbench = setup.connect();
        assert_eq!(open(&mut workbench).0, 1);
    }
}
