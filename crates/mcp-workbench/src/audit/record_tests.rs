//! Tests of records and their lines.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::*;
use crate::wire::ResultMarks;

fn raw(text: &str) -> RawJson {
    RawJson::parse(&text.to_owned().into()).unwrap()
}

pub(in crate::audit) fn format(arguments: AuditArguments) -> LineFormat {
    let mut secrets = Secrets::default();
    secrets.add("TOKEN", "hunter2-hunter2");
    LineFormat {
        secrets: Arc::new(secrets),
        arguments,
    }
}

/// Returns the record of a call that has ended.
pub(in crate::audit) fn record(tool: &str, arguments: &str, format: &LineFormat) -> Record {
    let tool = ToolIdentifier {
        toolbox: "dev".into(),
        server: "files".into(),
        tool: tool.into(),
    };
    let arguments = raw(arguments);
    Record {
        time: UNIX_EPOCH + Duration::from_millis(1_763_234_186_890),
        duration: Duration::from_micros(12_900),
        outcome: CallOutcome::Ok(41),
        client: Arc::new(ClientIdentity {
            name: Some("claude-code".into()),
            version: Some("2.1.0".into()),
        }),
        principal: Principal::Local,
        user: None,
        configured: None,
        run: None,
        request: Request::new(&tool, &arguments, format),
        arguments_bytes: arguments.as_bytes().len(),
        trace_id: None,
    }
}

fn line(record: &Record, format: &LineFormat) -> String {
    let mut line = Vec::new();
    record.write_line(&mut line, format);
    String::from_utf8(line).unwrap()
}

#[test]
fn a_line_has_its_members_in_order() {
    let format = format(AuditArguments::Shape);
    let mut record = record("read_file", r#"{"path":"/x","limit":10}"#, &format);
    let start = concat!(
        r#"{"time":"2025-11-15T19:16:26.890Z","#,
        r#""client":{"name":"claude-code","version":"2.1.0","principal":"local"},"#,
        r#""toolbox":"dev","server":"files","tool":"read_file","#,
    );
    let shape = r#""shape":{"path":"string","limit":"number"}}"#;
    let expected = format!(
        r#"{start}"outcome":"ok","duration_ms":12,"arguments_bytes":24,"result_bytes":41,{shape}"#
    );
    assert_eq!(line(&record, &format), format!("{expected}\n"));

    record.outcome = CallOutcome::Denied("permission_denied");
    let expected = format!(
        r#"{start}"outcome":"denied","code":"permission_denied","duration_ms":12,"arguments_bytes":24,{shape}"#
    );
    assert_eq!(line(&record, &format), format!("{expected}\n"));

    record.client = Arc::default();
    record.principal = Principal::Holder(1);
    let client = r#""client":{"principal":"token"},"toolbox""#;
    assert!(line(&record, &format).contains(client));
}

#[test]
fn names_and_values_contain_no_secrets_whatever_their_size() {
    let format = format(AuditArguments::Values);
    let (small, large) = (10, MAX_COPY);
    for length in [small, large] {
        let filler = "x".repeat(length);
        let arguments = format!(r#"{{"hunter2-hunter2":"hunter2-hunter2 {filler}"}}"#);
        let record = record("a hunter2-hunter2", &arguments, &format);
        let is_copied = matches!(record.request, Request::Copied { .. });
        assert_eq!(is_copied, length == small);
        let line: Value = serde_json::from_str(&line(&record, &format)).unwrap();
        assert_eq!(line["tool"], "a [redacted]");
        assert_eq!(line["shape"], json!({"[redacted]": "string"}));
        let values = json!({"[redacted]": format!("[redacted] {filler}")});
        let expected = if length == small { values } else { Value::Null };
        assert_eq!(line["arguments"], expected);
    }
}

#[test]
fn a_record_of_a_large_request_is_small() {
    let format = format(AuditArguments::Shape);
    let long = "n".repeat(MAX_COPY + 1);
    let by_name = record(&long, "{}", &format);
    assert!(by_name.size() < 2048, "{}", by_name.size());
    let text = line(&by_name, &format);
    assert!(text.contains(&format!(r#""tool":"{}…","#, "n".repeat(NAME))));
    let by_arguments = record("read", &format!(r#"{{"a":"{long}"}}"#), &format);
    assert!(by_arguments.size() < 2048, "{}", by_arguments.size());
    assert!(line(&by_arguments, &format).ends_with("\"shape\":{\"a\":\"string\"}}\n"));
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
