//! F1 to F3, F5, F32, F34: servers that do not start, or start strangely.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Row, bench::wait_gone, faults, table::timed};
use crate::harness::{Script, Setup};

faults![
    mute_at_start,
    mute_at_the_list,
    command_not_found,
    not_executable,
    directory_not_found,
    interpreter_not_found,
    exits_with_words,
    exits_when_asked,
    exits_in_silence,
    exits_in_silence_once,
    killed_at_start,
    refuses_the_handshake,
    invalid_handshake,
    unheard_of_revision,
    no_tools_capability,
    no_tools_at_all,
];

const SOON: Duration = Duration::from_secs(4);

/// The server with other keys in its entry.
fn with(setup: Setup, script: &Script, keys: &Value) -> Setup {
    setup.server_with("fs", script, keys)
}

/// A server that does this before it reads anything.
fn at_start(actions: &Value) -> Script {
    Script::new().set("onStart", &actions.to_string())
}

/// Opens the toolbox, in which the server fails for exactly this reason.
fn fails_for(bench: &mut Bench, reason: &str) -> Duration {
    timed(|| assert_eq!(bench.open_without(), reason))
}

/// Writes a file that is no program and makes it the command.
fn command_file(setup: Setup, text: &str, mode: u32) -> Setup {
    let file = setup.write("broken-command", text);
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
    with(setup, &Script::new(), &json!({"command": file}))
}

/// Opens the toolbox, in which the system refuses to start the command.
fn not_started(bench: &mut Bench) -> Duration {
    timed(|| {
        let reason = bench.open_without();
        assert!(reason.starts_with("command '"), "{reason}");
        assert!(reason.contains("broken-command'"), "{reason}");
        assert!(!reason.contains("/usr/bin"), "no PATH: {reason}");
    })
}

fn mute_at_start() -> Row {
    Row {
        number: "F1",
        fault: "never answers initialize (connectTimeoutMs 1000)",
        outcome: "opens without it: connection timeout after 1 s; its process is ended",
        bound: Duration::from_secs(5),
        faulty: |setup| {
            let script = at_start(&json!(["hang"]));
            with(setup, &script, &json!({"connectTimeoutMs": 1000}))
        },
        act: |bench| {
            let took = fails_for(bench, "connection timeout after 1 s");
            wait_gone(bench.journal().pids()[0], Duration::from_secs(7));
            took
        },
        after: After::StaysDown,
    }
}

