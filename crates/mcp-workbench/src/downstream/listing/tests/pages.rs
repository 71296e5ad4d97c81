//! The pages of a list.

use pretty_assertions::assert_eq;

use super::{super::walk::MAX_TOOLS, *};

#[test]
fn a_cursor_is_followed_exactly_as_it_was_given() {
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
        let mut walk = ListWalk::tools();
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
    let mut walk = ListWalk::tools();
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
fn what_is_no_page_is_not_taken() {
    for text in [
        "{}",
        r#"{"tools":null}"#,
        r#"{"tools":{}}"#,
        r#"{"Tools":[]}"#,
        "[]",
    ] {
        let mut walk = ListWalk::tools();
        assert_eq!(walk.accept(&json(text)), None, "{text}");
        assert!(!walk.has_pages());
    }
}

/// The notices of a walk in which the cursors come round, until it is over.
fn notices_of(cursors: &mut dyn Iterator<Item = String>) -> (usize, Vec<String>) {
    let mut walk = ListWalk::tools();
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
fn a_walk_in_a_circle_ends() {
    let notice = "the list of tools was cut short because the server gave the same cursor twice";
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
fn a_walk_without_end_ends() {
    let mut cursors = (0..).map(|number| next(&format!(r#""{number}""#)));
    let notice = "the list of tools was cut short after 100 pages";
    assert_eq!(notices_of(&mut cursors), (100, vec![notice.to_owned()]));
    let mut just_enough = (1..=100).map(|number| match number {
        100 => String::new(),
        _ => next(&format!(r#""{number}""#)),
    });
    assert_eq!(notices_of(&mut just_enough), (100, Vec::new()));
}

#[test]
fn a_list_of_too_many_tools_is_cut() {
    let tools: Vec<String> = (0..=MAX_TOOLS).map(|it| tool(&format!("t{it}"))).collect();
    let mut walk = ListWalk::tools();
    assert_eq!(
        walk.accept(&page(&tools[..MAX_TOOLS], &next(r#""a""#))),
        Some(Step::Next)
    );
    assert_eq!(
        walk.accept(&page(&tools[MAX_TOOLS..], &next(r#""b""#))),
        Some(Step::Done)
    );
    let list = finish(
        walk,
        &rules(&ToolFilters::default()),
        Introduction::default(),
    );
    assert_eq!(list.tools().len(), MAX_TOOLS);
    assert_eq!(list.tools()[MAX_TOOLS - 1].name.as_str(), "t9999");
    assert_eq!(
        list.notices,
        ["the list of tools was cut short after 10000 tools"]
    );
}
