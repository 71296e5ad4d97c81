//! Published servers, each used twice: through the workbench and directly. The answers are right,
//! and they are the same bytes.

use std::path::Path;
use std::process::Command;

use indexmap::IndexMap;
use pretty_assertions::assert_eq;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::packages::{self, Entry};
use crate::session::{Answer, Session};
use crate::steps::Era;
use crate::workbench::{TOOLBOX, Workbench, use_tool};

/// One server behind a workbench, and the same server without it.
struct Both {
    server: &'static str,
    workbench: Workbench,
    direct: Session,
}

/// A list of tools, each as it was written.
#[derive(Deserialize)]
struct Listed {
    tools: Vec<Box<RawValue>>,
}

impl Both {
    fn start(server: &'static str, entry: &Entry) -> Self {
        Self::start_apart(server, entry, entry)
    }

    /// For a server with state: the two must not share it.
    fn start_apart(server: &'static str, behind: &Entry, alone: &Entry) -> Self {
        Self::start_sessions(Era::Legacy, server, behind.config(), alone)
    }

    /// For a server that speaks both eras: all speak this one.
    fn start_in(era: Era, server: &'static str, entry: &Entry) -> Self {
        let mut config = entry.config();
        if era == Era::Legacy {
            // It is asked for the modern one first.
            config["era"] = json!("legacy");
        }
        Self::start_sessions(era, server, config, entry)
    }

    fn start_sessions(era: Era, server: &'static str, behind: Value, alone: &Entry) -> Self {
        let mut both = Self {
            server,
            workbench: Workbench::start_in(era, &[(server, behind)]),
            direct: Session::start_in(era, alone.command()),
        };
        both.compare_tools();
        both
    }

    /// Opens the toolbox: every definition is the server's own, except for our two members.
    fn compare_tools(&mut self) {
        let opened = self.workbench.open();
        assert_eq!(opened.toolbox, TOOLBOX);
        assert_eq!(opened.description, "Published servers");
        assert_eq!(opened.servers_connected, 1);
        match self.direct.greeting.get("instructions") {
            Some(theirs) => assert_eq!(opened.instructions[self.server], *theirs),
            None => assert_eq!(opened.instructions, Value::Null),
        }

        let listed = self.direct.request("tools/list", &json!({})).result;
        let listed: Listed = serde_json::from_str(listed.get()).unwrap();
        assert_eq!(opened.tools.len(), listed.tools.len());
        for (ours, theirs) in opened.tools.iter().zip(&listed.tools) {
            let mut ours = members(ours);
            assert_eq!(
                ours.shift_remove("server"),
                Some(json!(self.server).to_string())
            );
            assert_eq!(
                ours.shift_remove("toolbox"),
                Some(json!(TOOLBOX).to_string())
            );
            // As lists, because two maps are equal in any order.
            assert_eq!(ours.as_slice(), members(theirs).as_slice());
        }
    }

    /// Calls a tool on both sides and returns the one result.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let through = self.workbench.use_tool(self.server, tool, arguments);
        let direct = self.direct.call(tool, arguments);
        assert_eq!(through.result.get(), direct.result.get());
        direct.value()
    }

    fn finish(self) {
        self.workbench.session.finish();
        self.direct.finish();
    }
}

#[test]
fn everything_server_answers_every_kind_of_content() {
    let mut both = Both::start("everything", &Entry::everything());

    let echo = both.call("echo", &json!({ "message": "Grüße, \u{1f44b}\n" }));
    assert_eq!(text(&echo), "Echo: Grüße, \u{1f44b}\n");
    let sum = both.call("get-sum", &json!({ "a": 2, "b": 40 }));
    assert_eq!(text(&sum), "The sum of 2 and 40 is 42.");

    let image = both.call("get-tiny-image", &json!({}));
    assert_eq!(image["content"][1]["mimeType"], "image/png");
    let links = both.call("get-resource-links", &json!({ "count": 2 }));
    assert_eq!(links["content"][2]["type"], "resource_link");
    let annotated = both.call("get-annotated-message", &json!({ "messageType": "error" }));
    assert_eq!(annotated["content"][0]["annotations"]["priority"], 1);
    let weather = both.call("get-structured-content", &json!({ "location": "New York" }));
    assert_eq!(weather["structuredContent"]["conditions"], "Cloudy");

    // The server's own error result is not an error of the call.
    let refused = both.call("get-sum", &json!({ "a": "two" }));
    assert_eq!(refused["isError"], true);
    assert!(
        text(&refused).contains("expected number, received string"),
        "{refused}"
    );
    both.finish();
}

