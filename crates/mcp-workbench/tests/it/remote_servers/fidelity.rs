//! Bytes through HTTP: arguments as the caller wrote them, results as the server did.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::server::{RemoteServer, Then};

/// Results, and what a client on one line gets of them.
const RESULTS: &[(&str, &str)] = &[
    (
        r#"{"content":[],"n":1.000,"big":123456789012345678901234567890,"e":1E+400}"#,
        "",
    ),
    (r#"{ "z" : 1 ,  "a":[ ],"content":[]}"#, ""),
    (
        r#"{"content":[{"type":"text","text":"a\nb é 👩‍💻"}],"_meta":{"x":{}}}"#,
        "",
    ),
    (r#"{"content":[],"isError":true}"#, ""),
    (
        "{\r\n  \"content\": [],\n  \"n\": 1.000,\n  \"t\": \"a  b\"\n}",
        r#"{"content":[],"n":1.000,"t":"a  b"}"#,
    ),
];

fn expected(row: &(&'static str, &'static str)) -> &'static str {
    if row.1.is_empty() { row.0 } else { row.1 }
}

#[test]
fn results_come_back_byte_for_byte_as_json_and_as_events() {
    let server = RemoteServer::start(|seen, out| {
        if seen.method() != "tools/call" {
            return None;
        }
        let arguments = &seen.message()["params"]["arguments"];
        let row = usize::try_from(arguments["row"].as_u64().unwrap()).unwrap();
        let answer = seen.answer(RESULTS[row].0);
        if arguments["form"] == "json" {
            return Some(out.json(&answer));
        }
        out.stream();
        // Each line of the answer is a line of data, one byte a packet.
        let event = answer.replace("\r\n", "\n").replace('\n', "\ndata: ");
        for part in format!("event: message\r\ndata: {event}\n\n").split_inclusive(',') {
            out.raw(part);
        }
        Some(Then::Close)
    });
    let mut workbench = server.setup(&json!({})).connect();
    workbench.open("dev");
    for (number, row) in RESULTS.iter().enumerate() {
        for form in ["json", "sse"] {
            let arguments = json!({"row": number, "form": form}).to_string();
            let result = workbench.use_tool("t", &arguments);
            assert_eq!(result.raw, expected(row), "{form}");
        }
    }
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let server = RemoteServer::start(|_, _| None);
    let mut workbench = server.setup(&json!({})).connect();
    workbench.open("dev");
    let big = format!(r#"{{"x":"{}"}}"#, "y".repeat(300_000));
    for arguments in [
        r#"{ "z":1.0, "a":[1e400 ],"z":2}"#,
        r#"{"é":"\u00e9"}"#,
        &big,
    ] {
        workbench.use_tool("t", arguments);
        let call = server.received("tools/call").pop().unwrap();
        let sent = format!(r#""arguments":{arguments}"#);
        assert!(call.body.contains(&sent), "{}", call.body);
        assert_eq!(call.header("transfer-encoding"), None);
    }
}

#[test]
fn concurrent_calls_get_their_own_answers() {
    let server = RemoteServer::start(|seen, out| {
        (seen.method() == "tools/call").then(|| {
            let number = seen.message()["params"]["arguments"]["n"].to_string();
            out.json(&seen.answer(&format!(r#"{{"content":[],"n":{number}}}"#)))
        })
    });
    let mut workbench = server.setup(&json!({})).connect();
    workbench.open("dev");
    let calls: Vec<String> = (0..200)
        .map(|number| workbench.send_use("t", &format!(r#"{{"n":{number}}}"#)))
        .collect();
    for (number, call) in calls.iter().enumerate() {
        let result = workbench.tool_result(call);
        assert_eq!(result.raw, format!(r#"{{"content":[],"n":{number}}}"#));
    }
    assert_eq!(server.received("tools/call").len(), 200);
}
