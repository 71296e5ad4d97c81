//! The secrets of a sign-in: tokens, codes and the client's registration. The server repeats its token wherever it can,
//! and the workbench never does.

use serde_json::json;
use tempfile::TempDir;

use super::sweep::contents;
use crate::{
    harness::{
        Setup,
        authority::{Authority, Protected, SECRET},
    },
    oauth::served::{keeping_in, sign_in_elsewhere},
};

/// A server that says its token back: in the description of a tool, in errors, and in a page.
fn telling(authority: &Authority) -> Protected {
    Protected::start_with(authority, |seen, out| {
        let told = format!("the token {} is mine", seen.bearer().unwrap());
        let arguments = &seen.message()["params"]["arguments"];
        match seen.method().as_str() {
            "tools/list" => {
                let tool = |name: &str| json!({"name": name, "description": told, "inputSchema": {"type": "object"}});
                Some(out.json(&seen.answer(&json!({"tools": [tool("t"), tool("u")]}).to_string())))
            }
            "tools/call" if arguments["as"] == "page" => {
                Some(out.reply("500 Oops\nContent-Type: text/plain", &told))
            }
            "tools/call" => {
                let id = seen.id();
                let error = json!({"code": -32000, "message": told});
                Some(out.json(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)))
            }
            _ => None,
        }
    })
}

/// Somebody has signed in, with a client that was registered with a secret, and the token was refreshed since.
fn signed_in(state: &TempDir) -> (Authority, Protected) {
    let authority = Authority::start();
    authority.set(|knobs| knobs.registers_as = "client_secret_basic");
    let server = telling(&authority);
    sign_in_elsewhere(setup(&server, state));
    authority.end_access();
    (authority, server)
}

fn setup(server: &Protected, state: &TempDir) -> Setup {
    keeping_in(state.path(), server.setup(&json!({})))
}

#[test]
fn serving_leaks_no_secret_of_a_sign_in() {
    let state = TempDir::new().unwrap();
    let (authority, server) = signed_in(&state);
    let audit = json!({"file": "../audit/calls.jsonl", "arguments": "values"});
    let setup = setup(&server, &state)
        .argument("--log-level")
        .argument("trace");
    let setup = setup.top("audit", audit);
    let (cache, lock) = (
        setup.path("cache"),
        setup.path("config/workbench.workbench.lock"),
    );
    let audit = setup.path("audit");
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["t", "u"]);
    for arguments in [r#"{"as":"error"}"#, r#"{"as":"page"}"#] {
        let failed = workbench.use_tool("t", arguments);
        assert!(failed.error().contains("[redacted]"), "{}", failed.raw);
        assert!(!failed.raw.contains(SECRET), "{}", failed.raw);
    }
    let finished = workbench.finish();
    let given = authority.secrets();
    for kind in ["client", "code", "access", "refresh"] {
        assert!(
            given.iter().any(|it| it.contains(kind)),
            "{kind}: {given:?}"
        );
    }
    let locked = std::fs::read_to_string(lock).unwrap_or_default();
    for told in [finished.stderr, contents(&cache), contents(&audit), locked] {
        assert!(!told.contains(SECRET), "{told}");
    }
}

#[test]
fn no_command_leaks_a_secret_of_a_sign_in() {
    let state = TempDir::new().unwrap();
    let (_authority, server) = signed_in(&state);
    let commands: [&[&str]; 10] = [
        &["check"],
        &["list"],
        &["list", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["tokens"],
        &["warm"],
        &["call", "dev", "fs", "t"],
        &["trust", "list"],
        &["permissions"],
    ];
    for command in commands {
        let setup = setup(&server, &state)
            .argument("--log-level")
            .argument("trace");
        setup.write_config();
        let config = setup.config();
        let config = config.to_str().unwrap().to_owned();
        let mut workbench = setup.start_with(&[command, &["--config", &config]].concat());
        let finished = workbench.finish();
        let said = format!("{}\n{}", finished.stdout.join("\n"), finished.stderr);
        assert!(!said.contains(SECRET), "{command:?}: {said}");
        assert!(
            said.contains("dev") || said.contains("fs"),
            "{command:?} said nothing: {said}"
        );
    }
}