#[test]
fn everything_server_reports_progress_with_the_token_of_the_client() {
    let mut both = Both::start("everything", &Entry::everything());
    let tool = "trigger-long-running-operation";
    let arguments = json!({ "duration": 0.2, "steps": 4 });
    let meta = json!({ "progressToken": "token of the client" });

    let through = both.workbench.session.request(
        "tools/call",
        &json!({ "name": "use_tool", "arguments": use_tool("everything", tool, &arguments), "_meta": meta }),
    );
    let direct = both.direct.request(
        "tools/call",
        &json!({ "name": tool, "arguments": arguments, "_meta": meta }),
    );

    let expected: Vec<_> = (1..=4)
        .map(|step| json!({ "progress": step, "total": 4, "progressToken": "token of the client" }))
        .collect();
    assert_eq!(progress(&direct), expected);
    assert_eq!(progress(&through), expected);
    assert_eq!(through.result.get(), direct.result.get());
    both.finish();
}

#[test]
fn filesystem_server_works_in_its_folder_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut both = Both::start("filesystem", &Entry::filesystem(&root));
    let note = json!({ "path": root.join("note.txt") });

    both.call(
        "write_file",
        &json!({ "path": note["path"], "content": "line 1\nline 2\n" }),
    );
    assert_eq!(
        std::fs::read_to_string(root.join("note.txt")).unwrap(),
        "line 1\nline 2\n"
    );
    let read = both.call("read_text_file", &note);
    assert_eq!(text(&read), "line 1\nline 2\n");
    assert_eq!(
        read["structuredContent"],
        json!({ "content": "line 1\nline 2\n" })
    );
    let listed = both.call("list_directory", &json!({ "path": root }));
    assert_eq!(text(&listed), "[FILE] note.txt");

    let outside = both.call(
        "read_text_file",
        &json!({ "path": packages::beside("main.rs") }),
    );
    assert_eq!(outside["isError"], true);
    assert!(
        text(&outside).starts_with("Access denied - path outside allowed directories"),
        "{outside}"
    );
    both.finish();
}

#[test]
fn memory_server_keeps_its_graph_in_the_file_of_its_env() {
    let folder = tempfile::tempdir().unwrap();
    let [behind, alone] = ["behind.json", "alone.json"].map(|name| folder.path().join(name));
    let mut both = Both::start_apart("memory", &Entry::memory(&behind), &Entry::memory(&alone));

    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["wrote the first program"] });
    let created = both.call("create_entities", &json!({ "entities": [ada] }));
    assert_eq!(created["structuredContent"]["entities"], json!([ada]));
    let graph = both.call("read_graph", &json!({}));
    assert_eq!(
        graph["structuredContent"],
        json!({ "entities": [ada], "relations": [] })
    );
    assert_eq!(
        std::fs::read(behind).unwrap(),
        std::fs::read(alone).unwrap()
    );
    both.finish();
}

#[test]
fn time_server_converts_between_zones() {
    convert_between_zones(Era::Legacy);
}

#[test]
fn time_server_converts_between_zones_in_the_modern_era() {
    convert_between_zones(Era::Modern);
}

fn convert_between_zones(era: Era) {
    let mut both = Both::start_in(era, "time", &Entry::time());
    // Two zones without summer time, so that the answer is the same all year.
    let convert = |zone: &str| json!({ "source_timezone": zone, "time": "12:30", "target_timezone": "Asia/Tokyo" });

    let converted = both.call("convert_time", &convert("Asia/Kolkata"));
    assert_eq!(converted["structuredContent"]["time_difference"], "+3.5h");
    let there = &converted["structuredContent"]["target"]["datetime"];
    assert!(
        there.as_str().unwrap().ends_with("T16:00:00+09:00"),
        "{there}"
    );

    let refused = both.call("convert_time", &convert("Nowhere/Land"));
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("Invalid timezone"), "{refused}");
    both.finish();
}

