//! A log that cannot be written: no call notices.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{lines_of, setup};

#[test]
fn a_full_disk_is_logged_once_and_calls_succeed() {
    let mut workbench = setup(json!({"file": "/dev/full"})).connect();
    workbench.open("dev");
    for _ in 0..20 {
        assert!(!workbench.use_tool("read", "{}").failed());
    }
    workbench
        .wait_stderr("cannot write the audit log /dev/full; calls continue without being recorded");
    let finished = workbench.finish();
    assert!(finished.status.success());
    assert_eq!(
        finished.stderr.matches("cannot write").count(),
        1,
        "{}",
        finished.stderr
    );
    assert!(
        finished
            .stderr
            .contains("20 calls are missing from the audit log"),
        "{}",
        finished.stderr
    );
}

#[test]
fn missed_lines_are_counted_once_the_folder_can_be_created() {
    let setup = setup(json!({"file": "../blocked/audit.jsonl"}));
    let blocked = setup.write("blocked", "a file, where a folder should be");
    let mut workbench = setup.connect();
    workbench.open("dev");
    assert!(!workbench.use_tool("read", "{}").failed());
    workbench.wait_stderr("calls continue without being recorded");
    fs::remove_file(&blocked).unwrap();
    assert!(!workbench.use_tool("fails", "{}").raw.is_empty());
    let lines = lines_of(&blocked.join("audit.jsonl"), 2);
    assert_eq!(lines[0]["tool"], "fails");
    assert_eq!(lines[1]["not_noted"], 1);
}
