//! A modern client in front of a legacy server that asks in the middle of a call: the call waits while the
//! client is asked, and goes on with the client's next request.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::modern_client::{Modern, all, keys, use_params};
use crate::harness::{Script, Setup, Workbench};

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

fn start(script: &Script, client: &Modern) -> Workbench {
    let mut workbench = Setup::one(script).start();
    let opened = client.open(&mut workbench);
    assert_eq!(opened.result().get("isError"), None, "{}", opened.line);
    workbench
}

#[test]
fn a_question_is_an_answer_and_the_answer_goes_back_byte_for_byte() {
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
        let client = Modern::client(&all());
        let mut workbench = start(&asks(&[ask(method, params)]), &client);
        let asked = client.use_tool(&mut workbench, "ask");
        let [key] = &keys(&asked)[..] else {
            panic!("{}", asked.line);
        };
        let question = format!(r#""{key}":{{"method":"{method}","params":{params}}}"#);
        assert!(asked.line.contains(&question), "{}", asked.line);
        let retry = client.answering(&asked, &[(key, serde_json::from_str(answer).unwrap())]);
        let done = retry.use_tool(&mut workbench, "ask");
        assert_eq!(done.result()["resultType"], "complete");
        let told = format!(r#""result":{answer}"#);
        assert!(done.line.contains(&told), "{}", done.line);
    }
}

#[test]
fn several_rounds_are_asked_one_after_the_other() {
    let elicit = |message: &str| {
        ask(
            "elicitation/create",
            &json!({"message": message}).to_string(),
        )
    };
    let client = Modern::client(&all());
    let script = asks(&[elicit("one"), elicit("two"), elicit("three")]);
    let mut workbench = start(&script, &client);
    let mut asked = client.use_tool(&mut workbench, "ask");
    for message in ["one", "two", "three"] {
        assert!(asked.line.contains(message), "{}", asked.line);
        let key = &keys(&asked)[0];
        let answer = json!({"action": "accept", "content": {"n": message}});
        let retry = client.clone().answering(&asked, &[(key, answer)]);
        asked = retry.use_tool(&mut workbench, "ask");
    }
    assert!(asked.line.contains(r#"{"n":"three"}"#), "{}", asked.line);
    let calls = workbench.journal("dev", "fs").received("tools/call");
    assert_eq!(calls.len(), 1, "the call was made once");
}

#[test]
fn a_server_is_refused_what_its_client_did_not_declare_in_this_request() {
    let script = asks(&[ask("sampling/createMessage", "{}")]);
    let mut workbench = start(&script, &Modern::client(&all()));
    let client = Modern::client(&json!({"elicitation": {}}));
    let done = client.use_tool(&mut workbench, "ask");
    assert!(done.line.contains("-32601"), "{}", done.line);
    assert_eq!(done.result()["resultType"], "complete");
}

#[test]
fn what_is_not_answered_is_asked_again() {
    let client = Modern::client(&all());
    let mut workbench = start(&asks(&[ask("elicitation/create", "{}")]), &client);
    let asked = client.use_tool(&mut workbench, "ask");
    let key = keys(&asked)[0].clone();
    let none = client.clone().answering(&asked, &[("other", json!({}))]);
    let again = none.use_tool(&mut workbench, "ask");
    assert_eq!(keys(&again), [&*key]);
    assert!(again.result()["requestState"] != asked.result()["requestState"]);
    let broken = client.clone().answering(&again, &[(&key, json!(7))]);
    let again = broken.use_tool(&mut workbench, "ask");
    assert_eq!(keys(&again), [&*key]);
    let answer = json!({"action": "cancel"});
    let retry = client.answering(&again, &[(&key, answer)]);
    let done = retry.use_tool(&mut workbench, "ask");
    assert!(
        done.line.contains(r#"{"action":"cancel"}"#),
        "{}",
        done.line
    );
}

#[test]
fn a_state_is_good_once_and_for_its_own_request() {
    let client = Modern::client(&all());
    let mut workbench = start(&asks(&[ask("elicitation/create", "{}")]), &client);
    let asked = client.use_tool(&mut workbench, "ask");
    let key = keys(&asked)[0].clone();
    let retry = client
        .clone()
        .answering(&asked, &[(&key, json!({"action": "accept"}))]);
    let other = retry.use_tool(&mut workbench, "plain");
    assert_eq!(other.error().code, -32602, "{}", other.line);
    let read = retry.ask(&mut workbench, "resources/read", &json!({"uri": "x:y"}));
    assert_eq!(read.error().code, -32602, "{}", read.line);
    let done = retry.use_tool(&mut workbench, "ask");
    assert!(done.line.contains("told"), "{}", done.line);
    let replayed = retry.use_tool(&mut workbench, "ask");
    assert_eq!(replayed.error().code, -32602, "{}", replayed.line);
}

#[test]
fn two_calls_at_once_never_cross() {
    let client = Modern::client(&all());
    let script = Script::named(&["a", "b"])
        .on_call(
            "a",
            &format!(
                "[{},{TELL}]",
                ask("elicitation/create", r#"{"message":"of a"}"#)
            ),
        )
        .on_call(
            "b",
            &format!(
                "[{},{TELL}]",
                ask("elicitation/create", r#"{"message":"of b"}"#)
            ),
        );
    let mut workbench = Setup::one(&script).server("other", &script).start();
    client.open(&mut workbench);
    let other = json!({"name": "use_tool", "arguments": {
        "tool": {"toolbox": "dev", "server": "other", "tool": "b"}, "arguments": {}}});
    let one = client.ask(&mut workbench, "tools/call", &use_params("a"));
    let two = client.ask(&mut workbench, "tools/call", &other);
    assert!(one.line.contains("of a") && two.line.contains("of b"));
    let (first, second) = (keys(&one)[0].clone(), keys(&two)[0].clone());
    let answer = |text: &str| json!({"action": "accept", "content": {"of": text}});
    let retry = client.clone().answering(&two, &[(&second, answer("b"))]);
    let done = retry.ask(&mut workbench, "tools/call", &other);
    assert!(done.line.contains(r#"{"of":"b"}"#), "{}", done.line);
    let retry = client.clone().answering(&one, &[(&first, answer("a"))]);
    let done = retry.use_tool(&mut workbench, "a");
    assert!(done.line.contains(r#"{"of":"a"}"#), "{}", done.line);
}

#[test]
fn one_call_can_ask_while_another_waits_for_its_answer() {
    let client = Modern::client(&all());
    let asking = |of: &str| {
        let params = json!({"message": format!("of {of}")}).to_string();
        format!("[{},{TELL}]", ask("elicitation/create", &params))
    };
    let script = Script::named(&["a", "b"])
        .on_call("a", &asking("a"))
        .on_call("b", &asking("b"));
    let mut workbench = start(&script, &client);
    let asked = ["a", "b"].map(|tool| client.use_tool(&mut workbench, tool));
    for (tool, asked) in ["a", "b"].iter().zip(&asked) {
        let question = format!("of {tool}");
        assert!(asked.line.contains(&question), "{}", asked.line);
    }
    for (tool, asked) in ["a", "b"].iter().zip(&asked) {
        let answer = json!({"action": "accept", "content": {"to": tool}});
        let retry = client
            .clone()
            .answering(asked, &[(&keys(asked)[0], answer)]);
        let done = retry.use_tool(&mut workbench, tool);
        let told = format!(r#"{{"to":"{tool}"}}"#);
        assert!(done.line.contains(&told), "{}", done.line);
    }
}

#[test]
fn a_question_that_could_belong_to_two_calls_is_refused() {
    let client = Modern::client(&all());
    let script = Script::named(&["wait", "ask"])
        .on_call("wait", "[]")
        .on_call(
            "ask",
            &format!("[{},{TELL}]", ask("elicitation/create", "{}")),
        );
    let mut workbench = start(&script, &client);
    client.send_use(&mut workbench, "wait");
    let done = client.use_tool(&mut workbench, "ask");
    assert!(done.line.contains("-32601"), "{}", done.line);
}

#[test]
fn progress_and_logs_follow_the_request_that_waits() {
    let progress = |n: u32| {
        format!(
            r#"{{"line":"{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":$TOKEN,\"progress\":{n}}}}}"}}"#
        )
    };
    let log = r#"{"line":"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"said\"}}"}"#;
    let actions = [
        progress(1),
        ask("elicitation/create", "{}"),
        progress(2),
        log.to_owned(),
    ];
    let client = Modern::client(&all());
    let mut workbench = start(&asks(&actions), &client);
    let first = client.clone().meta("progressToken", json!("one"));
    let asked = first.use_tool(&mut workbench, "ask");
    let key = keys(&asked)[0].clone();
    let heard = workbench.notification("notifications/progress");
    assert_eq!(heard.params()["progressToken"], "one");
    let retry = client
        .meta("progressToken", json!("two"))
        .meta("io.modelcontextprotocol/logLevel", json!("info"))
        .answering(&asked, &[(&key, json!({"action": "accept"}))]);
    let done = retry.use_tool(&mut workbench, "ask");
    assert!(done.line.contains("told"), "{}", done.line);
    let heard = workbench.notification("notifications/progress");
    assert_eq!(heard.params()["progressToken"], "two");
    let logged = workbench.notification("notifications/message");
    assert_eq!(logged.params()["data"], "said");
}

#[test]
fn a_cancelled_retry_cancels_the_call() {
    let actions = [
        ask("elicitation/create", "{}"),
        r#"{"progress":{"progress":1}}"#.to_owned(),
        r#""awaitCancel""#.to_owned(),
    ];
    let client = Modern::client(&all()).meta("progressToken", json!(1));
    let mut workbench = start(&asks(&actions), &client);
    let asked = client.use_tool(&mut workbench, "ask");
    let key = keys(&asked)[0].clone();
    let answer = json!({"action": "accept"});
    let retry = client.clone().answering(&asked, &[(&key, answer)]);
    let id = retry.send_use(&mut workbench, "ask");
    workbench.notification("notifications/progress");
    let cancelled = format!(r#"{{"requestId":{id}}}"#);
    workbench.notify("notifications/cancelled", &cancelled);
    workbench.journal("dev", "fs").wait("cancelled", 1);
    let plain = client.use_tool(&mut workbench, "plain");
    assert!(plain.line.contains("plain"), "{}", plain.line);
}

#[test]
fn a_state_that_is_not_ours_is_refused() {
    let client = Modern::client(&all());
    let mut workbench = start(&asks(&[ask("elicitation/create", "{}")]), &client);
    let asked = client.use_tool(&mut workbench, "ask");
    let state = asked.result()["requestState"].as_str().unwrap().to_owned();
    let (content, mac) = state.split_once('.').unwrap();
    let flipped = format!("{content}.A{}", &mac[1..]);
    for forged in [&flipped, "MQ.AAAA", "", "x"] {
        let mut retry = client.clone();
        retry.more.insert("requestState".into(), json!(forged));
        let refused = retry.use_tool(&mut workbench, "ask");
        assert_eq!(refused.error().code, -32602, "{forged}: {}", refused.line);
    }
}

#[test]
fn a_request_that_may_not_be_answered_with_a_question_is_not() {
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
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": ""},
    });
    let client = Modern::client(&all());
    let completed = client.ask(&mut workbench, "completion/complete", &params);
    assert_eq!(
        completed.result()["resultType"],
        "complete",
        "{}",
        completed.line
    );
}
