//! A server that puts hidden characters wherever it can: none of them reaches a terminal, a pipe or the log, whatever the
//! command.

use serde_json::{Value, json};

use super::{asks, document, exit_code, run, start, terminal::OnTerminal};
use crate::harness::{Script, Setup, TIMEOUT, raw_string};

/// One of each kind: escape sequences, bell, carriage return, C1, override, isolate, mark, TAG, NUL, delete, zero-width
/// space, invisible operator, blank Braille, filler, default-ignorable, private use, variation selectors in a row.
const HIDDEN: &str = "\u{1b}[31mred\u{1b}]0;t\u{7}\r\u{9b}0m\u{202e}evil\u{2066}\u{200f}\u{e0041}\u{0}\u{7f}\u{200b}\u{2062}\u{2800}\u{3164}\u{e0200}\u{e000}\u{fe00}\u{fe01}end";

/// Returns true if a character must not be printed.
fn is_hidden(character: char) -> bool {
    let is_bidi = matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_tag = matches!(character, '\u{e0000}'..='\u{e007f}');
    let is_invisible = matches!(
        character,
        '\u{200b}' | '\u{2062}' | '\u{2800}' | '\u{3164}' | '\u{e0200}' | '\u{e000}' | '\u{fe00}'
            ..='\u{fe01}'
    );
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || is_bidi
        || is_tag
        || is_invisible
}

/// A toolbox that is called in hidden characters, with servers that speak in them.
fn hostile() -> Setup {
    let text = raw_string(HIDDEN);
    let result = json!({"content": [
        {"type": "text", "text": HIDDEN},
        {"type": "resource_link", "uri": HIDDEN, "name": HIDDEN},
        {"type": "image", "data": "AAAA", "mimeType": HIDDEN},
        {"type": HIDDEN, "x": HIDDEN},
    ], "structuredContent": {HIDDEN: HIDDEN}});
    let failed = json!({"content": [{"type": "text", "text": HIDDEN}], "isError": true});
    let noise = json!([
        {"stderr": HIDDEN},
        {"line": HIDDEN},
        {"log": {"level": "error", "logger": HIDDEN, "data": HIDDEN}},
        {"progress": {"progress": 1, "total": 2, "message": HIDDEN}},
        {"answer": result},
    ]);
    let tools = json!([
        {"name": "ok", "description": "Fine", "inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "fails", "inputSchema": {}},
        {"name": "refuses", "inputSchema": {}},
        {"name": "dies", "inputSchema": {}},
        {"name": "asks", "inputSchema": {}},
        {"name": HIDDEN, "title": HIDDEN, "description": HIDDEN, "inputSchema": {HIDDEN: HIDDEN}},
        // All of its characters are letters.
        {"name": "fil\u{3164}led", "inputSchema": {}},
        {"name": "broken", "inputSchema": 5, HIDDEN: 1},
    ]);
    let form = json!({"message": HIDDEN, "requestedSchema": {"type": "object", "properties": {
        "a": {"type": "string", "title": HIDDEN, "description": HIDDEN},
    }}});
    let script = Script::new()
        .tools(&tools.to_string())
        .set(
            "serverInfo",
            &json!({"name": HIDDEN, "version": HIDDEN}).to_string(),
        )
        .set("instructions", &text)
        .set("onStart", &json!([{"stderr": HIDDEN}]).to_string())
        .on_call("ok", &noise.to_string())
        .on_call("fails", &json!([{"answer": failed}]).to_string())
        .on_call(
            "refuses",
            &json!([{"error": {"code": -32001, "message": HIDDEN, "data": HIDDEN}}]).to_string(),
        )
        .on_call(
            "dies",
            &json!([{"stderr": HIDDEN}, {"exit": 1}]).to_string(),
        )
        .on_call("asks", &asks(&form));
    let dying = Script::new().set(
        "onStart",
        &json!([{"stderr": HIDDEN}, {"exit": 1}]).to_string(),
    );
    let refusing = json!([{"error": {"code": -32600, "message": HIDDEN}}]);
    let refusing = Script::new().on_method("initialize", &refusing.to_string());
    let odd = Script::new().set("protocolVersion", &text);
    Setup::new()
        .toolbox("dev", &HIDDEN.replace('\0', ""))
        .server("fs", &script)
        .server("dying", &dying)
        .server("refusing", &refusing)
        .server("odd", &odd)
        .entry(
            "gone",
            json!({"command": format!("no{}", HIDDEN.replace('\0', ""))}),
        )
        .entry("away", json!({"url": "http://127.0.0.1:9/\u{202e}"}))
        .entry("no\u{200b}thing\u{2062}", json!({"command": "nothing"}))
        .toolbox(&HIDDEN.replace('\0', ""), "named so")
        .argument("--log-level")
        .argument("trace")
}

#[track_caller]
fn is_clean(what: &str, text: &str) {
    let found = text.char_indices().find(|(_, it)| is_hidden(*it));
    if let Some((at, character)) = found {
        let around: String = text[..at].chars().rev().take(60).collect();
        let around: String = around.chars().rev().collect();
        panic!("{what}: U+{:04X} after {around:?}", u32::from(character));
    }
}

/// Returns the output of a terminal without our own colours, live lines and the line ends of terminals.
fn without_our_own(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace("\r\u{1b}[", "\u{1b}[");
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let is_own = [
            "[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[3m", "[34m", "[35m", "[J",
        ]
        .iter()
        .find_map(|it| part.strip_prefix(it));
        let moved = || {
            let rest = part
                .strip_prefix('[')?
                .trim_start_matches(|it: char| it.is_ascii_digit());
            rest.strip_prefix('A')
        };
        match is_own.or_else(moved) {
            Some(rest) => plain.push_str(rest),
            None => plain.push_str(&format!("\u{1b}{part}")),
        }
    }
    plain
}

