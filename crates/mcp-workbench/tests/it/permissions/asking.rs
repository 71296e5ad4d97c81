//! Tools that the user is asked about, in both eras and over both transports.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ONCE, SESSION, answer, asked, called, message, setup, setup_of};
use crate::{
    asking_back::{self, ASKED_BY_FS},
    harness::{ModernClient, ModernRequest, Script, Served, Setup, Workbench, use_params},
};

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

/// A modern call of a client that can be asked.
fn calling(tool: &str) -> ModernRequest {
    ModernRequest::use_tool(tool, r#"{"a":1}"#).capabilities(FORMS)
}

#[test]
fn the_user_sees_the_call_and_decides() {
    let rows = [
        (ONCE, None),
        (SESSION, None),
        (
            r#"{"action":"accept","content":{"decision":"no"}}"#,
            Some("permission_refused"),
        ),
        (r#"{"action":"decline"}"#, Some("permission_refused")),
        (r#"{"action":"cancel"}"#, Some("permission_refused")),
    ];
    for (decision, code) in rows {
        let mut workbench = asked(&json!({"ask": ["wipe"]}));
        let call = workbench.send_use("wipe", r#"{"path":"/"}"#);
        let question = answer(&mut workbench, decision);
        assert_eq!(
            message(&question),
            "MCP Workbench asks: may this tool run?\ntoolbox: 'dev'\nserver: 'fs'\ntool: 'wipe'\n\
             arguments: {\"path\":\"/\"}\nwhy you are asked: rule 'wipe'"
        );
        let result = workbench.tool_result(&call);
        match code {
            None => assert_eq!(result.text(), "done"),
            Some(code) => assert_eq!(result.failure()["code"], code, "{decision}"),
        }
        let expected: &[&str] = if code.is_none() { &["wipe"] } else { &[] };
        assert_eq!(called(&workbench), expected, "{decision}");
    }
}

#[test]
fn with_an_allow_list_other_tools_need_consent() {
    let mut workbench = asked(&json!({"allow": ["@readOnly"]}));
    let opened = workbench.open("dev");
    assert_eq!(
        opened.tool_names(),
        ["read", "add", "wipe", "@readOnly"],
        "all are listed"
    );
    assert!(!workbench.use_tool("read", "{}").failed());
    for tool in ["add", "wipe", "@readOnly"] {
        let call = workbench.send_use(tool, "{}");
        let question = answer(&mut workbench, ONCE);
        assert!(message(&question).ends_with("no rule under 'allow' matches it"));
        assert!(!workbench.tool_result(&call).failed());
    }
}

#[test]
fn a_consent_is_for_one_call_or_for_one_session() {
    let mut workbench = asked(&json!({"ask": ["*"]}));
    for _ in 0..2 {
        let call = workbench.send_use("wipe", "{}");
        answer(&mut workbench, ONCE);
        assert!(!workbench.tool_result(&call).failed());
    }
    let call = workbench.send_use("wipe", "{}");
    answer(&mut workbench, SESSION);
    assert!(!workbench.tool_result(&call).failed());
    assert!(
        !workbench.use_tool("wipe", "{}").failed(),
        "it is not asked again"
    );
    let other = workbench.send_use("add", "{}");
    answer(&mut workbench, ONCE);
    assert!(
        !workbench.tool_result(&other).failed(),
        "another tool is asked about"
    );
}

#[test]
fn a_consent_for_the_session_answers_concurrent_questions() {
    let mut workbench = asked(&json!({"ask": ["wipe"]}));
    let calls = [
        workbench.send_use("wipe", "{}"),
        workbench.send_use("wipe", r#"{"b":1}"#),
    ];
    let first = workbench.notification("elicitation/create");
    let second = workbench.notification("elicitation/create");
    let id = first.id().unwrap();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{SESSION}}}"#
    ));
    for call in calls {
        assert!(!workbench.tool_result(&call).failed());
    }
    let withdrawn = workbench.notification("notifications/cancelled");
    assert_eq!(
        withdrawn.params()["requestId"].to_string(),
        second.id().unwrap()
    );
}

#[test]
fn without_elicitation_the_error_says_what_to_change() {
    let rows = [
        json!({}),
        json!({"sampling": {}}),
        json!({"elicitation": {"url": {}}}),
    ];
    // A rule under `ask` counts before one under `allow`, so that another one would change nothing.
    let cures = [
        (
            json!({"ask": ["wipe"]}),
            "remove the rule 'wipe' from 'ask'",
        ),
        (json!({"allow": ["read"]}), "add the tool to 'allow'"),
    ];
    for (capabilities, (permissions, cure)) in rows
        .iter()
        .flat_map(|it| cures.iter().map(move |cure| (it, cure)))
    {
        let mut workbench = asking_back::connect(setup(permissions), capabilities);
        let refused = workbench.use_tool("wipe", "{}");
        assert_eq!(refused.failure()["code"], "permission_required");
        assert!(refused.error().contains(cure), "{}", refused.error());
        assert!(!workbench.use_tool("read", "{}").failed());
        assert_eq!(called(&workbench), ["read"], "{capabilities}");
    }
}

#[test]
fn a_modern_client_is_asked_with_input_required() {
    let mut workbench = setup(&json!({"ask": ["wipe"]})).start();
    workbench.call_modern(&ModernRequest::open("dev").capabilities(FORMS));
    assert_modern(&mut workbench, true);
    assert_eq!(called(&workbench), ["wipe", "wipe", "wipe"]);
    let refused = workbench.call_modern(&ModernRequest::use_tool("add", "{}"));
    assert!(
        !refused.failed(),
        "what is not asked about runs: {}",
        refused.raw
    );
}

/// Asks once, is refused, asks for the session.
fn assert_modern(client: &mut impl ModernClient, remembers: bool) {
    let questions = client.ask_for_questions(&calling("wipe"));
    let (_, question) = questions.only();
    let text = question["params"]["message"].as_str().unwrap();
    assert!(
        text.contains("tool: 'wipe'\narguments: {\"a\":1}\n"),
        "{text}"
    );
    let offered = &question["params"]["requestedSchema"]["properties"]["decision"]["enum"];
    let expected = if remembers {
        json!(["once", "for this session", "no"])
    } else {
        json!(["once", "no"])
    };
    assert_eq!(*offered, expected);
    let decide = |decision: &'static str| move |_: &str, _: &Value| decision.to_owned();
    let done = client.answer_all(&calling("wipe"), decide(ONCE));
    assert!(done.line.contains("done"), "{}", done.line);
    let refused = client.answer_all(&calling("wipe"), decide(r#"{"action":"decline"}"#));
    assert!(
        refused.line.contains("permission_refused"),
        "{}",
        refused.line
    );
    if remembers {
        let done = client.answer_all(&calling("wipe"), decide(SESSION));
        assert!(done.line.contains("done"), "{}", done.line);
        assert!(
            !client.call_modern(&calling("wipe")).failed(),
            "it is not asked again"
        );
    }
}

#[test]
fn over_http_a_consent_of_a_modern_client_belongs_to_its_token() {
    let mut served = setup(&json!({"ask": ["wipe"]})).serve();
    served.call_modern(&ModernRequest::open("dev").capabilities(FORMS));
    assert_modern(&mut served, true);
    let setup = setup(&json!({"ask": ["wipe"]}));
    let mut open: Served = setup.serve_with(&["--no-auth"]);
    open.call_modern(&ModernRequest::open("dev").capabilities(FORMS));
    assert_modern(&mut open, false);
}

#[test]
fn over_http_a_consent_belongs_to_its_session() {
    let served = setup(&json!({"ask": ["wipe"]})).serve();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    let mut client = served.client_with(&params.to_string());
    client.open();
    let mut stream = client.begin("5", "tools/call", &use_params("wipe", "{}"));
    assert!(stream.head().is_stream());
    stream.event();
    let question = stream.message();
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{SESSION}}}"#,
        question.id().unwrap()
    );
    let mut other = served.client_with(&params.to_string());
    other.post(&reply);
    assert_eq!(
        called(&served.workbench),
        [""; 0],
        "another's answer is nobody's"
    );
    client.post(&reply);
    assert!(stream.message().line.contains("done"));
    assert!(!client.use_tool("wipe", "{}").failed());
    let mut asked = other.begin("6", "tools/call", &use_params("wipe", "{}"));
    assert!(asked.head().is_stream());
    asked.event();
    let question = asked.message();
    assert_eq!(
        question.method.as_deref(),
        Some("elicitation/create"),
        "{}",
        question.line
    );
}

