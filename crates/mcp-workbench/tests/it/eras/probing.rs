//! Finding out which protocol a server speaks, and what the cache has of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

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

/// Returns the only file of the cache about a launch.
fn cache_file(cache: &Path) -> PathBuf {
    let files = fs::read_dir(cache.join("mcp-workbench/servers")).unwrap();
    let files = files.map(|it| it.unwrap().path());
    let files: Vec<_> = files
        .filter(|it| it.extension().is_some_and(|it| it == "json"))
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().unwrap()
}

/// Returns the protocol in the cache after the workbench has ended, which writes it.
fn cached_protocol(cache: &Path) -> Value {
    let cached: Value = serde_json::from_slice(&fs::read(cache_file(cache)).unwrap()).unwrap();
    assert!(cached.get("tools").is_some(), "{cached}");
    cached["head"]["protocol"].clone()
}

#[test]
fn every_kind_of_server_is_detected() {
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
        let cache = setup.path("cache");
        let mut workbench = setup.connect();
        workbench.open("dev");
        let journal = workbench.journal("dev", "fs");
        assert_eq!(greetings(&journal), expected, "{kind}");
        let result = workbench.use_tool("x", "{}");
        assert_eq!(result.raw, r#"{"content":[]}"#, "{kind}");
        workbench.finish();
        assert_eq!(cached_protocol(&cache)["era"], era, "{kind}");
    }
}

#[test]
fn slow_servers_of_every_kind_are_detected() {
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
        let cache = setup.path("cache");
        let mut workbench = setup.connect();
        assert_eq!(workbench.open("dev").tool_names(), ["x"], "{era}");
        assert_eq!(workbench.use_tool("x", "{}").raw, r#"{"content":[]}"#);
        assert_eq!(workbench.journal("dev", "fs").pids().len(), starts);
        workbench.finish();
        assert_eq!(cached_protocol(&cache)["era"], era);
    }
}

#[test]
fn a_configured_era_skips_the_probe() {
    for (era, script, greeting) in [
        ("legacy", legacy(), "initialize"),
        ("legacy", legacy().set("era", r#""both""#), "initialize"),
        ("modern", modern(), "server/discover"),
    ] {
        let setup = Setup::new()
            .toolbox("dev", "Development tools")
            .server_with("fs", &script, &json!({"era": era}));
        let cache = setup.path("cache");
        let mut workbench = setup.connect();
        workbench.open("dev");
        let journal = workbench.journal("dev", "fs");
        assert_eq!(greetings(&journal), [greeting], "{era}");
        workbench.finish();
        assert_eq!(cached_protocol(&cache), Value::Null, "{era}");
    }
}

#[test]
fn a_wrong_configured_era_is_reported() {
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
fn a_server_that_exits_at_every_start_is_probed_once() {
    let script = Script::new().set("onStart", r#"[{"exit":3}]"#);
    let mut workbench = Setup::one(&script).connect();
    let journal = workbench.journal("dev", "fs");
    workbench.open("dev");
    assert_eq!(journal.pids().len(), 2, "asked, and started again without");
    workbench.open("dev");
    assert_eq!(journal.pids().len(), 3, "asked no more");
}

#[test]
fn a_cached_protocol_is_used_at_the_next_start_and_replaced_when_it_is_wrong() {
    let directory = Setup::new();
    let cache = directory.path("shared");
    let folder = cache.to_str().unwrap();
    let script = directory.write("server.json", &modern().text());
    let run = || {
        let mut workbench = Setup::new()
            .env("XDG_CACHE_HOME", folder)
            // The environment of a server is part of its launch.
            .env("HOME", folder)
            .toolbox("dev", "Development tools")
            .entry(
                "fs",
                json!({"command": crate::harness::fixture_server(), "args": [script]}),
            )
            .connect();
        workbench.open("dev");
        let result = workbench.use_tool("x", "{}").raw;
        workbench.finish();
        result
    };
    let result = r#"{"content":[]}"#;
    assert_eq!(run(), result);
    let before = cached_protocol(&cache);
    assert_eq!(before["era"], "modern");
    assert_eq!(run(), result);
    assert_eq!(cached_protocol(&cache), before, "it was found out again");
    // The cache is wrong: the server is asked after all.
    let file = cache_file(&cache);
    let text = fs::read_to_string(&file).unwrap();
    let wrong = text.replace(
        r#""protocol":{"era":"modern""#,
        r#""protocol":{"era":"legacy""#,
    );
    assert_ne!(wrong, text);
    fs::write(&file, wrong).unwrap();
    assert_eq!(run(), result);
    assert_eq!(cached_protocol(&cache)["era"], "modern");
}

#[test]
fn a_modern_server_that_exits_at_its_first_start_is_probed_again() {
    let setup = Setup::new().toolbox("dev", "Development tools");
    let file = raw_string(setup.path("started").to_str().unwrap());
    let start = format!(r#"[{{"once":{{"file":{file},"actions":[{{"exit":3}}]}}}}]"#);
    let mut workbench = setup
        .server("fs", &modern().set("onStart", &start))
        .connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
}

/// The slow description of a modern server.
const SLOWLY: &str = r#"[{"sleepMs":2500},{"answer":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}]"#;

#[test]
fn a_slow_modern_server_is_detected_after_it_refused_the_handshake() {
    let script = modern().on_method("server/discover", SLOWLY);
    let setup = Setup::one(&script);
    let cache = setup.path("cache");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
    workbench.finish();
    assert_eq!(cached_protocol(&cache)["era"], "modern");
    let server = RemoteFixture::start(&script);
    let setup = server.setup();
    let cache = setup.path("cache");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
    workbench.finish();
    assert_eq!(cached_protocol(&cache)["era"], "modern");
}

#[test]
fn an_undetermined_protocol_is_not_cached() {
    let script = legacy()
        .set("era", r#""both""#)
        .on_method("server/discover", SLOWLY);
    let server = RemoteFixture::start(&script);
    let setup = server.setup();
    let cache = setup.path("cache");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["x"]);
    assert_eq!(server.journal().received("initialize").len(), 1);
    workbench.finish();
    assert_eq!(cached_protocol(&cache), Value::Null);
}
