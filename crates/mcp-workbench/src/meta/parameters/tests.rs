use bytes::Bytes;
use pretty_assertions::assert_eq;

use super::*;

const NAME: Key = Key {
    name: "name",
    path: "tool.name",
};
const OTHER: Key = Key {
    name: "other",
    path: "other",
};

/// Reads an object with the keys `name` and `other`; returns the value and the text of every problem.
fn read(text: &str, path: &'static str) -> (Option<String>, Vec<String>) {
    let object = RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
    let mut problems = Vec::new();
    let hint = |key: &str| (key == "old").then_some("it is new");
    let reader = ParameterReader::read(&object, path, &[NAME, OTHER], hint, &mut problems);
    let name = reader.name(&NAME, &mut problems);
    let name = name.map(std::borrow::Cow::into_owned);
    (name, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn escaped_keys_and_names_are_decoded() {
    let cases = [
        (r#"{"name":"x"}"#, "x"),
        (r#"{"n\u0061me":"\u0078"}"#, "x"),
        (r#"{"other":[1,{"name":5}],"name":" x "}"#, " x "),
        (r#"{"name":"\ud800"}"#, "\u{fffd}"),
        (r#"{"name":"a\u0000b\n"}"#, "a\0b\n"),
    ];
    for (text, name) in cases {
        assert_eq!(
            read(text, ""),
            (Some(name.to_owned()), Vec::new()),
            "{text}"
        );
    }
}

#[test]
fn every_problem_is_reported() {
    let cases: [(&str, &[&str]); 12] = [
        (
            "5",
            &["Expected object, received number", "tool.name: Required"],
        ),
        (
            "null",
            &["Expected object, received null", "tool.name: Required"],
        ),
        ("{}", &["tool.name: Required"]),
        (
            r#"{"Name":"x"}"#,
            &["Unrecognized key: 'Name'", "tool.name: Required"],
        ),
        (
            r#"{"name":null}"#,
            &["tool.name: Expected string, received null"],
        ),
        (
            r#"{"name":[]}"#,
            &["tool.name: Expected string, received array"],
        ),
        (
            r#"{"name":"\u00a0\u3000"}"#,
            &["tool.name: cannot be empty"],
        ),
        (
            r#"{"name":"x","old":1}"#,
            &["Unrecognized key: 'old' (it is new)"],
        ),
        (
            r#"{"":1,"name":"x","b":2}"#,
            &["Unrecognized key: ''", "Unrecognized key: 'b'"],
        ),
        (r#"{"name":"x","name":"x"}"#, &["Duplicate key: 'name'"]),
        (
            r#"{"name":"x","n\u0061me":"y"}"#,
            &["Duplicate key: 'name'"],
        ),
        (
            r#"{"b":1,"name":"","b":1}"#,
            &[
                "Unrecognized key: 'b'",
                "Duplicate key: 'b'",
                "tool.name: cannot be empty",
            ],
        ),
    ];
    for (text, problems) in cases {
        assert_eq!(read(text, "").1, problems, "{text}");
    }
}

#[test]
fn problems_inside_an_object_have_their_path() {
    let cases = [
        ("[]", "tool: Expected object, received array"),
        (r#"{"x":1}"#, "tool: Unrecognized key: 'x'"),
        (r#"{"other":1,"other":2}"#, "tool: Duplicate key: 'other'"),
    ];
    for (text, problem) in cases {
        assert_eq!(read(text, "tool").1[0], problem, "{text}");
    }
}

#[test]
fn only_empty_parts_of_an_identifier_have_a_short_form() {
    let part = ParameterProblem::Empty {
        path: "tool.server",
    };
    assert!(part.is_empty_identifier_part());
    assert_eq!(part.short(), "server cannot be empty");
    let toolbox = ParameterProblem::Empty { path: "toolbox" };
    assert!(!toolbox.is_empty_identifier_part());
    assert_eq!(toolbox.to_string(), "toolbox cannot be empty");
    let missing = ParameterProblem::Required {
        path: "tool.server",
    };
    assert!(!missing.is_empty_identifier_part());
    assert_eq!(missing.short(), "tool.server: Required");
}