#[test]
fn a_call_with_several_rounds_needs_one_consent() {
    let rounds = r#"[{"rounds":{"rounds":[
        {"inputRequests":{"q":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s1"}]}}]"#;
    let script = Script::named(&["wipe"])
        .set("era", r#""modern""#)
        .on_call("wipe", rounds);
    let mut workbench = setup_of(&script, &json!({"ask": ["wipe"]})).start();
    workbench.call_modern(&ModernRequest::open("dev").capabilities(FORMS));
    let mut messages = Vec::new();
    let done = workbench.answer_all(&calling("wipe"), |_, question| {
        messages.push(question["params"]["message"].as_str().unwrap().to_owned());
        ONCE.to_owned()
    });
    assert!(!done.is_error(), "{}", done.line);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[1], format!("{ASKED_BY_FS}who?"));
    let again = calling("wipe")
        .param("requestState", r#""s1""#)
        .param("inputResponses", "{}");
    let questions = workbench.ask_for_questions(&again);
    let (_, question) = questions.only();
    let text = question["params"]["message"].as_str().unwrap();
    assert!(
        text.starts_with("MCP Workbench asks"),
        "a state is good once: {text}"
    );
}

#[test]
fn cancelling_a_call_withdraws_its_consent_question() {
    let mut workbench = asked(&json!({"ask": ["wipe"]}));
    let call = workbench.send_use("wipe", "{}");
    let question = workbench.notification("elicitation/create");
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{call}}}"#),
    );
    let withdrawn = workbench.notification("notifications/cancelled");
    assert_eq!(
        withdrawn.params()["requestId"].to_string(),
        question.id().unwrap()
    );
    answer_late(&mut workbench, question.id().unwrap());
    assert!(!workbench.use_tool("read", "{}").failed());
    assert_eq!(called(&workbench), ["read"]);
}

fn answer_late(workbench: &mut Workbench, id: &str) {
    workbench.send_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ONCE}}}"#));
}

#[test]
fn the_command_line_follows_the_rules() {
    for (tool, code) in [("read", 0), ("add", 1), ("wipe", 1)] {
        let setup: Setup = setup(&json!({"allow": ["@readOnly"], "deny": ["wipe"]}));
        setup.write_config();
        let config = setup.config();
        let mut call = setup.start_with(&[
            "call",
            "dev",
            "fs",
            tool,
            "--config",
            config.to_str().unwrap(),
        ]);
        let finished = call.finish();
        assert_eq!(
            finished.status.code(),
            Some(code),
            "{tool}: {}",
            finished.stderr
        );
    }
}
