//! The pages of a list.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_cursor_is_sent_exactly_as_received() {
    let cases = [
        ("", None),
        (r#","nextCursor":null"#, None),
        (r#","nextCursor":5"#, None),
        (r#","nextCursor":{}"#, None),
        (r#","nextCursor":"a""#, Some(r#"{"cursor":"a"}"#)),
        (r#","nextCursor":"""#, Some(r#"{"cursor":""}"#)),
        (
            r#","nextCursor":"\u0061\/" "#,
            Some(r#"{"cursor":"\u0061\/"}"#),
        ),
    ];
    for (next, params) in cases {
        let mut walk = ListWalk::tools(ListBounds::default());
        assert_eq!(walk.params().as_str(), "{}");
        assert!(!walk.has_pages());
        let step = walk.accept(&page(&[], next));
        assert!(walk.has_pages());
        match params {
            Some(params) => {
                assert_eq!(step, Some(Step::Next), "{next}");
                assert_eq!(walk.params().as_str(), params);
            }
            None => assert_eq!(step, Some(Step::Done), "{next}"),
        }
    }
}

#[test]
fn pages_follow_each_other_in_order() {
    let introduction = Introduction {
        instructions: Some("hello".to_owned()),
        ..Introduction::default()
    };
    let mut walk = ListWalk::tools(ListBounds::default());
    let pages = [
        (page(&[tool("a"), tool("b")], &next(r#""1""#)), Step::Next),
        (page(&[], &next(r#""2""#)), Step::Next),
        (page(&[tool("c")], ""), Step::Done),
    ];
    for (page, step) in pages {
        assert_eq!(walk.accept(&page), Some(step));
    }
    let list = finish(walk, &rules(&ToolFilters::default()), introduction.clone());
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!(list.notices, Vec::<String>::new());
    assert_eq!(list.introduction, introduction);
}

#[test]
fn invalid_pages_are_refused() {
    for text in [
        "{}",
        r#"{"tools":null}"#,
        r#"{"tools":{}}"#,
        r#"{"Tools":[]}"#,
        "[]",
    ] {
        let mut walk = ListWalk::tools(ListBounds::default());
        assert_eq!(walk.accept(&json(text)), None, "{text}");
        assert!(!walk.has_pages());
    }
}

/// Returns the notices of a walk whose cursors repeat, at its end.
fn notices_of(cursors: &mut dyn Iterator<Item = String>) -> (usize, Vec<String>) {
    let mut walk = ListWalk::tools(ListBounds::default());
    let mut pages = 0;
    for cursor in cursors {
        pages += 1;
        let tools = [tool(&format!("tool{pages}"))];
        if walk.accept(&page(&tools, &cursor)) == Some(Step::Done) {
            break;
        }
    }
    let list = finish(
        walk,
        &rules(&ToolFilters::default()),
        Introduction::default(),
    );
    assert_eq!(list.tools().len(), pages);
    (pages, list.notices)
}

#[test]
fn repeated_cursors_end_the_walk() {
    let notice = "the tool list is incomplete because the server repeated a cursor";
    let circles: [(&[&str], usize); 4] = [
        (&[r#""a""#], 2),
        (&[r#""""#], 2),
        (&[r#""a""#, r#""b""#], 3),
        (&[r#""a""#, r#""b""#, r#""c""#], 4),
    ];
    for (circle, pages) in circles {
        let mut cursors = circle.iter().cycle().map(|cursor| next(cursor));
        assert_eq!(notices_of(&mut cursors), (pages, vec![notice.to_owned()]));
    }
}

#[test]
fn endless_pages_end_the_walk() {
    let mut cursors = (0..).map(|number| next(&format!(r#""{number}""#)));
    let notice = "the tool list is incomplete: it has more than 100 pages";
    assert_eq!(notices_of(&mut cursors), (100, vec![notice.to_owned()]));
    let mut just_enough = (1..=100).map(|number| match number {
        100 => String::new(),
        _ => next(&format!(r#""{number}""#)),
    });
    assert_eq!(notices_of(&mut just_enough), (100, Vec::new()));
}

/// Returns the list of pages that are read within these bounds, and the number of pages that were read.
fn bounded(pages: &[RawJson], bounds: ListBounds) -> (ToolList, usize) {
    let mut walk = ListWalk::tools(bounds);
    let mut read = 0;
    for page in pages {
        read += 1;
        if walk.accept(page) == Some(Step::Done) {
            break;
        }
    }
    let filters = ToolFilters::default();
    (
        finish(walk, &rules(&filters), Introduction::default()),
        read,
    )
}

fn numbered(number: usize) -> String {
    tool(&format!("t{number:04}"))
}

#[test]
fn a_list_of_too_many_tools_is_incomplete() {
    let bounds = ListBounds {
        tools: 3,
        ..ListBounds::default()
    };
    let first = [numbered(0), numbered(1)];
    let cases: [(usize, &[&str], Option<&str>); 3] = [
        (1, &["t0000", "t0001", "t0002"], None),
        (
            2,
            &["t0000", "t0001", "t0002"],
            Some("only the first 3 are listed, because the list has more than maxTools (3)"),
        ),
        (
            100,
            &["t0000", "t0001", "t0002"],
            Some("only the first 3 are listed, because the list has more than maxTools (3)"),
        ),
    ];
    for (more, expected, incomplete) in cases {
        let second: Vec<String> = (2..2 + more).map(numbered).collect();
        let last = if incomplete.is_some() {
            next(r#""b""#)
        } else {
            String::new()
        };
        let pages = [
            page(&first, &next(r#""a""#)),
            page(&second, &last),
            page(&[numbered(999)], ""),
        ];
        let (list, read) = bounded(&pages, bounds);
        assert_eq!(read, 2, "{more}");
        assert_eq!(names(&list), expected, "{more}");
        assert_eq!(list.incomplete.as_deref(), incomplete, "{more}");
        assert_eq!(list.notices, Vec::<String>::new(), "{more}");
    }
}

#[test]
fn a_list_of_too_many_bytes_is_incomplete() {
    let pages: Vec<RawJson> = (0..4)
        .map(|number| {
            let tools = [numbered(2 * number), numbered(2 * number + 1)];
            page(&tools, &next(&format!(r#""{number}""#)))
        })
        .collect();
    let size = pages[0].as_bytes().len();
    let one_tool = numbered(0).len();
    // The bound, the pages that are read, and the tools that fit.
    let cases = [
        (2 * size + one_tool, 3, 5),
        (2 * size + one_tool - 1, 3, 4),
        (2 * size, 3, 4),
        (2 * size - 1, 2, 4),
        (size + one_tool, 2, 3),
        (size - 1, 1, 2),
        (0, 1, 0),
    ];
    for (bytes, pages_read, fitting) in cases {
        let bounds = ListBounds {
            bytes,
            ..ListBounds::default()
        };
        let (list, read) = bounded(&pages, bounds);
        assert_eq!((read, list.tools().len()), (pages_read, fitting), "{bytes}");
        let incomplete = format!(
            "only the first {fitting} are listed, because the list is larger than maxToolListBytes ({bytes})"
        );
        assert_eq!(list.incomplete, Some(incomplete));
    }
    // Nothing is missing if only the text around the tools of the last page exceeds the bound.
    let last = page(&[numbered(0), numbered(1)], "");
    let bounds = ListBounds {
        bytes: last.as_bytes().len() - 1,
        ..ListBounds::default()
    };
    let (list, _) = bounded(&[last], bounds);
    assert_eq!((list.tools().len(), list.incomplete), (2, None));
}

#[test]
fn everything_in_a_page_counts_against_its_bytes() {
    // A definition shares the buffer of its page, so a padded page stays in memory as long as its tools.
    let padded = json(&format!(
        r#"{{"tools":[{}],"_meta":"{}","nextCursor":"a"}}"#,
        numbered(0),
        "x".repeat(1000)
    ));
    let bounds = ListBounds {
        bytes: 1000,
        ..ListBounds::default()
    };
    let (list, read) = bounded(&[padded, page(&[numbered(1)], "")], bounds);
    assert_eq!((read, names(&list)), (1, vec!["t0000"]));
    assert!(list.incomplete.is_some());
}

#[test]
fn a_server_with_five_thousand_tools_is_within_the_bounds() {
    let description = "x".repeat(3000);
    let tools: Vec<String> = (0..5000)
        .map(|number| {
            format!(
                r#"{{"name":"t{number}","description":"{description}","inputSchema":{{"type":"object"}}}}"#
            )
        })
        .collect();
    let mut walk = ListWalk::tools(ListBounds::default());
    for (number, tools) in tools.chunks(100).enumerate() {
        let page = page(tools, &next(&format!(r#""{number}""#)));
        assert_eq!(walk.accept(&page), Some(Step::Next));
    }
    assert_eq!(walk.incomplete(), None);
    assert_eq!(walk.into_items().len(), 5000);
}
