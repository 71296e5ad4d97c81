//! `select`: jq filters on results, by the caller and by the configuration.

mod hostile;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{
    ModernClient, ModernRequest, Script, Setup, ToolResult, Workbench, use_arguments,
};

const META_TOOLS: [&str; 3] = ["open_toolbox", "use_tool", "read_result"];

/// A result with structured content, whose text repeats it.
fn structured(value: &Value) -> String {
    let text = value.to_string();
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": value }).to_string()
}

/// A result that is one text.
fn text(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}

fn issues() -> Value {
    let issue = |n: u32| json!({ "number": n, "title": format!("t{n}"), "body": "x".repeat(100) });
    json!({ "issues": [issue(1), issue(2)], "total": 2 })
}

fn setup(script: &Script) -> Setup {
    Setup::one(script)
        .top("select", json!(true))
        .top("metaTools", json!(META_TOOLS))
}

/// Calls a tool of the server `fs` with a filter.
fn select(workbench: &mut Workbench, tool: &str, filter: &str) -> ToolResult {
    let arguments = use_arguments(["dev", "fs", tool], Some("{}"));
    let mut arguments: Value = serde_json::from_str(&arguments).unwrap();
    arguments["select"] = filter.into();
    workbench.call("use_tool", &arguments.to_string())
}

fn texts(result: &ToolResult) -> Vec<String> {
    let result: Value = serde_json::from_str(&result.raw).unwrap();
    let content = result["content"].as_array().unwrap().iter();
    content
        .filter_map(|it| Some(it["text"].as_str()?.to_owned()))
        .collect()
}

fn about(result: &ToolResult) -> Value {
    let result: Value = serde_json::from_str(&result.raw).unwrap();
    result["_meta"]["mcp-workbench/result"].clone()
}

#[test]
fn a_filter_selects_from_structured_content_or_json_text() {
    let script = Script::named(&["structured", "text", "several"])
        .answers("structured", &structured(&issues()))
        .answers("text", &text(r#" {"n": 1.10, "big": 12345678901234567890123} "#))
        .answers(
            "several",
            r#"{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"text","text":"{\"a\":2}"}]}"#,
        );
    let mut workbench = setup(&script).connect();
    workbench.open("dev");
    let cases = [
        (
            "structured",
            ".issues[] | {number, title}",
            "{\"number\":1,\"title\":\"t1\"}\n{\"number\":2,\"title\":\"t2\"}",
        ),
        (
            "structured",
            "[.issues[] | select(.title | test(\"T2\"; \"i\"))] | length",
            "1",
        ),
        ("structured", ".issues[0].title", "t1"),
        ("text", ".n, .big", "1.10\n12345678901234567890123"),
        ("several", "map(.a)", "[1,2]"),
        ("structured", "empty", ""),
    ];
    for (tool, filter, expected) in cases {
        let result = select(&mut workbench, tool, filter);
        let [selected, notice] = &texts(&result)[..] else {
            panic!("not two texts: {}", result.raw);
        };
        assert_eq!(selected, expected, "{tool} {filter}");
        assert!(notice.starts_with("[Selected from "), "{notice}");
        assert!(!result.is_structured(), "{}", result.raw);
        assert_eq!(about(&result)["selected"], true);
    }
}

#[test]
fn the_whole_result_stays_readable() {
    let whole = structured(&issues());
    let script = Script::named(&["tool"]).answers("tool", &whole);
    let mut workbench = setup(&script).connect();
    workbench.open("dev");
    let result = select(&mut workbench, "tool", ".total");
    let id = about(&result)["uri"]
        .as_str()
        .unwrap()
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();
    assert!(texts(&result)[1].ends_with(&format!("read_result with {{\"result\":\"{id}\"}}]")));
    let read = workbench.call("read_result", &json!({ "result": id }).to_string());
    assert_eq!(texts(&read)[0], issues().to_string());
    let uri = about(&result)["json_uri"].as_str().unwrap().to_owned();
    let read = workbench
        .ask("resources/read", &json!({ "uri": uri }).to_string())
        .result();
    assert_eq!(read["contents"][0]["text"], whole);
    // Another filter on the stored result does not call the tool again.
    let again = json!({ "result": id, "select": ".issues[].number" }).to_string();
    let again = workbench.call("read_result", &again);
    assert_eq!(again.text(), "1\n2");
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/call").len(),
        1
    );
    let failed = json!({ "result": id, "select": ".total.x" }).to_string();
    let failed = workbench.call("read_result", &failed);
    assert_eq!(
        failed.error(),
        "Error: select was not applied: cannot index 2 with \"x\""
    );
    assert_eq!(failed.failure()["code"], "select_failed");
}

#[test]
fn an_invalid_filter_is_refused_before_the_call() {
    let script = Script::named(&["tool"]).answers("tool", &structured(&issues()));
    let mut workbench = setup(&script).connect();
    workbench.open("dev");
    for (filter, expected) in [
        (
            ".issues[ | .x",
            "select: expected closing bracket at column 14",
        ),
        (
            ".a | lenght",
            "select: undefined filter `lenght` at column 6",
        ),
        ("$ENV", "select: undefined variable `$ENV` at column 1"),
        (" ", "select cannot be empty"),
    ] {
        let refused = select(&mut workbench, "tool", filter);
        assert_eq!(refused.error(), format!("Invalid parameters: {expected}"));
        assert_eq!(refused.failure()["outcome"], "not_sent");
    }
    assert!(
        workbench
            .journal("dev", "fs")
            .received("tools/call")
            .is_empty()
    );
}

#[test]
fn a_filter_that_does_not_fit_leaves_the_result_whole() {
    let script = Script::named(&["json", "words", "error"])
        .answers("json", &structured(&issues()))
        .answers("words", &text("plain words"))
        .answers(
            "error",
            r#"{"content":[{"type":"text","text":"{}"}],"isError":true}"#,
        );
    let mut workbench = setup(&script).connect();
    workbench.open("dev");
    let failed = select(&mut workbench, "json", ".total | keys");
    assert_eq!(failed.structured(), issues());
    let shown = texts(&failed);
    assert_eq!(shown[0], issues().to_string());
    assert!(
        shown[1].starts_with("[select was not applied: "),
        "{}",
        shown[1]
    );
    assert!(about(&failed)["select_error"].is_string());
    let words = select(&mut workbench, "words", ".a");
    assert_eq!(
        texts(&words),
        [
            "plain words",
            "[select was not applied: the result has no structuredContent, and its text is not JSON. \
             The result is not filtered.]"
        ]
    );
    // The error of a tool is passed on as it is.
    let error = select(&mut workbench, "error", ".a");
    assert_eq!(
        error.raw,
        r#"{"content":[{"type":"text","text":"{}"}],"isError":true}"#
    );
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/call").len(),
        3
    );
}

