//! F49, F64, L: cancels, queues and opens at the same time.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{After, Bench, Failed, Row, faults, table::timed};
use crate::harness::{Script, Setup};

faults![
    cancel_of_a_queued_call,
    too_many_calls,
    many_opens,
    slow_restart,
];

/// How many calls a server has at once, and how many more may wait for it.
const IN_FLIGHT: usize = 64;
const WAITING: usize = 256;

/// A server whose tool `hold` answers when the file `gate` is there.
fn holding(setup: Setup) -> Setup {
    let hold = json!([{"awaitFile": setup.path("gate")}, {"answer": {"content": []}}]);
    let script = Script::named(&["hold", "pid"]).on_call("hold", &hold.to_string());
    setup.server("fs", &script)
}

/// Opens the gate and waits until all these calls have succeeded.
fn let_go(bench: &mut Bench, ids: &[String]) {
    bench.workbench.setup.write("gate", "");
    for id in ids {
        let result = bench.workbench.tool_result(id);
        assert!(!result.failed(), "{}", result.raw);
    }
}

fn cancel_of_a_queued_call() -> Row {
    Row {
        number: "F49",
        fault: "the client cancels a call that waits behind 64 others",
        outcome: "the server never sees it, and nobody is answered",
        bound: Duration::from_secs(5),
        faulty: holding,
        act: |bench| {
            bench.open();
            let held: Vec<String> = (0..IN_FLIGHT).map(|_| bench.send("hold")).collect();
            bench.wait_calls(IN_FLIGHT);
            let queued = bench.send("hold");
            bench.healthy();
            let took = timed(|| {
                let params = format!(r#"{{"requestId":{queued}}}"#);
                bench.workbench.notify("notifications/cancelled", &params);
                bench.healthy();
            });
            let_go(bench, &held);
            bench.succeeds("pid");
            let journal = bench.journal();
            assert_eq!(journal.received("tools/call").len(), IN_FLIGHT + 1);
            assert_eq!(journal.events("cancelled"), Vec::<String>::new());
            took
        },
        after: After::Recovers,
    }
}

fn too_many_calls() -> Row {
    Row {
        number: "L1",
        fault: "330 calls at once of a server that does not answer",
        outcome: "64 are sent, 256 wait, ten fail at once: overloaded, not_sent; then all 320 succeed",
        bound: Duration::from_secs(6),
        faulty: holding,
        act: |bench| {
            bench.open();
            let start = Instant::now();
            let all: Vec<String> = (0..IN_FLIGHT + WAITING + 10)
                .map(|_| bench.send("hold"))
                .collect();
            let (held, surplus) = all.split_at(IN_FLIGHT + WAITING);
            for id in surplus {
                bench.failed(id, "hold", &Failed::not_sent("overloaded"));
            }
            let took = start.elapsed();
            bench.healthy();
            bench.wait_calls(IN_FLIGHT);
            assert_eq!(bench.journal().received("tools/call").len(), IN_FLIGHT);
            let_go(bench, held);
            took
        },
        after: After::Recovers,
    }
}

fn many_opens() -> Row {
    Row {
        number: "F64",
        fault: "twenty opens at the same time, and the server fails its start",
        outcome: "one start of each server; all opens say the same",
        bound: Duration::from_secs(6),
        faulty: |setup| {
            let gate = json!({"awaitFile": setup.path("gate")});
            let actions = json!([gate, {"stderr": "no way"}, {"exit": 1}]);
            let script = Script::new().set("onStart", &actions.to_string());
            setup.server_with("fs", &script, &json!({"era": "legacy"}))
        },
        act: |bench| {
            timed(|| {
                let opens: Vec<String> = (0..20)
                    .map(|_| {
                        bench
                            .workbench
                            .send_call("open_toolbox", r#"{"toolbox":"dev"}"#)
                    })
                    .collect();
                bench.workbench.ask("ping", "{}");
                bench.workbench.setup.write("gate", "");
                let results: Vec<String> = opens
                    .iter()
                    .map(|id| bench.workbench.tool_result(id).text().to_owned())
                    .collect();
                assert!(results[0].contains("no way"), "{}", results[0]);
                assert!(results.iter().all(|it| *it == results[0]), "{results:?}");
                assert_eq!(bench.starts(), 1);
                let healthy = bench.workbench.journal("dev", "ok");
                assert_eq!(healthy.pids().len(), 1);
            })
        },
        after: After::StaysDown,
    }
}

fn slow_restart() -> Row {
    Row {
        number: "L2",
        fault: "restarts slowly after a crash, while another server is used",
        outcome: "the other answers; the call that started it waits and succeeds",
        bound: Duration::from_secs(4),
        faulty: |setup| {
            let file = setup.path("started");
            let gate = json!([{"awaitFile": setup.path("gate")}]);
            let slow = json!([{"once": {"file": file, "actions": [], "otherwise": gate}}]);
            let script = Script::new().set("onStart", &slow.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            bench.open();
            bench.fails("crash", &Failed::unknown("server_exited"));
            let id = bench.send("pid");
            bench.journal().wait("start", 2);
            bench.healthy();
            bench.workbench.setup.write("gate", "");
            let took = timed(|| {
                let result = bench.workbench.tool_result(&id);
                assert!(!result.failed(), "{}", result.raw);
            });
            bench.open();
            took
        },
        after: After::Recovers,
    }
}
