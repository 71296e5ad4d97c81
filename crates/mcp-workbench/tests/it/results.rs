//! Results come back as the server sent them.

use pretty_assertions::assert_eq;

use crate::harness::{Script, Setup};

#[test]
fn results_come_back_byte_for_byte() {
    let rows = [
        r#"{"content":[{"type":"text","text":"hello"}]}"#,
        r#"{"content":[]}"#,
        r#"{"isError":true,"content":[{"type":"text","text":"it failed"}],"code":7}"#,
        r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"}]}"#,
        r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///a","text":"t","mimeType":"text/plain"}},{"type":"resource","resource":{"uri":"file:///b","blob":"aGk="}}]}"#,
        r#"{"content":[{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5},"_meta":{"k":1}},{"type":"hologram","x":[1,{"y":null}]}]}"#,
        r#"{"structuredContent":{"z":1,"a":{"z":[],"a":0}},"content":[],"_meta":{"a/b":{"c":[1]}},"later":{"unknown":true}}"#,
        r#"{"content":[],"n":123456789012345678901234567890,"f":1e400,"g":1.10,"h":-0,"i":1E+5}"#,
        r#"{"content":[],"same":1,"same":2}"#,
        r#"{"content":[{"type":"text","text":"\u00fc ü \/ \\ \" \u0000 😀 \ud83d\ude00"}]}"#,
        r#"{ "content" : [ ] , "space" :	1 }"#,
        r#"{"content":[],"id":5,"result":{"id":6},"jsonrpc":"1.0","error":{"code":1}}"#,
        r#"{"unheard":"of"}"#,
        r"{}",
    ];
    let names: Vec<String> = (0..rows.len()).map(|n| format!("row{n}")).collect();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut script = Script::named(&listed);
    for (name, row) in names.iter().zip(rows) {
        script = script.answers(name, row);
    }
    let mut workbench = Setup::one(&script).connect();
    workbench.open("dev");
    for (name, row) in names.iter().zip(rows) {
        let id = workbench.send_use(name, "{}");
        assert_eq!(workbench.response(&id).raw_result(), row);
    }
}

/// Text as the server wrote it inside a JSON string (`$xHH` is a raw byte), and as it must arrive.
const REPAIRED: &[(&str, &str)] = &[
    (r"\\ud800", "\u{fffd}"),
    (r"\\uDFFF", "\u{fffd}"),
    (r"a\\ud800b", "a\u{fffd}b"),
    (r"\\ud800\\ud83d\\ude00", "\u{fffd}😀"),
    (r"\\udc00\\ud800", "\u{fffd}\u{fffd}"),
    (r"\\ud800\\n", "\u{fffd}\n"),
    (r"\\\\ud800", r"\ud800"),
    (r"\\ud83d\\ude00", "😀"),
    ("a$xffb", "a\u{fffd}b"),
    ("$xc3$xbc", "ü"),
    ("ü$xfe", "ü\u{fffd}"),
    (r"$xff\\ud800", "\u{fffd}\u{fffd}"),
];

#[test]
fn only_invalid_text_is_repaired() {
    let names: Vec<String> = (0..REPAIRED.len()).map(|n| format!("row{n}")).collect();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut script = Script::named(&listed);
    for (name, (written, _)) in names.iter().zip(REPAIRED) {
        let line = format!(
            r#"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{written}\"}}],\"n\":1e400,\"k{written}\":1}}}}"#
        );
        script = script.on_call(name, &format!(r#"[{{"line":"{line}"}}]"#));
    }
    let mut workbench = Setup::one(&script).connect();
    workbench.open("dev");
    for (name, (written, arrived)) in names.iter().zip(REPAIRED) {
        let result = workbench.use_tool(name, "{}");
        assert_eq!(result.text(), *arrived, "{written}");
        assert!(result.raw.contains(r#","n":1e400,"#), "{}", result.raw);
    }
}

#[test]
fn answers_out_of_order_reach_their_callers() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    let calls: Vec<(String, u64)> = [120, 80, 40, 0]
        .map(|ms| {
            let id = workbench.send_use("sleep", &format!(r#"{{"ms":{ms}}}"#));
            (id, ms)
        })
        .into();
    for (id, ms) in calls {
        let result = workbench.tool_result(&id);
        assert_eq!(result.structured()["arguments"]["ms"], ms);
    }
}

#[test]
fn concurrent_calls_are_all_answered() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    let ids: Vec<String> = (0..200)
        .map(|n| workbench.send_use("echo", &format!(r#"{{"n":{n}}}"#)))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let result = workbench.tool_result(id);
        assert_eq!(result.structured()["arguments"]["n"], n);
    }
}

#[test]
fn a_large_result_is_complete() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    let result = workbench.use_tool("big", r#"{"size":3000000}"#);
    assert_eq!(result.text().len(), 3_000_000);
}

#[test]
fn a_resource_that_a_result_links_to_can_be_read() {
    let link = r#"{"content":[{"type":"text","text":"resource_link"},{"type":"resource_link","uri":"u:1","name":"n"}]}"#;
    let script = Script::named(&["link"]).answers("link", link).on_method(
        "resources/read",
        r#"[{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"contents\":[],\"got\":$PARAMS,\"n\":1e400}}"}]"#,
    );
    let mut workbench = Setup::one(&script).connect();
    workbench.open("dev");
    let params = r#"{"uri":"u:1","odd":[1.10]}"#;
    assert_eq!(workbench.ask("resources/read", params).error().code, -32002);
    workbench.use_tool("link", "{}");
    assert_eq!(
        workbench.ask("resources/read", params).raw_result(),
        format!(r#"{{"contents":[],"got":{params},"n":1e400}}"#)
    );
    let other_too = r#"{"uri":"u:1","uri":"file:///secret"}"#;
    let refused = workbench.ask("resources/read", other_too);
    assert_eq!(refused.error().code, -32602, "{}", refused.line);
    assert_eq!(
        workbench.ask("resources/list", "{}").raw_result(),
        r#"{"resources":[]}"#
    );
}