#[test]
fn select_is_on_by_configuration_only() {
    let whole = structured(&issues());
    let script = Script::named(&["tool"]).answers("tool", &whole);
    let mut workbench = Setup::one(&script)
        .top("metaTools", json!(META_TOOLS))
        .connect();
    let list = workbench.ask("tools/list", "{}");
    assert!(!list.line.contains("select"), "{}", list.line);
    workbench.open("dev");
    let refused = select(&mut workbench, "tool", ".total");
    assert_eq!(
        refused.error(),
        "Invalid parameters: Unrecognized key: 'select'"
    );
    assert_eq!(workbench.use_tool("tool", "{}").raw, whole);

    let mut workbench = setup(&script).connect();
    let list = workbench.ask("tools/list", "{}").result();
    let properties = |n: usize| list["tools"][n]["inputSchema"]["properties"].clone();
    for tool in [1, 2] {
        assert_eq!(
            properties(tool)["select"],
            json!({ "type": "string", "description": "jq filter for a JSON result" })
        );
    }
    assert!(properties(0).get("select").is_none());
    workbench.open("dev");
    assert_eq!(workbench.use_tool("tool", "{}").raw, whole);
}

#[test]
fn a_configured_filter_is_the_default_of_its_tool() {
    let script = Script::named(&["list", "other"])
        .answers("list", &structured(&issues()))
        .answers("other", &structured(&issues()));
    let keys = json!({ "resultSelect": { "list": "[.issues[].number]" } });
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &script, &keys);
    let mut workbench = setup.top("select", json!(true)).connect();
    workbench.open("dev");
    assert_eq!(texts(&workbench.use_tool("list", "{}"))[0], "[1,2]");
    assert_eq!(texts(&select(&mut workbench, "list", ".total"))[0], "2");
    assert_eq!(workbench.use_tool("other", "{}").raw, structured(&issues()));
    // Without `read_result` the notice has the address.
    let notice = &texts(&workbench.use_tool("list", "{}"))[1];
    assert!(notice.contains("mcp-workbench://result/"), "{notice}");
}

#[test]
fn a_configured_filter_spares_registered_tools_with_structured_results() {
    let script = Script::named(&["structured", "plain"])
        .answers("structured", &structured(&issues()))
        .answers("plain", &text(&issues().to_string()));
    let keys = json!({ "resultSelect": { "structured": ".total", "plain": ".total" } });
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &script, &keys);
    let mut workbench = setup.top("toolMode", json!("dynamic")).connect();
    workbench.open("dev");
    let structured_result = workbench.call("dev__fs__structured", "{}");
    assert_eq!(structured_result.raw, structured(&issues()));
    assert_eq!(texts(&workbench.call("dev__fs__plain", "{}"))[0], "2");
}

