//! `warm`: every server is started once, reported in one line, and ended.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{command, folder, lists, on_use, open, starts, warm, warmed};
use crate::harness::{Script, Setup, TIMEOUT, poll, survivors};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A toolbox with a server that is fine and one that is not, and a toolbox beside it.
fn mixed() -> Setup {
    Setup::one(&Script::named(&["a", "b"]))
        .entry("bad", json!({"command": "/no/such/program"}))
        .toolbox("ops", "Operations")
        .server("db", &Script::named(&["query"]))
}

#[test]
fn each_server_has_a_line_and_failures_have_a_reason() {
    let setup = mixed();
    let output = warm(&setup);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 6, "{said}");
    assert!(lines[0].starts_with("dev/fs: 2 tools, "), "{said}");
    assert_eq!(
        lines[1],
        "dev/bad: failed: command '/no/such/program' not found"
    );
    assert!(lines[2].starts_with("ops/db: 1 tool, "), "{said}");
    assert_eq!(lines[4], "cached the tools of 2 of 3 servers");
    let place = folder(&setup).display().to_string();
    assert!(
        lines[5].starts_with(&format!("{place} contains 2 servers, ")),
        "{said}"
    );
    let remark = text(&output.stderr);
    assert!(
        remark.starts_with("1 server not cached\n  hint: "),
        "{remark}"
    );
    assert_eq!(lists(&setup).len(), 2);
    let gone = poll(TIMEOUT, || survivors(&setup.mark).is_empty().then_some(()));
    assert!(gone.is_some(), "servers are left");
}

#[test]
fn toolboxes_can_be_named() {
    let setup = mixed();
    let output = command(&setup, &["warm", "ops"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).starts_with("ops/db: "), "{output:?}");
    assert!(setup.journal("dev", "fs").pids().is_empty());
    let unknown = command(&setup, &["warm", "ops", "opps"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    let said = text(&unknown.stderr);
    assert!(said.contains("there is no toolbox `opps`"), "{said}");
    assert!(said.contains("did you mean `ops`?"), "{said}");
}

#[test]
fn json_has_the_same_content() {
    let setup = mixed();
    let output = command(&setup, &["warm", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for server in report["servers"].as_array_mut().unwrap() {
        assert!(
            server
                .as_object_mut()
                .unwrap()
                .remove("milliseconds")
                .unwrap()
                .is_u64()
        );
    }
    assert!(report["folderBytes"].as_u64().unwrap() > 100, "{report}");
    report["folderBytes"] = json!(0);
    assert_eq!(
        report,
        json!({
            "file": setup.config(),
            "folder": folder(&setup),
            "folderServers": 2,
            "folderBytes": 0,
            "servers": [
                {"toolbox": "dev", "server": "fs", "tools": 2, "kept": true},
                {"toolbox": "dev", "server": "bad", "kept": false,
                    "error": "command '/no/such/program' not found"},
                {"toolbox": "ops", "server": "db", "tools": 1, "kept": true},
            ],
        })
    );
}

#[test]
fn warm_asks_again_and_writes_only_changes() {
    // Without pins no digests of programs are stored, which count only once a program has not changed for a while.
    let setup = on_use(&Script::named(&["a"])).top("pin", json!("off"));
    let setup = warmed(setup);
    let file = super::only_list(&setup);
    let before = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert!(warm(&setup).status.success());
    assert_eq!(
        std::fs::metadata(&file).unwrap().modified().unwrap(),
        before
    );
    super::replace_script(&setup, 0, &Script::named(&["b"]));
    assert!(warm(&setup).status.success());
    let mut workbench = setup.connect();
    assert_eq!(open(&mut workbench), (json!(0), vec!["b".to_owned()]));
    assert_eq!(starts(&workbench, "fs"), 3);
}

#[test]
fn warm_without_a_cache_directory_says_so() {
    let setup = on_use(&Script::named(&["a"]));
    let file = setup.write("no-folder", "");
    let output = warm(&setup.env("XDG_CACHE_HOME", file.to_str().unwrap()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains(" s, not cached: "), "{said}");
    assert!(said.contains("cannot be written"), "{said}");
}
