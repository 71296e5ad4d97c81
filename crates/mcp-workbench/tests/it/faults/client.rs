//! C, F51: what a client does wrong. The workbench answers what it can and goes on.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{After, Bench, Failed, Row, faults, table::timed};
use crate::harness::{Script, Setup, call_params, use_arguments};

faults![
    garbage_lines,
    large_frame_with_the_id_first,
    large_frame_with_the_id_last,
    depth_bomb,
    one_id_for_many,
    client_stops_reading,
];

const SOON: Duration = Duration::from_secs(4);
const MEBIBYTE: usize = 1024 * 1024;

fn healthy_server(setup: Setup) -> Setup {
    setup.server("fs", &Script::new())
}

/// Sends a request with this raw id that cannot be taken; it is refused under its id.
fn refused(bench: &mut Bench, id: &str, frame: &str) -> Duration {
    bench.open();
    let base = bench.memory();
    let took = timed(|| {
        bench.workbench.send_line(frame);
        let answer = bench.workbench.response(id);
        assert_eq!(answer.error().code, -32600, "{}", answer.line);
        assert!(!answer.error().message.is_empty(), "{}", answer.line);
    });
    bench.flat_since(base);
    took
}

fn garbage_lines() -> Row {
    Row {
        number: "C1",
        fault: "the client sends 500 lines of garbage, NUL and invalid UTF-8 between calls",
        outcome: "each is answered with -32700 and id null; the calls succeed",
        bound: Duration::from_secs(6),
        faulty: healthy_server,
        act: |bench| {
            let lines: [&[u8]; 5] = [
                b"not json\n",
                b"\0\0\0\n",
                b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\xfe\",\"method\":\n",
                b"]]]]\n",
                b"\x1b[31m\n",
            ];
            bench.open();
            timed(|| {
                for _ in 0..100 {
                    for line in lines {
                        bench.workbench.send_bytes(line);
                    }
                }
                bench.succeeds("pid");
                for _ in 0..500 {
                    let answer = bench.workbench.response("null");
                    assert_eq!(answer.error().code, -32700, "{}", answer.line);
                }
            })
        },
        after: After::Recovers,
    }
}

fn large_frame_with_the_id_first() -> Row {
    Row {
        number: "C2a",
        fault: "the client sends a request of 17 MiB, its id first",
        outcome: "-32600 under its id; memory < base + 64 MiB; the process goes on",
        bound: Duration::from_secs(8),
        faulty: healthy_server,
        act: |bench| {
            let much = "x".repeat(17 * MEBIBYTE);
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":"large","method":"ping","params":{{"much":"{much}"}}}}"#
            );
            refused(bench, "\"large\"", &frame)
        },
        after: After::Recovers,
    }
}

fn large_frame_with_the_id_last() -> Row {
    Row {
        number: "C2b",
        fault: "the client sends a request of 17 MiB, its id last",
        outcome: "-32600 under its id; memory < base + 64 MiB; the process goes on",
        bound: Duration::from_secs(8),
        faulty: healthy_server,
        act: |bench| {
            let much = "x".repeat(17 * MEBIBYTE);
            let frame = format!(
                r#"{{"method":"ping","params":{{"much":"{much}"}},"jsonrpc":"2.0","id":4711}}"#
            );
            refused(bench, "4711", &frame)
        },
        after: After::Recovers,
    }
}

fn depth_bomb() -> Row {
    Row {
        number: "C3",
        fault: "the client sends a request with a million nested arrays",
        outcome: "-32600 under its id; the process goes on",
        bound: Duration::from_secs(6),
        faulty: healthy_server,
        act: |bench| {
            let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":"deep","method":"ping","params":{{"deep":{deep}}}}}"#
            );
            refused(bench, "\"deep\"", &frame)
        },
        after: After::Recovers,
    }
}

fn one_id_for_many() -> Row {
    Row {
        number: "C4",
        fault: "the client has twenty calls in flight under one id when the server crashes",
        outcome: "twenty answers under that id: server_exited, unknown",
        bound: SOON,
        faulty: healthy_server,
        act: |bench| {
            bench.open();
            for _ in 0..20 {
                let arguments = use_arguments(["dev", "fs", "hang"], None);
                let params = call_params("use_tool", &arguments);
                bench
                    .workbench
                    .send_request("\"same\"", "tools/call", &params);
            }
            bench.wait_calls(20);
            timed(|| {
                let exited = Failed::unknown("server_exited");
                bench.fails("crash", &exited);
                for _ in 0..20 {
                    bench.failed("\"same\"", "hang", &exited);
                }
            })
        },
        after: After::Recovers,
    }
}

fn client_stops_reading() -> Row {
    Row {
        number: "F51",
        fault: "the client stops reading while 160 results of 1 MB pile up, then reads again",
        outcome: "memory < base + 112 MiB, no spin, no deadlock: all 160 arrive",
        bound: Duration::from_mins(2),
        faulty: healthy_server,
        act: |bench| {
            bench.open();
            let base = bench.memory();
            bench.workbench.reading().rest();
            let arguments = json!({"size": 1_000_000}).to_string();
            let ids: Vec<String> = (0..160)
                .map(|_| bench.workbench.send_use("big", &arguments))
                .collect();
            bench.wait_calm();
            bench.within_memory(base, 112 * 1024 * 1024);
            let start = Instant::now();
            bench.workbench.reading().go_on();
            for id in ids {
                assert_eq!(bench.workbench.tool_result(&id).text().len(), 1_000_000);
            }
            start.elapsed()
        },
        after: After::Recovers,
    }
}
