//! Calls of the meta-tools that pages show: each is made, and the block that follows it is compared with the answer.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    none,
    page::{Block, Page, page, pages},
};
use crate::harness::{Script, Setup, ToolResult, Workbench};

const MIGRATING: &str = "docs/guides/migrating-from-typescript.md";

/// A page that shows calls, and the servers behind the workbench on it.
type Calling = (&'static str, fn() -> Setup);

/// The pages that show calls.
const PAGES: &[Calling] = &[("README.md", project), ("docs/open-toolbox.md", troubled)];

const READ_FILE: &str = r#"{"name":"read_file","description":"Read a file as text","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}"#;
const GIT_LOG: &str = r#"{"name":"git_log","description":"Show the history of the project","inputSchema":{"type":"object","properties":{"max_count":{"type":"integer"}}}}"#;

/// The two servers of the configuration that the pages show.
fn project() -> Setup {
    let contents = r##"{"content":[{"type":"text","text":"# Shop\n"}]}"##;
    let files = Script::new()
        .tools(&format!("[{READ_FILE}]"))
        .answers("read_file", contents);
    Setup::new()
        .toolbox("dev", "Files and history of the project")
        .server("filesystem", &files)
        .server("git", &Script::new().tools(&format!("[{GIT_LOG}]")))
}

/// Servers that make every member of the result of `open_toolbox` appear.
fn troubled() -> Setup {
    let files = Script::new()
        .tools(&format!(r#"[{READ_FILE},{{"name":"write_file"}}]"#))
        .set("instructions", r#""Paths are relative to the project.""#);
    let endless = format!(r#"[{{"answer":{{"tools":[{GIT_LOG}],"nextCursor":"2"}}}}]"#);
    let git = Script::new().on_method("tools/list", &endless);
    Setup::new()
        .toolbox("dev", "Files and history of the project")
        .server("filesystem", &files)
        .server("git", &git)
        .entry("issues", json!({"command": "issues-server"}))
}

/// The parameters of `tools/call` in a block, if it shows a call.
fn call(block: &Block) -> Option<Value> {
    let value: Value = serde_json::from_str(&block.text).ok()?;
    let is_call = value.get("name").is_some() && value.get("arguments").is_some();
    (block.language == "json" && is_call).then_some(value)
}

/// Makes a call that a page shows.
fn make(workbench: &mut Workbench, call: &Value) -> ToolResult {
    let name = call["name"].as_str().unwrap();
    workbench.call(name, &call["arguments"].to_string())
}

/// Compares a block with the answer: the text of `open_toolbox`, the whole result of other tools. Commands in the answer name
/// the configuration of the test, which readers have in its usual place.
fn compare(call: &Value, shown: &Block, result: &ToolResult, config: &Path) {
    let is_text = call["name"] == "open_toolbox" && !result.failed();
    let answered = if is_text { result.text() } else { &result.raw };
    let answered = answered.replace(&format!(" --config {}", config.display()), "");
    let shown_text = match shown.language.as_str() {
        "json" => serde_json::from_str::<Value>(&shown.text)
            .unwrap()
            .to_string(),
        _ => shown.text.clone(),
    };
    assert_eq!(
        answered.trim_end(),
        shown_text.trim_end(),
        "{}",
        shown.place()
    );
}

/// Makes the calls of a page in order and compares what follows each of them. Opening starts a new workbench, so that
/// a server that failed before is not retried.
fn compare_page(page: &Page, setup: fn() -> Setup) -> usize {
    let blocks = page.blocks();
    let mut workbench = setup().connect();
    let mut compared = 0;
    for pair in blocks.windows(2) {
        if let Some(call) = call(&pair[0]) {
            if call["name"] == "open_toolbox" {
                workbench = setup().connect();
            }
            let result = make(&mut workbench, &call);
            compare(&call, &pair[1], &result, &workbench.setup.config());
            compared += 1;
        }
    }
    compared
}

#[test]
fn shown_calls_have_the_shown_results() {
    for (path, setup) in PAGES {
        let compared = compare_page(&page(path), *setup);
        assert!(compared > 0, "{path} shows no call");
    }
}

#[test]
fn every_shown_call_is_made() {
    let known = |page: &Page| PAGES.iter().any(|(path, _)| *path == page.path);
    let pages = pages();
    let unknown: Vec<String> = { pages.iter() }
        .filter(|page| !known(page))
        .flat_map(Page::blocks)
        .filter(|block| call(block).is_some())
        .map(|block| format!("{}: nothing makes this call", block.place()))
        .collect();
    none(&unknown);
}

/// The inline code of a cell of a table: the name of a tool and its arguments.
fn cell_call(cell: &str) -> Option<(&str, &str)> {
    let mut code = cell.split('`').skip(1).step_by(2);
    let (name, arguments) = (code.next()?, code.next()?);
    arguments.starts_with('{').then_some((name, arguments))
}

#[test]
fn the_migration_guide_shows_old_calls_that_fail_and_new_ones_that_work() {
    let text = page(MIGRATING).text;
    let mut workbench = project().connect();
    workbench.open("dev");
    let mut rows = 0;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').collect();
        let [_, _, old, new, _] = cells.as_slice() else {
            continue;
        };
        let (Some(old), Some(new)) = (cell_call(old), cell_call(new)) else {
            continue;
        };
        let params = |(name, arguments): (&str, &str)| {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            json!({"name": name, "arguments": arguments}).to_string()
        };
        let answer = workbench.ask("tools/call", &params(old));
        let refused = answer.is_error() || ToolResult::of(&answer).failed();
        assert!(refused, "this call still works: {line}");
        let answer = workbench.ask("tools/call", &params(new));
        assert!(!ToolResult::of(&answer).failed(), "{line}");
        rows += 1;
    }
    assert!(rows >= 4, "only {rows} pairs of calls");
}
