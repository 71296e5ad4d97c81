//! Toolboxes and servers in texts of many layouts.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::config::edit::{ConfigText, EditError, JsoncText};

/// A file in the layout of a person.
const KEPT: &str = r#"// Our servers.
{
    "$schema": "./schema.json",
    "_note": [1,2 ,3],

    "toolboxes": {
        // Everything about code.
        "dev": {
            "description": "Development",
            "mcpServers": {
                "files": { "command": "files" }, // the first
                /* to be removed some day */
                "git": {
                    "command": "git-server", // on PATH
                    "args": ["--ro"],
                }, // the second
                // "old": {}
            },
        },

        "ops": { "description": "Operations", "mcpServers": {} },
    },
}
"#;

fn edited(text: &str, edit: impl FnOnce(&mut ConfigText) -> Result<(), EditError>) -> String {
    let mut config = ConfigText::parse(text).expect("the text is fine");
    edit(&mut config).expect("the edit is possible");
    config.finish()
}

#[test]
fn names_are_listed_in_the_order_of_the_file() {
    let config = ConfigText::parse(KEPT).unwrap();
    assert_eq!(config.toolboxes().unwrap(), ["dev", "ops"]);
    assert_eq!(config.server_names("dev").unwrap(), ["files", "git"]);
    assert_eq!(config.server_names("ops").unwrap(), [""; 0]);
}

#[test]
fn a_server_is_added_in_the_layout_of_the_file() {
    let entry = json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}});
    let text = edited(KEPT, |config| config.add_server("dev", "new", &entry));
    let added = r#"                }, // the second
                "new": {
                    "command": "npx",
                    "args": ["-y", "x"],
                    "env": { "A": "1" },
                },
"#;
    let expected = KEPT.replace("                }, // the second\n", added);
    assert_eq!(text, expected);
    let removed = edited(&text, |config| config.remove_server("dev", "new"));
    assert_eq!(removed, KEPT);
}

#[test]
fn the_first_server_of_a_toolbox_opens_its_braces() {
    let entry = json!({"url": "https://x.test/mcp"});
    let text = edited(KEPT, |config| config.add_server("ops", "new", &entry));
    let expected = KEPT.replace(
        r#""mcpServers": {} },"#,
        r#""mcpServers": {
            "new": {
                "url": "https://x.test/mcp",
            },
        } },"#,
    );
    assert_eq!(text, expected);
    let removed = edited(&text, |config| config.remove_server("ops", "new"));
    assert_eq!(removed, KEPT);
}

#[test]
fn a_toolbox_is_added_after_the_last() {
    let text = edited(KEPT, |config| config.add_toolbox("new", "Says \"x\""));
    let expected = KEPT.replace(
        "\"mcpServers\": {} },\n",
        r#""mcpServers": {} },
        "new": {
            "description": "Says \"x\"",
            "mcpServers": {},
        },
"#,
    );
    assert_eq!(text, expected);
    assert_eq!(edited(&text, |config| config.remove_toolbox("new")), KEPT);
}

