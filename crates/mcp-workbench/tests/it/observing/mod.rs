//! Metrics, log lines, the page and its commands.

mod always;
mod approvals;
mod documents;
mod failing;
mod logging;
mod metrics;
mod page;
mod refused;
mod secrets;
mod sign_in;
mod steering;
mod tracing;

use std::process::Output;

use serde_json::Value;

use crate::harness::{HttpRequest, HttpResponse, Script, Served, Setup};

/// The toolbox `dev` with the server `fs`, served over HTTP.
fn served() -> Served {
    let script = Script::named(&["read", "wipe"])
        .answers("read", r#"{"content":[{"type":"text","text":"hi"}]}"#)
        .answers("wipe", r#"{"content":[{"type":"text","text":"gone"}]}"#);
    let rules = serde_json::json!({"permissions": {"allow": ["read"]}});
    let setup = Setup::new().toolbox("dev", "d");
    setup.server_with("fs", &script, &rules).serve()
}

/// Runs a command beside the workbench.
fn command(served: &Served, arguments: &[&str]) -> Output {
    let setup = &served.workbench.setup;
    let mut command = setup.command();
    command.arg("--config").arg(setup.config()).args(arguments);
    command.output().unwrap()
}

/// Runs a command that must succeed; returns its stdout.
fn stdout(served: &Served, arguments: &[&str]) -> String {
    let output = command(served, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn document(served: &Served, arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(served, arguments)).unwrap()
}

/// Returns the path of a fresh link.
fn link(served: &Served) -> String {
    let link = stdout(served, &["ui", "--print"]);
    let begin = format!("http://{}", served.address);
    let path = link.trim().strip_prefix(&begin);
    path.unwrap_or_else(|| panic!("{link}")).to_owned()
}

/// A request of a browser without anything that identifies it.
fn browsing(served: &Served, method: &str, path: &str) -> HttpRequest {
    HttpRequest::new(method, path).header("host", &served.address.to_string())
}

fn ask(served: &Served, request: &HttpRequest) -> HttpResponse {
    served.connection().ask(request)
}

/// Returns the document that the page gets.
fn page_document(served: &Served, cookie: &str, path: &str) -> Value {
    let request = browsing(served, "GET", &format!("/ui/api/{path}")).header("cookie", cookie);
    let response = ask(served, &request);
    assert_eq!(response.head.status, 200, "{path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

/// Has the script of the page do something; returns the status and the document.
fn act(served: &Served, cookie: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = browsing(served, "POST", &format!("/ui/api/{path}"))
        .header("cookie", cookie)
        .header("origin", &format!("http://{}", served.address))
        .header("content-type", "application/json")
        .body(&body.to_string());
    let response = ask(served, &request);
    let document = serde_json::from_str(&response.body).unwrap();
    (response.head.status, document)
}

/// Opens a fresh link; returns the cookie.
fn cookie(served: &Served) -> String {
    let entered = ask(served, &browsing(served, "GET", &link(served)));
    assert_eq!(entered.head.status, 303);
    assert_eq!(entered.head.header("location"), Some("/ui/"));
    let set = entered.head.header("set-cookie").unwrap();
    assert!(set.ends_with("; HttpOnly; SameSite=Strict"), "{set}");
    set.split(';').next().unwrap().to_owned()
}
