//! Questions of a legacy stdio server, which does not say which of its calls asks, while several calls of modern clients
//! run. A question stays within a principal, and its answer returns to the call that asked.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{
    InputRequired, Message, ModernClient, ModernRequest, Script, Setup, TIMEOUT, TOKEN, Workbench,
    poll,
};

const CAN_ELICIT: &str = r#"{"elicitation":{}}"#;

/// The action that answers a call with the reply to its question.
const TELL: &str =
    r#"{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"told\":$REPLY}}"}"#;

/// The actions of a tool that asks and answers with the reply.
fn eliciting(message: &str) -> String {
    let params = json!({"message": message});
    let question = json!({"request": {"method": "elicitation/create", "params": params}});
    format!("[{question},{TELL}]")
}

fn calling(tool: &str) -> ModernRequest {
    ModernRequest::use_tool(tool, "{}").capabilities(CAN_ELICIT)
}

fn start(setup: Setup) -> Workbench {
    let mut workbench = setup.start();
    let opened = workbench.call_modern(&ModernRequest::open("dev").capabilities(CAN_ELICIT));
    assert!(!opened.failed(), "{}", opened.raw);
    workbench
}

/// The request that continues a call, with an answer that repeats each question.
fn answered(request: &ModernRequest, asked: &InputRequired) -> ModernRequest {
    let responses = asked.responses(|_, question| {
        // The first line names the server.
        let message = question["params"]["message"].as_str();
        let message = message.and_then(|it| it.lines().nth(1));
        json!({"action": "accept", "content": {"to": message}}).to_string()
    });
    request.retry(asked, &responses)
}

/// The question that the reply of a call repeats.
fn told(done: &Message) -> Value {
    done.result()["told"]["result"]["content"]["to"].clone()
}

#[test]
fn many_calls_ask_at_once_and_each_gets_the_answer_to_its_own_question() {
    let tools: Vec<String> = (0..8).map(|number| format!("ask{number}")).collect();
    let names: Vec<&str> = tools.iter().map(String::as_str).collect();
    let script = names.iter().fold(Script::named(&names), |script, tool| {
        script.on_call(tool, &eliciting(tool))
    });
    let mut workbench = start(Setup::one(&script));
    let ids: Vec<String> = names
        .iter()
        .map(|tool| workbench.send_modern(&calling(tool)))
        .collect();
    let asked: Vec<Message> = ids.iter().map(|id| workbench.response(id)).collect();
    // An answer need not end the call that was asked, so none is waited for before all are sent.
    let ids: Vec<String> = names
        .iter()
        .zip(&asked)
        .map(|(tool, asked)| {
            let retry = answered(&calling(tool), &InputRequired::of(asked));
            workbench.send_modern(&retry)
        })
        .collect();
    let told: Vec<Value> = ids.iter().map(|id| told(&workbench.response(id))).collect();
    assert_eq!(told, names);
}

#[test]
fn a_question_is_asked_while_a_silent_call_runs() {
    let setup = Setup::new().toolbox("dev", "d");
    let gate = setup.path("gate");
    let silent = json!([{"awaitFile": gate}, {"answer": {"content": [], "silent": 1}}]);
    let script = Script::named(&["silent", "ask"])
        .on_call("silent", &silent.to_string())
        .on_call("ask", &eliciting("who?"));
    let mut workbench = start(setup.server("fs", &script));
    let silent = workbench.send_modern(&calling("silent"));
    let asking = workbench.send_modern(&calling("ask"));
    // The oldest call is asked for the one that asks.
    let asked = InputRequired::of(&workbench.response(&silent));
    let silent = workbench.send_modern(&answered(&calling("silent"), &asked));
    assert_eq!(told(&workbench.response(&asking)), "who?");
    workbench.setup.write("gate", "");
    assert_eq!(workbench.response(&silent).result()["silent"], 1);
}

#[test]
fn a_question_moves_to_another_call_when_its_call_ends() {
    let setup = Setup::new().toolbox("dev", "d");
    let gate = setup.path("gate");
    // The question and the end of the oldest call come together, before the client can be asked.
    let question =
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?"}}"#;
    let end = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"first":1}}"#;
    let both = format!("{question}\n{end}\n");
    let first = json!([{"awaitFile": gate}, {"stdout": both}]);
    let script = Script::named(&["first", "second"])
        .on_call("first", &first.to_string())
        .on_call("second", r#"[{"journal":"second"},"hang"]"#);
    let mut workbench = start(setup.server("fs", &script));
    let first = workbench.send_modern(&calling("first"));
    let second = workbench.send_modern(&calling("second"));
    let journal = workbench.journal("dev", "fs");
    journal.wait("note", 1);
    workbench.setup.write("gate", "");
    assert_eq!(workbench.response(&first).result()["first"], 1);
    let asked = InputRequired::of(&workbench.response(&second));
    workbench.send_modern(&answered(&calling("second"), &asked));
    let answer =
        r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"to":"who?"}}}"#;
    let received = || journal.events("in").iter().any(|line| line == answer);
    poll(TIMEOUT, || received().then_some(())).expect("the answer under the server's own id");
}

#[test]
fn a_question_is_refused_when_its_call_is_cancelled() {
    let script = Script::named(&["hang", "ask"])
        .on_call("hang", r#"["hang"]"#)
        .on_call("ask", &eliciting("who?"));
    let mut workbench = start(Setup::one(&script));
    let hanging = workbench.send_modern(&calling("hang"));
    let asking = workbench.send_modern(&calling("ask"));
    let asked = InputRequired::of(&workbench.response(&hanging));
    let retry = workbench.send_modern(&calling("hang").retry_bare(&asked));
    let cancel = format!(r#"{{"requestId":{retry}}}"#);
    workbench.notify("notifications/cancelled", &cancel);
    let done = workbench.response(&asking);
    let words = "the client did not respond";
    assert!(done.line.contains(words), "{}", done.line);
}

#[test]
fn ambiguous_questions_of_several_principals_are_refused_after_one_wait() {
    const QUESTIONS: usize = 4;
    let script = Script::named(&["hang", "ask"])
        .on_call("hang", r#"[{"journal":"hangs"},"hang"]"#)
        .on_call("ask", &eliciting("who?"));
    let setup = Setup::one(&script);
    let tokens = setup.write("tokens", &format!("{TOKEN}\nof-another\n"));
    let mut served = setup.serve_with(&["--token-file", tokens.to_str().unwrap()]);
    let opened = served.call_modern(&ModernRequest::open("dev").capabilities(CAN_ELICIT));
    assert!(!opened.failed(), "{}", opened.raw);
    let mut hanging = served.connection();
    let others = served.modern_post("9", &calling("hang"));
    hanging.send(&others.with("authorization", "Bearer of-another"));
    served.workbench.journal("dev", "fs").wait("note", 1);
    let begun = Instant::now();
    let calls: Vec<_> = (0..QUESTIONS)
        .map(|number| served.begin_modern(&number.to_string(), &calling("ask")))
        .collect();
    for mut call in calls {
        let body = call.response().body;
        let words = "this question could belong to several clients, and none of them was asked";
        assert!(body.contains(words), "{body}");
    }
    // They waited for 5 s one after the other once.
    assert!(begun.elapsed() < Duration::from_secs(15));
}
