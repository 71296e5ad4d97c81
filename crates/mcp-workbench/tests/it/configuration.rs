//! Valid configurations, and the messages about invalid ones. The effects of single keys are tested with their
//! subjects.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{Script, Setup};

/// A mistake: the text of the file, the paths that the message names, the lines that it names, and
/// other words that it must hold.
struct Mistake {
    text: &'static str,
    paths: &'static [&'static str],
    lines: &'static [u32],
    words: &'static [&'static str],
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        text: "{\"toolboxes\": {\n\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\"db\": {\"command\": \"x\",\n\"env\": {\n\"PORT\": 5432}}}}}}",
        paths: &["toolboxes.dev.mcpServers.db.env.PORT"],
        lines: &[5],
        words: &["quote"],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\"db\": {\"command\": \"x\",\n\"env\": {\n\n\n\"ON\": true}}}}}}",
        paths: &["toolboxes.dev.mcpServers.db.env.ON"],
        lines: &[7],
        words: &["quote"],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\n\n\"description\": \"\", \"mcpServers\": {}}}}",
        paths: &["toolboxes.dev.description"],
        lines: &[3],
        words: &[],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\n\"dev\": {\"description\": \"d\"}}}",
        paths: &["toolboxes.dev"],
        lines: &[3],
        words: &["mcpServers"],
    },
    Mistake {
        text: "{}",
        paths: &[],
        lines: &[1],
        words: &["toolboxes"],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\n\"db\": {}}}}}",
        paths: &["toolboxes.dev.mcpServers.db"],
        lines: &[3],
        words: &["command", "url"],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\"db\": {\"command\": \"x\", \"args\": [\"a\",\n\n5]}}}}}",
        paths: &["toolboxes.dev.mcpServers.db.args[1]"],
        lines: &[4],
        words: &[],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\n\" \": {\"description\": \"d\", \"mcpServers\": {}}}}",
        paths: &[],
        lines: &[3],
        words: &[],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\n\"\": {\"command\": \"x\"}}}}}",
        paths: &["toolboxes.dev.mcpServers"],
        lines: &[3],
        words: &[],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\n\"dev\": {\"description\": \"d\", \"mcpServers\": {}},\n\n\n\"dev\": {\"description\": \"e\", \"mcpServers\": {}}}}",
        paths: &["toolboxes.dev"],
        lines: &[3, 6],
        words: &[],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\"db\": {\"command\": \"x\",\n\"args\": [\"${A\"]}}}}}",
        paths: &["toolboxes.dev.mcpServers.db.args[0]"],
        lines: &[3],
        words: &["${"],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\"db\": {\"command\": \"x\",\n\"args\": [\"${A B}\"]}}}}}",
        paths: &["toolboxes.dev.mcpServers.db.args[0]"],
        lines: &[3],
        words: &["A B"],
    },
    Mistake {
        text: "{\"toolboxes\": {\"dev\": {\"description\": \"d\", \"mcpServers\": {\n\"db\": {\"command\": \"x\",\n\"args\": [\"${A:-${B}}\"]}}}}}",
        paths: &["toolboxes.dev.mcpServers.db.args[0]"],
        lines: &[3],
        words: &[],
    },
    Mistake {
        text: "{\n\n\"toolboxs\": {}}",
        paths: &["toolboxs"],
        lines: &[3],
        words: &["toolboxes"],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\"dev\": {\"description\": \"d\", \"mcpServer\": {}}}}",
        paths: &["toolboxes.dev.mcpServer"],
        lines: &[2],
        words: &["mcpServers"],
    },
    Mistake {
        text: "{\n\n\"toolMode\": \"magic\", \"toolboxes\": {}}",
        paths: &["toolMode"],
        lines: &[3],
        words: &["proxy", "dynamic"],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\n!}}",
        paths: &[],
        lines: &[3],
        words: &[],
    },
    Mistake {
        text: "{\"toolboxes\": {\n\"dev\": {\"description\": 5, \"mcpServers\": {\n\"db\": {\"command\": \"x\",\n\"env\": {\"A\": 1, \n\"B\": 2}},\n\n\"web\": {}}}}}",
        paths: &[
            "toolboxes.dev.description",
            "toolboxes.dev.mcpServers.db.env.A",
            "toolboxes.dev.mcpServers.db.env.B",
            "toolboxes.dev.mcpServers.web",
        ],
        lines: &[2, 4, 5, 7],
        words: &[],
    },
];