#[test]
fn selected_results_are_within_the_budget() {
    let value = json!({ "long": "line\n".repeat(1000), "other": 1 });
    let script = Script::named(&["tool"]).answers("tool", &structured(&value));
    let mut workbench = setup(&script).top("maxResultChars", json!(1000)).connect();
    workbench.open("dev");
    let result = select(&mut workbench, "tool", ".long");
    let shown = texts(&result).concat();
    assert!(shown.contains("[Cut by mcp-workbench"), "{shown}");
    assert!(result.raw.len() < 3000, "{}", result.raw);
    // The notice about the whole result is never cut.
    let notice = texts(&result).pop().unwrap();
    assert!(notice.starts_with("[Selected from "), "{notice}");
    let about = about(&result);
    assert_eq!(about["selected"], true, "{about}");
    let uri = about["whole"]["json_uri"].as_str().unwrap();
    let read = json!({ "result": uri.replace("/json", ""), "select": ".other" });
    let read = workbench.call("read_result", &read.to_string());
    assert_eq!(read.text(), "1");
}

#[test]
fn a_filter_that_fails_on_a_large_result_says_why_within_the_budget() {
    let rows: Vec<Value> = (0..100_000)
        .map(|n| json!({ "name": format!("n{n}") }))
        .collect();
    let whole = text(&json!(rows).to_string());
    let script = Script::named(&["tool"]).answers("tool", &whole);
    let mut workbench = setup(&script).top("maxResultChars", json!(1000)).connect();
    workbench.open("dev");
    let result = select(&mut workbench, "tool", ".name");
    assert!(result.raw.len() < 4000, "{}", result.raw);
    let remark = texts(&result).pop().unwrap();
    let (begin, end) = (
        "[select was not applied: cannot index [{\"name\":\"n0\"},",
        "{\"name\":\"n99999\"}] with \"name\". The result is not filtered.]",
    );
    assert!(
        remark.starts_with(begin) && remark.ends_with(end),
        "{remark}"
    );
    let about = about(&result);
    let why = about["select_error"].as_str().unwrap();
    assert!(why.ends_with("with \"name\""), "{about}");
    // The stored result is the server's own.
    let arguments = json!({ "result": about["json_uri"], "query": "select was not" });
    let found = workbench.call("read_result", &arguments.to_string());
    assert_eq!(found.text(), "[0 matches.]");
    assert_eq!(about["characters"], json!(rows).to_string().len());
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/call").len(),
        1
    );
}

#[test]
fn modern_clients_select_too() {
    let script = Script::named(&["tool"]).answers("tool", &structured(&issues()));
    let mut workbench = setup(&script).start();
    let open = ModernRequest::new("tools/call")
        .param("name", "\"open_toolbox\"")
        .param("arguments", r#"{"toolbox":"dev"}"#);
    workbench.ask_modern(&open);
    let arguments = json!({
        "tool": { "toolbox": "dev", "server": "fs", "tool": "tool" },
        "select": ".total",
    });
    let call = ModernRequest::new("tools/call")
        .param("name", "\"use_tool\"")
        .param("arguments", &arguments.to_string());
    let result = workbench.ask_modern(&call).result();
    assert_eq!(result["content"][0]["text"], "2");
    assert_eq!(result["resultType"], "complete");
}

#[test]
fn faults_of_configured_filters_have_a_place_and_a_remedy() {
    let keys = json!({ "resultSelect": { "tool": ".[", "other": 3 } });
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &Script::new(), &keys);
    let finished = setup.start().finish();
    assert!(!finished.status.success());
    for part in [
        "toolboxes.dev.mcpServers.fs.resultSelect.tool: not a jq filter: expected closing bracket at column 3",
        "toolboxes.dev.mcpServers.fs.resultSelect.other: expected a string, found `3`",
    ] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}

#[test]
fn check_and_doctor_name_filters_for_unknown_tools() {
    let entry = json!({"resultSelect": {"list": ".", "lits": ".", "zzz": "."}});
    let setup = Setup::new().toolbox("dev", "d");
    let setup = setup.server_with("fs", &Script::named(&["list"]), &entry);
    setup.write_config();
    let run = |arguments: &[&str]| {
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).args(arguments);
        let output = command.output().unwrap();
        let (stdout, stderr) = (output.stdout, output.stderr);
        String::from_utf8([stdout, stderr].concat()).unwrap()
    };
    let words = "`resultSelect` has a filter for";
    assert!(
        !run(&["check"]).contains(words),
        "the tools are not known yet"
    );
    for command in ["doctor", "check"] {
        let said = run(&[command]);
        for expected in [
            format!("{words} 'lits', which is not a tool of the server (did you mean 'list'?)"),
            format!("{words} 'zzz', which is not a tool of the server"),
        ] {
            assert!(said.contains(&expected), "{command}: {said}");
        }
        assert!(!said.contains("'list', which"), "{command}: {said}");
    }
}
