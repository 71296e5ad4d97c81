//! Tests of records and their lines.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::{
    call::ClientIdentity,
    events::{CallOutcome, Operation},
    wire::ResultMarks,
};

fn raw(text: &str) -> RawJson {
    RawJson::parse(&text.to_owned().into()).unwrap()
}

fn format(arguments: AuditArguments) -> LineFormat {
    let mut secrets = Secrets::default();
    secrets.add("TOKEN", "hunter2-hunter2");
    LineFormat {
        secrets: Arc::new(secrets),
        arguments,
    }
}

/// Returns a call of a tool.
fn operation(tool: &str, arguments: &str) -> Operation {
    let mut client = EventClient::unknown();
    client.identity = Arc::new(ClientIdentity {
        name: Some("claude-code".into()),
        version: Some("2.1.0".into()),
    });
    Operation {
        id: 1,
        request_id: None,
        method: "tools/call".into(),
        target: None,
        tool: Some(ToolIdentifier {
            toolbox: "dev".into(),
            server: "files".into(),
            tool: tool.into(),
        }),
        client,
        arguments: Some(raw(arguments)),
        params: None,
        time: UNIX_EPOCH + Duration::from_millis(1_763_234_186_890),
        began: Instant::now(),
        trace: None,
    }
}

/// Returns the line of a call that ended with this outcome.
fn line(operation: Operation, outcome: CallOutcome, format: &LineFormat) -> String {
    let end = OperationEnd {
        operation: &Arc::new(operation),
        outcome,
        duration: Duration::from_micros(12_900),
        reply: None,
        response_error: None,
    };
    let mut line = Vec::new();
    Record::of(&end).unwrap().write_line(&mut line, format);
    String::from_utf8(line).unwrap()
}

#[test]
fn a_line_has_its_members_in_order() {
    let format = format(AuditArguments::Shape);
    let call = || operation("read_file", r#"{"path":"/x","limit":10}"#);
    let start = concat!(
        r#"{"time":"2025-11-15T19:16:26.890Z","#,
        r#""client":{"name":"claude-code","version":"2.1.0","principal":"local"},"#,
        r#""toolbox":"dev","server":"files","tool":"read_file","#,
    );
    let shape = r#""shape":{"path":"string","limit":"number"}}"#;
    let expected = format!(
        r#"{start}"outcome":"ok","duration_ms":12,"arguments_bytes":24,"result_bytes":41,{shape}"#
    );
    let line_of = |call, outcome| line(call, outcome, &format);
    assert_eq!(
        line_of(call(), CallOutcome::Ok(41)),
        format!("{expected}\n")
    );

    let denied = CallOutcome::Denied("permission_denied");
    let expected = format!(
        r#"{start}"outcome":"denied","code":"permission_denied","duration_ms":12,"arguments_bytes":24,{shape}"#
    );
    assert_eq!(line_of(call(), denied), format!("{expected}\n"));

    let mut unnamed = call();
    unnamed.client = EventClient::unknown();
    unnamed.client.principal = Principal::Holder(1);
    let client = r#""client":{"principal":"token"},"toolbox""#;
    assert!(line_of(unnamed, denied).contains(client));
}

#[test]
fn names_and_values_contain_no_secrets_whatever_their_size() {
    let format = format(AuditArguments::Values);
    let (small, large) = (10, MAX_VALUES);
    for length in [small, large] {
        let filler = "x".repeat(length);
        let arguments = format!(r#"{{"hunter2-hunter2":"hunter2-hunter2 {filler}"}}"#);
        let call = operation("a hunter2-hunter2", &arguments);
        let line: Value = serde_json::from_str(&line(call, CallOutcome::Ok(41), &format)).unwrap();
        assert_eq!(line["tool"], "a [redacted]");
        assert_eq!(line["shape"], json!({"[redacted]": "string"}));
        let values = json!({"[redacted]": format!("[redacted] {filler}")});
        let expected = if length == small { values } else { Value::Null };
        assert_eq!(line["arguments"], expected);
    }
}

#[test]
fn the_line_of_a_large_request_is_short() {
    let format = format(AuditArguments::Shape);
    let long = "n".repeat(100_000);
    let by_name = line(operation(&long, "{}"), CallOutcome::Ok(41), &format);
    assert!(by_name.len() < 1024, "{}", by_name.len());
    assert!(by_name.contains(&format!(r#""tool":"{}…","#, "n".repeat(NAME))));
    let arguments = format!(r#"{{"a":"{long}"}}"#);
    let by_arguments = line(operation("read", &arguments), CallOutcome::Ok(41), &format);
    assert!(by_arguments.len() < 1024, "{}", by_arguments.len());
    assert!(by_arguments.ends_with("\"shape\":{\"a\":\"string\"}}\n"));
}

#[test]
fn missing_calls_have_a_line() {
    let mut line = Vec::new();
    write_missed_line(&mut line, 7);
    let line = String::from_utf8(line).unwrap();
    assert!(line.starts_with(r#"{"time":"2"#), "{line}");
    assert!(line.ends_with("Z\",\"not_noted\":7}\n"), "{line}");
}

#[test]
fn the_outcome_is_read_from_the_result() {
    let with = |text: &str| CallOutcome::with(&raw(text), ResultMarks::of(&raw(text)));
    assert_eq!(with("{}"), CallOutcome::Ok(2));
    assert_eq!(with("5"), CallOutcome::Ok(1));
    let cases = [
        (r#"{"isError":true}"#, "tool_error"),
        (r#"{"isErro\u0072":true}"#, "tool_error"),
        (r#"{"isError":false}"#, "ok"),
        (r#"{"isError":false,"isError":true}"#, "ok"),
        (r#"{"content":[{"isError":true}]}"#, "ok"),
        (r#"{"resultType":"input_required"}"#, "input_required"),
        (r#"{"resultType":"input\u005frequired"}"#, "input_required"),
        (
            r#"{"resultType":"input_required","isError":true}"#,
            "tool_error",
        ),
        (r#"{"resultType":["input_required"]}"#, "ok"),
    ];
    for (text, word) in cases {
        assert_eq!(with(text).word(), word, "{text}");
        assert_eq!(with(text).size(), Some(text.len()));
    }
    assert_eq!(CallOutcome::failed("permission_denied").word(), "denied");
    assert_eq!(CallOutcome::failed("call_timeout").word(), "error");
}
