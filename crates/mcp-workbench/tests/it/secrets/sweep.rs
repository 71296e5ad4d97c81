//! A canary in every place that may hold a secret, and a search for it in everything that we write: responses, logs at
//! the highest level, the output of every command that looks at servers, and the files on disk.

use std::{fs, path::Path};

use serde_json::json;

use crate::harness::{RemoteFixture, Script, Setup};

/// It has no character that anything would write otherwise.
const CANARY: &str = "canary5ecret0123456789";

/// A server that tells what it was given, wherever it can.
fn telling() -> Script {
    let told = format!("the token {CANARY} is not valid");
    let failing = json!([{"stderr": told}, {"error": {"code": -32000, "message": told}}]);
    Script::named(&["t", "env"]).on_call("t", &failing.to_string())
}

/// Returns the script of the remote server.
fn far() -> Script {
    Script::named(&["far"]).answers("far", r#"{"content":[]}"#)
}

/// A program and a remote server with the canary in all that an entry can hold, and a server that has none of it.
fn setup(remote: &RemoteFixture) -> Setup {
    let program = json!({
        "args": ["--flag=${WB_CANARY}"],
        "env": {"OF_VARIABLE": "${WB_CANARY}", "OF_FILE": "${file:canary}"},
        "inheritEnv": ["WB_CAN*"],
    });
    let headers = json!({"Authorization": "Bearer ${WB_CANARY}", "X-Key": "${file:canary}"});
    let remote = json!({"url": remote.url(), "headers": headers});
    let away = json!({"url": "http://127.0.0.1:9/mcp?key=${WB_CANARY}"});
    let gone = json!({"command": "/nowhere/${WB_CANARY}/program"});
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &telling(), &program)
        .entry("remote", remote)
        .entry("gone", gone)
        .entry("away", away)
        .server("other", &Script::named(&["env"]))
        .env("WB_CANARY", CANARY);
    setup.write("config/canary", CANARY);
    setup
}

/// Everything that files below a folder hold.
pub(super) fn contents(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else {
        return String::new();
    };
    let texts = entries.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            name + &contents(&path)
        } else {
            name + &String::from_utf8_lossy(&fs::read(&path).unwrap())
        }
    });
    texts.collect()
}

#[test]
fn serving_leaks_no_value_of_a_variable() {
    let remote = RemoteFixture::start(&far());
    let audit = json!({"file": "../audit/calls.jsonl", "arguments": "values"});
    let setup = setup(&remote).argument("--log-level").argument("trace");
    let setup = setup.top("audit", audit);
    let (cache, lock) = (
        setup.path("cache"),
        setup.path("config/workbench.workbench.lock"),
    );
    let audit = setup.path("audit");
    let mut workbench = setup.connect();
    let opened = workbench.open("dev");
    let failed = workbench.use_tool("t", &json!({"token": CANARY}).to_string());
    let far = workbench.use_tool_of(["dev", "remote", "far"], "{}");
    let others = workbench.use_tool_of(["dev", "other", "env"], "{}");
    assert!(failed.raw.contains("[redacted]"), "{}", failed.raw);
    assert!(!far.failed(), "{}", far.raw);
    for answer in [opened.raw, failed.raw, far.raw, others.raw] {
        assert!(!answer.contains(CANARY), "{answer}");
    }
    // It has arrived where it belongs.
    let own = workbench.use_tool("env", "{}").structured();
    assert_eq!(own["OF_FILE"], CANARY);
    assert!(
        remote
            .headers()
            .iter()
            .any(|it| it.to_string().contains(CANARY))
    );
    let finished = workbench.finish();
    assert!(!finished.stderr.contains(CANARY), "{}", finished.stderr);
    let kept = contents(&cache);
    assert!(
        kept.contains("/servers/") && !kept.contains(CANARY),
        "{kept}"
    );
    let locked = fs::read_to_string(lock).unwrap();
    assert!(
        locked.contains("far") && !locked.contains(CANARY),
        "{locked}"
    );
    let noted = contents(&audit);
    assert!(
        noted.contains("[redacted]") && !noted.contains(CANARY),
        "{noted}"
    );
}

#[test]
fn no_command_leaks_a_value_of_a_variable() {
    let commands: [&[&str]; 14] = [
        &["check"],
        &["list"],
        &["list", "--json"],
        &["list", "--tools"],
        &["doctor"],
        &["doctor", "--json"],
        &["tokens"],
        &["tokens", "--json"],
        &["call", "dev", "fs", "t"],
        &["warm"],
        &["search", "far", "--explain"],
        &["trust", "list"],
        &["trust", "diff"],
        &["permissions"],
    ];
    for command in commands {
        let remote = RemoteFixture::start(&far());
        let setup = setup(&remote);
        setup.write_config();
        let config = setup.config();
        let config = config.to_str().unwrap().to_owned();
        let arguments = [command, &["--config", &config]].concat();
        let mut workbench = setup.start_with(&arguments);
        let finished = workbench.finish();
        let said = format!("{}\n{}", finished.stdout.join("\n"), finished.stderr);
        assert!(!said.contains(CANARY), "{command:?}: {said}");
        assert!(
            said.contains("dev") || said.contains("fs"),
            "{command:?} said nothing: {said}"
        );
    }
}
