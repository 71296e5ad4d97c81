//! Each request decides its own era, whatever was sent before it on the same connection.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{MODERN, ModernClient, ModernRequest, Script, Setup, Workbench};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn echo() -> Script {
    Script::named(&["echo"]).answers("echo", r#"{"content":[],"n":1e400}"#)
}

/// The result of a request that says no more than every request must.
fn ask(workbench: &mut Workbench, method: &str) -> Value {
    workbench.ask_modern(&ModernRequest::new(method)).result()
}

fn open(workbench: &mut Workbench) {
    let opened = workbench.call_modern(&ModernRequest::open("dev"));
    assert!(!opened.failed(), "{}", opened.raw);
}

#[test]
fn discover_describes_the_workbench() {
    let mut workbench = Setup::one(&echo()).start();
    let result = ask(&mut workbench, "server/discover");
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["cacheScope"], "public");
    assert!(result["ttlMs"].as_u64().unwrap() > 0);
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "mcp-workbench"
    );
    assert!(result["instructions"].as_str().unwrap().contains("dev"));
    assert_eq!(
        result["capabilities"],
        json!({"completions": {}, "logging": {}, "prompts": {}, "resources": {}, "tools": {"listChanged": true},
            "extensions": {"io.modelcontextprotocol/tasks": {}}})
    );
}

#[test]
fn only_results_of_the_workbench_itself_name_it() {
    let mut workbench = Setup::one(&echo()).start();
    for request in [
        ModernRequest::new("tools/list"),
        ModernRequest::new("resources/list"),
        ModernRequest::open("nowhere"),
        ModernRequest::open("dev"),
        ModernRequest::use_tool("nothing", "{}"),
        ModernRequest::call("use_tool", "{}"),
    ] {
        let result = workbench.ask_modern(&request).result();
        assert_eq!(
            result["_meta"][SERVER_INFO],
            json!({"name": "mcp-workbench", "title": "MCP Workbench", "version": env!("CARGO_PKG_VERSION")}),
            "{result}"
        );
    }
    // Errors of the workbench keep the members that programs read.
    let unknown = workbench.ask_modern(&ModernRequest::use_tool("nothing", "{}"));
    let code = &unknown.result()["_meta"]["mcp-workbench/error"]["code"];
    assert_eq!(code, "tool_unknown");
    let relayed = workbench.ask_modern(&ModernRequest::use_tool("echo", "{}"));
    assert!(!relayed.raw_result().contains(SERVER_INFO));
    workbench.initialize();
    let legacy = workbench.ask("tools/list", "{}").result();
    assert_eq!(legacy.get("_meta"), None);
}

