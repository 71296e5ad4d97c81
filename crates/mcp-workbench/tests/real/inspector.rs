//! The command line of the MCP Inspector in front of a workbench that serves over HTTP. Each command is
//! a client of its own, with a session of its own.

use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::listening::{Listening, TOKEN, introduce};
use crate::packages;
use crate::process::Process;

/// The exit code of a successful run of the Inspector.
const SUCCESS: i32 = 0;
const AUTH_REQUIRED: i32 = 3;
const TOOL_ERROR: i32 = 5;

struct Inspector {
    workbench: Listening,
    // It keeps files there, also if it has nothing to keep.
    home: TempDir,
}

impl Inspector {
    fn of(workbench: Listening) -> Self {
        Self {
            workbench,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// Runs one command with the token; returns its exit code and the result that it prints.
    fn run(&self, method: &str, options: &[&str]) -> (i32, Value) {
        let authorization = format!("Authorization: Bearer {TOKEN}");
        let options = [options, &["--header", &authorization]].concat();
        let (status, lines) = self.run_as_it_is(method, &options);
        assert_eq!(lines.len(), 1, "one line expected: {lines:?}");
        let mut printed: Value = serde_json::from_str(&lines[0]).unwrap();
        (status, printed["result"].take())
    }

    fn run_as_it_is(&self, method: &str, options: &[&str]) -> (i32, Vec<String>) {
        let mut command = Command::new(packages::newer_node());
        command
            .arg(packages::folder().join(
                "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
            ))
            .args(["--cli", &self.workbench.url, "--transport", "http"])
            .args(["--method", method])
            .args(["--format", "json", "--quiet", "--stored-auth-only"])
            .args(options)
            .env("HOME", self.home.path());
        introduce(&mut command);
        let (status, lines) = Process::start(command).end();
        (status.code().expect("nothing kills it"), lines)
    }

    fn tools(&self) -> Vec<String> {
        let (status, answer) = self.run("tools/list", &[]);
        assert_eq!(status, SUCCESS, "{answer}");
        let tools = answer["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn call(&self, tool: &str, arguments: &Value) -> (i32, Value) {
        let arguments = arguments.to_string();
        let options = ["--tool-name", tool, "--tool-args-json", &arguments];
        self.run("tools/call", &options)
    }
}

#[test]
fn inspector_opens_a_toolbox_and_sees_an_error() {
    let inspector = Inspector::of(Listening::start(&[]));
    let tools = inspector.tools();
    assert!(tools.contains(&"open_toolbox".to_owned()), "{tools:?}");
    assert!(tools.contains(&"use_tool".to_owned()), "{tools:?}");

    let (status, answer) = inspector.call("open_toolbox", &json!({ "toolbox": "dev" }));
    assert_eq!(status, SUCCESS, "{answer}");
    let text = answer["content"][0]["text"].as_str().unwrap();
    let opened: Value = serde_json::from_str(text).unwrap();
    assert_eq!(opened["servers_connected"], 1);

    let (status, answer) = inspector.call("open_toolbox", &json!({ "toolbox": "nowhere" }));
    assert_eq!(status, TOOL_ERROR, "{answer}");
    assert_eq!(
        answer["content"][0]["text"],
        "Error: Toolbox 'nowhere' not found. Available toolboxes: dev, spare"
    );
}

#[test]
fn inspector_uses_a_tool_in_native_mode() {
    let inspector = Inspector::of(Listening::start(&["--native", "dev"]));
    let tools = inspector.tools();
    assert!(tools.contains(&"echo".to_owned()), "{tools:?}");

    let (status, answer) = inspector.call("echo", &json!({ "message": "Grüße" }));
    assert_eq!(status, SUCCESS, "{answer}");
    assert_eq!(
        answer["content"],
        json!([{ "type": "text", "text": "Echo: Grüße" }])
    );
}

#[test]
fn inspector_without_the_token_is_refused() {
    let inspector = Inspector::of(Listening::start(&[]));
    let (status, lines) = inspector.run_as_it_is("tools/list", &[]);
    assert_eq!((status, lines), (AUTH_REQUIRED, Vec::new()));
}