#[test]
fn a_removed_member_takes_comments_on_its_last_line() {
    let cases = [
        // On lines of their own: first, middle, last, with and without a comma at the end.
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", "b", "{\n  \"a\": 1\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2,\n}", "b", "{\n  \"a\": 1,\n}"),
        (
            "{\r\n\t\"a\": 1, // x\r\n\t\"b\": 2 // y\r\n}",
            "b",
            "{\r\n\t\"a\": 1 // x\r\n}",
        ),
        (
            "{\n  // above\n  \"a\": 1, // of a\n  // of b\n  \"b\": 2\n}",
            "a",
            "{\n  // above\n  // of b\n  \"b\": 2\n}",
        ),
        // The comma is elsewhere.
        ("{\n  \"a\": 1\n  , \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"),
        (
            "{\n  \"a\": 1 /* , */ , // x\n  \"b\": 2\n}",
            "a",
            "{\n  \"b\": 2\n}",
        ),
        // Several on a line.
        (
            "{\"a\": 1, \"b\": 2, \"c\": 3}",
            "a",
            "{\"b\": 2, \"c\": 3}",
        ),
        (
            "{\"a\": 1, \"b\": 2, \"c\": 3}",
            "b",
            "{\"a\": 1, \"c\": 3}",
        ),
        (
            "{\"a\": 1, \"b\": 2, \"c\": 3}",
            "c",
            "{\"a\": 1, \"b\": 2}",
        ),
        ("{ \"a\": 1, \"b\": 2, }", "b", "{ \"a\": 1, }"),
        ("{\n  \"a\": 1, \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"),
        (
            "{\n  \"a\": 1, /* of b */ \"b\": 2\n}",
            "a",
            "{\n  /* of b */ \"b\": 2\n}",
        ),
        // The brace on the same line.
        ("{\n  \"a\": 1,\n  \"b\": 2 }", "b", "{\n  \"a\": 1 }"),
        (
            "{\n  \"a\": 1, // x\n  \"b\": 2 }",
            "b",
            "{\n  \"a\": 1 // x\n   }",
        ),
        // The only one.
        ("{ \"a\": 1 }", "a", "{}"),
        ("{\n  \"a\": 1,\n}", "a", "{}"),
        ("{\n  // stays\n  \"a\": 1,\n}", "a", "{\n  // stays\n}"),
        ("{\n  \"a\": 1 // goes\n}", "a", "{}"),
        // Twice: the first counts.
        ("{\"a\": 1, \"a\": 2}", "a", "{\"a\": 2}"),
    ];
    for (text, key, expected) in cases {
        let mut changed = JsoncText::parse(text).unwrap();
        assert_eq!(changed.remove(&[], key), Ok(true), "{text}");
        let changed = changed.finish();
        assert_eq!(changed, expected, "{key} from {text}");
        JsoncText::parse(&changed).expect("it is still JSON");
    }
}

#[test]
fn members_are_added_after_the_last() {
    let cases = [
        ("{}", "{\n  \"new\": 1\n}"),
        ("{ }", "{\n  \"new\": 1\n}"),
        ("{\n}", "{\n  \"new\": 1\n}"),
        ("\u{feff}{\r\n}\r\n", "\u{feff}{\r\n  \"new\": 1\r\n}\r\n"),
        ("{ /* c */ }", "{ /* c */\n  \"new\": 1\n}"),
        ("{\n    // c\n}", "{\n    // c\n    \"new\": 1\n}"),
        ("{\"a\": 1}", "{\"a\": 1, \"new\": 1}"),
        ("{\"a\": 1,}", "{\"a\": 1, \"new\": 1,}"),
        ("{\"a\": 1 // c\n}", "{\"a\": 1, \"new\": 1 // c\n}"),
        ("{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"new\": 1\n}"),
        (
            "{\n\t\"a\": 1 // c\n}",
            "{\n\t\"a\": 1, // c\n\t\"new\": 1\n}",
        ),
        (
            "{\n\t\"a\": 1, // c\n}",
            "{\n\t\"a\": 1, // c\n\t\"new\": 1,\n}",
        ),
        (
            "{\n\t\"a\": 1 /* , */\n\t, // c\n}",
            "{\n\t\"a\": 1 /* , */\n\t, // c\n\t\"new\": 1,\n}",
        ),
        ("{\n  \"a\": 1 }", "{\n  \"a\": 1,\n  \"new\": 1 }"),
        (
            "{\n  \"a\": 1\n\n  // end\n}",
            "{\n  \"a\": 1,\n  \"new\": 1\n\n  // end\n}",
        ),
    ];
    for (text, expected) in cases {
        let mut changed = JsoncText::parse(text).unwrap();
        changed.set(&[], "new", &json!(1)).unwrap();
        assert_eq!(changed.finish(), expected, "{text}");
    }
}

#[test]
fn missing_objects_on_the_path_are_created() {
    let mut text = JsoncText::parse("{\n  \"a\": null\n}").unwrap();
    text.set(&["a", "b"], "c", &json!([1])).unwrap();
    assert_eq!(
        text.finish(),
        "{\n  \"a\": {\n    \"b\": {\n      \"c\": [1]\n    }\n  }\n}"
    );
    let toolbox = "{\"toolboxes\": {\"a\": {\"description\": \"d\"}}}";
    assert_eq!(
        edited(toolbox, |config| config.add_server(
            "a",
            "s",
            &json!({"command": "x"})
        )),
        "{\"toolboxes\": {\"a\": {\"description\": \"d\", \"mcpServers\": { \"s\": { \"command\": \"x\" } }}}}"
    );
    assert_eq!(
        edited("{}", |config| config.add_toolbox("a", "d")),
        "{\n  \"toolboxes\": {\n    \"a\": {\n      \"description\": \"d\",\n      \"mcpServers\": {}\n    }\n  }\n}"
    );
}

