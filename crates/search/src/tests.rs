//! The hits of a search and their order.

use ident::{ServerIdentifier, ServerName, ToolIdentifier, ToolName, ToolboxName};
use pretty_assertions::assert_eq;
use proptest::prelude::{any, proptest};
use rawjson::RawJson;

use crate::{Index, Query, SearchOutcome, ServerText, ToolText};

/// A toolbox, a server, its description, and its tools with their descriptions.
type Row<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)]);

const SERVERS: &[Row<'_>] = &[
    (
        "code",
        "github",
        "Issues and pull requests of GitHub",
        &[
            ("create_issue", "Open a new issue in a repository"),
            ("list_issues", "List the issues of a repository"),
            ("search", "Search code"),
        ],
    ),
    (
        "home",
        "weather",
        "The weather of the world",
        &[
            ("get_forecast", "Forecast for the next days"),
            ("search", "Find a place by name"),
        ],
    ),
    (
        "home",
        "files",
        "",
        &[
            ("readFile", "Read a file from the disk"),
            ("deleteFile", "Remove a file"),
        ],
    ),
];

fn put(index: &mut Index, (toolbox, server, about, tools): Row<'_>) {
    let toolbox = ToolboxName::from(toolbox);
    let server = ServerName::from(server);
    let tools: Vec<(ToolName, RawJson)> = tools
        .iter()
        .map(|(name, description)| {
            let definition =
                serde_json::json!({"name": name, "description": description, "inputSchema": {}});
            (ToolName::from(*name), RawJson::of(&definition))
        })
        .collect();
    let text = ServerText {
        toolbox: &toolbox,
        server: &server,
        about: vec![about],
    };
    index.put(
        &text,
        tools
            .iter()
            .map(|(name, definition)| ToolText { name, definition }),
    );
}

fn index() -> Index {
    let mut index = Index::default();
    for row in SERVERS {
        put(&mut index, *row);
    }
    index
}

fn search(index: &Index, text: &str) -> SearchOutcome {
    index.search(&Query {
        text,
        toolbox: None,
        limit: 10,
    })
}

fn names(found: &SearchOutcome) -> Vec<String> {
    let hits = found.hits.iter();
    hits.map(|hit| format!("{}/{}", hit.tool.server, hit.tool.tool))
        .collect()
}

#[test]
fn words_find_the_tools_that_are_about_them() {
    let index = index();
    let cases = [
        ("open an issue", "github/create_issue"),
        ("please show me the issues", "github/list_issues"),
        ("erase a file", "files/deleteFile"),
        (
            "what will the weather be like tomorrow",
            "weather/get_forecast",
        ),
        ("github search", "github/search"),
        ("weather/search", "weather/search"),
        ("weather search", "weather/search"),
        ("READ_FILE", "files/readFile"),
        ("readfile", "files/readFile"),
        ("wether", "weather/get_forecast"),
        ("create isseu", "github/create_issue"),
    ];
    for (query, expected) in cases {
        assert_eq!(
            names(&search(&index, query)).first().map(String::as_str),
            Some(expected),
            "{query}"
        );
    }
}

#[test]
fn an_empty_query_finds_nothing() {
    for query in ["", "   ", "xyzzy", "!?", "the of"] {
        let found = search(&index(), query);
        assert_eq!((found.hits, found.matches), (Vec::new(), 0), "{query}");
    }
}

#[test]
fn a_match_is_good_if_a_hit_has_the_subject_of_the_query() {
    let index = index();
    let good = [
        "open an issue",
        "erase a file",
        "weather on Mars",
        "github",
        "search",
        "list",
        "create isseu",
        "deleteFile",
    ];
    for query in good {
        assert!(search(&index, query).is_good, "{query}");
    }
    for query in ["create coffee", "read my palm", "find a dentist", "xyzzy"] {
        assert!(!search(&index, query).is_good, "{query}");
    }
    let found = search(&index, "create coffee");
    assert_eq!(names(&found), ["github/create_issue"]);
}

#[test]
fn a_match_in_a_single_tool_is_good_although_no_word_is_rare() {
    let mut index = Index::default();
    put(
        &mut index,
        ("home", "fs", "", &[("read_file", "Read a file")]),
    );
    for query in ["file", "document", "erase a file"] {
        assert!(search(&index, query).is_good, "{query}");
    }
    assert!(!search(&index, "read my palm").is_good);
}

#[test]
fn a_toolbox_and_a_limit_narrow_a_search() {
    let index = index();
    let toolbox = ToolboxName::from("home");
    let found = index.search(&Query {
        text: "search",
        toolbox: Some(&toolbox),
        limit: 10,
    });
    assert_eq!(names(&found), ["weather/search"]);
    let found = index.search(&Query {
        text: "search",
        toolbox: None,
        limit: 1,
    });
    assert_eq!((found.hits.len(), found.matches > 1), (1, true));
}

