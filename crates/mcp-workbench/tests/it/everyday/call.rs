//! `call`.

use std::fs;

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{asks, document, exit_code, run, start};
use crate::harness::{Script, Setup, TIMEOUT, poll};

const ECHO: [&str; 4] = ["call", "dev", "fs", "echo"];

/// A server whose tool `echo` has a schema with every type.
fn typed() -> Script {
    let properties = json!({
        "path": {"type": "string"},
        "limit": {"type": "integer"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "extra": {"type": "object"},
    });
    let schema = json!({"type": "object", "properties": properties});
    Script::new().tools(&json!([{"name": "echo", "inputSchema": schema}]).to_string())
}

fn arguments<'a>(first: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    first.iter().chain(rest).copied().collect()
}

#[test]
fn arguments_reach_the_tool_with_the_types_of_its_schema() {
    let cases: [(&[&str], &str); 6] = [
        (&[], "{}"),
        (
            &["path=5", "limit=5", "deep=true"],
            r#"{"path":"5","limit":5,"deep":true}"#,
        ),
        (
            &["tags=a", "tags=b", "extra={\"x\": 1}"],
            r#"{"tags":["a","b"],"extra":{"x":1}}"#,
        ),
        (&["unknown=5", "forced:=5"], r#"{"unknown":"5","forced":5}"#),
        (&[r#"{"limit": 1e400}"#], r#"{"limit":1e400}"#),
        (&["path=a=b c"], r#"{"path":"a=b c"}"#),
    ];
    for (words, expected) in cases {
        let setup = Setup::one(&typed());
        let journal = setup.journal("dev", "fs");
        let (finished, _setup) = run(setup, &arguments(&ECHO, words));
        assert_eq!(exit_code(&finished), 0, "{words:?}: {}", finished.stderr);
        assert_eq!(finished.stderr, "");
        assert_eq!(journal.arguments(), [expected], "{words:?}");
    }
}

/// A shell waits for as long as `connectTimeoutMs`, and not only for the 45 s of an open.
#[test]
fn a_server_that_starts_slowly_is_waited_for() {
    let script = typed().set("onStart", r#"[{"sleepMs":48000}]"#);
    let setup =
        Setup::new()
            .toolbox("dev", "d")
            .server_with("fs", &script, &json!({"era": "legacy"}));
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &ECHO);
    assert_eq!(exit_code(&finished), 0, "{}", finished.stderr);
    assert_eq!(journal.pids().len(), 1);
}

#[test]
fn arguments_can_come_from_stdin() {
    let setup = Setup::one(&typed());
    let journal = setup.journal("dev", "fs");
    let mut call = start(setup, &arguments(&ECHO, &["-"]));
    call.send_bytes(b"{\"path\":\n \"a\"}");
    assert_eq!(exit_code(&call.finish()), 0);
    assert_eq!(journal.arguments(), [r#"{"path":"a"}"#]);
}

#[test]
fn the_exit_code_depends_on_the_outcome() {
    let cases: [(&[&str], i32, &str); 9] = [
        (&["call", "dev", "fs", "echo"], 0, ""),
        (&["call", "dev", "fs", "fail"], 3, "it failed"),
        (
            &["call", "dev", "fs", "crash"],
            1,
            "exited with code 0 during the call",
        ),
        (&["call", "dev", "fs", "ecko"], 1, "Did you mean 'echo'?"),
        (
            &["call", "dev", "sf", "echo"],
            1,
            "there is no server `sf` in toolbox `dev`",
        ),
        (&["call", "dve", "fs", "echo"], 1, "did you mean `dev`?"),
        (
            &["call", "dev", "fs", "echo", "word"],
            2,
            "`word` is not an argument",
        ),
        (&["call", "dev", "fs", "echo", "[1]"], 2, "not an object"),
        (&["call", "dev", "fs"], 2, "Usage"),
    ];
    for (words, code, said) in cases {
        let (finished, _setup) = run(Setup::one(&Script::new()), words);
        assert_eq!(exit_code(&finished), code, "{words:?}: {}", finished.stderr);
        assert!(
            finished.stderr.contains(said),
            "{words:?}: {}",
            finished.stderr
        );
        assert_eq!(finished.stdout.is_empty(), code != 0, "{words:?}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused_before_the_call() {
    let setup = Setup::one(&typed());
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &arguments(&ECHO, &["limit=many"]));
    assert_eq!(exit_code(&finished), 2);
    assert_eq!(
        finished.stderr.trim(),
        "error: limit: expected a whole number, found `many`"
    );
    assert_eq!(journal.called(), Vec::<String>::new());
}

#[test]
fn json_prints_the_result_as_it_was_sent() {
    let result =
        r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1e400},"x":[ 1 ]}"#;
    let setup = Setup::one(&Script::new().answers("echo", result));
    let (finished, _setup) = run(setup, &arguments(&ECHO, &["--json"]));
    assert_eq!(finished.stdout, [result]);
    let (finished, _setup) = run(
        Setup::one(&Script::new()),
        &["call", "dev", "fs", "fail", "--json"],
    );
    assert_eq!(exit_code(&finished), 3);
    assert_eq!(document(&finished)["isError"], true);
    let (finished, _setup) = run(
        Setup::one(&Script::new()),
        &["call", "dev", "fs", "x", "--json"],
    );
    assert_eq!(exit_code(&finished), 1);
    assert_eq!(
        document(&finished)["_meta"]["mcp-workbench/error"]["code"],
        "tool_unknown"
    );
}

#[test]
fn results_are_printed_for_people() {
    let result = json!({"content": [
        {"type": "text", "text": "one\ntwo"},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ], "structuredContent": {"n": 1}});
    let setup = Setup::one(&Script::new().answers("echo", &result.to_string()));
    let (finished, _setup) = run(setup, &ECHO);
    let lines = [
        "one",
        "two",
        "[image: image/png, 5 bytes]",
        "[link: file:///a (a)]",
        "{",
        "  \"n\": 1",
        "}",
    ];
    assert_eq!(finished.stdout, lines);
    assert_eq!(finished.stderr, "", "no progress is printed to a pipe");
}

#[test]
fn text_with_equal_structured_content_is_printed_and_saved_once() {
    let result = json!({"content": [{"type": "text", "text": "12:30\nin Berlin"}],
        "structuredContent": {"result": "12:30\nin Berlin"}});
    let setup = Setup::one(&Script::new().answers("echo", &result.to_string()));
    let file = setup.path("work/saved.txt");
    setup.write_config();
    let call = |options: &[&str]| {
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).args(ECHO);
        command.args(options).output().unwrap()
    };
    assert_eq!(call(&[]).stdout, b"12:30\nin Berlin\n");
    assert_eq!(call(&["--output", "saved.txt"]).stdout, b"");
    assert_eq!(fs::read_to_string(file).unwrap(), "12:30\nin Berlin\n");
}

#[test]
fn binary_contents_are_saved_and_nothing_is_overwritten() {
    let result = json!({"content": [
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "d29ybGQ"}},
    ]});
    let setup = Setup::one(&Script::new().answers("echo", &result.to_string()));
    let folder = setup.path("work");
    let (finished, _setup) = run(setup, &arguments(&ECHO, &["--output", "a.png"]));
    assert_eq!(exit_code(&finished), 0, "{}", finished.stderr);
    assert_eq!(finished.stdout, Vec::<String>::new());
    assert_eq!(fs::read(folder.join("a.png")).unwrap(), b"hello");
    assert_eq!(fs::read(folder.join("a-2.png")).unwrap(), b"world");

    let setup = Setup::one(&Script::new());
    let file = setup.write("work/a.txt", "mine");
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &arguments(&ECHO, &["--output", "a.txt"]));
    assert_eq!(exit_code(&finished), 1);
    assert!(
        finished.stderr.contains("a.txt exists"),
        "{}",
        finished.stderr
    );
    assert_eq!(fs::read(file).unwrap(), b"mine");
    assert!(journal.lines().is_empty(), "nothing was called");
}

#[test]
fn only_the_called_server_is_started() {
    let setup = Setup::one(&Script::new()).server("other", &Script::new());
    let other = setup.journal("dev", "other");
    let setup = setup
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let (finished, _setup) = run(setup, &ECHO);
    assert_eq!(exit_code(&finished), 0, "{}", finished.stderr);
    assert!(other.lines().is_empty());
}

#[test]
fn an_interrupt_cancels_the_call_and_stops_the_server() {
    let setup = Setup::one(&Script::new());
    let journal = setup.journal("dev", "fs");
    let mut call = start(setup, &["call", "dev", "fs", "hang"]);
    poll(TIMEOUT, || journal.called().first().cloned()).expect("the call reaches the server");
    call.signal(Signal::INT);
    let finished = call.finish();
    assert_eq!(exit_code(&finished), 1);
    assert_eq!(finished.stderr.trim(), "error: interrupted");
    assert_eq!(journal.received("notifications/cancelled").len(), 1);
    call.wait_no_survivors(TIMEOUT);
}

#[test]
fn a_call_that_takes_too_long_is_cancelled() {
    let setup = Setup::one(&Script::new());
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &["call", "dev", "fs", "hang", "--timeout", "1"]);
    assert_eq!(exit_code(&finished), 1);
    assert!(
        finished
            .stderr
            .contains("timed out after 1 s waiting for the result"),
        "{}",
        finished.stderr
    );
    assert_eq!(journal.received("notifications/cancelled").len(), 1);
}

