//! A script whose call needs the user: the run pauses, the client is asked in the way of its era, and the answer resumes
//! the run. Completed calls are not repeated.

use std::fs;

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{called, code, with_run_code, workers::workers};
use crate::harness::{
    Message, ModernClient, ModernRequest, Script, Setup, TIMEOUT, Workbench, kill, poll,
    use_arguments,
};

const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;

/// A script that calls a tool before and after the one that asks.
const THREE: &str = "const a = await tools.fs.before({}); const b = await tools.fs.ask({}); await tools.fs.after({}); return b";

/// The ways in which a call needs the user.
#[derive(Debug, Clone, Copy)]
enum Asker {
    /// A legacy server asks in the middle of the call.
    LegacyServer,
    /// A modern server answers that input is required.
    ModernServer,
    /// The permissions want consent.
    Consent,
}

const ASKERS: [Asker; 3] = [Asker::LegacyServer, Asker::ModernServer, Asker::Consent];

fn setup(asker: Asker) -> Setup {
    let script = Script::named(&["before", "ask", "after", "sleep"])
        .answers("before", r#"{"content":[]}"#)
        .answers("after", r#"{"content":[]}"#);
    let told = r#"{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"structuredContent\":{\"told\":$REPLY}}}"}"#;
    let (script, keys) = match asker {
        Asker::LegacyServer => {
            let ask = r#"{"request":{"method":"elicitation/create","params":{"message":"who?"}}}"#;
            (script.on_call("ask", &format!("[{ask},{told}]")), json!({}))
        }
        Asker::ModernServer => {
            let rounds = r#"{"rounds":{"rounds":[{"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s$N"}],"then":[{"answer":{"resultType":"complete","content":[],"structuredContent":{"told":1}}}]}}"#;
            (
                script
                    .set("era", r#""modern""#)
                    .on_call("ask", &format!("[{rounds}]")),
                json!({}),
            )
        }
        Asker::Consent => (
            script.answers("ask", r#"{"content":[],"structuredContent":{"told":1}}"#),
            json!({"permissions": {"ask": ["ask"]}}),
        ),
    };
    with_run_code(
        Setup::new()
            .toolbox("dev", "d")
            .server_with("fs", &script, &keys),
    )
}

fn answer(asker: Asker) -> &'static str {
    match asker {
        Asker::Consent => r#"{"action":"accept","content":{"decision":"once"}}"#,
        Asker::LegacyServer | Asker::ModernServer => r#"{"action":"accept","content":{"a":1}}"#,
    }
}

fn check_calls(workbench: &Workbench, asker: Asker) {
    // A modern server is called again with the answer, which is one call for everybody else.
    let expected: &[&str] = match asker {
        Asker::ModernServer => &["before", "ask", "ask", "after"],
        Asker::LegacyServer | Asker::Consent => &["before", "ask", "after"],
    };
    assert_eq!(called(workbench), expected, "{asker:?}");
}

fn start_legacy(asker: Asker) -> Workbench {
    let mut workbench = setup(asker).start();
    let params = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{ALL},"clientInfo":{{"name":"t","version":"1"}}}}"#
    );
    workbench.ask("initialize", &params);
    workbench.notify("notifications/initialized", "{}");
    assert!(!workbench.open("dev").failed());
    workbench
}

#[test]
fn a_legacy_client_is_asked_inline() {
    for asker in ASKERS {
        let mut workbench = start_legacy(asker);
        let id = workbench.send_call("run_code", &code(THREE));
        let question = workbench.message(|it| it.method.as_deref() == Some("elicitation/create"));
        let asked = question.id().unwrap().to_owned();
        workbench.send_line(&format!(
            r#"{{"jsonrpc":"2.0","id":{asked},"result":{}}}"#,
            answer(asker)
        ));
        let result = workbench.tool_result(&id);
        assert!(!result.failed(), "{asker:?}: {}", result.raw);
        assert!(
            !result.structured()["result"]["told"].is_null(),
            "{asker:?}: {}",
            result.raw
        );
        check_calls(&workbench, asker);
    }
}