#[test]
fn servers_are_switched_with_the_key_that_they_have() {
    let wrap = |entry: &str| {
        format!(
            "{{\"toolboxes\": {{\"t\": {{\"description\": \"d\", \"mcpServers\": {{\"s\": {entry}}}}}}}}}"
        )
    };
    // Before, switched off, and on again.
    let cases = [
        (
            "{\"url\": \"u\"}",
            "{\"url\": \"u\", \"disabled\": true}",
            "{\"url\": \"u\"}",
        ),
        (
            "{\"enabled\": true, \"url\": \"u\"}",
            "{\"enabled\": false, \"url\": \"u\"}",
            "{\"enabled\": true, \"url\": \"u\"}",
        ),
        (
            "{\"disabled\": false, \"url\": \"u\"}",
            "{\"disabled\": true, \"url\": \"u\"}",
            "{\"disabled\": false, \"url\": \"u\"}",
        ),
        (
            "{\"url\": \"u\", \"disabled\": false /* why */}",
            "{\"url\": \"u\", \"disabled\": true /* why */}",
            "{\"url\": \"u\", \"disabled\": false /* why */}",
        ),
        (
            "{\"disabled\": true, \"enabled\": false}",
            "{\"disabled\": true, \"enabled\": false}",
            "{\"disabled\": false, \"enabled\": true}",
        ),
    ];
    for (before, off, on) in cases {
        let text = edited(&wrap(before), |it| it.set_enabled("t", Some("s"), false));
        assert_eq!(text, wrap(off));
        let text = edited(&text, |it| it.set_enabled("t", Some("s"), true));
        assert_eq!(text, wrap(on));
    }
}

#[test]
fn a_toolbox_is_switched_by_its_servers() {
    let text = edited(KEPT, |config| config.set_enabled("dev", None, false));
    assert_eq!(text.matches("\"disabled\": true").count(), 2);
    assert_eq!(
        edited(&text, |config| config.set_enabled("dev", None, true)),
        KEPT
    );
}

#[test]
fn duplicate_or_unknown_names_are_refused() {
    let mut config = ConfigText::parse(KEPT).unwrap();
    let entry = json!({});
    let cases = [
        (
            config.add_toolbox("dev", "d"),
            "the toolbox `dev` already exists\n  hint: choose another name, or remove it first",
        ),
        (
            config.add_server("dev", "git", &entry),
            "the toolbox `dev` already has a server `git`\n  hint: choose another name, or remove it first",
        ),
        (
            config.add_server("dve", "x", &entry),
            "there is no toolbox `dve`\n  hint: did you mean `dev`?",
        ),
        (
            config.remove_server("dev", "other"),
            "there is no server `other` in the toolbox `dev`\n  hint: the servers are files, git",
        ),
        (
            config.remove_server("ops", "other"),
            "there is no server `other` in the toolbox `ops`\n  hint: there are no servers",
        ),
        (
            config.set_enabled("dev", Some("Files"), true),
            "there is no server `Files` in the toolbox `dev`\n  hint: did you mean `files`?",
        ),
        (
            config.remove_toolbox("x\u{1b}"),
            "there is no toolbox `x⟦U+001B⟧`\n  hint: the toolboxes are dev, ops",
        ),
    ];
    for (refused, words) in cases {
        assert_eq!(refused.unwrap_err().to_string(), words);
    }
    assert_eq!(config.finish(), KEPT);
}

#[test]
fn a_value_that_is_not_an_object_is_refused_with_its_location() {
    let cases = [
        ("", "1:1: not valid JSON: the file is empty"),
        ("// x\n[1]", "2:1: expected an object, found an array"),
        (
            "{\n  \"a\": 'x'\n}",
            "2:8: not valid JSON: single-quoted strings are not allowed",
        ),
        (
            "{\"toolboxes\": []}",
            "1:15: toolboxes: expected an object, found an array",
        ),
    ];
    for (text, begin) in cases {
        let error = ConfigText::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(begin), "{error}");
        assert!(error.contains("\n  hint: "), "{error}");
    }
    let text = "{\"toolboxes\": {\"my tools\": {\n \"mcpServers\": 1}}}";
    let error = ConfigText::parse(text).unwrap().server_names("my tools");
    assert_eq!(
        error.unwrap_err().to_string(),
        "2:16: toolboxes[\"my tools\"].mcpServers: expected an object, found a number\n  \
         hint: write an object here"
    );
}
