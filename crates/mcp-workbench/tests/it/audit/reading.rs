//! `mcp-workbench log`.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{file, lines_of, setup};
use crate::harness::{Script, Setup, Workbench};

/// Runs `log` on the configuration of a workbench; what it prints, and on stderr.
fn log(workbench: &Workbench, arguments: &[&str]) -> (Vec<String>, String) {
    let mut command = workbench.setup.command();
    let output = command
        .arg("log")
        .args(arguments)
        .arg("--config")
        .arg(workbench.setup.config());
    let output = output.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(str::to_owned).collect();
    (lines, String::from_utf8(output.stderr).unwrap())
}

fn recorded() -> Workbench {
    let mut workbench = setup(json!(true)).connect();
    workbench.open("dev");
    for tool in ["read", "fails", "wipe", "read"] {
        workbench.use_tool(tool, "{}");
    }
    lines_of(&file(&workbench), 4);
    workbench
}

#[test]
fn lines_are_chosen_and_shown() {
    let workbench = recorded();
    let (all, _) = log(&workbench, &[]);
    assert_eq!(all.len(), 4);
    assert!(all[0].contains("dev/fs/read  ok  "), "{}", all[0]);
    assert!(
        all[2].contains("dev/fs/wipe  denied (permission_denied)  "),
        "{}",
        all[2]
    );
    let rows: [(&[&str], usize); 9] = [
        (&["--tool", "read"], 2),
        (&["--server", "fs"], 4),
        (&["--server", "other"], 0),
        (&["--toolbox", "dev", "--tool", "wipe"], 1),
        (&["--outcome", "denied"], 1),
        (&["--outcome", "permission_denied"], 1),
        (&["--outcome", "tool_error"], 1),
        (&["--tail", "3"], 3),
        (&["--tail", "0"], 0),
    ];
    for (arguments, expected) in rows {
        assert_eq!(
            log(&workbench, arguments).0.len(),
            expected,
            "{arguments:?}"
        );
    }
    let (json, _) = log(&workbench, &["--json"]);
    let text = fs::read_to_string(file(&workbench)).unwrap();
    assert_eq!(json, text.lines().collect::<Vec<_>>());
}

#[test]
fn older_files_are_read_too() {
    let mut workbench = setup(json!({"maxBytes": 65536, "files": 3})).connect();
    workbench.open("dev");
    let long = "x".repeat(60);
    let keys: Vec<String> = (0..50).map(|n| format!(r#""{n}-{long}":1"#)).collect();
    let arguments = format!("{{{}}}", keys.join(","));
    for _ in 0..40 {
        workbench.use_tool("read", &arguments);
    }
    workbench.finish();
    let older = file(&workbench).with_file_name("audit.jsonl.1");
    assert!(older.exists());
    assert!(fs::metadata(file(&workbench)).unwrap().len() <= 65536);
    assert_eq!(log(&workbench, &[]).0.len(), 40);
    assert_eq!(log(&workbench, &["--tail", "30"]).0.len(), 30);
}

/// Ends a command with the test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn follow_prints_new_lines() {
    let mut workbench = recorded();
    let mut command = workbench.setup.command();
    command.args([
        "log", "--follow", "--json", "--tail", "1", "--tool", "read", "--config",
    ]);
    command.arg(workbench.setup.config()).stdout(Stdio::piped());
    let mut following = Following(command.spawn().unwrap());
    let mut lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["tool"], "read");
    workbench.use_tool("fails", "{}");
    workbench.use_tool("read", r#"{"later":1}"#);
    assert_eq!(next()["shape"], json!({"later": "number"}));
    let log = file(&workbench);
    fs::rename(&log, log.with_file_name("audit.jsonl.1")).unwrap();
    workbench.use_tool("read", r#"{"aside":1}"#);
    assert_eq!(next()["shape"], json!({"aside": "number"}));
}

#[test]
fn a_name_cannot_forge_a_line_or_move_the_cursor() {
    let name = "x\n{\"time\":\"2020\",\"outcome\":\"ok\"}\u{1b}[2J\u{202e}\u{9b}";
    let script = Script::named(&[name]).answers(name, r#"{"content":[]}"#);
    let mut workbench = Setup::one(&script).top("audit", json!(true)).connect();
    workbench.open("dev");
    workbench.use_tool(name, "{}");
    workbench.use_tool(
        "no\nsuch\u{1b}]0;title\u{7}",
        &json!({"a\n\u{1b}b": 1}).to_string(),
    );
    let lines = lines_of(&file(&workbench), 2);
    assert_eq!(lines[0]["tool"], name);
    let text = fs::read_to_string(file(&workbench)).unwrap();
    let hidden = |text: &str| {
        text.chars()
            .any(|it| it != '\n' && (it.is_control() || it == '\u{202e}'))
    };
    assert!(!hidden(&text), "{text:?}");
    for arguments in [&[][..], &["--json"]] {
        let (shown, _) = log(&workbench, arguments);
        assert_eq!(shown.len(), 2);
        assert!(!hidden(&shown.join("")), "{shown:?}");
    }
}

#[test]
fn a_missing_log_is_reported_with_a_hint() {
    let off = setup(json!(false)).connect();
    let (_, said) = log(&off, &[]);
    assert!(said.contains("add `\"audit\": true`"), "{said}");
    let empty = setup(json!(true)).connect();
    let (_, said) = log(&empty, &[]);
    assert!(said.contains("there is no audit log at"), "{said}");
}

#[test]
fn invalid_lines_are_counted() {
    let workbench = recorded();
    let log_file = file(&workbench);
    let text = fs::read_to_string(&log_file).unwrap();
    fs::write(&log_file, format!("garbage\n{text}\n[]\n")).unwrap();
    let (lines, said) = log(&workbench, &[]);
    assert_eq!(lines.len(), 4);
    assert!(said.contains("2 lines of the log are invalid"), "{said}");
}

#[test]
fn an_endless_file_is_not_read() {
    let workbench = setup(json!({"file": "/dev/zero"})).connect();
    let (lines, said) = log(&workbench, &[]);
    assert_eq!(lines, [""; 0]);
    assert!(said.contains("not a regular file"), "{said}");
}
