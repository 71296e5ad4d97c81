//! Cache hints and headers, which only the lists of modern servers have.

use pretty_assertions::assert_eq;

use super::*;
use crate::era::CacheScope;

#[test]
fn a_list_has_the_strictest_hints_of_its_pages() {
    let hints = |pages: &[&str]| {
        let mut walk = ListWalk::tools(ListBounds::default());
        for (number, hints) in pages.iter().enumerate() {
            let next = format!(r#","nextCursor":"{number}"{hints}"#);
            walk.accept(&page(&[], &next));
        }
        finish(
            walk,
            &rules(&ToolFilters::default()),
            Introduction::default(),
        )
        .hints
    };
    let public = |ttl_ms| CacheHints {
        ttl_ms,
        scope: CacheScope::Public,
    };
    let five = r#","ttlMs":5,"cacheScope":"public""#;
    let nine = r#","ttlMs":9,"cacheScope":"public""#;
    assert_eq!(hints(&[]), CacheHints::NONE);
    assert_eq!(hints(&[nine]), public(9));
    assert_eq!(hints(&[nine, five]), public(5));
    assert_eq!(hints(&[five, ""]), CacheHints::NONE);
}

#[test]
fn marked_arguments_become_headers_and_wrong_marks_withhold_their_tool() {
    let tool = |name: &str, mark: &str, kind: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"properties":{{"a":{{"type":"{kind}","x-mcp-header":{mark}}}}}}}}}"#
        )
    };
    let tools = [
        tool("good", r#""Region""#, "string"),
        tool("no-name", r#""a b""#, "string"),
        tool("not-plain", r#""X""#, "object"),
    ];
    let walk = || {
        let mut walk = ListWalk::tools(ListBounds::default());
        walk.accept(&page(&tools, ""));
        walk
    };
    let filters = ToolFilters::default();
    let followed = ListRules {
        filters: &filters,
        permissions: &NO_PERMISSIONS,
        marks: HeaderMarks::Followed,
        pins: None,
        shapes: None,
    };
    let list = finish(walk(), &followed, Introduction::default());
    assert_eq!(names(&list), ["good"]);
    assert_eq!(
        withheld(&list),
        [
            ("no-name", "x-mcp-header is not a valid header name"),
            (
                "not-plain",
                "x-mcp-header is on an argument that is not a string, integer or boolean"
            ),
        ]
    );
    let good = list.get("good").unwrap();
    let headers = |arguments: &str| good.headers(&json(arguments));
    let header = |value: &str| vec![("mcp-param-region".to_owned(), value.to_owned())];
    assert_eq!(headers(r#"{"a":"eu"}"#), header("eu"));
    assert_eq!(headers(r#"{"a":"ü"}"#), header("=?base64?w7w=?="));
    assert_eq!(headers("{}"), Vec::new());
    let list = finish(walk(), &rules(&filters), Introduction::default());
    assert_eq!(list.tools().len(), 3, "there are no headers elsewhere");
}
