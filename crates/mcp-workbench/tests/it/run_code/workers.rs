//! The worker processes of a serving workbench.

use std::fs;

use pretty_assertions::assert_eq;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::json;

use super::{opened, run, value, wait_for_calls, with_run_code};
use crate::harness::{Script, Setup, TIMEOUT, Workbench, kill, poll, zombies};

/// The ids of the workers of a workbench.
pub(super) fn workers(workbench: &Workbench) -> Vec<u32> {
    let parent = format!("PPid:\t{}\n", workbench.pid());
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let ours = ids.filter(|id| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
        read("status").contains(&parent) && read("cmdline").contains("run-script-worker")
    });
    ours.collect()
}

fn wait_for_workers(workbench: &Workbench, number: usize) -> Vec<u32> {
    let found = poll(TIMEOUT, || {
        Some(workers(workbench)).filter(|it| it.len() == number)
    });
    found.unwrap_or_else(|| panic!("{} workers, not {number}", workers(workbench).len()))
}

#[test]
fn two_workers_wait_once_a_client_has_seen_the_tool_and_none_before() {
    let mut workbench = with_run_code(Setup::one(&Script::named(&["a"]))).connect();
    assert_eq!(workers(&workbench), Vec::<u32>::new());
    workbench.ask("tools/list", "{}");
    let warm = wait_for_workers(&workbench, 2);
    value(&mut workbench, "return 1");
    let now = poll(TIMEOUT, || {
        Some(workers(&workbench)).filter(|it| it.len() == 2 && *it != warm)
    });
    assert!(now.is_some(), "one run per worker");
    workbench.finish();
    assert!(
        warm.iter()
            .all(|id| !fs::exists(format!("/proc/{id}")).unwrap())
    );
}

#[test]
fn without_the_tool_there_are_no_workers() {
    let mut workbench = Setup::one(&Script::named(&["a"])).connect();
    workbench.ask("tools/list", "{}");
    workbench.open("dev");
    assert_eq!(workers(&workbench), Vec::<u32>::new());
    let answer = workbench.ask(
        "tools/call",
        r#"{"name":"run_code","arguments":{"code":"return 1"}}"#,
    );
    assert!(
        answer.line.contains("Unknown tool: run_code"),
        "{}",
        answer.line
    );
    assert_eq!(workers(&workbench), Vec::<u32>::new());
}

#[test]
fn idle_workers_end_when_a_reload_switches_scripts_off() {
    let mut workbench = opened(&Script::named(&["hang"]));
    workbench.ask("tools/list", "{}");
    wait_for_workers(&workbench, 2);
    // A run goes on, and does not start the next worker when it ends.
    let id = workbench.send_call("run_code", &super::code("await tools.fs.hang({})"));
    wait_for_calls(&workbench, 1);
    let file = workbench.setup.config();
    let text = fs::read_to_string(&file).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["metaTools"] = json!(["open_toolbox", "use_tool"]);
    fs::write(&file, config.to_string()).unwrap();
    workbench.wait_stderr("configuration reloaded");
    wait_for_workers(&workbench, 1);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{id}}}"#),
    );
    wait_for_workers(&workbench, 0);
}

#[test]
fn a_worker_that_is_killed_in_the_middle_of_a_call_ends_its_run_with_what_is_known() {
    let script = Script::named(&["hang", "echo"]);
    let mut workbench = opened(&script);
    let code = "await tools.fs.echo({}); await tools.fs.hang({})";
    let id = workbench.send_call("run_code", &super::code(code));
    wait_for_calls(&workbench, 2);
    for worker in workers(&workbench) {
        kill(worker, Signal::KILL);
    }
    let result = workbench.tool_result(&id);
    assert_eq!(result.failure()["code"], "script_worker_gone");
    assert_eq!(
        result.error(),
        "The worker process of the script was killed by signal 9. Calls completed before: 1 (1 write: NOT rolled \
         back).\nWrote: tools.fs.echo (started 1:16).\nOutcome unknown (may have run): tools.fs.hang (started 1:41).\nDo not \
         run the whole script again: it would repeat what it wrote. Continue from here, and look first at what is unknown."
    );
    workbench.journal("dev", "fs").wait("cancelled", 1);
    assert_eq!(value(&mut workbench, "return 1"), json!(1));
}

#[test]
fn a_script_that_only_the_system_can_stop_does_not_hold_up_the_others() {
    let mut workbench = opened(&Script::named(&["echo"]));
    let endless = "Array.prototype.join.call({ length: 2 ** 53 - 1 })";
    let id = workbench.send_call("run_code", &super::code(endless));
    // No other worker is there before the first list of tools or the end of a run.
    let busy = wait_for_workers(&workbench, 1)[0];
    assert_eq!(value(&mut workbench, "return 1"), json!(1));
    assert!(!workbench.use_tool("echo", "{}").failed());
    // The worker sets its own limit before it confines itself.
    let is_confined = || {
        let status = fs::read_to_string(format!("/proc/{busy}/status")).unwrap();
        status.contains("Seccomp:\t2").then_some(())
    };
    assert!(poll(TIMEOUT, is_confined).is_some());
    // That is three seconds of CPU time, which a busy machine may take long to give. One second proves the same.
    let second = Rlimit {
        current: Some(1),
        maximum: Some(2),
    };
    prlimit(Pid::from_raw(busy.cast_signed()), Resource::Cpu, second).unwrap();
    let result = workbench.tool_result(&id);
    assert_eq!(result.failure()["code"], "script_cpu_limit");
    assert!(
        result
            .error()
            .starts_with("Stopped: hard limit, the script did not yield."),
        "{}",
        result.error()
    );
}

#[test]
fn runs_share_nothing() {
    let mut workbench = opened(&Script::named(&["echo"]));
    run(
        &mut workbench,
        "globalThis.left = 1; Object.prototype.left = 2; return 1",
    );
    let seen = value(&mut workbench, "return [typeof left, typeof ({}).left]");
    assert_eq!(seen, json!(["undefined", "undefined"]));
}

#[test]
fn a_thousand_runs_leave_nothing_behind() {
    let mut workbench = opened(&Script::named(&["echo"]));
    let descriptors = |workbench: &Workbench| {
        let folder = format!("/proc/{}/fd", workbench.pid());
        fs::read_dir(folder).unwrap().count()
    };
    let anonymous = |workbench: &Workbench| {
        let status = fs::read_to_string(format!("/proc/{}/status", workbench.pid())).unwrap();
        let line = status
            .lines()
            .find(|it| it.starts_with("RssAnon:"))
            .unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1].parse::<u64>().unwrap()
    };
    let burst = |workbench: &mut Workbench, runs: usize| {
        for _ in 0..runs / 10 {
            let ids: Vec<String> = (0..10)
                .map(|_| {
                    workbench.send_call(
                        "run_code",
                        &super::code("return (await tools.fs.echo({a: 1})) && 1"),
                    )
                })
                .collect();
            for id in ids {
                let result = workbench.tool_result(&id);
                assert!(!result.failed(), "{}", result.raw);
            }
        }
    };
    burst(&mut workbench, 200);
    wait_for_workers(&workbench, 2);
    let (files, memory) = (descriptors(&workbench), anonymous(&workbench));
    burst(&mut workbench, 800);
    wait_for_workers(&workbench, 2);
    assert_eq!(descriptors(&workbench), files);
    let grown = anonymous(&workbench).saturating_sub(memory);
    assert!(grown < 2048, "{grown} kB more after 800 runs");
    assert_eq!(zombies(workbench.pid()), Vec::<u32>::new());
}
