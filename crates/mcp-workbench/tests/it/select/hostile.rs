//! Filters that would take all the time or memory there is.

use std::time::Instant;

use serde_json::json;

use super::{select, setup, structured, texts};
use crate::harness::{Fault, Script, TIMEOUT, memory_peak};

/// The memory that the workbench itself may take, whatever a filter does.
const FLAT: u64 = 64 * 1024 * 1024;

#[test]
fn endless_and_huge_filters_end_without_harm() {
    let fault = Fault::within(
        120,
        "J1",
        "filters of `select` that never end, recurse without end, or need terabytes",
        "each ends at its limits; the result is passed on whole with the reason; the tool is called once; memory < 64 MiB",
    );
    let value = json!({ "a": [1, 2, 3] });
    let script = Script::named(&["tool"]).answers("tool", &structured(&value));
    let mut workbench = setup(&script).connect();
    workbench.open("dev");
    let over_limits =
        "needs more than 512 MiB of memory or 2 s of CPU time, or recurses too deeply";
    let cases = [
        ("def f: f; f", over_limits),
        ("def f: [f]; f", over_limits),
        ("[repeat(1)]", over_limits),
        ("last(repeat(1))", over_limits),
        ("[range(1e12)]", over_limits),
        ("[limit(1e10; repeat(\"x\" * 1000))] | length", over_limits),
        ("reduce range(100) as $i (\"x\"; . + .)", over_limits),
        ("repeat(.)", "its output is over 1048576 bytes"),
        ("\"x\" * 10000000", "its output is over 1048576 bytes"),
        (
            "\"x\" | test(\"(((a{1000}){1000}){1000})\")",
            "invalid regex",
        ),
        ("error({secret: .})", "{\"secret\":"),
        ("\"\\u001b[2J\" | error", "⟦U+001B⟧"),
    ];
    for (filter, expected) in cases {
        let began = Instant::now();
        let result = select(&mut workbench, "tool", filter);
        assert!(began.elapsed() < TIMEOUT, "{filter}");
        assert_eq!(result.structured(), value, "{filter}");
        let remark = texts(&result).pop().unwrap();
        // On a busy machine the time may be over before the processor's.
        let timed_out = expected == over_limits && remark.contains("timed out after 5 s");
        assert!(timed_out || remark.contains(expected), "{filter}: {remark}");
    }
    assert!(memory_peak(workbench.pid()) < FLAT);
    // Nothing of it is in the way of the next one.
    let result = select(&mut workbench, "tool", ".a[1]");
    assert_eq!(texts(&result)[0], "2");
    assert_eq!(
        workbench.journal("dev", "fs").received("tools/call").len(),
        cases.len() + 1
    );
    fault.ends();
}

#[test]
fn a_filter_sees_no_environment_and_no_files() {
    let script = Script::named(&["tool"]).answers("tool", &structured(&json!({})));
    let mut workbench = setup(&script).env("CANARY", "value").connect();
    workbench.open("dev");
    for filter in [
        "$ENV",
        "env",
        "$__loc__",
        "input",
        "inputs",
        "input_filename",
        "get_search_list",
        "import \"/etc/passwd\" as $x; $x",
        "include \"x\"; .",
    ] {
        let refused = select(&mut workbench, "tool", filter);
        assert!(refused.failed(), "{filter}: {}", refused.raw);
    }
}

#[test]
fn calls_go_on_while_filters_run() {
    let fault = Fault::within(
        60,
        "J2",
        "six endless filters at once, one of them cancelled",
        "another call is answered at once; four run at a time; the cancelled one is not answered",
    );
    let script = Script::named(&["tool"]).answers("tool", &structured(&json!({ "a": 1 })));
    let mut workbench = setup(&script).connect();
    workbench.open("dev");
    let endless = json!({
        "tool": { "toolbox": "dev", "server": "fs", "tool": "tool" },
        "select": "def f: f; f",
    });
    let ids: Vec<String> = (0..6)
        .map(|_| workbench.send_call("use_tool", &endless.to_string()))
        .collect();
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{}}}"#, ids[5]),
    );
    let whole = workbench.use_tool("tool", "{}");
    assert_eq!(whole.raw, structured(&json!({ "a": 1 })));
    for id in &ids[..5] {
        let result = workbench.tool_result(id);
        assert!(texts(&result)[1].starts_with("[select was not applied"));
    }
    let status = workbench.finish();
    assert!(status.status.success());
    assert!(
        !status
            .stdout
            .iter()
            .any(|line| line.contains(&format!("\"id\":{},", ids[5])))
    );
    fault.ends();
}
