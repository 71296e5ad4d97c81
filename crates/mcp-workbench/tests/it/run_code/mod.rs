//! Scripts that call tools: `run_code`, and `mcp-workbench run`.

mod calls;
mod command;
mod errors;
mod hostile;
mod offered;
mod pausing;
mod permitted;
mod workers;

use serde_json::{Value, json};

use crate::harness::{Script, Setup, TIMEOUT, ToolResult, Workbench, poll};

/// All meta-tools that a test of scripts needs.
fn with_run_code(setup: Setup) -> Setup {
    setup.top(
        "metaTools",
        json!(["open_toolbox", "use_tool", "search_tools", "run_code"]),
    )
}

/// One toolbox `dev` with one server `fs` that is open.
fn opened(script: &Script) -> Workbench {
    opened_setup(Setup::one(script))
}

fn opened_setup(setup: Setup) -> Workbench {
    let mut workbench = with_run_code(setup).connect();
    assert!(!workbench.open("dev").failed());
    workbench
}

/// The parameters of `run_code`, with all the time that there is: a busy machine may not give a script its CPU time sooner.
fn code(code: &str) -> String {
    json!({"code": code, "timeout_s": 120}).to_string()
}

fn run(workbench: &mut Workbench, script: &str) -> ToolResult {
    workbench.call("run_code", &code(script))
}

/// The value that a script returns.
fn value(workbench: &mut Workbench, script: &str) -> Value {
    let result = run(workbench, script);
    assert!(!result.failed(), "{}", result.raw);
    result.structured()["result"].clone()
}

/// The tools that the server has been called for, in order.
fn called(workbench: &Workbench) -> Vec<String> {
    let called = workbench.journal("dev", "fs").called();
    called
        .iter()
        .map(|it| it.trim_matches('"').to_owned())
        .collect()
}

/// Waits until so many calls have reached the server.
fn wait_for_calls(workbench: &Workbench, number: usize) {
    let reached = poll(TIMEOUT, || {
        (called(workbench).len() >= number).then_some(())
    });
    assert!(reached.is_some(), "{number} calls did not reach the server");
}
