//! Reading what was cut: `read_result`, what is not there, and what the store forgets.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Reader, lines, setup, text_result, uri};
use crate::harness::{Script, Setup, Workbench};

const META_TOOLS: [&str; 3] = ["open_toolbox", "use_tool", "read_result"];

/// Returns the texts in the result of `read_result`.
fn read_result(workbench: &mut Workbench, arguments: &Value) -> Vec<String> {
    let result = workbench.call("read_result", &arguments.to_string()).raw;
    let result: Value = serde_json::from_str(&result).unwrap();
    let content = result["content"].as_array().unwrap();
    let texts = content
        .iter()
        .map(|it| it["text"].as_str().unwrap().to_owned());
    texts.collect()
}

#[test]
fn read_result_reads_pages_and_finds_lines() {
    let text = lines(100);
    let setup = setup(100, &[("tool", &text_result(&text))]);
    let mut workbench = setup.top("metaTools", json!(META_TOOLS)).connect();
    let list = workbench.ask("tools/list", "{}").result();
    let names: Vec<&Value> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, META_TOOLS);
    workbench.open("dev");
    let raw = workbench.use_tool("tool", "{}").raw;
    let uri = uri(&raw);
    let id = uri.rsplit('/').next().unwrap();
    let call = format!(r#", or read_result with {{\"result\":\"{id}\",\"page\":2}}."#);
    assert!(raw.contains(&call), "{raw}");
    let mut joined = String::new();
    for page in 1..=9 {
        let place = match page {
            9 => "[Page 9 of 9, the last.]".to_owned(),
            _ => format!("[Page {page} of 9. Read on with page {}.]", page + 1),
        };
        let [text, told] = &read_result(&mut workbench, &json!({ "result": id, "page": page }))[..]
        else {
            panic!("not two texts");
        };
        assert_eq!(*told, place);
        joined += text;
    }
    assert_eq!(joined, text);
    // By its address, which may name the page.
    let second = read_result(&mut workbench, &json!({ "result": id, "page": 2 }));
    for arguments in [
        json!({ "result": uri, "page": 2 }),
        json!({ "result": format!("{uri}/2") }),
    ] {
        assert_eq!(read_result(&mut workbench, &arguments), second);
    }
    let found = read_result(&mut workbench, &json!({ "result": id, "query": "LINE 9" }));
    assert_eq!(
        found,
        [concat!(
            "page 1: line 9\npage 8: line 90\npage 8: line 91\npage 8: line 92\npage 8: line 93\npage 9: line 94\n",
            "[11 matches, 6 shown.]"
        )]
    );
    let none = read_result(&mut workbench, &json!({ "result": id, "query": "nowhere" }));
    assert_eq!(none, ["[0 matches.]"]);
}

#[test]
fn read_result_is_off_by_default() {
    let mut workbench = setup(100, &[("tool", &text_result(&lines(100)))]).connect();
    workbench.open("dev");
    let raw = workbench.use_tool("tool", "{}").raw;
    assert!(!raw.contains("read_result"), "{raw}");
    let list = workbench.ask("tools/list", "{}");
    assert!(!list.line.contains("read_result"), "{}", list.line);
    let refused = workbench.ask(
        "tools/call",
        r#"{"name":"read_result","arguments":{"result":"x"}}"#,
    );
    assert_eq!(refused.error().message, "Unknown tool: read_result");
}

const GONE: &str = "is not available. Results are stored for an hour at most, and for less when they are many or large. \
                    Call the tool again.";

#[test]
fn a_missing_result_is_an_error_with_a_code_and_a_hint() {
    let setup = setup(100, &[("tool", &text_result(&lines(100)))]);
    let mut workbench = setup.top("metaTools", json!(META_TOOLS)).connect();
    workbench.open("dev");
    let uri = uri(&workbench.use_tool("tool", "{}").raw);
    let id = uri.rsplit('/').next().unwrap().to_owned();
    for (uri, code, message) in [
        (
            format!("{uri}/10"),
            "page_unknown",
            format!("Result '{id}' has no page 10. Its pages are 1 to 9."),
        ),
        (
            format!("{uri}x"),
            "result_gone",
            format!("Result '{id}x' {GONE}"),
        ),
        (
            format!("{uri}/0"),
            "result_gone",
            format!("Result '{uri}/0' {GONE}"),
        ),
    ] {
        let refused = workbench.read(&uri);
        let error = refused.error();
        assert_eq!(error.code, -32002);
        assert_eq!(error.message, format!("Resource not found: {message}"));
        let data = json!({ "uri": uri, "code": code }).to_string();
        assert!(refused.line.contains(&data), "{}", refused.line);
    }
    for (arguments, code, message) in [
        (json!({ "result": "nothing" }), "result_gone", format!("Error: Result 'nothing' {GONE}")),
        (
            json!({ "result": id, "page": 10 }),
            "page_unknown",
            format!("Error: Result '{id}' has no page 10. Its pages are 1 to 9."),
        ),
        (json!({}), "invalid_parameters", "Invalid parameters: result: Required".to_owned()),
        (
            json!({ "result": "x", "page": "2", "query": 3 }),
            "invalid_parameters",
            "Invalid parameters: page: Expected number, received string; query: Expected string, received number"
                .to_owned(),
        ),
    ] {
        let refused = workbench.call("read_result", &arguments.to_string());
        assert_eq!(refused.error(), message);
        assert_eq!(refused.failure()["code"], code);
    }
}

#[test]
fn the_oldest_results_are_evicted_first() {
    let names: Vec<String> = (0..101).map(|n| format!("t{n}")).collect();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let script = names.iter().fold(Script::named(&listed), |script, name| {
        script.answers(name, &text_result(&name.repeat(100)).to_string())
    });
    let setup = Setup::one(&script).top("maxResultChars", json!(100));
    let mut workbench = setup.connect();
    workbench.open("dev");
    let uris: Vec<String> = names
        .iter()
        .map(|name| uri(&workbench.use_tool(name, "{}").raw))
        .collect();
    assert_eq!(workbench.read_on(&uris[1]), "t1".repeat(100));
    assert_eq!(workbench.read_on(&uris[100]), "t100".repeat(100));
    let gone = workbench.read(&uris[0]);
    assert!(gone.error().message.ends_with(GONE), "{}", gone.line);
    // The same result again has the same address, and is the newest.
    assert_eq!(uri(&workbench.use_tool("t50", "{}").raw), uris[50]);
}

#[test]
fn a_server_cannot_use_a_result_uri_of_the_workbench() {
    let link = json!({
        "content": [{ "type": "resource_link", "uri": "mcp-workbench://result/x", "name": "n" }],
    });
    let mut workbench = setup(1000, &[("tool", &link)]).connect();
    workbench.open("dev");
    workbench.use_tool("tool", "{}");
    let refused = workbench.read("mcp-workbench://result/x");
    assert!(refused.error().message.ends_with(GONE), "{}", refused.line);
    assert!(
        workbench
            .journal("dev", "fs")
            .received("resources/read")
            .is_empty()
    );
}
