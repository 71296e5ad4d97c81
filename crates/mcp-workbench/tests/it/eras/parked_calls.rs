//! A modern client in front of a legacy server that asks in the middle of a call: the call waits while the client is
//! asked, and continues with the client's next request.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::{
    asking_back::{ASKED_BY_FS, attributed},
    harness::{
        InputRequired, ModernClient, ModernRequest, Script, Setup, Workbench, use_arguments,
    },
};

/// Everything that a client can be asked.
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;

const TELL: &str =
    r#"{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"told\":$REPLY}}"}"#;

/// An action that asks and waits for the answer.
fn ask(method: &str, params: &str) -> String {
    format!(r#"{{"request":{{"method":"{method}","params":{params}}}}}"#)
}

/// A server whose tool `ask` does these actions, and tells what it was told last.
fn asks(actions: &[String]) -> Script {
    let actions = format!("[{},{TELL}]", actions.join(","));
    Script::named(&["ask", "plain"])
        .on_call("ask", &actions)
        .answers("plain", r#"{"content":[],"plain":1}"#)
}

/// A tool of the server that asks the client to be filled in, and tells what it was told.
fn eliciting(message: &str) -> String {
    let params = json!({"message": message}).to_string();
    format!("[{},{TELL}]", ask("elicitation/create", &params))
}

fn start(script: &Script) -> Workbench {
    start_all(Setup::one(script))
}

fn start_all(setup: Setup) -> Workbench {
    let mut workbench = setup.start();
    let opened = workbench.call_modern(&ModernRequest::open("dev").capabilities(ALL));
    assert!(!opened.failed(), "{}", opened.raw);
    workbench
}

/// A call of a client that can be asked everything.
fn calling(tool: &str) -> ModernRequest {
    ModernRequest::use_tool(tool, "{}").capabilities(ALL)
}

/// The same with one raw answer to everything that was asked.
fn answered(request: &ModernRequest, asked: &InputRequired, answer: &str) -> ModernRequest {
    request.retry(asked, &asked.responses(|_, _| answer.to_owned()))
}

#[test]
fn a_question_ends_the_request_and_its_answer_returns_byte_for_byte() {
    let rows = [
        (
            "elicitation/create",
            r#"{"message":"who?","requestedSchema":{"type":"object","x-odd":0.10}}"#,
            r#"{"action":"accept","content":{"a":1,"z":"ü"}}"#,
        ),
        (
            "sampling/createMessage",
            r#"{"messages":[],"maxTokens":5,"unknown":[{}]}"#,
            r#"{"role":"assistant","content":{"type":"text","text":"ü"},"model":"m"}"#,
        ),
        ("roots/list", "{}", r#"{"roots":[{"uri":"file:///x"}]}"#),
        (
            "elicitation/create",
            r#"{"mode":"url","url":"https://x","elicitationId":"e","message":"go"}"#,
            r#"{"action":"decline"}"#,
        ),
    ];
    for (method, params, answer) in rows {
        let mut workbench = start(&asks(&[ask(method, params)]));
        let asked = workbench.ask_for_questions(&calling("ask"));
        let (key, _) = asked.only();
        let params = attributed(params);
        let question = format!(r#""{key}":{{"method":"{method}","params":{params}}}"#);
        assert!(asked.raw.contains(&question), "{}", asked.raw);
        let done = workbench.ask_modern(&answered(&calling("ask"), &asked, answer));
        assert_eq!(done.result()["resultType"], "complete");
        let told = format!(r#""result":{answer}"#);
        assert!(done.line.contains(&told), "{}", done.line);
    }
}

#[test]
fn several_rounds_are_asked_one_after_the_other() {
    let elicit = |message: &str| {
        let params = json!({"message": message}).to_string();
        ask("elicitation/create", &params)
    };
    let script = asks(&[elicit("one"), elicit("two"), elicit("three")]);
    let mut workbench = start(&script);
    let mut messages = Vec::new();
    let done = workbench.answer_all(&calling("ask"), |_, question| {
        messages.push(question["params"]["message"].clone());
        json!({"action": "accept", "content": {"n": messages.last()}}).to_string()
    });
    let expected = ["one", "two", "three"].map(|it| format!("{ASKED_BY_FS}{it}"));
    assert_eq!(messages, expected);
    assert!(done.line.contains(r#"three"}"#), "{}", done.line);
    let calls = workbench.journal("dev", "fs").received("tools/call");
    assert_eq!(calls.len(), 1, "the call was made once");
}

#[test]
fn questions_that_the_request_did_not_declare_are_refused() {
    let script = asks(&[ask("sampling/createMessage", "{}")]);
    let mut workbench = start(&script);
    let request = calling("ask").capabilities(r#"{"elicitation":{}}"#);
    let done = workbench.ask_modern(&request);
    assert!(done.line.contains("-32601"), "{}", done.line);
    assert_eq!(done.result()["resultType"], "complete");
}

#[test]
fn unanswered_questions_are_asked_again() {
    let mut workbench = start(&asks(&[ask("elicitation/create", "{}")]));
    let request = calling("ask");
    let asked = workbench.ask_for_questions(&request);
    let (key, _) = asked.only();
    let again = workbench.ask_for_questions(&request.retry(&asked, r#"{"other":{}}"#));
    assert_eq!(again.only().0, key);
    assert!(again.state != asked.state);
    let again = workbench.ask_for_questions(&answered(&request, &again, "7"));
    assert_eq!(again.only().0, key);
    let again = workbench.ask_for_questions(&request.retry_bare(&again));
    assert_eq!(again.only().0, key);
    let answer = r#"{"action":"cancel"}"#;
    let done = workbench.ask_modern(&answered(&request, &again, answer));
    assert!(done.line.contains(answer), "{}", done.line);
}

#[test]
fn a_request_state_works_once_and_only_for_its_request() {
    let mut workbench = start(&asks(&[ask("elicitation/create", "{}")]));
    let asked = workbench.ask_for_questions(&calling("ask"));
    let with_state = |request: ModernRequest| answered(&request, &asked, r#"{"action":"accept"}"#);
    let read = ModernRequest::new("resources/read").param("uri", r#""x:y""#);
    for other in [calling("plain"), read] {
        let refused = workbench.ask_modern(&with_state(other));
        assert_eq!(refused.error().code, -32602, "{}", refused.line);
    }
    let done = workbench.ask_modern(&with_state(calling("ask")));
    assert!(done.line.contains("told"), "{}", done.line);
    let replayed = workbench.ask_modern(&with_state(calling("ask")));
    assert_eq!(replayed.error().code, -32602, "{}", replayed.line);
}

#[test]
fn concurrent_calls_never_mix_their_questions() {
    let script = Script::named(&["a", "b"])
        .on_call("a", &eliciting("of a"))
        .on_call("b", &eliciting("of b"));
    let other = use_arguments(["dev", "other", "b"], Some("{}"));
    let other = ModernRequest::call("use_tool", &other).capabilities(ALL);
    // Calls of one server as well as of two.
    for requests in [[calling("a"), other], [calling("a"), calling("b")]] {
        let mut workbench = start_all(Setup::one(&script).server("other", &script));
        let asked = requests
            .each_ref()
            .map(|request| workbench.ask_for_questions(request));
        for (asked, message) in asked.iter().zip(["of a", "of b"]) {
            let shown = asked.only().1["params"]["message"].as_str().unwrap();
            assert_eq!(shown.lines().last(), Some(message));
        }
        for (at, to) in [(1, "b"), (0, "a")] {
            let answer = json!({"action": "accept", "content": {"to": to}}).to_string();
            let retry = answered(&requests[at], &asked[at], &answer);
            let done = workbench.ask_modern(&retry);
            let told = format!(r#"{{"to":"{to}"}}"#);
            assert!(done.line.contains(&told), "{}", done.line);
        }
    }
}

#[test]
fn progress_and_logs_go_to_the_current_request_of_the_call() {
    let progress = |n: u32| json!({"progress": {"progress": n}}).to_string();
    let log =
        json!({"method": "notifications/message", "params": {"level": "info", "data": "said"}});
    let actions = [
        progress(1),
        ask("elicitation/create", "{}"),
        progress(2),
        json!({"notify": log}).to_string(),
    ];
    let mut workbench = start(&asks(&actions));
    let request = calling("ask");
    let asked = workbench.ask_for_questions(&request.clone().progress_token(r#""one""#));
    let heard = workbench.notification("notifications/progress");
    assert_eq!(heard.params()["progressToken"], "one");
    let retry = answered(&request, &asked, r#"{"action":"accept"}"#);
    let retry = retry.progress_token(r#""two""#).log_level("info");
    let done = workbench.ask_modern(&retry);
    assert!(done.line.contains("told"), "{}", done.line);
    let heard = workbench.notification("notifications/progress");
    assert_eq!(heard.params()["progressToken"], "two");
    let logged = workbench.notification("notifications/message");
    assert_eq!(logged.params()["data"], "said");
}

#[test]
fn held_back_progress_goes_to_the_current_request() {
    let report = json!([{"progress": {"progress": 1}}]);
    let flood = json!({"repeat": {"times": 150, "actions": report}}).to_string();
    let mut workbench = start(&asks(&[flood, ask("elicitation/create", "{}")]));
    let request = calling("ask");
    let asked = workbench.ask_for_questions(&request.clone().progress_token(r#""one""#));
    let retry = answered(&request, &asked, r#"{"action":"accept"}"#);
    workbench.ask_modern(&retry.progress_token(r#""two""#));
    let said = workbench.said();
    let (_, after) = said.split_once("requestState").expect("a question");
    assert!(
        !after.contains(r#""progressToken":"one","progress""#),
        "{after}"
    );
}

#[test]
fn a_cancelled_retry_cancels_the_call() {
    let actions = [
        ask("elicitation/create", "{}"),
        r#"{"progress":{"progress":1}}"#.to_owned(),
        r#""awaitCancel""#.to_owned(),
    ];
    let mut workbench = start(&asks(&actions));
    let request = calling("ask").progress_token("1");
    let asked = workbench.ask_for_questions(&request);
    let retry = answered(&request, &asked, r#"{"action":"accept"}"#);
    let id = workbench.send_modern(&retry);
    workbench.notification("notifications/progress");
    let cancelled = format!(r#"{{"requestId":{id}}}"#);
    workbench.notify("notifications/cancelled", &cancelled);
    workbench.journal("dev", "fs").wait("cancelled", 1);
    let plain = workbench.ask_modern(&calling("plain"));
    assert!(plain.line.contains("plain"), "{}", plain.line);
}

#[test]
fn a_forged_request_state_is_refused() {
    let mut workbench = start(&asks(&[ask("elicitation/create", "{}")]));
    let asked = workbench.ask_for_questions(&calling("ask"));
    let state = asked.state.expect("a state");
    let first = if state.starts_with('A') { 'B' } else { 'A' };
    let flipped = format!("{first}{}", &state[1..]);
    for forged in [&flipped, "MQ.AAAA", "", "x"] {
        let retry = calling("ask").param("requestState", &json!(forged).to_string());
        let refused = workbench.ask_modern(&retry);
        assert_eq!(refused.error().code, -32602, "{forged}: {}", refused.line);
    }
}

#[test]
fn a_request_that_does_not_allow_questions_gets_none() {
    let complete = format!(
        r#"[{},{{"answer":{{"completion":{{"values":[]}}}}}}]"#,
        ask("elicitation/create", r#"{"message":"m"}"#)
    );
    let script = Script::named(&["x"])
        .set(
            "capabilities",
            r#"{"tools":{},"prompts":{},"completions":{}}"#,
        )
        .set("prompts", r#"[{"name":"p"}]"#)
        .on_method("completion/complete", &complete);
    let mut workbench = super::natively(Setup::one(&script)).start();
    let request = ModernRequest::new("completion/complete")
        .capabilities(ALL)
        .param("ref", r#"{"type":"ref/prompt","name":"p"}"#)
        .param("argument", r#"{"name":"a","value":""}"#);
    let completed = workbench.ask_modern(&request);
    assert_eq!(
        completed.result()["resultType"],
        "complete",
        "{}",
        completed.line
    );
}
