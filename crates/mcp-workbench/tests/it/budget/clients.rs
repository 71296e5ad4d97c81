//! Access to cut results: over stdio and HTTP, in both eras, for their own client only.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Modern, Reader, lines, setup, text_result, uri};
use crate::{
    asking_back::connect,
    harness::{ModernClient, ModernRequest, Script, Setup, TIMEOUT, poll},
};

const ANOTHER: &str = "of-another-client";

fn one() -> Setup {
    setup(100, &[("tool", &text_result(&lines(100)))])
}

#[test]
fn a_modern_client_reads_cut_results_over_stdio() {
    let mut workbench = one().start();
    workbench.call_modern(&ModernRequest::open("dev"));
    let raw = workbench
        .call_modern(&ModernRequest::use_tool("tool", "{}"))
        .raw;
    let mut client = Modern(&mut workbench);
    assert_eq!(client.read_on(&uri(&raw)), lines(100));
    let page = client.read(&uri(&raw)).result();
    assert_eq!(
        (&page["resultType"], &page["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    let refused = client.read("mcp-workbench://result/x");
    assert_eq!(refused.error().code, -32602);
}

#[test]
fn http_clients_read_only_their_own_cut_results() {
    let setup = one();
    let tokens = format!("{}\n{ANOTHER}\n", crate::harness::TOKEN);
    let file = setup.write("tokens", &tokens);
    let mut served = setup.serve_with(&["--token-file", file.to_str().unwrap()]);
    let mut client = served.client();
    client.open();
    let raw = client.use_tool("tool", "{}").raw;
    let legacy = uri(&raw);
    assert_eq!(client.read_on(&legacy), lines(100));
    // Whoever carries the same token is the same, with or without a session.
    assert_eq!(served.client().read_on(&legacy), lines(100));
    assert_eq!(Modern(&mut served).read_on(&legacy), lines(100));
    let raw = served
        .call_modern(&ModernRequest::use_tool("tool", "{}"))
        .raw;
    let modern = uri(&raw);
    assert_eq!(Modern(&mut served).read_on(&modern), lines(100));
    // Another token: as if it were not there.
    for uri in [legacy, modern] {
        let unknown = "mcp-workbench://result/AAAAAAAAAAAAAAAA";
        let mut answers = [uri.as_str(), unknown].map(|uri| {
            let request =
                ModernRequest::new("resources/read").param("uri", &json!(uri).to_string());
            let post = served.modern_post("7", &request).without("authorization");
            let post = post.header("authorization", &format!("Bearer {ANOTHER}"));
            let response = served.connection().ask(&post);
            assert_eq!(response.head.status, 200);
            response.message().line
        });
        let (own, other) = (
            uri.rsplit('/').next().unwrap(),
            unknown.rsplit('/').next().unwrap(),
        );
        answers[1] = answers[1].replace(other, own);
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn without_tokens_a_cut_result_belongs_to_its_session() {
    let served = one().serve_with(&["--no-auth"]);
    let mut first = served.client();
    first.open();
    let uri = uri(&first.use_tool("tool", "{}").raw);
    assert_eq!(first.read_on(&uri), lines(100));
    let refused = served.client().read(&uri);
    assert!(
        refused.error().message.contains("is not available"),
        "{}",
        refused.line
    );
}

#[test]
fn the_result_of_a_task_is_cut_too() {
    let text = lines(100);
    let task = json!([{ "task": { "pollIntervalMs": 100, "steps": [
        { "status": "completed", "result": text_result(&text) },
    ] } }]);
    let capabilities = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let script = Script::named(&["task"])
        .set("era", r#""modern""#)
        .set("capabilities", capabilities)
        .on_call("task", &task.to_string());
    let setup = || Setup::one(&script).top("maxResultChars", json!(100));
    // Followed for a client that knows no tasks.
    let mut workbench = connect(setup(), &json!({}));
    let raw = workbench.use_tool("task", "{}").raw;
    assert_eq!(workbench.read_on(&uri(&raw)), text);
    // Asked for by one that does.
    let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let mut workbench = setup().start();
    workbench.call_modern(&ModernRequest::open("dev"));
    let call = ModernRequest::use_tool("task", "{}").capabilities(tasks);
    let id = workbench.ask_modern(&call).result()["taskId"].to_string();
    let get = ModernRequest::new("tasks/get")
        .param("taskId", &id)
        .capabilities(tasks);
    let result = poll(TIMEOUT, || {
        let task: Value = workbench.ask_modern(&get).result();
        (task["status"] == "completed").then(|| task["result"].to_string())
    });
    let uri = uri(&result.expect("the task ends"));
    assert_eq!(Modern(&mut workbench).read_on(&uri), text);
}
