use bytes::Bytes;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::{config::ListBounds, policy::scan::MAX_DEFINITION_BYTES};

mod modern;
mod pages;

fn json(text: &str) -> RawJson {
    RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#)
}

fn page(tools: &[String], next: &str) -> RawJson {
    let tools = tools.join(",");
    json(&format!(r#"{{"tools":[{tools}]{next}}}"#))
}

fn next(cursor: &str) -> String {
    format!(r#","nextCursor":{cursor}"#)
}

static NO_PERMISSIONS: Permissions = Permissions {
    allow: None,
    ask: Vec::new(),
    deny: Vec::new(),
    code: None,
    client: None,
};

fn finish(walk: ListWalk, rules: &ListRules<'_>, introduction: Introduction) -> ToolList {
    ToolList::of(&walk.into_snapshot(Era::Legacy, introduction), rules)
}

fn rules(filters: &ToolFilters) -> ListRules<'_> {
    let marks = HeaderMarks::Ignored;
    ListRules {
        filters,
        permissions: &NO_PERMISSIONS,
        marks,
        pins: None,
        shapes: None,
    }
}

/// Returns the list of one page with these definitions.
fn list(definitions: &str, filters: &ToolFilters) -> ToolList {
    let mut walk = ListWalk::tools(ListBounds::default());
    let page = json(&format!(r#"{{"tools":[{definitions}]}}"#));
    assert_eq!(walk.accept(&page), Some(Step::Done));
    finish(walk, &rules(filters), Introduction::default())
}

#[test]
fn a_schema_is_parsed_once_per_list() {
    let definition =
        r#"{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{}}"#;
    let list = list(definition, &ToolFilters::default());
    let first = list.input_schema("a").unwrap();
    assert_eq!(*first, serde_json::json!({"type": "object"}));
    assert!(std::sync::Arc::ptr_eq(
        &first,
        &list.input_schema("a").unwrap()
    ));
    assert_eq!(*list.input_schema("b").unwrap(), serde_json::json!({}));
    assert_eq!(list.input_schema("c"), None);
    // A copy can get other definitions.
    let copy = list.clone().input_schema("a").unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &copy));
}

fn names(list: &ToolList) -> Vec<&str> {
    list.tools().iter().map(|it| it.name.as_str()).collect()
}

fn withheld(list: &ToolList) -> Vec<(&str, &str)> {
    list.withheld
        .iter()
        .map(|it| (it.tool.as_str(), it.reason.as_str()))
        .collect()
}

fn only(patterns: &[&str]) -> ToolFilters {
    let patterns = patterns.iter().map(ToString::to_string).collect();
    ToolFilters::new(Some(patterns), None, Vec::new())
}

#[test]
fn a_broken_definition_is_withheld_with_its_reason() {
    let cases = [
        ("null", "#1", "the definition is not an object"),
        (r#""x""#, "#1", "the definition is not an object"),
        ("[]", "#1", "the definition is not an object"),
        ("{}", "#1", "name is missing"),
        (r#"{"Name":"x","inputSchema":{}}"#, "#1", "name is missing"),
        (
            r#"{"name":5,"inputSchema":{}}"#,
            "#1",
            "name is not a string",
        ),
        (
            r#"{"name":null,"inputSchema":{}}"#,
            "#1",
            "name is not a string",
        ),
        (r#"{"name":"","inputSchema":{}}"#, "#1", "name is empty"),
        (
            r#"{"name":" \t\u00a0","inputSchema":{}}"#,
            "#1",
            "name is empty",
        ),
        (r#"{"name":"x"}"#, "x", "inputSchema is missing"),
        (
            r#"{"name":"x","inputSchema":null}"#,
            "x",
            "inputSchema is not an object",
        ),
        (
            r#"{"name":"x","inputSchema":[]}"#,
            "x",
            "inputSchema is not an object",
        ),
        (
            r#"{"name":"x","inputSchema":true}"#,
            "x",
            "inputSchema is not an object",
        ),
        (
            r#"{"name":"x","inputSchema":{},"description":5}"#,
            "x",
            "description is not a string",
        ),
        (
            r#"{"name":"x","inputSchema":{},"a":1,"a":1}"#,
            "x",
            "the definition has the duplicate key 'a'",
        ),
        (
            r#"{"name":"x","inputSchema":{},"\u006eame":"y"}"#,
            "x",
            "the definition has the duplicate key 'name'",
        ),
        (
            r#"{"name":"x","inputSchema":{},"\u001b":1,"\u001b":1}"#,
            "x",
            "the definition has the duplicate key '⟦U+001B⟧'",
        ),
        (
            r#"{"name":"\u001b[2J\u202e"}"#,
            "⟦U+001B⟧[2J⟦U+202E⟧",
            "inputSchema is missing",
        ),
    ];
    for (definition, label, reason) in cases {
        let list = list(
            &format!("{definition},{}", tool("good")),
            &ToolFilters::default(),
        );
        assert_eq!(names(&list), ["good"], "{definition}");
        assert_eq!(withheld(&list), [(label, reason)], "{definition}");
    }
}

#[test]
fn an_unusual_but_complete_definition_is_offered_unchanged() {
    let definitions = [
        r#"{"name":"x","inputSchema":{}}"#,
        r#"{ "inputSchema" : { } , "name" : "x" }"#,
        r#"{"name":"x","inputSchema":{"type":"string"},"description":null}"#,
        r#"{"n\u0061me":"x","inputSchema":{"a":1,"a":1e400},"icons":[1.0],"y":null}"#,
        r#"{"name":"x","inputSchema":{},"server":"other","toolbox":"other"}"#,
    ];
    for definition in definitions {
        let list = list(definition, &ToolFilters::default());
        assert_eq!(withheld(&list), [], "{definition}");
        assert_eq!(list.tools()[0].definition.as_str(), definition);
        assert_eq!(list.get("x"), list.tools().first());
    }
}

#[test]
fn a_definition_may_be_large_but_not_huge() {
    let sized = |size: usize| {
        let rest = r#"{"name":"x","inputSchema":{},"description":""}"#.len();
        let description = "d".repeat(size - rest);
        format!(r#"{{"name":"x","inputSchema":{{}},"description":"{description}"}}"#)
    };
    let fits = list(&sized(MAX_DEFINITION_BYTES), &ToolFilters::default());
    assert_eq!(names(&fits), ["x"]);
    let huge = list(&sized(MAX_DEFINITION_BYTES + 1), &ToolFilters::default());
    assert_eq!(
        withheld(&huge),
        [("x", "the definition is larger than 256 KiB")]
    );
}

const TWICE: &str = "duplicate tool name; only the first tool is used";

#[test]
fn duplicate_tools_are_withheld() {
    let first = r#"{"name":"x","inputSchema":{},"n":1}"#;
    let second = r#"{"name":"\u0078","inputSchema":{},"n":2}"#;
    let twice = list(
        &format!("{first},{second},{}", tool("y")),
        &ToolFilters::default(),
    );
    assert_eq!(names(&twice), ["x", "y"]);
    assert_eq!(twice.get("x").unwrap().definition.as_str(), first);
    assert_eq!(withheld(&twice), [("x", TWICE)]);
    let thrice = list(&[first, second, first].join(","), &ToolFilters::default());
    assert_eq!(withheld(&thrice), [("x", TWICE), ("x", TWICE)]);
}

#[test]
fn a_broken_definition_does_not_reserve_its_name() {
    let list = list(
        &format!(r#"{{"name":"x"}},{}"#, tool("x")),
        &ToolFilters::default(),
    );
    assert_eq!(names(&list), ["x"]);
    assert_eq!(withheld(&list), [("x", "inputSchema is missing")]);
}

#[test]
fn names_are_case_sensitive_and_not_trimmed() {
    let tools = ["x", "X", " x", "x ", "x__y", "ä"].map(tool);
    let list = list(&tools.join(","), &ToolFilters::default());
    assert_eq!(names(&list), ["x", "X", " x", "x ", "x__y", "ä"]);
    assert_eq!(list.get("x").unwrap().name.as_str(), "x");
    assert_eq!(list.get("y"), None);
}

#[test]
fn filtered_tools_are_dropped_silently() {
    let tools = ["read_a", "read_b", "delete"].map(tool).join(",");
    let cases: [(&[&str], &[&str]); 5] = [
        (&["*"], &["read_a", "read_b", "delete"]),
        (&["read_*"], &["read_a", "read_b"]),
        (&["*", "!read_b"], &["read_a", "delete"]),
        (&["delete", "none"], &["delete"]),
        (&[], &[]),
    ];
    for (patterns, expected) in cases {
        let list = list(&tools, &only(patterns));
        assert_eq!(names(&list), expected, "{patterns:?}");
        assert_eq!(list.withheld, [], "{patterns:?}");
        assert_eq!(list.notices, Vec::<String>::new());
        assert_eq!(list.get("delete").is_some(), expected.contains(&"delete"));
    }
}

/// A filtered tool is dropped, so its duplicate is not reported either.
#[test]
fn filtered_duplicates_are_not_reported() {
    let tools = ["x", "y", "x"].map(tool).join(",");
    let list = list(&tools, &only(&["y"]));
    assert_eq!(names(&list), ["y"]);
    assert_eq!(withheld(&list), []);
}

proptest! {
    #[test]
    fn every_tool_is_offered_withheld_or_filtered_out(
        tools in prop::collection::vec("[ab]{0,2}", 0..12),
        pages in 1_usize..4,
        filtered in any::<bool>(),
    ) {
        let mut walk = ListWalk::tools(ListBounds::default());
        for (index, chunk) in tools.chunks(tools.len().div_ceil(pages).max(1)).enumerate() {
            let chunk: Vec<String> = chunk.iter().map(|name| tool(name)).collect();
            walk.accept(&page(&chunk, &next(&format!("\"{index}\""))));
        }
        let filters = if filtered { only(&["a*"]) } else { ToolFilters::default() };
        let list = finish(walk, &rules(&filters), Introduction::default());
        let mut expected: Vec<&str> = Vec::new();
        for name in &tools {
            if !name.is_empty() && !expected.contains(&name.as_str()) && filters.allows(name) {
                expected.push(name);
            }
        }
        prop_assert_eq!(names(&list), expected);
        let said = tools.iter().filter(|name| name.is_empty() || filters.allows(name));
        prop_assert_eq!(list.tools().len() + list.withheld.len(), said.count());
    }
}