#[test]
fn every_mistake_is_reported_with_its_location() {
    for mistake in MISTAKES {
        check_mistake(mistake);
    }
}

fn check_mistake(mistake: &Mistake) {
    let finished = Setup::new().text(mistake.text).start().finish();
    let text = mistake.text;
    assert!(!finished.status.success(), "accepted: {text}");
    assert_eq!(finished.stdout, Vec::<String>::new(), "{text}");
    let stderr = finished.stderr;
    for word in ["workbench.json"]
        .iter()
        .chain(mistake.paths)
        .chain(mistake.words)
    {
        assert!(stderr.contains(word), "no {word:?} for {text}:\n{stderr}");
    }
    let numbers = numbers(&stderr);
    for line in mistake.lines {
        let named = numbers.contains(line);
        assert!(named, "line {line} is not named for {text}:\n{stderr}");
    }
}

/// All numbers in a text.
fn numbers(text: &str) -> Vec<u32> {
    text.split(|char: char| !char.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[test]
fn problems_have_line_and_column() {
    let text = "{\"toolboxes\": {\n  \"dev\": {\"description\": \"d\", \"mcpServers\": {},\n             \"extra\": 1}}}";
    let stderr = Setup::new().text(text).start().finish().stderr;
    let numbers = numbers(&stderr);
    let together = numbers.windows(2).any(|pair| pair[0] == 3 && pair[1] >= 14);
    assert!(together, "no line 3 with its column:\n{stderr}");
}

#[test]
fn comments_trailing_commas_a_bom_and_notes_are_accepted() {
    let text = "\u{feff}// a comment\n{\"$schema\": \"x\", \"_note\": 1, /* another */\n\"toolboxes\": {\"dev\": {\"_why\": [], \"description\": \"d\", \"mcpServers\": {},},},}";
    let mut workbench = Setup::new().text(text).start();
    let result = workbench.initialize();
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.contains("- **dev** (0 servers): d"));
}

#[test]
fn names_may_contain_any_characters_and_are_case_sensitive() {
    let names = [
        "a__b",
        "a-b",
        "a.b",
        "a/b",
        "a b",
        "Ärger 工具",
        "A__B",
        "'q\"\\",
    ];
    for name in names {
        let script = Script::named(&[name]).answers(name, r#"{"content":[]}"#);
        let mut workbench = Setup::new()
            .toolbox(name, "d")
            .server(name, &script)
            .connect();
        let tool = &workbench.open(name).json()["tools"][0];
        assert_eq!(
            (&tool["toolbox"], &tool["server"], &tool["name"]),
            (&json!(name), &json!(name), &json!(name))
        );
        let result = workbench.use_tool_of([name, name, name], "{}");
        assert_eq!(result.raw, r#"{"content":[]}"#, "{name}");
        let other_case = name.to_lowercase();
        if other_case != name {
            let error = workbench.open(&other_case);
            let begin = format!("Error: Toolbox '{other_case}' not found.");
            assert!(error.error().starts_with(&begin), "{}", error.error());
        }
    }
}

#[test]
fn an_entry_of_another_client_works_unchanged() {
    let rows = [
        json!({"type": "stdio"}),
        json!({"transport": "stdio"}),
        json!({"disabled": false, "autoApprove": ["x"], "alwaysAllow": [], "timeout": 60}),
        json!({"enabled": true, "trust": false, "description": "text"}),
    ];
    for keys in rows {
        let mut workbench = Setup::new()
            .toolbox("dev", "d")
            .server_with("fs", &Script::named(&["a"]), &keys)
            .connect();
        assert_eq!(workbench.open("dev").tool_names(), ["a"], "{keys}");
    }
}

#[test]
fn an_unreachable_remote_server_fails_alone() {
    let mut workbench = Setup::one(&Script::named(&["a"]))
        .entry(
            "web",
            json!({"url": "http://127.0.0.1:9/mcp", "type": "http"}),
        )
        .connect();
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["a"]);
    let errors = opened.json()["_errors"].clone();
    let line = errors[0].as_str().unwrap();
    let begin = "Failed to connect to server 'web' in toolbox 'dev': ";
    assert!(
        line.starts_with(begin) && line.len() > begin.len(),
        "{line}"
    );
}