#[test]
fn both_eras_are_served_on_one_connection_in_any_order() {
    let mut workbench = Setup::one(&echo()).start();
    let list = ask(&mut workbench, "tools/list");
    assert_eq!(list["resultType"], "complete");
    open(&mut workbench);
    workbench.initialize();
    let legacy = workbench.use_tool("echo", "{}");
    assert_eq!(legacy.raw, r#"{"content":[],"n":1e400}"#);
    let done = workbench.ask_modern(&ModernRequest::use_tool("echo", "{}"));
    assert_eq!(
        done.raw_result(),
        r#"{"resultType":"complete","content":[],"n":1e400}"#
    );
    let legacy = workbench.ask("tools/list", "{}").result();
    assert_eq!(legacy.get("resultType"), None);
    assert_eq!(legacy.get("ttlMs"), None);
    let list = ask(&mut workbench, "tools/list");
    assert_eq!(list["tools"], legacy["tools"]);
    assert_eq!(list["cacheScope"], "public");
}

#[test]
fn a_modern_request_in_a_batch_is_refused() {
    let mut workbench = Setup::one(&echo()).start();
    workbench.initialize_as("2025-03-26");
    let list = ModernRequest::new("tools/list").text("2");
    workbench.send_line(&format!(
        r#"[{{"jsonrpc":"2.0","id":1,"method":"ping"}},{list}]"#
    ));
    let answers: Value = serde_json::from_str(&workbench.next_line()).unwrap();
    let answers = answers.as_array().unwrap();
    let of = |id: u64| answers.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(of(1)["result"], json!({}));
    assert_eq!(of(2)["error"]["code"], -32600);
}

#[test]
fn a_legacy_request_still_needs_initialize() {
    let mut workbench = Setup::one(&echo()).start();
    open(&mut workbench);
    let refused = workbench.ask("tools/list", "{}");
    assert_eq!(refused.error().code, -32602);
}

#[test]
fn a_modern_request_without_client_info_is_refused() {
    let rows: [(Value, i64, &str); 6] = [
        (json!({VERSION: MODERN}), -32602, CAPABILITIES),
        (json!({CAPABILITIES: {}}), -32602, VERSION),
        (json!({VERSION: 1, CAPABILITIES: {}}), -32602, VERSION),
        (
            json!({VERSION: MODERN, CAPABILITIES: []}),
            -32602,
            CAPABILITIES,
        ),
        (
            json!({VERSION: MODERN, CAPABILITIES: {}, "io.modelcontextprotocol/logLevel": "loud"}),
            -32602,
            "logLevel",
        ),
        (
            json!({VERSION: "2099-01-01", CAPABILITIES: {}}),
            -32022,
            "version",
        ),
    ];
    let mut workbench = Setup::one(&echo()).start();
    for (meta, code, words) in rows {
        let refused = workbench.ask("tools/list", &json!({"_meta": meta}).to_string());
        assert_eq!(refused.error().code, code, "{meta}");
        assert!(refused.line.contains(words), "{}", refused.line);
    }
    let refused = workbench.ask("server/discover", "{}");
    assert_eq!(refused.error().code, -32602);
    let unknown = json!({"_meta": {VERSION: "2099-01-01", CAPABILITIES: {}}});
    let refused = workbench.ask("tools/list", &unknown.to_string());
    let data: Value = serde_json::from_str(&refused.line).unwrap();
    assert_eq!(data["error"]["data"]["requested"], "2099-01-01");
    assert_eq!(data["error"]["data"]["supported"], json!([MODERN]));
}

#[test]
fn legacy_methods_do_not_exist_for_modern_clients() {
    let mut workbench = Setup::one(&echo()).start();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
    ] {
        let refused = workbench.ask_modern(&ModernRequest::new(method));
        assert_eq!(refused.error().code, -32601, "{method}");
    }
}

#[test]
fn errors_have_the_codes_of_the_era_of_their_client() {
    let mut workbench = Setup::one(&echo()).start();
    let read = ModernRequest::new("resources/read").param("uri", r#""no:such""#);
    assert_eq!(workbench.ask_modern(&read).error().code, -32602);
    workbench.initialize();
    let legacy = workbench.ask("resources/read", r#"{"uri":"no:such"}"#);
    assert_eq!(legacy.error().code, -32002);
}

#[test]
fn log_messages_need_a_level_and_belong_to_their_request() {
    let log =
        json!({"method": "notifications/message", "params": {"level": "warning", "data": "d"}});
    let actions = json!([{"notify": log}, {"answer": {}}]).to_string();
    let script = Script::named(&["log"]).on_call("log", &actions);
    let mut workbench = Setup::one(&script).start();
    open(&mut workbench);
    for (level, heard) in [
        (None, 0),
        (Some("error"), 0),
        (Some("info"), 1),
        (Some("warning"), 1),
    ] {
        let request = ModernRequest::use_tool("log", "{}");
        let request = match level {
            Some(level) => request.log_level(level),
            None => request,
        };
        let before = logged(&workbench);
        workbench.ask_modern(&request);
        assert_eq!(logged(&workbench) - before, heard, "{level:?}");
    }
}

fn logged(workbench: &Workbench) -> usize {
    workbench.said().matches("notifications/message").count()
}

#[test]
fn dynamic_mode_shows_modern_clients_no_registered_tools_but_runs_them() {
    let setup = Setup::one(&echo()).top("toolMode", json!("dynamic"));
    let mut workbench = setup.start();
    let before = ask(&mut workbench, "tools/list");
    open(&mut workbench);
    assert_eq!(ask(&mut workbench, "tools/list"), before);
    let done = workbench.ask_modern(&ModernRequest::call("dev__fs__echo", "{}"));
    assert!(done.raw_result().contains("1e400"), "{}", done.line);
}

#[test]
fn requests_to_a_legacy_server_have_no_modern_members() {
    let mut workbench = Setup::one(&echo()).start();
    open(&mut workbench);
    let request = ModernRequest::use_tool("echo", "{}").log_level("info");
    workbench.ask_modern(&request.meta("traceparent", r#""00-1""#));
    let call = workbench.journal("dev", "fs").received("tools/call")[0].params();
    assert_eq!(
        call,
        json!({"name": "echo", "arguments": {}, "_meta": {"traceparent": "00-1"}})
    );
}
