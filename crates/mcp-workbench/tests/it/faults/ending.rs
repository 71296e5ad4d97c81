//! F50, F52, F54 to F56: the ends that the workbench itself can come to. Whatever the end, no process
//! is left.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::{After, Bench, Row, faults};
use crate::harness::{Script, Setup, TIMEOUT, poll, survivors};

faults![
    end_of_stdin,
    stdout_closed,
    client_vanishes,
    terminated,
    interrupted,
    hung_up,
    signal_during_an_open,
    second_signal,
    killed,
];

/// The time of the contract for a whole process tree, with a margin.
const TREE_GONE: Duration = Duration::from_millis(5800);

/// A server with every kind of descendant that is hard to be rid of, and deaf itself.
fn stubborn(setup: Setup) -> Setup {
    let spawn = json!([
        {"spawn": {}},
        {"spawn": {"holdOutput": true}},
        {"spawn": {"ignoreTerm": true}},
        {"spawn": {"session": "own"}},
        {"spawn": {"session": "own", "ignoreTerm": true, "holdOutput": true}},
    ]);
    let script = Script::new()
        .set("onStart", &spawn.to_string())
        .set("onEof", "\"ignore\"")
        .set("ignoreTerm", "true");
    setup.server("fs", &script)
}

fn open_stubborn(bench: &mut Bench) {
    bench.open();
    let mark = bench.workbench.setup.mark.clone();
    // A process that is just becoming another program has no environment for a moment.
    let all = poll(TIMEOUT, || (survivors(&mark).len() == 7).then_some(()));
    assert!(all.is_some(), "two servers and five descendants");
}

/// The time until the workbench has ended and nothing of its servers is left.
fn ended(bench: &mut Bench, start: Instant) -> Duration {
    bench.workbench.wait_exit();
    let left = survivors(&bench.workbench.setup.mark);
    assert!(left.is_empty(), "left behind: {left:?}");
    start.elapsed()
}

/// Ends a workbench with a stubborn server by a signal.
fn ended_by(bench: &mut Bench, signal: Signal) -> Duration {
    open_stubborn(bench);
    let start = Instant::now();
    bench.workbench.signal(signal);
    ended(bench, start)
}

/// Closes the client's side of stdout for good, and gives the moment.
fn close_stdout(bench: &mut Bench) -> Instant {
    let start = Instant::now();
    bench.workbench.reading().close();
    // If the reader waits for a line, it is gone with this one.
    let id = bench.workbench.request("ping", "{}");
    let closed = poll(TIMEOUT, || {
        bench.workbench.reading().is_closed().then_some(())
    });
    assert!(closed.is_some(), "the reader never ends");
    let _unless_closed_before = bench
        .workbench
        .message_within(TIMEOUT, |message| message.answers(&id));
    start
}

fn end_of_stdin() -> Row {
    Row {
        number: "F50",
        fault: "stdin ends; a server ignores it and SIGTERM, and has five stubborn descendants",
        outcome: "exit code 0, the whole tree is gone",
        bound: TREE_GONE,
        faulty: stubborn,
        act: |bench| {
            open_stubborn(bench);
            let start = Instant::now();
            bench.workbench.close_stdin();
            ended(bench, start)
        },
        after: After::Ended,
    }
}

fn stdout_closed() -> Row {
    Row {
        number: "F52",
        fault: "the client closes stdout and keeps stdin open; the tree is stubborn",
        outcome: "exit code 0 and no panic at the next answer, the whole tree is gone",
        bound: TREE_GONE,
        faulty: stubborn,
        act: |bench| {
            open_stubborn(bench);
            let start = close_stdout(bench);
            bench.workbench.request("ping", "{}");
            ended(bench, start)
        },
        after: After::Ended,
    }
}

fn client_vanishes() -> Row {
    Row {
        number: "C5",
        fault: "the client vanishes in the middle of fifty calls; the tree is stubborn",
        outcome: "exit code 0 and no panic, the whole tree is gone",
        bound: TREE_GONE,
        faulty: stubborn,
        act: |bench| {
            open_stubborn(bench);
            for _ in 0..50 {
                bench.send("hang");
            }
            bench.wait_calls(50);
            let start = close_stdout(bench);
            bench.workbench.close_stdin();
            ended(bench, start)
        },
        after: After::Ended,
    }
}

fn terminated() -> Row {
    Row {
        number: "F54a",
        fault: "SIGTERM; the tree is stubborn",
        outcome: "exit code 0, the whole tree is gone",
        bound: TREE_GONE,
        faulty: stubborn,
        act: |bench| ended_by(bench, Signal::TERM),
        after: After::Ended,
    }
}

fn interrupted() -> Row {
    Row {
        number: "F54b",
        fault: "SIGINT; the tree is stubborn",
        outcome: "exit code 0, the whole tree is gone",
        bound: TREE_GONE,
        faulty: stubborn,
        act: |bench| ended_by(bench, Signal::INT),
        after: After::Ended,
    }
}

fn hung_up() -> Row {
    Row {
        number: "F55",
        fault: "SIGHUP; the tree is stubborn",
        outcome: "exit code 0, the whole tree is gone",
        bound: TREE_GONE,
        faulty: stubborn,
        act: |bench| ended_by(bench, Signal::HUP),
        after: After::Ended,
    }
}

fn signal_during_an_open() -> Row {
    Row {
        number: "F54c",
        fault: "SIGTERM while a toolbox is being opened and a server is mute",
        outcome: "the open is answered; exit code 0, nothing is left",
        bound: TREE_GONE,
        faulty: |setup| setup.server("fs", &Script::new().set("onStart", r#"["hang"]"#)),
        act: |bench| {
            let open = bench
                .workbench
                .send_call("open_toolbox", r#"{"toolbox":"dev"}"#);
            bench.journal().wait("start", 1);
            let start = Instant::now();
            bench.workbench.signal(Signal::TERM);
            bench.workbench.response(&open);
            ended(bench, start)
        },
        after: After::Ended,
    }
}

fn second_signal() -> Row {
    Row {
        number: "F54d",
        fault: "a second SIGTERM while a stubborn tree is being ended",
        outcome: "the workbench ends at once, and the whole tree is gone",
        bound: Duration::from_millis(3800),
        faulty: stubborn,
        act: |bench| {
            open_stubborn(bench);
            bench.workbench.signal(Signal::TERM);
            bench.journal().wait("eof", 1);
            let start = Instant::now();
            bench.workbench.signal(Signal::TERM);
            let status = bench.workbench.wait_exit();
            assert!(status.code().is_some(), "{status:?}");
            let own = start.elapsed();
            assert!(own < Duration::from_millis(1900), "took {own:?} to end");
            bench.workbench.wait_no_survivors(TIMEOUT);
            start.elapsed()
        },
        after: After::Killed,
    }
}

fn killed() -> Row {
    Row {
        number: "F56",
        fault: "the workbench itself is killed (SIGKILL); the tree is stubborn",
        outcome: "the whole tree is gone",
        bound: Duration::from_millis(3800),
        faulty: stubborn,
        act: |bench| {
            open_stubborn(bench);
            let start = Instant::now();
            bench.workbench.signal(Signal::KILL);
            let status = bench.workbench.wait_exit();
            assert_eq!(status.code(), None);
            bench.workbench.wait_no_survivors(TIMEOUT);
            start.elapsed()
        },
        after: After::Killed,
    }
}