/// Every command that speaks of servers or of what the file names, and how it ends.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["check"], 0),
    (&["list"], 0),
    (&["list", "--json"], 0),
    (&["list", "--tools"], 1),
    (&["list", "--tools", "--json"], 1),
    (&["doctor"], 1),
    (&["doctor", "--json"], 1),
    (&["tokens"], 1),
    (&["tokens", "--json"], 1),
    (&["call", "dev", "fs", "ok", "--json"], 0),
    (&["call", "dev", "fs", "fails"], 3),
    (&["call", "dev", "fs", "fails", "--json"], 3),
    (&["call", "dev", "fs", "refuses"], 1),
    (&["call", "dev", "fs", "refuses", "--json"], 1),
    (&["call", "dev", "fs", "dies"], 1),
    (&["call", "dev", "fs", HIDDEN_NAME], 1),
    (&["call", "dev", "dying", "x"], 1),
    (&["call", "dev", "refusing", "x"], 1),
    (&["call", "dev", HIDDEN_NAME, "x"], 1),
    (&["list", HIDDEN_NAME], 1),
    (
        &[
            "add",
            "--dry-run",
            "dev",
            HIDDEN_NAME,
            "--",
            "x",
            HIDDEN_NAME,
        ],
        0,
    ),
    (&["remove", "--dry-run", "dev", HIDDEN_NAME], 1),
    (&["disable", "--dry-run", "dev", HIDDEN_NAME], 1),
    (&[HIDDEN_NAME], 2),
];

/// A name that can be typed: arguments have no NUL.
const HIDDEN_NAME: &str = "\u{1b}[31mred\r\u{9b}0m\u{202e}evil\u{2066}\u{e0041}\u{7f}\u{200b}\u{2062}\u{2800}\u{3164}\u{e0200}\u{e000}end";

#[test]
fn no_command_prints_hidden_characters() {
    for (arguments, code) in COMMANDS {
        let (finished, _setup) = run(hostile(), arguments);
        let what = format!("{arguments:?}");
        is_clean(&what, &finished.stdout.join("\n"));
        is_clean(&what, &finished.stderr);
        assert_eq!(exit_code(&finished), *code, "{what}: {}", finished.stderr);
        if arguments.contains(&"--json") && *code == 0 {
            document(&finished);
        }
    }
}

#[test]
fn no_command_shows_a_terminal_hidden_characters() {
    let ok: (&[&str], i32) = (&["call", "dev", "fs", "ok"], 0);
    for (arguments, _) in COMMANDS.iter().chain([&ok]) {
        let mut shown = OnTerminal::start(hostile(), arguments);
        shown.finish();
        shown.wait_for("evil");
        is_clean(&format!("{arguments:?}"), &without_our_own(&shown.text()));
    }
}

#[test]
fn forms_of_servers_are_shown_without_hidden_characters() {
    let mut call = OnTerminal::start(hostile(), &["call", "dev", "fs", "asks"]);
    call.wait_for("evil");
    for _ in 0..3 {
        call.type_line("");
    }
    call.finish();
    is_clean("a form", &without_our_own(&call.text()));
}

#[test]
fn json_output_preserves_hidden_characters() {
    let (finished, _setup) = run(hostile(), &["call", "dev", "fs", "ok", "--json"]);
    let result: Value = document(&finished);
    assert_eq!(result["content"][0]["text"], HIDDEN);
    assert_eq!(result["structuredContent"][HIDDEN], HIDDEN);
    let (finished, _setup) = run(hostile(), &["list", "--tools", "--json"]);
    let listed = document(&finished);
    assert_eq!(
        listed["toolboxes"][0]["description"],
        HIDDEN.replace('\0', "")
    );
}

#[test]
fn logs_and_answers_contain_no_hidden_characters() {
    let mut workbench = start(hostile(), &["serve"]);
    workbench.initialize();
    let opened = workbench.open("dev");
    for message in ["_errors", "withheld", "notices"] {
        is_clean(
            message,
            &opened.json()[message].to_string().replace("\\\"", "'"),
        );
        let said = opened.json()[message].as_array().unwrap().clone();
        assert!(!said.is_empty(), "{message}");
        for it in said {
            let words = it.as_str().or_else(|| it["reason"].as_str()).unwrap();
            is_clean(message, words);
        }
    }
    for tool in ["ok", "fails", "refuses", "dies"] {
        workbench.use_tool_of(["dev", "fs", tool], "{}");
    }
    let unknown = "\u{202E}evil\u{E0200}";
    for place in [
        ["dev", "fs", unknown],
        ["dev", unknown, "ok"],
        [unknown, "fs", "ok"],
    ] {
        is_clean("a refusal", workbench.use_tool_of(place, "{}").error());
    }
    is_clean("a refusal", workbench.open(unknown).error());
    let refused = workbench.ask(unknown, "{}");
    is_clean("a refusal", &refused.error().message);
    workbench.close_stdin();
    workbench.wait_exit();
    workbench.wait_no_survivors(TIMEOUT);
    workbench.wait_stderr("⟦U+202E⟧evil");
    let log = workbench.stderr();
    is_clean("the log", &log);
}
