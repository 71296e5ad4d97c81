//! The calls of scripts: they take the pipeline that every call takes.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{opened, opened_setup, run, value, wait_for_calls, with_run_code};
use crate::harness::{Script, Setup};

#[test]
fn a_script_gets_values_and_returns_one() {
    let script = Script::named(&["text", "json", "structured", "do.it"])
        .answers("text", r#"{"content":[{"type":"text","text":"plain"}]}"#)
        .answers(
            "json",
            r#"{"content":[{"type":"text","text":"{\n \"a\": [1, 2]\n}"}]}"#,
        )
        .answers(
            "structured",
            r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":1.50}}"#,
        )
        .answers("do.it", r#"{"content":[]}"#);
    let mut workbench = opened(&script);
    let result = run(
        &mut workbench,
        "console.log('one', {two: 2});
         const all = await Promise.all([tools.fs.text({}), tools.fs.json(), tools.fs.structured({}), tools.fs['do.it']({}), \
         tools.fs.do_it({})]);
         return all",
    );
    assert!(!result.failed(), "{}", result.raw);
    let structured = result.structured();
    assert_eq!(structured["ok"], true);
    assert_eq!(
        structured["result"],
        json!(["plain", {"a": [1, 2]}, {"n": 1.5}, null, null])
    );
    assert_eq!(structured["logs"], json!(["one {\"two\":2}"]));
    assert_eq!(structured["calls"], json!({"total": 5, "failed": 0}));
    assert!(structured["ms"].is_u64());
    assert_eq!(result.json(), structured, "the text is the same");
}

#[test]
fn a_failed_tool_throws_and_the_script_can_go_on() {
    let script = Script::named(&["fail", "exits"]).on_call("exits", r#"[{"exit":3}]"#);
    let mut workbench = opened(&script);
    let caught = value(
        &mut workbench,
        "const caught = [];
         for (const name of ['fail', 'exits', 'none']) {
           try { await tools.fs[name]({}) } catch (e) {
             caught.push([e instanceof ToolError, e.tool, e.code, e.outcome ?? null])
           }
         }
         return caught",
    );
    assert_eq!(
        caught,
        json!([
            [true, "tools.fs.fail", "tool_error", null],
            [true, "tools.fs.exits", "server_exited", "unknown"],
            [true, "tools.fs.none", "tool_unknown", "not_sent"],
        ])
    );
}

#[test]
fn calls_run_at_the_same_time() {
    let setup = Setup::new();
    let file = setup.path("reached");
    let actions = json!([
        {"awaitFile": file},
        {"answer": {"content": []}},
    ]);
    let script = Script::named(&["wait"]).on_call("wait", &actions.to_string());
    let setup = setup.toolbox("dev", "d").server("fs", &script);
    let mut workbench = opened_setup(setup);
    let code =
        "return (await Promise.all(Array.from({length: 20}, () => tools.fs.wait({})))).length";
    let id = workbench.send_call("run_code", &super::code(code));
    wait_for_calls(&workbench, 20);
    fs::write(&file, "").unwrap();
    let result = workbench.tool_result(&id);
    assert_eq!(result.structured()["result"], 20);
}

#[test]
fn cancelling_a_run_cancels_its_calls() {
    let mut workbench = opened(&Script::named(&["hang", "echo"]));
    let id = workbench.send_call(
        "run_code",
        &super::code("await Promise.all([tools.fs.hang({}), tools.fs.hang({})])"),
    );
    wait_for_calls(&workbench, 2);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{id}}}"#),
    );
    workbench.journal("dev", "fs").wait("cancelled", 2);
    assert_eq!(value(&mut workbench, "return 1"), json!(1));
}

#[test]
fn every_call_is_in_the_audit_log_with_the_id_of_its_run() {
    let setup = Setup::new();
    let file = setup.path("audit.jsonl");
    let setup = setup
        .top("audit", json!({"file": file}))
        .toolbox("dev", "d")
        .server("fs", &Script::named(&["echo"]));
    let mut workbench = opened_setup(setup);
    value(
        &mut workbench,
        "await tools.fs.echo({a: 1}); return await tools.fs.echo({b: 2}) && 1",
    );
    value(&mut workbench, "return await tools.fs.echo({c: 3}) && 1");
    assert!(!workbench.use_tool("echo", "{}").failed());
    workbench.finish();
    let log = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let runs: Vec<Option<&str>> = lines.iter().map(|it| it["run"].as_str()).collect();
    let [Some(first), Some(second), Some(third), None] = runs[..] else {
        panic!("{log}");
    };
    assert_eq!(first, second);
    assert!(first != third && first.len() == 12, "{log}");
}