fn calling(script: &str) -> ModernRequest {
    ModernRequest::call("run_code", &code(script)).capabilities(ALL)
}

fn start_modern(asker: Asker) -> Workbench {
    let mut workbench = setup(asker).start();
    let opened = workbench.call_modern(&ModernRequest::open("dev").capabilities(ALL));
    assert!(!opened.failed(), "{}", opened.raw);
    workbench
}

#[test]
fn a_modern_client_is_asked_by_an_answer_and_resumes_the_run() {
    for asker in ASKERS {
        let mut workbench = start_modern(asker);
        let asked = workbench.ask_for_questions(&calling(THREE));
        let (_, question) = asked.only();
        assert_eq!(question["method"], "elicitation/create");
        let responses = asked.responses(|_, _| answer(asker).to_owned());
        let done = workbench.ask_modern(&calling(THREE).retry(&asked, &responses));
        let result = done.result();
        assert_eq!(result["resultType"], "complete", "{asker:?}: {}", done.line);
        let value: &Value = &result["structuredContent"]["result"]["told"];
        assert!(!value.is_null(), "{asker:?}: {}", done.line);
        check_calls(&workbench, asker);
    }
}

#[test]
fn a_consent_that_is_refused_throws() {
    let mut workbench = start_modern(Asker::Consent);
    let script = "try { return await tools.fs.ask({}) } catch (e) { return e.code }";
    let asked = workbench.ask_for_questions(&calling(script));
    let responses = asked.responses(|_, _| r#"{"action":"decline"}"#.to_owned());
    let done = workbench.ask_modern(&calling(script).retry(&asked, &responses));
    assert_eq!(
        done.result()["structuredContent"]["result"],
        "permission_refused"
    );
    assert_eq!(
        workbench.journal("dev", "fs").called(),
        Vec::<String>::new()
    );
}

#[test]
fn the_questions_of_calls_at_once_are_asked_together() {
    let mut workbench = start_modern(Asker::Consent);
    let script = "return (await Promise.all([1, 2, 3].map(n => tools.fs.ask({n})))).length";
    let asked = workbench.ask_for_questions(&calling(script));
    let mut number = 0;
    let responses = asked.responses(|_, _| {
        number += 1;
        answer(Asker::Consent).to_owned()
    });
    assert_eq!(number, 3);
    let done = workbench.ask_modern(&calling(script).retry(&asked, &responses));
    assert_eq!(done.result()["structuredContent"]["result"], 3);
}

/// A script that calls the tool that asks one after the other.
const TWICE: &str = "await tools.fs.ask({n: 1}); return await tools.fs.ask({n: 2}) && 1";
const FOR_THIS_RUN: &str = r#"{"action":"accept","content":{"decision":"for this run"}}"#;

#[test]
fn a_consent_for_the_run_covers_its_further_calls_and_ends_with_it() {
    let mut workbench = start_modern(Asker::Consent);
    for _ in 0..2 {
        let asked = workbench.ask_for_questions(&calling(TWICE));
        let (_, question) = asked.only();
        assert_eq!(
            question["params"]["requestedSchema"]["properties"]["decision"]["enum"],
            json!(["once", "for this run", "for this session", "no"])
        );
        let responses = asked.responses(|_, _| FOR_THIS_RUN.to_owned());
        let done = workbench.ask_modern(&calling(TWICE).retry(&asked, &responses));
        assert_eq!(done.result()["resultType"], "complete", "{}", done.line);
    }
    assert_eq!(called(&workbench), ["ask", "ask", "ask", "ask"]);
}

#[test]
fn a_consent_for_the_run_answers_the_open_questions_of_a_legacy_client() {
    let mut workbench = start_legacy(Asker::Consent);
    let script = "return (await Promise.all([1, 2, 3].map(n => tools.fs.ask({n})))).length";
    let id = workbench.send_call("run_code", &code(script));
    let asks = |it: &Message| it.method.as_deref() == Some("elicitation/create");
    let first = workbench.message(asks).id().unwrap().to_owned();
    workbench.message(asks);
    workbench.message(asks);
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{first},"result":{FOR_THIS_RUN}}}"#
    ));
    let result = workbench.tool_result(&id);
    assert_eq!(result.structured()["result"], 3, "{}", result.raw);
    // A call that no script makes is asked about again.
    workbench.send_call("use_tool", &use_arguments(["dev", "fs", "ask"], None));
    workbench.message(asks);
}