fn mute_at_the_list() -> Row {
    Row {
        number: "F34",
        fault: "never answers tools/list (connectTimeoutMs 2000)",
        outcome: "opens without it: connection timeout after 2 s",
        bound: Duration::from_secs(6),
        faulty: |setup| {
            let script = Script::new().on_method("tools/list", r#"["hang"]"#);
            with(setup, &script, &json!({"connectTimeoutMs": 2000}))
        },
        act: |bench| fails_for(bench, "connection timeout after 2 s"),
        after: After::StaysDown,
    }
}

fn command_not_found() -> Row {
    Row {
        number: "F2a",
        fault: "command not found",
        outcome: "opens without it: command 'no-such-command-anywhere' not found",
        bound: SOON,
        faulty: |setup| {
            let keys = json!({"command": "no-such-command-anywhere"});
            with(setup, &Script::new(), &keys)
        },
        act: |bench| fails_for(bench, "command 'no-such-command-anywhere' not found"),
        after: After::StaysDown,
    }
}

fn not_executable() -> Row {
    Row {
        number: "F2b",
        fault: "command is not executable",
        outcome: "opens without it; the reason names the command",
        bound: SOON,
        faulty: |setup| command_file(setup, "#!/bin/sh\n", 0o644),
        act: not_started,
        after: After::StaysDown,
    }
}

fn directory_not_found() -> Row {
    Row {
        number: "F2c",
        fault: "cwd does not exist",
        outcome: "opens without it: working directory '…' not found",
        bound: SOON,
        faulty: |setup| with(setup, &Script::new(), &json!({"cwd": "/no/such/folder"})),
        act: |bench| fails_for(bench, "working directory '/no/such/folder' not found"),
        after: After::StaysDown,
    }
}

fn interpreter_not_found() -> Row {
    Row {
        number: "F2d",
        fault: "the command's interpreter does not exist",
        outcome: "opens without it; the reason names the command",
        bound: SOON,
        faulty: |setup| command_file(setup, "#!/no/such/interpreter\n", 0o755),
        act: not_started,
        after: After::StaysDown,
    }
}

fn exits_with_words() -> Row {
    Row {
        number: "F3a",
        fault: "exits at start with code 3 and two lines of stderr",
        outcome: "opens without it; the reason has the code and both lines",
        bound: SOON,
        faulty: |setup| {
            let script = at_start(
                &json!([{"stderr": "reading settings"}, {"stderr": "no database given"}, {"exit": 3}]),
            );
            setup.server("fs", &script)
        },
        act: |bench| {
            let reason = "exited with code 3 before answering initialize; \
                          stderr: reading settings | no database given";
            fails_for(bench, reason)
        },
        after: After::StaysDown,
    }
}

fn exits_in_silence() -> Row {
    Row {
        number: "F3b",
        fault: "exits at start with code 0 and no word",
        outcome: "opens without it: exited with code 0 before answering initialize",
        bound: SOON,
        faulty: |setup| setup.server("fs", &at_start(&json!([{"exit": 0}]))),
        act: |bench| fails_for(bench, "exited with code 0 before answering initialize"),
        after: After::StaysDown,
    }
}

fn exits_in_silence_once() -> Row {
    Row {
        number: "F3c",
        fault: "exits with code 0 and no word at its first start only (a race of npx)",
        outcome: "the same open tries once more and succeeds",
        bound: SOON,
        faulty: |setup| {
            let once = json!({"file": setup.path("tried"), "actions": [{"exit": 0}]});
            setup.server("fs", &at_start(&json!([{"once": once}])))
        },
        act: |bench| {
            let took = timed(|| drop(bench.open()));
            assert_eq!(bench.starts(), 2);
            took
        },
        after: After::Recovers,
    }
}

fn exits_when_asked() -> Row {
    Row {
        number: "F3e",
        fault: "exits with code 0 and a line of stderr when it is asked to initialize",
        outcome: "opens without it; the reason has the code and the line",
        bound: SOON,
        faulty: |setup| {
            let actions = r#"[{"stderr":"cannot say hello"},{"exit":0}]"#;
            setup.server("fs", &Script::new().on_method("initialize", actions))
        },
        act: |bench| {
            let reason = "exited with code 0 before answering initialize; stderr: cannot say hello";
            fails_for(bench, reason)
        },
        after: After::StaysDown,
    }
}

fn killed_at_start() -> Row {
    Row {
        number: "F3d",
        fault: "is killed by a signal at start",
        outcome: "opens without it; the reason names the signal",
        bound: SOON,
        faulty: |setup| setup.server("fs", &at_start(&json!([{"die": "SEGV"}]))),
        act: |bench| {
            timed(|| {
                let reason = bench.open_without();
                assert!(reason.contains("signal 11"), "{reason}");
            })
        },
        after: After::StaysDown,
    }
}

fn refuses_the_handshake() -> Row {
    Row {
        number: "F32a",
        fault: "answers initialize with an error",
        outcome: "opens without it; the reason has the server's words",
        bound: SOON,
        faulty: |setup| {
            let error = json!([{"error": {"code": -32602, "message": "no licence"}}]);
            let script = Script::new().on_method("initialize", &error.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            timed(|| {
                let reason = bench.open_without();
                assert!(reason.contains("no licence"), "{reason}");
            })
        },
        after: After::StaysDown,
    }
}

fn invalid_handshake() -> Row {
    Row {
        number: "F32b",
        fault: "answers initialize with a result that has no protocolVersion",
        outcome: "opens without it; the reason names initialize",
        bound: SOON,
        faulty: |setup| {
            let script = Script::new().on_method("initialize", r#"[{"answer":{}}]"#);
            setup.server("fs", &script)
        },
        act: |bench| {
            timed(|| {
                let reason = bench.open_without();
                assert!(reason.contains("initialize"), "{reason}");
            })
        },
        after: After::StaysDown,
    }
}

fn unheard_of_revision() -> Row {
    Row {
        number: "F32c",
        fault: "answers initialize with a revision that nobody knows",
        outcome: "it is used, or the reason says why not; the open is answered",
        bound: SOON,
        faulty: |setup| {
            let script = Script::new().set("protocolVersion", "\"2099-01-01\"");
            setup.server("fs", &script)
        },
        act: |bench| {
            let start = Instant::now();
            let opened = bench.workbench.open("dev").json();
            let took = start.elapsed();
            let used = opened["servers_connected"] == 2;
            let refused = opened["servers_connected"] == 1
                && opened["_errors"][0]
                    .as_str()
                    .is_some_and(|error| error.contains("2099-01-01"));
            assert!(used || refused, "{opened}");
            let result = bench.call("pid");
            assert_eq!(result.failed(), refused, "{}", result.raw);
            took
        },
        after: After::Either,
    }
}

fn no_tools_capability() -> Row {
    Row {
        number: "F32d",
        fault: "declares no tools, but lists and runs some",
        outcome: "they are offered and can be called",
        bound: SOON,
        faulty: |setup| setup.server("fs", &Script::new().set("capabilities", "{}")),
        act: |bench| timed(|| drop(bench.open())),
        after: After::Recovers,
    }
}

fn no_tools_at_all() -> Row {
    Row {
        number: "F32e",
        fault: "declares no tools and does not know tools/list",
        outcome: "is connected with no tools",
        bound: SOON,
        faulty: |setup| {
            let unknown = json!([{"error": {"code": -32601, "message": "Method not found"}}]);
            let script = Script::new()
                .set("capabilities", "{}")
                .on_method("tools/list", &unknown.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            timed(|| {
                let opened = bench.open();
                let tools = opened["tools"].as_array().expect("a list");
                assert!(tools.iter().all(|tool| tool["server"] == "ok"), "{opened}");
            })
        },
        after: After::StaysDown,
    }
}
