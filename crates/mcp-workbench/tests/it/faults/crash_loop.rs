//! F4: servers whose start fails again and again. A failure is a start that does not complete its
//! handshake; five in 60 s open the breaker.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Failed, Row, bench::wait_gone, faults, table::timed};
use crate::harness::{Script, Setup, TIMEOUT, poll};

faults![
    breaker_opens,
    calls_in_a_crash_loop,
    crash_loop_that_ends,
    open_during_the_back_off,
    crashes_in_calls,
    crashes_while_idle,
];

/// How many failed starts open the breaker.
const FAILURES: usize = 5;

/// A server that exits with a word at each start.
fn never_starts(setup: Setup) -> Setup {
    let exits = r#"[{"stderr":"no way"},{"exit":1}]"#;
    let script = Script::new().set("onStart", exits);
    setup.server_with("fs", &script, &json!({"era": "legacy"}))
}

/// A server that exits at its first three starts.
fn starts_at_last(setup: Setup) -> Setup {
    let actions: Vec<Value> = ["one", "two", "three"]
        .into_iter()
        .map(|name| {
            let exits = [json!({"stderr": "not yet"}), json!({"exit": 1})];
            json!({"once": {"file": setup.path(name), "actions": exits}})
        })
        .collect();
    let script = Script::new().set("onStart", &Value::from(actions).to_string());
    setup.server_with("fs", &script, &json!({"era": "legacy"}))
}

/// A call while the breaker is open; gives the time that it took.
fn refused_call(bench: &mut Bench) -> Duration {
    let start = Instant::now();
    let id = bench.send("pid");
    let result = bench.failed(&id, "pid", &Failed::not_sent("server_unavailable"));
    let took = start.elapsed();
    let wait = result.failure()["retry_after_ms"].as_u64();
    assert!(
        wait.is_some_and(|wait| (1..=72_000).contains(&wait)),
        "{}",
        result.raw
    );
    bench.healthy();
    took
}

fn breaker_opens() -> Row {
    Row {
        number: "F4a",
        fault: "exits at each start; opened five times, then opened and called again",
        outcome: "five starts, no more; calls fail at once: server_unavailable, not_sent, retry_after_ms",
        bound: Duration::from_secs(10),
        faulty: never_starts,
        act: |bench| {
            for starts in 1..=FAILURES {
                let reason = bench.open_without();
                assert!(reason.contains("no way"), "{reason}");
                assert_eq!(bench.starts(), starts, "an open tries at once");
            }
            let opened = timed(|| drop(bench.open_without()));
            let calls = (0..10).map(|_| refused_call(bench)).max();
            assert_eq!(bench.starts(), FAILURES, "the breaker is open");
            opened.max(calls.unwrap_or_default())
        },
        after: After::StaysDown,
    }
}

fn calls_in_a_crash_loop() -> Row {
    Row {
        number: "F4b",
        fault: "exits at each start; called thirty times in a row",
        outcome: "every call is answered and was not_sent; at most six starts",
        bound: Duration::from_secs(20),
        faulty: never_starts,
        act: |bench| {
            bench.open_without();
            let took = timed(|| {
                for _ in 0..30 {
                    let result = bench.call("pid");
                    assert_eq!(result.failure()["outcome"], "not_sent", "{}", result.raw);
                }
            });
            let starts = bench.starts();
            assert!(starts <= FAILURES + 1, "{starts} starts");
            took
        },
        after: After::StaysDown,
    }
}

fn crash_loop_that_ends() -> Row {
    Row {
        number: "F4c",
        fault: "exits at its first three starts; called until it works",
        outcome: "recovers by itself at the fourth start",
        bound: Duration::from_secs(12),
        faulty: starts_at_last,
        act: |bench| {
            bench.open_without();
            let took = timed(|| {
                let recovered = poll(TIMEOUT, || (!bench.call("pid").failed()).then_some(()));
                assert!(recovered.is_some(), "it never recovers");
            });
            assert_eq!(bench.starts(), 4);
            took
        },
        after: After::Recovers,
    }
}

fn open_during_the_back_off() -> Row {
    Row {
        number: "F4d",
        fault: "exits at its first three starts; opened four times at once",
        outcome: "each open tries at once, whatever the back-off; the fourth succeeds",
        bound: Duration::from_secs(15),
        faulty: starts_at_last,
        act: |bench| {
            let took = timed(|| {
                for starts in 1..=3 {
                    let reason = bench.open_without();
                    assert!(reason.contains("not yet"), "{reason}");
                    assert_eq!(bench.starts(), starts);
                }
                bench.open();
            });
            assert_eq!(bench.starts(), 4);
            took
        },
        after: After::Recovers,
    }
}

fn crashes_in_calls() -> Row {
    Row {
        number: "F4e",
        fault: "crashes in seven calls, one after the other",
        outcome: "a crash in a call is no failed start: each next call starts it again",
        bound: Duration::from_mins(1),
        faulty: |setup| setup.server("fs", &Script::new()),
        act: |bench| {
            bench.open();
            timed(|| {
                for starts in 1..=7 {
                    assert_eq!(bench.starts(), starts);
                    bench.fails("crash", &Failed::unknown("server_exited"));
                    bench.succeeds("pid");
                }
            })
        },
        after: After::Recovers,
    }
}

fn crashes_while_idle() -> Row {
    Row {
        number: "F4f",
        fault: "exits after each answer, seven times",
        outcome: "an end while idle is no failed start: every call succeeds",
        bound: Duration::from_mins(1),
        faulty: |setup| {
            let exits = r#"[{"answer":{"content":[]}},{"exit":0}]"#;
            let script = Script::named(&["last", "pid"]).on_call("last", exits);
            setup.server("fs", &script)
        },
        act: |bench| {
            bench.open();
            timed(|| {
                for starts in 1..=7 {
                    bench.succeeds("last");
                    assert_eq!(bench.starts(), starts);
                    let pid = bench.journal().pids()[starts - 1];
                    wait_gone(pid, TIMEOUT);
                }
            })
        },
        after: After::Recovers,
    }
}
