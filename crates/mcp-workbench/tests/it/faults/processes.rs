//! F6 to F17: what the process of a server does to its pipes, to itself and to its descendants.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{After, Bench, Failed, Row, bench::wait_gone, faults, table::timed};
use crate::harness::{Script, Setup, TIMEOUT, kill, poll, zombies};

faults![
    much_stderr,
    stdout_closed,
    stdin_not_read,
    exits_in_a_call,
    last_words,
    last_line_without_an_end,
    dies_while_idle,
    stopped_when_idle,
    hangs_in_a_call,
    stuck_for_good,
    leaves_descendants,
    deaf_to_signals,
    killed_in_a_call,
    no_zombies,
];

const EXITED: Failed = Failed::unknown("server_exited");
const TIMED_OUT: Failed = Failed::unknown("call_timeout");

/// A server with the tools `t`, which does this, and `pid`.
fn tool(setup: Setup, actions: &Value, keys: &Value) -> Setup {
    let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
    setup.server_with("fs", &script, keys)
}

/// The time from sending a call of `t`, which must fail in this way, to its answer.
fn fails_in(bench: &mut Bench, failed: &Failed) -> (Duration, String) {
    let start = Instant::now();
    let result = bench.fails("t", failed);
    (start.elapsed(), result.error().to_owned())
}