#[test]
fn a_pause_does_not_use_up_the_time_of_the_run() {
    let mut workbench = start_modern(Asker::Consent);
    let arguments = json!({"code": "return await tools.fs.ask({})", "timeout_s": 3}).to_string();
    let request = ModernRequest::call("run_code", &arguments).capabilities(ALL);
    let asked = workbench.ask_for_questions(&request);
    // The run would be over before this one is.
    workbench.ask_modern(&calling("return await tools.fs.sleep({ms: 3100})"));
    let responses = asked.responses(|_, _| answer(Asker::Consent).to_owned());
    let done = workbench.ask_modern(&request.retry(&asked, &responses));
    assert_eq!(
        done.result()["structuredContent"]["ok"],
        true,
        "{}",
        done.line
    );
}

#[test]
fn a_state_resumes_a_run_once_and_only_with_the_same_script() {
    let mut workbench = start_modern(Asker::Consent);
    let asked = workbench.ask_for_questions(&calling(THREE));
    let responses = asked.responses(|_, _| answer(Asker::Consent).to_owned());
    let other = workbench.ask_modern(&calling("return 1").retry(&asked, &responses));
    assert!(
        other.line.contains("belongs to a different request"),
        "{}",
        other.line
    );
    let done = workbench.ask_modern(&calling(THREE).retry(&asked, &responses));
    assert_eq!(done.result()["resultType"], "complete");
    let again = workbench.ask_modern(&calling(THREE).retry(&asked, &responses));
    assert!(again.line.contains("already used"), "{}", again.line);
    check_calls(&workbench, Asker::Consent);
}

/// Another process cannot continue the run, and must not begin it again.
#[test]
fn a_state_of_a_process_that_is_gone_does_not_run_the_script_again() {
    let mut first = start_modern(Asker::Consent);
    let asked = first.ask_for_questions(&calling(THREE));
    let responses = asked.responses(|_, _| answer(Asker::Consent).to_owned());
    first.finish();
    let mut second = start_modern(Asker::Consent);
    let refused = second.ask_modern(&calling(THREE).retry(&asked, &responses));
    assert!(
        refused.line.contains("The script was not run again"),
        "{}",
        refused.line
    );
    assert_eq!(called(&second), Vec::<String>::new());
}

#[test]
fn a_paused_run_whose_worker_is_gone_ends_with_what_was_done() {
    let mut workbench = start_modern(Asker::Consent);
    let asked = workbench.ask_for_questions(&calling(THREE));
    let workers = workers(&workbench);
    for worker in &workers {
        kill(*worker, Signal::KILL);
    }
    let is_gone = |id: &u32| !fs::exists(format!("/proc/{id}")).unwrap();
    let gone = poll(TIMEOUT, || workers.iter().all(is_gone).then_some(()));
    assert!(gone.is_some(), "the workers are not reaped");
    let responses = asked.responses(|_, _| answer(Asker::Consent).to_owned());
    let ended = workbench.call_modern(&calling(THREE).retry(&asked, &responses));
    assert_eq!(
        ended.error(),
        "The worker process of the script was killed by signal 9. Calls completed before: 1 (1 write: NOT rolled \
         back).\nWrote: tools.fs.before (started 1:26).\nDid not run (waited for the user): tools.fs.ask (started 1:63).\nDo \
         not run the whole script again: it would repeat what it wrote. Continue from here, and look first at what is unknown."
    );
    assert_eq!(ended.failure()["unknown"], json!([]));
    assert_eq!(called(&workbench), ["before"]);
}
