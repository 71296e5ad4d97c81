//! Shapes of results: learned in the background, shown in signatures, kept between runs, and without values.

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use crate::harness::{Fault, Script, Setup, TIMEOUT, Workbench, memory_peak, poll};

/// The memory that the workbench may take, whatever results look like.
const FLAT: u64 = 96 * 1024 * 1024;

const SHAPE: &str = "list() → {issues: {number, title?}[], total} (seen in 2 results)";

fn result(value: &Value) -> String {
    json!({ "content": [{ "type": "text", "text": value.to_string() }] }).to_string()
}

fn issues() -> Script {
    let issues = json!({"issues": [{"number": 1, "title": "hunter2"}, {"number": 2}], "total": 2});
    Script::named(&["list"]).answers("list", &result(&issues))
}

/// The signatures of the toolbox `dev`.
fn signatures(workbench: &mut Workbench) -> String {
    let arguments = json!({ "toolbox": "dev", "detail": "signature" }).to_string();
    workbench.call("open_toolbox", &arguments).text().to_owned()
}

/// Waits until the signatures contain a text.
#[track_caller]
fn wait_for(workbench: &mut Workbench, text: &str) {
    let shown = poll(TIMEOUT, || {
        signatures(workbench).contains(text).then_some(())
    });
    assert!(shown.is_some(), "{text} in {}", signatures(workbench));
}

/// Calls a tool and waits until its result was read, which the next call needs.
fn call_and_wait(workbench: &mut Workbench, count: u64) {
    assert!(!workbench.use_tool("list", "{}").failed());
    let stored = format!("\"results\":{count},");
    let cache = workbench.setup.path("cache/mcp-workbench/servers");
    let seen = poll(TIMEOUT, || {
        let files = std::fs::read_dir(&cache).ok()?.flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains(&stored)).then_some(())
    });
    assert!(seen.is_some(), "{count} results");
}

#[test]
fn signatures_show_the_shape_of_earlier_results() {
    let meta_tools = json!(["open_toolbox", "use_tool", "search_tools", "run_code"]);
    let mut workbench = Setup::one(&issues()).top("metaTools", meta_tools).connect();
    let plain = workbench.open("dev").text().to_owned();
    call_and_wait(&mut workbench, 1);
    assert!(
        !signatures(&mut workbench).contains('→'),
        "one result is too few"
    );
    call_and_wait(&mut workbench, 2);
    wait_for(&mut workbench, SHAPE);
    let found = workbench.call("search_tools", &json!({ "query": "list" }).to_string());
    assert!(found.text().contains(SHAPE), "{}", found.text());
    let code = json!({ "code": "return (await tools.describe('tools.fs.list')).signature" });
    let described = workbench.call("run_code", &code.to_string());
    let promise = "Promise<{ issues: { number: number; title?: string }[]; total: number } /* seen in 2 results */>";
    assert!(described.raw.contains(promise), "{}", described.raw);
    // Definitions stay as the server sent them.
    assert_eq!(workbench.open("dev").text(), plain);
}

#[test]
fn shapes_outlive_the_workbench_and_have_no_values() {
    let mut workbench = Setup::one(&issues()).connect();
    workbench.open("dev");
    call_and_wait(&mut workbench, 1);
    call_and_wait(&mut workbench, 2);
    wait_for(&mut workbench, SHAPE);
    workbench.finish();
    let setup = &workbench.setup;
    let mut next = setup.command();
    next.arg("--config").arg(setup.config());
    let list = ["search", "list", "--detail", "signature", "--json"];
    let output = next.args(list).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for file in std::fs::read_dir(setup.path("cache/mcp-workbench/servers")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        assert!(!text.contains("hunter2"), "{text}");
    }
    // A new workbench shows them before the first call.
    let mut again = Workbench::spawn(
        {
            let mut command = setup.command();
            command.arg("--config").arg(setup.config());
            command
        },
        Setup::new(),
    );
    again.initialize();
    assert!(
        signatures(&mut again).contains(SHAPE),
        "{}",
        signatures(&mut again)
    );
}

#[test]
fn nothing_is_learned_of_failures_of_declared_results_or_when_it_is_off() {
    let failure = json!({"isError": true, "content": [{"type": "text", "text": "{\"a\":[1]}"}]});
    let declared =
        r#"[{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]"#;
    let structured = json!({"content": [], "structuredContent": {"a": [1]}}).to_string();
    let cases = [
        Setup::one(&Script::named(&["list"]).answers("list", &failure.to_string())),
        Setup::one(&Script::new().tools(declared).answers("list", &structured)),
        Setup::one(&issues()).top("learnShapes", json!(false)),
    ];
    for setup in cases {
        let mut workbench = setup.connect();
        workbench.open("dev");
        for _ in 0..4 {
            workbench.use_tool("list", "{}");
        }
        assert!(!signatures(&mut workbench).contains('→'));
        workbench.finish();
        for file in std::fs::read_dir(workbench.setup.path("cache/mcp-workbench/servers")).unwrap()
        {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
            assert!(!text.contains("\"shapes\""), "{text}");
        }
    }
}

#[test]
fn hostile_shapes_are_bounded_and_show_no_data() {
    let fault = Fault::within(
        60,
        "J3",
        "results with 8,000 names, names that are data, and 120 levels",
        "shapes stay within their bounds; names that are data are neither shown nor stored; memory < 96 MiB",
    );
    let names = (0..8000).map(|n| (format!("user{n}@example.test"), json!(n)));
    let many: Map<String, Value> = names.collect();
    let people = json!({"alice": {"age": 1}, "bob": {"age": 2}});
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({ "a": [deep] });
    }
    let tools = [("many", json!(many)), ("people", people), ("deep", deep)];
    let script = tools.iter().fold(
        Script::named(&["many", "people", "deep"]),
        |script, (tool, value)| script.answers(tool, &result(value)),
    );
    let mut workbench = Setup::one(&script).connect();
    workbench.open("dev");
    for expected in [
        "many() → {[key]: number} (seen in",
        "people() → {[key]: {age}} (seen in",
        "deep() → {a: {a: {a: object[]}[]}[]} (seen in",
    ] {
        let (tool, _) = expected.split_once('(').unwrap();
        let shown = poll(TIMEOUT, || {
            assert!(!workbench.use_tool(tool, "{}").failed());
            signatures(&mut workbench).contains(expected).then_some(())
        });
        assert!(
            shown.is_some(),
            "{expected} in {}",
            signatures(&mut workbench)
        );
    }
    for file in std::fs::read_dir(workbench.setup.path("cache/mcp-workbench/servers")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        assert!(text.len() < 128 * 1024, "{}", text.len());
        for name in ["user1", "alice", "bob"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
    }
    assert!(memory_peak(workbench.pid()) < FLAT);
    fault.ends();
}
