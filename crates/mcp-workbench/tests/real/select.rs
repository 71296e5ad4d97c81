//! Filters on results of published servers, and their prompts and resources in proxy mode.

use std::fs;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::packages::Entry;
use crate::session::Session;
use crate::workbench::ConfigFile;

/// Calls a tool of the toolbox `published` with a filter, and returns the selected text.
fn select(session: &mut Session, tool: [&str; 2], arguments: &Value, filter: &str) -> String {
    let [server, tool] = tool;
    let arguments = json!({
        "tool": { "toolbox": "published", "server": server, "tool": tool },
        "arguments": arguments,
        "select": filter,
    });
    let result = session.call("use_tool", &arguments).value();
    let about = &result["_meta"]["mcp-workbench/result"];
    assert_eq!(about["selected"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn filters_select_from_results_of_published_servers() {
    let folder = tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    for name in ["a.txt", "b.txt"] {
        fs::write(path.join(name), name).unwrap();
    }
    let config = ConfigFile::new(&json!({
        "select": true,
        "metaTools": ["open_toolbox", "use_tool", "read_result"],
        "toolboxes": { "published": { "description": "Published servers", "mcpServers": {
            "everything": Entry::everything().config(),
            "filesystem": Entry::filesystem(&path).config(),
            "memory": Entry::memory(&folder.path().join("memory.json")).config(),
        } } },
    }));
    let mut session = Session::start(config.command());
    session.call("open_toolbox", &json!({ "toolbox": "published" }));
    let tree = json!({ "path": path });
    let names = select(
        &mut session,
        ["filesystem", "directory_tree"],
        &tree,
        "[.[].name] | sort",
    );
    assert_eq!(names, r#"["a.txt","b.txt"]"#);
    let entities: Vec<Value> = (0..20)
        .map(|n| json!({ "name": format!("n{n}"), "entityType": "t", "observations": ["long ".repeat(50)] }))
        .collect();
    let created = json!({ "entities": entities });
    let count = select(
        &mut session,
        ["memory", "create_entities"],
        &created,
        "[.. | objects | .entityType? // empty] | length",
    );
    assert_eq!(count, "20");
    let found = select(
        &mut session,
        ["memory", "read_graph"],
        &json!({}),
        ".entities[] | select(.name | test(\"7$\")) | .name",
    );
    assert_eq!(found, "n7\nn17");
    let weather = json!({ "location": "Chicago" });
    let weather = select(
        &mut session,
        ["everything", "get-structured-content"],
        &weather,
        "keys_unsorted | join(\" \")",
    );
    assert!(weather.contains("temperature"), "{weather}");
}

#[test]
fn text_of_a_published_server_that_is_no_json_stays_whole() {
    let folder = tempdir().unwrap();
    let made = Command::new("git")
        .args(["init", "--quiet"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    let config = ConfigFile::new(&json!({
        "select": true,
        "toolboxes": { "published": {
            "description": "Published servers",
            "mcpServers": { "git": Entry::git().config() },
        } },
    }));
    let mut session = Session::start(config.command());
    session.call("open_toolbox", &json!({ "toolbox": "published" }));
    let call = json!({
        "tool": { "toolbox": "published", "server": "git", "tool": "git_status" },
        "arguments": { "repo_path": folder.path() },
        "select": ".branch",
    });
    let result = session.call("use_tool", &call).value();
    let text = result["content"].to_string();
    assert!(text.contains("No commits yet"), "{text}");
    let about = &result["_meta"]["mcp-workbench/result"];
    assert!(about["select_error"].is_string(), "{result}");
}

#[test]
fn prompts_and_resources_of_an_open_toolbox_work_in_proxy_mode() {
    let config = ConfigFile::new(&json!({ "toolboxes": { "published": {
        "description": "Published servers",
        "mcpServers": { "everything": Entry::everything().config() },
    } } }));
    let mut session = Session::start(config.command());
    let list = |session: &mut Session, method: &str, items: &str| {
        let list = session.request(method, &json!({})).value();
        list[items].as_array().unwrap().clone()
    };
    assert!(list(&mut session, "prompts/list", "prompts").is_empty());
    session.call("open_toolbox", &json!({ "toolbox": "published" }));
    let prompts = list(&mut session, "prompts/list", "prompts");
    let resources = list(&mut session, "resources/list", "resources");
    for item in prompts.iter().chain(&resources) {
        assert_eq!(item["_meta"]["server"], "everything", "{item}");
    }
    let simple = prompts
        .iter()
        .find(|it| it["arguments"].as_array().is_none_or(Vec::is_empty))
        .unwrap();
    let got = session
        .request("prompts/get", &json!({ "name": simple["name"] }))
        .value();
    assert!(!got["messages"].as_array().unwrap().is_empty(), "{got}");
    let uri = &resources[0]["uri"];
    let read = session
        .request("resources/read", &json!({ "uri": uri }))
        .value();
    assert_eq!(read["contents"][0]["uri"], *uri);
}
