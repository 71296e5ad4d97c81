//! The server cache: the tools of servers from earlier runs, shown without starting them, and what happens when a file is
//! wrong, broken, foreign or gone.

mod faults;
mod secrets;
mod using;
mod warm;

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench, call_params, initialize_params, raw_string};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A toolbox `dev` with one server `fs`, which is started when it is used.
fn on_use(script: &Script) -> Setup {
    Setup::one(script).top("connect", json!("on-use"))
}

/// A command on the configuration of a setup.
fn command(setup: &Setup, arguments: &[&str]) -> Command {
    setup.write_config();
    let mut command = setup.command();
    command.arg("--config").arg(setup.config()).args(arguments);
    command
}

/// Runs `warm` to its end.
fn warm(setup: &Setup) -> Output {
    command(setup, &["warm"]).output().unwrap()
}

/// A setup whose servers were all started before.
fn warmed(setup: Setup) -> Setup {
    let output = warm(&setup);
    assert!(output.status.success(), "{output:?}");
    setup
}

/// Runs a workbench that is asked for these calls, and gives all that it said.
fn session(setup: &Setup, calls: &[(&str, &str)]) -> String {
    let mut child = command(setup, &[])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let initialize = initialize_params("2025-11-25");
    writeln!(
        stdin,
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{initialize}}}"#
    )
    .unwrap();
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        let params = call_params(tool, arguments);
        writeln!(
            stdin,
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{params}}}"#,
            number + 1
        )
        .unwrap();
    }
    drop(stdin);
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// Gives the server of this number another script: what it is when it is started next.
fn replace_script(setup: &Setup, number: usize, script: &Script) {
    let journal = setup.path(&format!("fixtures/{number}.log"));
    let journal = raw_string(journal.to_str().unwrap());
    let script = script.clone().set("journal", &journal);
    setup.write(&format!("fixtures/{number}.json"), &script.text());
}

/// The folder of the cache.
fn folder(setup: &Setup) -> PathBuf {
    setup.path("cache/mcp-workbench/servers")
}

fn lists(setup: &Setup) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder(setup)) else {
        return Vec::new();
    };
    let files = entries.map(|it| it.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|it| it.extension().is_some_and(|it| it == "json"))
        .collect();
    files.sort();
    files
}

/// The only list in it.
fn only_list(setup: &Setup) -> PathBuf {
    let lists = lists(setup);
    assert_eq!(lists.len(), 1);
    lists[0].clone()
}

/// How often a server of the toolbox `dev` was started.
fn starts(workbench: &Workbench, server: &str) -> usize {
    workbench.journal("dev", server).pids().len()
}

/// Opens `dev`: how many servers are connected, and the names of the tools.
fn open(workbench: &mut Workbench) -> (Value, Vec<String>) {
    let opened = workbench.open("dev");
    (
        opened.json()["servers_connected"].clone(),
        opened.tool_names(),
    )
}