#[test]
fn a_script_finds_tools_and_reads_what_was_cut() {
    let setup = Setup::new()
        .top("maxResultChars", json!(1000))
        .toolbox("dev", "d")
        .server("fs", &Script::named(&["big", "echo"]));
    let mut workbench = opened_setup(setup);
    let found = value(
        &mut workbench,
        "return (await tools.search('echo', {limit: 1})).map(t => [t.tool, t.signature])",
    );
    assert_eq!(found[0][0], "tools.fs.echo", "{found}");
    let described = value(
        &mut workbench,
        "return Object.keys(await tools.describe('tools.fs.echo'))",
    );
    assert!(
        described
            .as_array()
            .unwrap()
            .contains(&json!("inputSchema")),
        "{described}"
    );
    let cut = workbench.use_tool("big", r#"{"size":5000}"#);
    let cut: Value = serde_json::from_str(&cut.raw).unwrap();
    let uri = cut["_meta"]["mcp-workbench/result"]["uri"]
        .as_str()
        .unwrap();
    let read = value(
        &mut workbench,
        &format!("return JSON.stringify(await results.read('{uri}')).length > 5000"),
    );
    assert_eq!(read, json!(true));
    // What a script gets itself is never cut.
    let whole = value(
        &mut workbench,
        "return JSON.stringify(await tools.fs.big({size: 5000})).length > 5000",
    );
    assert_eq!(whole, json!(true));
    let gone = value(
        &mut workbench,
        "try { await results.read('nothing') } catch (e) { return e.code }",
    );
    assert_eq!(gone, json!("result_gone"));
}

#[test]
fn parts_that_are_no_text_are_described_and_emitted_as_they_came() {
    let image = r#"{"type": "image", "mimeType": "image/png", "data": "AAAA"}"#;
    let shot = format!(r#"{{"content":[{{"type":"text","text":"done"}},{image}]}}"#);
    let linked = r#"{"content":[{"type":"resource_link","uri":"a:b","name":"b"}]}"#;
    let script = Script::named(&["shot", "linked"])
        .answers("shot", &shot)
        .answers("linked", linked);
    let mut workbench = opened(&script);
    // Without `await`, as models write it.
    let result = run(
        &mut workbench,
        "const { content } = await tools.fs.shot({});
         emit((await tools.fs.linked({})).content[0]);
         emit(content[1]);
         return content",
    );
    assert!(!result.failed(), "{}", result.raw);
    let structured = result.structured();
    assert_eq!(
        structured["result"],
        json!([
            {"type": "text", "text": "done"},
            {"type": "image", "mimeType": "image/png", "bytes": 3, "ref": "1.1"},
        ])
    );
    assert_eq!(structured["calls"], json!({"total": 2, "failed": 0}));
    let whole: Value = serde_json::from_str(&result.raw).unwrap();
    let expected = json!([
        {"type": "resource_link", "uri": "a:b", "name": "b"},
        serde_json::from_str::<Value>(image).unwrap(),
    ]);
    assert_eq!(json!(whole["content"].as_array().unwrap()[1..]), expected);
    // A reference of another run leads nowhere, and nothing else can be emitted.
    for part in ["{ref: '1.1'}", "'text'", "null"] {
        let failed = run(&mut workbench, &format!("await emit({part})"));
        let text = failed.error();
        assert!(text.starts_with("ToolError at 1:"), "{text}");
        assert!(
            text.contains(": emit takes a part of a result of this run"),
            "{text}"
        );
    }
}

#[test]
fn servers_of_one_name_are_told_apart_by_their_toolboxes() {
    let answer = |text: &str| {
        let result = json!({"content": [{"type": "text", "text": text}]});
        Script::named(&["who"]).answers("who", &result.to_string())
    };
    let setup = Setup::new()
        .toolbox("a", "d")
        .server("fs", &answer("of a"))
        .toolbox("b", "d")
        .server("fs", &answer("of b"))
        .server("my-server", &answer("mine"));
    let mut workbench = with_run_code(setup).connect();
    workbench.open("b");
    assert_eq!(
        value(&mut workbench, "return await tools.fs.who({})"),
        json!("of b")
    );
    workbench.open("a");
    let all = "return [await tools['a/fs'].who({}), await tools['b/fs'].who({}), await tools['my-server'].who({}), await \
               tools.my_server.who({})]";
    assert_eq!(
        value(&mut workbench, all),
        json!(["of a", "of b", "mine", "mine"])
    );
    let text = run(&mut workbench, "await tools.fs.who({})")
        .error()
        .to_owned();
    assert!(
        text.contains(r#"Write one of: tools["a/fs"]["…"], tools["b/fs"]["…"]"#),
        "{text}"
    );
}

#[test]
fn calls_that_a_script_does_not_wait_for_are_reported() {
    let mut workbench = opened(&Script::named(&["hang", "echo"]));
    let result = run(
        &mut workbench,
        "tools.fs.hang({}); await tools.fs.echo({}); return 1",
    );
    let structured = result.structured();
    assert_eq!(
        structured["calls"],
        json!({"total": 2, "failed": 0, "cancelled": 1})
    );
    assert_eq!(
        structured["hint"],
        "1 call was cancelled, because the script returned first: use await. Outcome unknown (may have run): tools.fs.hang \
         (started 1:10)."
    );
    workbench.journal("dev", "fs").wait("cancelled", 1);
}

#[test]
fn a_toolbox_that_is_not_open_is_not_called() {
    let mut workbench = with_run_code(Setup::one(&Script::named(&["echo"]))).connect();
    let result = run(&mut workbench, "await tools.fs.echo({})");
    assert!(
        result
            .error()
            .contains("Toolbox 'dev' is not open. Call open_toolbox first"),
        "{}",
        result.error()
    );
}

#[cfg(feature = "otel")]
#[test]
fn the_calls_of_a_run_are_in_one_trace() {
    // Nobody listens there: only the ids matter.
    let setup = Setup::one(&Script::named(&["echo"])).env(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "http://127.0.0.1:9/v1/traces",
    );
    let mut workbench = opened_setup(setup);
    value(
        &mut workbench,
        "await tools.fs.echo({}); return await tools.fs.echo({}) && 1",
    );
    assert!(!workbench.use_tool("echo", "{}").failed());
    let received = workbench.journal("dev", "fs").received("tools/call");
    let traces: Vec<String> = received
        .iter()
        .map(|it| {
            let parent = it.params()["_meta"]["traceparent"].clone();
            parent.as_str().unwrap()[3..35].to_owned()
        })
        .collect();
    let [first, second, other] = &traces[..] else {
        panic!("{traces:?}");
    };
    assert_eq!(first, second);
    assert_ne!(first, other);
}
