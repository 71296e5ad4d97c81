//! How it is found out how a server speaks, and what is remembered of it.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Journal, RemoteFixture, Script, Setup, raw_string};

/// The requests that a server got before its tools were asked for, in order.
fn greetings(journal: &Journal) -> Vec<String> {
    let methods = journal.events("in").into_iter().filter_map(|line| {
        let message: Value = serde_json::from_str(&line).unwrap();
        message.get("id")?;
        Some(message["method"].as_str()?.to_owned())
    });
    let before = methods.take_while(|method| method != "tools/list");
    before.collect()
}

fn modern() -> Script {
    Script::named(&["x"])
        .set("era", r#""modern""#)
        .answers("x", r#"{"content":[]}"#)
}

fn legacy() -> Script {
    Script::named(&["x"]).answers("x", r#"{"content":[]}"#)
}

/// The verdicts that were kept.
fn kept(setup_path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(setup_path).unwrap_or_default();
    let kept: Value = serde_json::from_str(&text).unwrap_or_default();
    let verdicts = kept["verdicts"].as_object().cloned().unwrap_or_default();
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

#[test]
fn every_kind_of_server_is_met_in_its_own_way() {
    let discover = "server/discover";
    let cases = [
        ("modern", modern(), vec![discover], "modern"),
        (
            "both",
            legacy().set("era", r#""both""#),
            vec![discover],
            "modern",
        ),
        ("refuses", legacy(), vec![discover, "initialize"], "legacy"),
        (
            "is silent",
            legacy().set("unknown", r#""silent""#),
            vec![discover, "initialize"],
            "legacy",
        ),
        (
            "ends",
            legacy().set("unknown", r#""exit""#),
            vec![discover, "initialize"],
            "legacy",
        ),
    ];
    for (kind, script, expected, era) in cases {
        let setup = Setup::one(&script);
        let cache = setup.path("cache/mcp-workbench/eras.json");
        let mut workbench = setup.connect();
        workbench.open("dev");
        let journal = workbench.journal("dev", "fs");
        assert_eq!(greetings(&journal), expected, "{kind}");
        let verdicts = kept(&cache);
        assert_eq!(verdicts.len(), 1, "{kind}");
        assert_eq!(verdicts[0]["era"], era, "{kind}");
        let result = workbench.use_tool("x", "{}");
        assert_eq!(result.raw, r#"{"content":[]}"#, "{kind}");
    }
}

#[test]
fn a_server_that_is_slow_to_come_up_is_met_in_its_own_way_too() {
    let slow = r#"[{"sleepMs":2500}]"#;
    let cases = [
        (modern().set("onStart", slow), "modern", 1),
        (legacy().set("onStart", slow), "legacy", 1),
        (
            legacy().set("onStart", slow).set("unknown", r#""exit""#),
            "legacy",
            2,
        ),
    ];
    for (script, era, starts) in cases {
        let setup = Setup::one(&script);
        let cache = setup.path("cache/mcp-workbench/eras.json");
        let mut workbench = setup.connect();
        assert_eq!(workbench.open("dev").tool_names(), ["x"], "{era}");
        assert_eq!(workbench.use_tool("x", "{}").raw, r#"{"content":[]}"#);
        assert_eq!(kept(&cache)[0]["era"], era);
        assert_eq!(workbench.journal("dev", "fs").pids().len(), starts);
    }
}

#[test]
fn an_entry_that_says_how_its_server_speaks_asks_nothing() {
    for (era, script, greeting) in [
        ("legacy", legacy(), "initialize"),
        ("legacy", legacy().set("era", r#""both""#), "initialize"),
        ("modern", modern(), "server/discover"),
    ] {
        let setup = Setup::new()
            .toolbox("dev", "Development tools")
            .server_with("fs", &script, &json!({"era": era}));
        let cache = setup.path("cache/mcp-workbench/eras.json");
        let mut workbench = setup.connect();
        workbench.open("dev");
        let journal = workbench.journal("dev", "fs");
        assert_eq!(greetings(&journal), [greeting], "{era}");
        assert!(kept(&cache).is_empty(), "{era}");
    }
}

#[test]
fn a_server_that_is_not_what_its_entry_says_is_told_so() {
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &legacy(), &json!({"era": "modern"}));
    let mut workbench = setup.connect();
    let opened = workbench.open("dev");
    assert!(
        opened
            .raw
            .contains("answered server/discover with error -32601"),
        "{}",
        opened.raw
    );
    assert!(opened.raw.contains("2026-07-28"), "{}", opened.raw);
}

#[test]
fn a_server_without_a_common_version_gets_no_handshake_and_its_versions_are_reported() {
    let refusal = |data: &str| {
        format!(r#"[{{"error":{{"code":-32022,"message":"Unsupported protocol version"{data}}}}}]"#)
    };
    let future = r#"["2027-01-01","2027-06-30"]"#;
    let named = refusal(&format!(r#","data":{{"supported":{future}}}"#));
    let in_result = format!(r#"[{{"answer":{{"supportedVersions":{future}}}}}]"#);
    let late = format!(r#"[{{"sleepMs":2500}},{}"#, &named[1..]);
    let versions = "no common protocol version: it supports 2027-01-01, 2027-06-30; this workbench supports 2024-11-05";
    let discover = vec!["server/discover"];
    let rows = [
        (named.clone(), versions, discover.clone(), json!({})),
        (named, versions, discover.clone(), json!({"era": "modern"})),
        (in_result, versions, discover.clone(), json!({})),
        (
            refusal(""),
            "no common protocol version: it answered server/discover with error -32022: Unsupported protocol version",
            discover,
            json!({}),
        ),
        // It was silent for too long, and so was sent both. Its answer still counts.
        (
            late,
            versions,
            vec!["server/discover", "initialize"],
            json!({}),
        ),
    ];
    for (answer, words, expected, entry) in rows {
        let script = legacy()
            .on_method("server/discover", &answer)
            .on_method("initialize", r#"["hang"]"#);
        let setup = Setup::new()
            .toolbox("dev", "Development tools")
            .server_with("fs", &script, &entry);
        let mut workbench = setup.connect();
        let opened = workbench.open("dev");
        assert!(opened.raw.contains(words), "{}", opened.raw);
        let journal = workbench.journal("dev", "fs");
        assert_eq!(greetings(&journal), expected, "{answer}");
    }
}

#[test]
fn a_server_that_lists_a_legacy_revision_gets_the_handshake() {
    let rows = [
        r#"[{"error":{"code":-32022,"message":"m","data":{"supported":["2027-01-01","2025-06-18"]}}}]"#,
        r#"[{"answer":{"supportedVersions":["2027-01-01","2024-11-05"]}}]"#,
    ];
    for answer in rows {
        let script = legacy().on_method("server/discover", answer);
        let mut workbench = Setup::one(&script).connect();
        assert_eq!(workbench.open("dev").tool_names(), ["x"], "{answer}");
        let journal = workbench.journal("dev", "fs");
        assert_eq!(greetings(&journal), ["server/discover", "initialize"]);
    }
}

#[test]
fn a_server_that_ends_for_other_reasons_is_not_started_twice_each_time() {
    let script = Script::new().set("onStart", r#"[{"exit":3}]"#);
    let mut workbench = Setup::one(&script).connect();
    let journal = workbench.journal("dev", "fs");
    workbench.open("dev");
    assert_eq!(journal.pids().len(), 2, "asked, and started again without");
    workbench.open("dev");
    assert_eq!(journal.pids().len(), 3, "asked no more");
}

#[test]
fn a_verdict_holds_for_the_next_start_and_is_forgotten_when_it_fails() {
    let directory = Setup::new();
    let cache = directory.path("shared");
    let cache = cache.to_str().unwrap();
    let script = directory.write("server.json", &modern().text());
    let run = || {
        let mut workbench = Setup::new()
            .env("XDG_CACHE_HOME", cache)
            .toolbox("dev", "Development tools")
            .entry(
                "fs",
                json!({"command": crate::harness::fixture_server(), "args": [script]}),
            )
            .connect();
        workbench.open("dev");
        workbench.use_tool("x", "{}").raw
    };
    let result = r#"{"content":[]}"#;
    assert_eq!(run(), result);
    let file = directory.path("shared/mcp-workbench/eras.json");
    let before = fs::read_to_string(&file).unwrap();
    assert_eq!(run(), result);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        before,
        "nothing was found out anew"
    );
    // What is kept says the wrong thing: the server is asked after all.
    fs::write(&file, before.replace("modern", "legacy")).unwrap();
    assert_eq!(run(), result);
    assert_eq!(kept(&file)[0]["era"], "modern");
}

#[test]
fn a_modern_server_that_ends_at_its_first_start_is_asked_again() {
    let setup = Setup::new().toolbox("dev", "Development tools");
    let file = raw_string(setup.path("started").to_str().unwrap());
    let start = format!(r#"[{{"once":{{"file":{file},"actions":[{{"exit":3}}]}}}}]"#);
    let mut workbench = setup
        .server("fs", &modern().set("onStart", &start))
        .connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
}

/// What a modern server says of itself, when it has thought about it.
const SLOWLY: &str = r#"[{"sleepMs":2500},{"answer":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}]"#;

#[test]
fn a_modern_server_that_thinks_for_long_is_met_after_it_has_refused_the_handshake() {
    let script = modern().on_method("server/discover", SLOWLY);
    let setup = Setup::one(&script);
    let cache = setup.path("cache/mcp-workbench/eras.json");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
    assert_eq!(kept(&cache)[0]["era"], "modern");
    let server = RemoteFixture::start(&script);
    let setup = server.setup();
    let cache = setup.path("cache/mcp-workbench/eras.json");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
    assert_eq!(kept(&cache)[0]["era"], "modern");
}

#[test]
fn what_a_remote_server_has_not_said_is_not_kept() {
    let script = legacy()
        .set("era", r#""both""#)
        .on_method("server/discover", SLOWLY);
    let server = RemoteFixture::start(&script);
    let setup = server.setup();
    let cache = setup.path("cache/mcp-workbench/eras.json");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
    assert_eq!(server.journal().received("initialize").len(), 1);
    assert_eq!(kept(&cache), Vec::<Value>::new());
}
