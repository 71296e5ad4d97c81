//! The headers of modern requests: their values, and the arguments in them.

use rawjson::RawJson;

use crate::era::headers::{MarkProblem, ParameterHeader, decode, encode, name_member};

fn json(text: &str) -> RawJson {
    RawJson::parse(&text.to_owned().into()).unwrap()
}

#[test]
fn a_header_value_is_encoded_only_if_needed() {
    for (text, value) in [
        ("read_file", "read_file"),
        ("", ""),
        ("two words", "two words"),
        (" edge", "=?base64?IGVkZ2U=?="),
        ("edge\t", "=?base64?ZWRnZQk=?="),
        ("ü", "=?base64?w7w=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
    ] {
        assert_eq!(encode(text), value, "{text:?}");
        assert_eq!(decode(value).as_deref(), Some(text), "{value:?}");
    }
    for broken in ["=?base64?%%?=", "=?base64?/w==?=", "ü"] {
        assert_eq!(decode(broken), None, "{broken:?}");
    }
}

#[test]
fn the_name_is_what_the_method_is_about() {
    for (method, member) in [
        ("tools/call", Some("name")),
        ("prompts/get", Some("name")),
        ("resources/read", Some("uri")),
        ("tasks/cancel", Some("taskId")),
        ("tools/list", None),
    ] {
        assert_eq!(name_member(method), member, "{method}");
    }
}

#[test]
fn marked_arguments_are_found_wherever_arguments_are() {
    let schema = json(
        r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "inner":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
            "plain":{"type":"string","default":{"x-mcp-header":"no schema"}}}}"#,
    );
    let headers = ParameterHeader::all_in(&schema).unwrap();
    let names: Vec<_> = headers.iter().map(|it| it.header.as_str()).collect();
    assert_eq!(names, ["mcp-param-region", "mcp-param-n"]);
    let arguments = json(r#"{"region":"ü","inner":{"n":1}}"#);
    assert_eq!(headers[0].value(&arguments).as_deref(), Some("ü"));
    assert!(headers[0].agrees(Some("=?base64?w7w=?="), &arguments));
    assert!(!headers[0].agrees(Some("u"), &arguments));
    assert!(!headers[0].agrees(None, &arguments));
    assert!(headers[1].agrees(Some("1.0"), &arguments));
    assert!(!headers[1].agrees(Some("2"), &arguments));
    let nothing = json(r#"{"region":null}"#);
    assert!(headers[0].agrees(None, &nothing));
    assert!(!headers[0].agrees(Some("x"), &nothing));
}

#[test]
fn marks_that_cannot_be_followed_are_refused() {
    for (schema, problem) in [
        (r#"{"x-mcp-header":"A"}"#, MarkProblem::Misplaced),
        (
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            MarkProblem::Misplaced,
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            MarkProblem::NoName,
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
            MarkProblem::NoName,
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":1}}}"#,
            MarkProblem::NoName,
        ),
        (
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            MarkProblem::NotPlain,
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
            MarkProblem::Duplicate("mcp-param-a".to_owned()),
        ),
    ] {
        assert_eq!(
            ParameterHeader::all_in(&json(schema)),
            Err(problem),
            "{schema}"
        );
    }
}
