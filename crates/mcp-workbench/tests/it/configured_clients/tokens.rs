//! Tokens that belong to clients of the configuration.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::setup;
use crate::harness::{
    HttpRequest, HttpResponse, Message, ModernRequest, Served, Setup, TOKEN, call_params,
    initialize_params, request_text, use_arguments,
};

const REVIEWER: &str = "the-token-of-the-reviewer";

/// Serves with a token for everything and one of the client `reviewer`.
pub(super) fn serve(setup: Setup) -> Served {
    let tokens = format!("{TOKEN}\n{REVIEWER} reviewer\n");
    let file = setup.write("tokens", &tokens);
    setup.serve_with(&["--token-file", file.to_str().unwrap()])
}

/// The request with the token of the reviewer.
pub(super) fn as_reviewer(request: HttpRequest) -> HttpRequest {
    let request = request.without("authorization");
    request.header("authorization", &format!("Bearer {REVIEWER}"))
}

/// Sends a modern request with a token, and returns its answer.
fn ask(served: &Served, token: &str, request: &ModernRequest) -> Value {
    let post = served.modern_post("1", request).without("authorization");
    let post = post.header("authorization", &format!("Bearer {token}"));
    let answer = answer(&served.connection().ask(&post));
    serde_json::from_str(&answer.line).unwrap()
}

/// Returns the answer in a response, on a stream or alone.
pub(super) fn answer(response: &HttpResponse) -> Message {
    if response.head.is_stream() {
        response.events().last().expect("an answer").message()
    } else {
        response.message()
    }
}

fn call(served: &Served, token: &str, tool: &str, arguments: &str) -> Value {
    let request = ModernRequest::new("tools/call")
        .param("name", &json!(tool).to_string())
        .param("arguments", arguments);
    ask(served, token, &request)["result"].clone()
}

fn open(served: &Served, token: &str, toolbox: &str) -> String {
    let arguments = json!({ "toolbox": toolbox }).to_string();
    let result = call(served, token, "open_toolbox", &arguments);
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_token_with_a_name_is_that_client() {
    let setup = setup();
    let log = setup.path("audit.jsonl");
    let mut served = serve(setup.top("audit", json!({ "file": log })));
    let discover = ModernRequest::new("server/discover");
    let of = |token: &str| ask(&served, token, &discover)["result"]["instructions"].clone();
    assert!(of(TOKEN).as_str().unwrap().contains("ops"));
    assert!(!of(REVIEWER).as_str().unwrap().contains("ops"));
    let refused = "Error: Toolbox 'ops' not found. Available toolboxes: dev";
    assert_eq!(open(&served, REVIEWER, "ops"), refused);
    for (token, tools) in [(TOKEN, 2), (REVIEWER, 1)] {
        let opened: Value = serde_json::from_str(&open(&served, token, "dev")).unwrap();
        assert_eq!(opened["tools"].as_array().unwrap().len(), tools, "{opened}");
    }
    let write = use_arguments(["dev", "fs", "write"], Some("{}"));
    assert!(
        call(&served, TOKEN, "use_tool", &write)
            .get("isError")
            .is_none()
    );
    let denied = call(&served, REVIEWER, "use_tool", &write);
    assert_eq!(
        denied["_meta"]["mcp-workbench/error"]["code"],
        "permission_denied"
    );
    // Clients of different names have servers of their own.
    assert_eq!(
        served
            .workbench
            .journal("dev", "fs")
            .received("tools/call")
            .len(),
        1
    );
    served.workbench.signal(rustix::process::Signal::TERM);
    assert!(served.workbench.wait_exit().success());
    let log = std::fs::read_to_string(&log).unwrap();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names: Vec<Value> = lines.map(|line| line["client"]["as"].clone()).collect();
    assert_eq!(names, [Value::Null, json!("reviewer")]);
}

#[test]
fn only_clients_that_see_everything_read_the_metrics() {
    let served = serve(setup());
    let arguments = use_arguments(["dev", "fs", "write"], Some("{}"));
    for token in [TOKEN, REVIEWER] {
        open(&served, token, "dev");
        call(&served, token, "use_tool", &arguments);
    }
    let metrics = |token: &str| {
        let request = served.request("GET", "/metrics").without("authorization");
        let request = request.header("authorization", &format!("Bearer {token}"));
        served.connection().ask(&request)
    };
    let all = metrics(TOKEN);
    assert_eq!(all.head.status, 200);
    for line in [
        r#"mcp_workbench_server_up{toolbox="dev",server="fs"} 1"#,
        r#"mcp_workbench_server_up{toolbox="dev",server="fs",client="reviewer"} 1"#,
    ] {
        assert!(all.body.contains(line), "{line} in {}", all.body);
    }
    assert_eq!(metrics(REVIEWER).head.status, 404);
}

#[test]
fn sessions_keep_the_client_of_their_token() {
    let served = serve(setup());
    let params = initialize_params("2025-11-25");
    let body = request_text("0", "initialize", &params);
    let post = served.post(&body).without("authorization");
    let post = post.header("authorization", &format!("Bearer {REVIEWER}"));
    let response = served.connection().ask(&post);
    assert_eq!(response.head.status, 200);
    let session = response.head.header("mcp-session-id").unwrap().to_owned();
    let open = call_params("open_toolbox", r#"{"toolbox":"ops"}"#);
    let open = request_text("1", "tools/call", &open);
    let in_session = |token: &str| {
        let post = served.post(&open).without("authorization");
        let post = post.header("authorization", &format!("Bearer {token}"));
        served
            .connection()
            .ask(&post.header("mcp-session-id", &session))
    };
    let answer = answer(&in_session(REVIEWER));
    assert!(
        answer.line.contains("Toolbox 'ops' not found"),
        "{}",
        answer.line
    );
    // Nobody else can use the session.
    assert_eq!(in_session(TOKEN).head.status, 404);
}

#[test]
fn a_token_of_an_unknown_client_is_refused_at_the_start() {
    let setup = setup();
    setup.write_config();
    let config = setup.config();
    let tokens = setup.write("tokens", "a-long-token-of-nobody nobody\n");
    let arguments = [
        "--config",
        config.to_str().unwrap(),
        "serve",
        "--http",
        "127.0.0.1:0",
        "--token-file",
    ];
    let mut workbench = setup.start_with(&[&arguments[..], &[tokens.to_str().unwrap()]].concat());
    let finished = workbench.finish();
    assert!(!finished.status.success());
    assert!(
        finished
            .stderr
            .contains("there is no client `nobody` in the configuration"),
        "{}",
        finished.stderr
    );
}