fn much_stderr() -> Row {
    Row {
        number: "F6",
        fault: "writes 200 MB to stderr during a call, half of it in one line",
        outcome: "the call succeeds; memory < base + 64 MiB",
        bound: Duration::from_mins(2),
        faulty: |setup| {
            let line = format!("{}\n", "x".repeat(199));
            let lines = json!({"stream": "stderr", "text": line, "times": 500_000});
            let endless = json!({"stream": "stderr", "text": "0123456789", "times": 10_000_000});
            let answer = json!({"answer": {"content": []}});
            let actions = json!([{"fill": lines}, {"fill": endless}, answer]);
            tool(setup, &actions, &json!({}))
        },
        act: |bench| {
            bench.open();
            let base = bench.memory();
            let took = timed(|| drop(bench.succeeds("t")));
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}

fn stdout_closed() -> Row {
    Row {
        number: "F7",
        fault: "closes its stdout during a call and lives on",
        outcome: "the call fails: server_exited, unknown; the process is ended",
        bound: Duration::from_secs(4),
        faulty: |setup| tool(setup, &json!(["closeStdout"]), &json!({})),
        act: |bench| {
            bench.open();
            let (took, _) = fails_in(bench, &EXITED);
            wait_gone(bench.journal().pids()[0], Duration::from_secs(7));
            took
        },
        after: After::Recovers,
    }
}

fn stdin_not_read() -> Row {
    Row {
        number: "F8",
        fault: "stops reading its stdin; four calls of 300 kB each (callTimeoutMs 1500)",
        outcome: "they fail at 1.5 s, unknown where a byte was sent, else not_sent; it is replaced",
        bound: Duration::from_secs(6),
        faulty: |setup| {
            let actions = json!(["stopReading", {"answer": {"content": []}}]);
            tool(setup, &actions, &json!({"callTimeoutMs": 1500}))
        },
        act: |bench| {
            bench.open();
            bench.succeeds("t");
            let start = Instant::now();
            let arguments = json!({"much": "x".repeat(300_000)}).to_string();
            let ids: Vec<String> = (0..4)
                .map(|_| bench.workbench.send_use("pid", &arguments))
                .collect();
            bench.healthy();
            // It reads one more line, and its pipe takes the beginning of another.
            for id in &ids[..2] {
                bench.failed(id, "pid", &TIMED_OUT);
            }
            assert!(start.elapsed() >= Duration::from_millis(1500));
            for id in &ids[2..] {
                bench.failed(id, "pid", &Failed::not_sent("call_timeout"));
            }
            let took = start.elapsed();
            let replaced = poll(TIMEOUT, || (!bench.call("pid").failed()).then_some(()));
            assert!(replaced.is_some(), "it is never replaced");
            assert_eq!(bench.starts(), 2);
            took
        },
        after: After::Recovers,
    }
}

fn exits_in_a_call() -> Row {
    Row {
        number: "F9a",
        fault: "exits with code 7 while four calls are in flight",
        outcome: "all four fail: server_exited, unknown, with code and stderr; none is sent again",
        bound: Duration::from_secs(4),
        faulty: |setup| {
            let actions = json!([{"stderr": "out of luck"}, {"exit": 7}]);
            let script = Script::named(&["hang", "t", "pid"]).on_call("t", &actions.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            bench.open();
            let hanging: Vec<String> = (0..3).map(|_| bench.send("hang")).collect();
            bench.wait_calls(3);
            let (took, text) = fails_in(bench, &EXITED);
            assert_eq!(
                text,
                "Error executing tool 't' in server 'fs' (toolbox 'dev'): the server exited with code 7 during the call; stderr: out of luck"
            );
            for id in hanging {
                let result = bench.failed(&id, "hang", &EXITED);
                let tail = result.failure()["stderr"].to_string();
                assert!(tail.contains("out of luck"), "{}", result.raw);
            }
            bench.succeeds("pid");
            let journal = bench.journal();
            assert_eq!(journal.pids().len(), 2);
            assert_eq!(journal.received("tools/call").len(), 5);
            took
        },
        after: After::Recovers,
    }
}

fn last_words() -> Row {
    Row {
        number: "F9b",
        fault: "answers a call and exits with code 5 at once, another call in flight",
        outcome: "the answer counts; the other call fails: server_exited, unknown",
        bound: Duration::from_secs(4),
        faulty: |setup| {
            let actions = r#"[{"answer":{"content":[],"said":"goodbye"}},{"exit":5}]"#;
            let script = Script::named(&["hang", "t", "pid"]).on_call("t", actions);
            setup.server("fs", &script)
        },
        act: |bench| {
            bench.open();
            let hanging = bench.send("hang");
            bench.wait_calls(1);
            timed(|| {
                let result = bench.call("t");
                assert_eq!(result.raw, r#"{"content":[],"said":"goodbye"}"#);
                bench.failed(&hanging, "hang", &EXITED);
            })
        },
        after: After::Recovers,
    }
}

fn last_line_without_an_end() -> Row {
    Row {
        number: "F10",
        fault: "writes an answer without a line end and exits",
        outcome: "the answer counts",
        bound: Duration::from_secs(4),
        faulty: |setup| {
            let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#;
            let actions = json!([{"stdout": answer}, {"exit": 0}]);
            tool(setup, &actions, &json!({}))
        },
        act: |bench| {
            bench.open();
            timed(|| assert_eq!(bench.call("t").raw, r#"{"content":[]}"#))
        },
        after: After::Recovers,
    }
}

fn dies_while_idle() -> Row {
    Row {
        number: "F11a",
        fault: "is killed while nobody uses it",
        outcome: "the next call starts it again and simply succeeds",
        bound: Duration::from_secs(4),
        faulty: |setup| setup.server("fs", &Script::new()),
        act: |bench| {
            bench.open();
            let pid = bench.journal().pids()[0];
            kill(pid, Signal::KILL);
            wait_gone(pid, TIMEOUT);
            let took = timed(|| drop(bench.succeeds("pid")));
            assert_eq!(bench.starts(), 2);
            took
        },
        after: After::Recovers,
    }
}

fn stopped_when_idle() -> Row {
    Row {
        number: "F11b",
        fault: "is not used for its idleTimeoutMs of 300 ms",
        outcome: "it is stopped; the next call starts it again and simply succeeds",
        bound: Duration::from_secs(8),
        faulty: |setup| setup.server_with("fs", &Script::new(), &json!({"idleTimeoutMs": 300})),
        act: |bench| {
            bench.open();
            let pid = bench.journal().pids()[0];
            let took = timed(|| wait_gone(pid, TIMEOUT));
            bench.succeeds("pid");
            assert_eq!(bench.starts(), 2);
            took
        },
        after: After::Recovers,
    }
}

fn hangs_in_a_call() -> Row {
    Row {
        number: "F12a",
        fault: "hangs in a call, and answers it after the timeout (callTimeoutMs 1000)",
        outcome: "call_timeout, unknown; notifications/cancelled with our id; the late answer is dropped",
        bound: Duration::from_secs(5),
        faulty: |setup| {
            let actions = json!(["awaitCancel", {"answer": {"content": []}}]);
            tool(setup, &actions, &json!({"callTimeoutMs": 1000}))
        },
        act: |bench| {
            bench.open();
            let (took, text) = fails_in(bench, &TIMED_OUT);
            assert_eq!(
                text,
                "Error executing tool 't' in server 'fs' (toolbox 'dev'): timed out after 1 s waiting for a response"
            );
            assert!(took >= Duration::from_secs(1), "{took:?}");
            let journal = bench.journal();
            let cancelled = journal.wait("cancelled", 1);
            let calls = journal.received("tools/call");
            assert_eq!(Some(cancelled[0].as_str()), calls[0].id());
            bench.succeeds("pid");
            assert_eq!(journal.pids().len(), 1);
            took
        },
        after: After::Recovers,
    }
}

fn stuck_for_good() -> Row {
    Row {
        number: "F12b",
        fault: "answers nothing any more, ping included (callTimeoutMs 500)",
        outcome: "three calls time out, then it is found dead and replaced; a call succeeds",
        bound: Duration::from_secs(20),
        faulty: |setup| {
            let actions = json!(["stopReading", {"answer": {"content": []}}]);
            tool(setup, &actions, &json!({"callTimeoutMs": 500}))
        },
        act: |bench| {
            bench.open();
            bench.succeeds("t");
            timed(|| {
                for _ in 0..3 {
                    bench.fails("pid", &TIMED_OUT);
                }
                let replaced = poll(TIMEOUT, || (!bench.call("pid").failed()).then_some(()));
                assert!(replaced.is_some(), "it is never replaced");
                assert_eq!(bench.starts(), 2);
            })
        },
        after: After::Recovers,
    }
}

fn leaves_descendants() -> Row {
    Row {
        number: "F13",
        fault: "exits in a call and leaves children, one in a session of its own, one that holds stdout",
        outcome: "the call fails at once; all descendants are gone",
        bound: Duration::from_secs(8),
        faulty: |setup| {
            let actions = json!([
                {"spawn": {}},
                {"spawn": {"holdOutput": true}},
                {"spawn": {"session": "own", "ignoreTerm": true, "holdOutput": true}},
                {"exit": 1},
            ]);
            tool(setup, &actions, &json!({}))
        },
        act: |bench| {
            bench.open();
            let start = Instant::now();
            let (answered, _) = fails_in(bench, &EXITED);
            assert!(answered < Duration::from_secs(4), "{answered:?}");
            for pid in bench.journal().wait("spawned", 3) {
                let pid = pid.parse().expect("a process id");
                wait_gone(pid, Duration::from_secs(7));
            }
            start.elapsed()
        },
        after: After::Recovers,
    }
}

fn deaf_to_signals() -> Row {
    Row {
        number: "F14",
        fault: "ignores the end of stdin and SIGTERM when it is stopped (idleTimeoutMs 300)",
        outcome: "is killed with its child; the next call starts it again",
        bound: Duration::from_secs(9),
        faulty: |setup| {
            let script = Script::new()
                .set("onStart", r#"[{"spawn":{"ignoreTerm":true}}]"#)
                .set("onEof", "\"ignore\"")
                .set("ignoreTerm", "true");
            setup.server_with("fs", &script, &json!({"idleTimeoutMs": 300}))
        },
        act: |bench| {
            bench.open();
            let journal = bench.journal();
            let child = journal.wait("spawned", 1)[0].parse().expect("a process id");
            timed(|| {
                for pid in [journal.pids()[0], child] {
                    wait_gone(pid, TIMEOUT);
                }
            })
        },
        after: After::Recovers,
    }
}

fn killed_in_a_call() -> Row {
    Row {
        number: "F16",
        fault: "is killed by signal 9 in a call",
        outcome: "server_exited, unknown; the text names the signal and memory",
        bound: Duration::from_secs(4),
        faulty: |setup| tool(setup, &json!([{"die": "KILL"}]), &json!({})),
        act: |bench| {
            bench.open();
            let (took, text) = fails_in(bench, &EXITED);
            assert!(text.contains("signal 9 (out of memory?)"), "{text}");
            took
        },
        after: After::Recovers,
    }
}

fn no_zombies() -> Row {
    Row {
        number: "F17",
        fault: "ten crashes in a row, each with a child that is adopted",
        outcome: "no zombie is left",
        bound: Duration::from_secs(25),
        faulty: |setup| tool(setup, &json!([{"spawn": {}}, {"exit": 1}]), &json!({})),
        act: |bench| {
            bench.open();
            timed(|| {
                for _ in 0..10 {
                    bench.fails("t", &EXITED);
                }
                let pid = bench.workbench.pid();
                let none = poll(TIMEOUT, || zombies(pid).is_empty().then_some(()));
                assert!(none.is_some(), "zombies: {:?}", zombies(pid));
            })
        },
        after: After::Recovers,
    }
}