#[test]
fn without_a_terminal_questions_of_servers_are_refused() {
    let setup = Setup::one(&Script::new().on_call("echo", &asks(&json!({"message": "m"}))));
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &arguments(&ECHO, &["--json"]));
    assert_eq!(exit_code(&finished), 0, "{}", finished.stderr);
    let initialize = journal.received("initialize").remove(0);
    let params: Value = serde_json::from_str(initialize.params.unwrap().get()).unwrap();
    assert_eq!(params["capabilities"], json!({}));
    let reply = document(&finished)["structuredContent"].to_string();
    assert!(reply.contains("-32601"), "{reply}");
}

#[test]
fn a_failed_start_is_reported_with_its_reason() {
    let setup = Setup::new().toolbox("dev", "d").entry(
        "fs",
        json!({"command": "sh", "args": ["-c", "echo no luck >&2; exit 3"]}),
    );
    let (finished, _setup) = run(setup, &ECHO);
    assert_eq!(exit_code(&finished), 1);
    let said = "exited with code 3 before answering initialize; stderr: no luck";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
}

#[test]
fn a_filter_selects_what_is_printed() {
    let issues = json!({"issues": [{"number": 1, "title": "a"}, {"number": 2, "title": "b"}]});
    let text = json!({"content": [{"type": "text", "text": issues.to_string()}]}).to_string();
    let plain = r#"{"content":[{"type":"text","text":"no JSON"}]}"#;
    let whole = issues.to_string();
    let cases = [
        (text.as_str(), ".issues[].title", 0, "a\nb", ""),
        (&text, ".issues | length", 0, "2", ""),
        (
            &text,
            ".issues.x",
            1,
            whole.as_str(),
            "--select was not applied",
        ),
        (
            plain,
            ".",
            1,
            "no JSON",
            "its text is not JSON. This is the whole result",
        ),
    ];
    for (answer, filter, code, stdout, stderr) in cases {
        let setup = Setup::one(&Script::named(&["echo"]).answers("echo", answer));
        let (finished, _setup) = run(setup, &arguments(&ECHO, &["--select", filter]));
        assert_eq!(exit_code(&finished), code, "{filter}: {}", finished.stderr);
        assert_eq!(finished.stdout.join("\n"), stdout, "{filter}");
        assert!(
            finished.stderr.contains(stderr),
            "{filter}: {}",
            finished.stderr
        );
    }
    // A typo costs no call.
    let setup = Setup::one(&Script::named(&["echo"]));
    let journal = setup.journal("dev", "fs");
    let (finished, _setup) = run(setup, &arguments(&ECHO, &["--select", ".issues["]));
    assert!(
        finished.stderr.contains("--select: "),
        "{}",
        finished.stderr
    );
    assert!(journal.lines().is_empty());
}