#[test]
fn git_server_reads_a_repository() {
    read_a_repository(Era::Legacy);
}

#[test]
fn git_server_reads_a_repository_in_the_modern_era() {
    read_a_repository(Era::Modern);
}

fn read_a_repository(era: Era) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    commit_a_file(&root);
    std::fs::write(root.join("later.txt"), "not committed\n").unwrap();
    let mut both = Both::start_in(era, "git", &Entry::git());
    let repository = json!({ "repo_path": root });

    let status = both.call("git_status", &repository);
    assert!(text(&status).contains("On branch trunk"), "{status}");
    assert!(text(&status).contains("later.txt"), "{status}");
    let log = both.call("git_log", &repository);
    assert!(text(&log).contains("Author: A Tester"), "{log}");
    assert!(text(&log).contains("Message: First commit"), "{log}");
    both.finish();
}

#[test]
fn servers_of_all_kinds_share_one_toolbox() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let servers = Entry::one_of_each(&root);
    let mut workbench = Workbench::start(&servers);

    let opened = workbench.open();
    assert_eq!(opened.servers_connected, servers.len());
    let mut order: Vec<_> = opened
        .tools
        .iter()
        .map(|tool| members(tool)["server"].clone())
        .collect();
    order.dedup();
    assert_eq!(order, servers.map(|(name, _)| json!(name).to_string()));

    let sum = workbench.use_tool("everything", "get-sum", &json!({ "a": 1, "b": 1 }));
    assert_eq!(text(&sum.value()), "The sum of 1 and 1 is 2.");
    let listed = workbench.use_tool("filesystem", "list_directory", &json!({ "path": root }));
    assert_eq!(text(&listed.value()), "");
    workbench.session.finish();
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_behind_npx_leaves_no_processes() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph of the npx test.json");
    let marker = graph.to_str().unwrap();
    let mut workbench = Workbench::start(&[(
        "memory",
        json!({
            "command": "npx",
            "args": ["--no", "mcp-server-memory"],
            "cwd": packages::folder(),
            "env": {
                "MEMORY_FILE_PATH": marker,
                "NPM_CONFIG_UPDATE_NOTIFIER": "false",
                // Its logs belong in no home directory.
                "NPM_CONFIG_CACHE": folder.path(),
            },
        }),
    )]);

    workbench.open();
    let read = workbench
        .use_tool("memory", "read_graph", &json!({}))
        .value();
    assert_eq!(
        read["structuredContent"],
        json!({ "entities": [], "relations": [] })
    );
    let running = processes_with(marker);
    assert!(
        running.len() >= 2,
        "npx starts the server as a child of its own: {running:?}"
    );
    workbench.session.finish();
    assert_eq!(processes_with(marker), Vec::<String>::new());
}

/// The members of an object in their order, each value as it was written.
fn members(object: &RawValue) -> IndexMap<String, String> {
    let members: IndexMap<String, Box<RawValue>> = serde_json::from_str(object.get()).unwrap();
    members
        .into_iter()
        .map(|(name, value)| (name, value.get().to_owned()))
        .collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text first in {result}"))
}

fn progress(answer: &Answer) -> Vec<Value> {
    let notifications = answer.notifications.iter();
    notifications
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| message["params"].clone())
        .collect()
}

/// Makes a repository with one commit, whatever the machine's git is set up to do.
fn commit_a_file(root: &Path) {
    std::fs::write(root.join("first.txt"), "committed\n").unwrap();
    let steps: [&[&str]; 3] = [
        &["init", "--quiet", "--initial-branch=trunk"],
        &["add", "first.txt"],
        &["commit", "--quiet", "--no-verify", "--message=First commit"],
    ];
    for step in steps {
        let status = Command::new("git")
            .current_dir(root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .args([
                "-c",
                "user.name=A Tester",
                "-c",
                "user.email=tester@example.com",
            ])
            .args(step)
            .status();
        assert!(status.unwrap().success(), "git {step:?}");
    }
}

/// The processes whose environment holds `marker`. One that ended and was not yet waited for has
/// no environment and is not among them.
#[cfg(target_os = "linux")]
fn processes_with(marker: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    processes
        .filter(|process| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(marker)
        })
        .map(|process| std::fs::read_to_string(process.join("comm")).unwrap_or_default())
        .collect()
}
