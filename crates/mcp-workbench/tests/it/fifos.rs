//! FIFOs in place of files. Opening one waits for the other end, so a running workbench must never do that: it keeps
//! serving, and ends when it is asked to.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;
use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::Signal,
};
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench};

const NOT_REGULAR: &str = "not a regular file";

/// Puts a FIFO into the place of a file.
fn replace_by_fifo(path: &Path) {
    let beside = path.with_extension("fifo");
    mkfifoat(CWD, &beside, Mode::RUSR | Mode::WUSR).expect("a FIFO can be made");
    fs::rename(beside, path).expect("it can be moved");
}

/// Checks that the server `other` answers, and that SIGTERM ends the workbench.
fn assert_serving(mut workbench: Workbench) {
    let answer = workbench.use_tool_of(["dev", "other", "pid"], "{}");
    assert!(answer.structured()["pid"].is_number());
    workbench.signal(Signal::TERM);
    assert_eq!(workbench.wait_exit().code(), Some(0));
}

/// A toolbox with a server `other` that is as it should be, and one with more keys in its entry.
fn setup_with(keys: &Value) -> Setup {
    Setup::new()
        .toolbox("dev", "d")
        .server("other", &Script::new())
        .server_with("fs", &Script::new(), keys)
}

/// The only error of an open.
fn open_error(workbench: &mut Workbench) -> String {
    let opened = workbench.open("dev").json();
    assert_eq!(opened["servers_connected"], 1, "{opened}");
    let errors = opened["_errors"].as_array().expect("errors").as_slice();
    assert_eq!(errors.len(), 1, "{opened}");
    errors[0].as_str().expect("a text").to_owned()
}

#[test]
fn an_env_file_that_is_a_fifo_fails_its_server_only() {
    let setup = setup_with(&json!({"envFile": "secrets.env"}));
    replace_by_fifo(&setup.path("config/secrets.env"));
    let mut workbench = setup.connect();
    let error = open_error(&mut workbench);
    assert!(error.contains(NOT_REGULAR), "{error}");
    assert_serving(workbench);
}

#[test]
fn a_secret_file_that_is_a_fifo_fails_its_server_only() {
    let setup = setup_with(&json!({"env": {"TOKEN": "${file:token}"}}));
    replace_by_fifo(&setup.path("config/token"));
    let mut workbench = setup.connect();
    let error = open_error(&mut workbench);
    assert!(
        error.contains("file token is not a regular file"),
        "{error}"
    );
    assert_serving(workbench);
}

#[test]
fn files_that_become_fifos_do_not_stop_a_reload() {
    let setup = setup_with(&json!({"envFile": "secrets.env", "env": {"TOKEN": "${file:token}"}}));
    setup.write("config/secrets.env", "A=1\n");
    setup.write("config/token", "hunter2hunter2\n");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").json()["servers_connected"], 2);
    replace_by_fifo(&workbench.setup.path("config/secrets.env"));
    replace_by_fifo(&workbench.setup.path("config/token"));
    workbench.signal(Signal::USR1);
    workbench.wait_stderr("file token is not a regular file");
    workbench.wait_stderr("configuration reloaded");
    assert_serving(workbench);
}

#[test]
fn a_configuration_that_becomes_a_fifo_is_not_read() {
    let mut workbench = setup_with(&json!({})).connect();
    workbench.open("dev");
    replace_by_fifo(&workbench.setup.config());
    workbench.wait_stderr("is not a regular file and is read only once");
    workbench.signal(Signal::USR1);
    assert_serving(workbench);
}

#[test]
fn certificates_that_are_a_fifo_fail_remote_servers_only() {
    let setup = setup_with(&json!({}));
    let certificates = setup.path("certificates.pem");
    replace_by_fifo(&certificates);
    let remote = json!({"url": "https://127.0.0.1:9/mcp", "connectTimeoutMs": 500});
    let setup = setup
        .env("SSL_CERT_FILE", certificates.to_str().expect("a text"))
        .toolbox("far", "d")
        .entry("remote", remote);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let error = workbench.open("far").error().to_owned();
    assert!(error.contains("connection timeout after"), "{error}");
    assert_serving(workbench);
}

#[test]
fn a_lock_file_that_is_a_fifo_is_not_read() {
    let setup = setup_with(&json!({}));
    replace_by_fifo(&setup.path("config/workbench.workbench.lock"));
    let mut workbench = setup.connect();
    workbench.open("dev");
    workbench.wait_stderr(NOT_REGULAR);
    assert_serving(workbench);
}

#[test]
fn files_of_the_cache_that_become_fifos_are_not_read() {
    let setup = setup_with(&json!({})).top("connect", json!("on-use"));
    setup.write_config();
    let mut warm = setup.command();
    let warm = warm.arg("--config").arg(setup.config()).arg("warm");
    assert!(warm.status().expect("it runs").success());
    let mut folders = vec![setup.path("cache")];
    let mut replaced = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                replace_by_fifo(&path);
                replaced += 1;
            }
        }
    }
    assert!(replaced > 0, "the cache has files");
    let mut workbench = setup.connect();
    workbench.open("dev");
    assert_serving(workbench);
}

#[test]
fn an_audit_log_that_is_a_fifo_is_reported() {
    let setup = setup_with(&json!({})).top("audit", json!({"file": "audit.jsonl"}));
    replace_by_fifo(&setup.path("config/audit.jsonl"));
    let mut workbench = setup.connect();
    workbench.open("dev");
    workbench.use_tool_of(["dev", "other", "pid"], "{}");
    workbench.wait_stderr("audit.jsonl; calls continue without being recorded");
    assert_serving(workbench);
}