#[test]
fn the_order_does_not_depend_on_the_order_of_indexing() {
    let mut other = Index::default();
    for row in SERVERS.iter().rev() {
        put(&mut other, *row);
    }
    put(&mut other, SERVERS[1]);
    for query in ["search", "file", "find an issue by name", "repository"] {
        assert_eq!(search(&index(), query), search(&other, query), "{query}");
    }
}

#[test]
fn a_removed_server_leaves_nothing_in_the_index() {
    let mut index = index();
    for (toolbox, server, _, _) in SERVERS {
        index.remove(&ServerIdentifier {
            toolbox: ToolboxName::from(*toolbox),
            server: ServerName::from(*server),
        });
    }
    assert_eq!(index.len(), 0);
    assert!(
        index
            .terms
            .iter()
            .all(|term| term.postings.capacity() == 0 && term.text.is_empty())
    );
    put(&mut index, SERVERS[0]);
    let found = search(&index, "code");
    assert_eq!(names(&found)[0], "github/search");
}

#[test]
fn tools_with_the_same_text_are_one_hit() {
    let mut index = index();
    put(
        &mut index,
        ("work", "github", "Another account", SERVERS[0].3),
    );
    let found = search(&index, "create issue");
    let alike: Vec<&str> = found.hits[0]
        .alike
        .iter()
        .map(|it| it.toolbox.as_str())
        .collect();
    assert_eq!(
        (found.hits[0].tool.toolbox.as_str(), alike),
        ("code", vec!["work"])
    );
    assert_eq!(
        found
            .hits
            .iter()
            .filter(|hit| hit.tool.tool.as_str() == "create_issue")
            .count(),
        1
    );
}

#[test]
fn tools_without_text_are_not_duplicates() {
    let mut index = Index::default();
    put(&mut index, ("home", "lamp", "Lights", &[("status", "")]));
    put(&mut index, ("home", "door", "Locks", &[("status", "")]));
    assert_eq!(
        names(&search(&index, "status")),
        ["door/status", "lamp/status"]
    );
}

#[test]
fn the_parts_of_an_explanation_add_up_to_the_score() {
    let index = index();
    let query = Query {
        text: "erase a file of mars",
        toolbox: None,
        limit: 10,
    };
    let hit = &index.search(&query).hits[0];
    let explanation = index.explain(&query, &hit.tool).unwrap();
    assert_eq!(explanation.score.to_bits(), hit.score.to_bits());
    let words = explanation.words.iter();
    let words: Vec<_> = words
        .map(|it| (it.word.as_str(), it.found.as_str(), it.how.name()))
        .collect();
    assert!(words.contains(&("file", "file", "same")), "{words:?}");
    assert!(words.contains(&("erase", "delet", "synonym")), "{words:?}");
    assert_eq!(explanation.missing, ["mars"]);
    let nobody = ToolIdentifier {
        tool: ToolName::from("nobody"),
        ..hit.tool.clone()
    };
    assert_eq!(index.explain(&query, &nobody), None);
}

#[test]
fn a_toolbox_name_in_the_query_selects_between_duplicates() {
    let mut index = Index::default();
    for toolbox in ["one", "two", "my own"] {
        put(
            &mut index,
            (toolbox, "fs", "", &[("read_file", "Read a file")]),
        );
    }
    for (query, toolbox) in [
        ("two/fs/read_file", "two"),
        ("two fs read_file", "two"),
        ("my own/FS/read-file", "my own"),
        ("fs/read_file", "my own"),
        ("three/fs/read_file", "my own"),
    ] {
        let hit = &search(&index, query).hits[0];
        assert_eq!(hit.tool.toolbox.as_str(), toolbox, "{query}");
    }
}

proptest! {
    #[test]
    fn any_text_can_be_indexed_and_searched(name in any::<String>(), about in any::<String>(), query in any::<String>()) {
        let mut index = index();
        put(&mut index, ("any", "server", &about, &[(&name, &query)]));
        let found = search(&index, &query);
        assert!(found.hits.len() <= 10 && found.matches <= index.len());
        let named = search(&index, &format!("server/{name}"));
        let tool = named.hits.first().map(|hit| hit.tool.tool.as_str());
        // Spaces around a query are not part of it.
        if name.trim() == name && !name.is_empty() {
            assert_eq!(tool, Some(name.as_str()));
        }
    }

    #[test]
    fn names_in_any_script_are_split(name in "[a-zA-Z0-9äöüÄÖÜßßéÉжЖ中文]{0,12}") {
        let mut index = Index::default();
        put(&mut index, ("any", "server", "", &[(&name, "")]));
        let found = search(&index, &name);
        assert_eq!(found.hits.len(), usize::from(!name.is_empty()));
    }
}
