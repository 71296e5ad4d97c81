//! Scripts of the pages are run, and the error that a page shows is the one that a script gets.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{blocks, page::Block};
use crate::harness::{Script, Setup, ToolResult};

/// Runs a script with the server that the pages use.
fn run(code: &str) -> ToolResult {
    let answer = |value: serde_json::Value| {
        let result = json!({"content": [{"type": "text", "text": value.to_string()}]});
        result.to_string()
    };
    let issues = json!({"issues": [{"number": 1}, {"number": 2}]});
    let script = Script::named(&["list_issues", "get_issue", "create_issue", "close_issue"])
        .answers("list_issues", &answer(issues))
        .answers(
            "get_issue",
            &answer(json!({"number": 1, "title": "It fails", "labels": ["bug"]})),
        )
        .answers("create_issue", &answer(json!({"number": 3})))
        .answers(
            "close_issue",
            r#"{"content":[{"type":"text","text":"issue not found: 42"}],"isError":true}"#,
        );
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server("github", &script)
        .top("metaTools", json!(["open_toolbox", "use_tool", "run_code"]))
        .connect();
    assert!(!workbench.open("dev").failed());
    workbench.call("run_code", &json!({"code": code}).to_string())
}

#[test]
fn every_script_of_a_page_runs() {
    let blocks = blocks();
    let scripts: Vec<&Block> = blocks.iter().filter(|it| it.language == "js").collect();
    assert!(!scripts.is_empty());
    for script in scripts {
        let result = run(&script.text);
        assert!(!result.failed(), "{}: {}", script.place(), result.raw);
    }
}

/// The error of a script that has written before.
pub(super) fn failed_script(block: &Block) {
    let code = "const title = 'It fails';\nawait tools.github.create_issue({ title });\nawait tools.github.close_issue({ number: \
                42 });";
    assert_eq!(run(code).error(), block.text.trim_end());
}
