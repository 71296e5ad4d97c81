//! Users whose tokens an authorization server issues: every request over HTTP is checked, and claims decide which
//! client of the configuration a user is.

mod assertions;
mod browser;
mod credentials;
mod issuer;
mod shared_credentials;

use std::path::PathBuf;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{
    HttpRequest, HttpResponse, ModernRequest, Script, Served, Setup, TIMEOUT, call_params,
    initialize_params, poll, request_text, use_arguments,
};
use issuer::{AUDIENCE, Issuer, now};

const METADATA: &str = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";

/// Two toolboxes: developers have one of them, and administrators both, with a scope of their own.
fn serve(issuer: &Issuer, change: impl FnOnce(Setup) -> Setup) -> Served {
    let script = Script::new()
        .tools(r#"[{"name":"read","inputSchema":{"type":"object"}}]"#)
        .answers("read", r#"{"content":[{"type":"text","text":"done"}]}"#);
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server("fs", &script)
        .toolbox("ops", "Operations")
        .server("db", &script)
        .top(
            "clients",
            json!({
                "administrators": {"claims": {"groups": "admins"}, "scopes": ["admin"]},
                "developers": {"claims": {"groups": "developers"}, "toolboxes": ["dev"]},
            }),
        )
        .top(
            "auth",
            json!({"issuer": issuer.url, "audience": AUDIENCE, "scopes": ["tools"]}),
        );
    change(setup).serve_with(&[])
}

fn developer() -> Value {
    json!({"groups": ["developers"], "scope": "tools"})
}

/// Returns a token of a developer with another claim.
fn developer_with(issuer: &Issuer, name: &str, value: Value) -> String {
    let mut claims = developer();
    claims[name] = value;
    issuer.token(&claims)
}

/// Returns the request with this token, or with none.
fn with_token(request: HttpRequest, token: Option<&str>) -> HttpRequest {
    let request = request.without("authorization");
    match token {
        Some(token) => request.header("authorization", &format!("Bearer {token}")),
        None => request,
    }
}

fn ask(served: &Served, request: HttpRequest, token: Option<&str>) -> HttpResponse {
    served.connection().ask(&with_token(request, token))
}

fn challenge(response: &HttpResponse) -> String {
    let challenge = response.head.header("www-authenticate");
    challenge.unwrap_or_default().to_owned()
}

/// Every kind of request that needs a token.
fn requests(served: &Served) -> Vec<HttpRequest> {
    let initialize = request_text("0", "initialize", &initialize_params("2025-11-25"));
    vec![
        served.post(&initialize),
        served.modern_post("1", &ModernRequest::new("server/discover")),
        served
            .request("GET", "/mcp")
            .with("accept", "text/event-stream"),
        served.request("DELETE", "/mcp"),
        served.request("GET", "/metrics"),
        served.request("GET", "/anything"),
    ]
}

#[test]
fn every_request_needs_a_valid_token() {
    let issuer = Issuer::start();
    let served = serve(&issuer, |setup| setup);
    let with = |name: &str, value: Value| developer_with(&issuer, name, value);
    let foreign = Issuer::start().token(&developer());
    let invalid = format!(
        "Bearer realm=\"mcp-workbench\", error=\"invalid_token\", resource_metadata=\"{METADATA}\", scope=\"tools\""
    );
    let insufficient = format!(
        "Bearer realm=\"mcp-workbench\", error=\"insufficient_scope\", resource_metadata=\"{METADATA}\", scope="
    );
    let rows = [
        (
            None,
            401,
            format!(
                "Bearer realm=\"mcp-workbench\", resource_metadata=\"{METADATA}\", scope=\"tools\""
            ),
        ),
        (Some("abc".to_owned()), 401, invalid.clone()),
        (Some(foreign), 401, invalid.clone()),
        (Some(with("exp", json!(now() - 120))), 401, invalid.clone()),
        (Some(with("aud", json!("https://other/mcp"))), 401, invalid),
        (
            Some(with("scope", json!("other"))),
            403,
            format!("{insufficient}\"tools\""),
        ),
        (
            Some(with("groups", json!(["admins"]))),
            403,
            format!("{insufficient}\"tools admin\""),
        ),
        (Some(with("groups", json!("guests"))), 403, String::new()),
    ];
    for (token, status, expected) in rows {
        for request in requests(&served) {
            let name = request.text();
            let response = ask(&served, request, token.as_deref());
            assert_eq!(response.head.status, status, "{token:?} {name}");
            assert_eq!(challenge(&response), expected, "{token:?} {name}");
        }
    }
    let health = served.request("GET", "/healthz");
    assert_eq!(ask(&served, health, None).head.status, 200);
}

#[test]
fn the_metadata_leads_to_the_authorization_server() {
    let issuer = Issuer::start();
    let served = serve(&issuer, |setup| setup);
    let expected = json!({
        "resource": AUDIENCE,
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "resource_name": "MCP Workbench",
        "scopes_supported": ["admin", "tools"],
    });
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let response = ask(&served, served.request("GET", path), None);
        assert_eq!(response.head.status, 200);
        let metadata: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(metadata, expected);
        let posted = ask(&served, served.request("POST", path), None);
        assert_eq!(posted.head.status, 401);
        // A page of another origin must not read it.
        let foreign = served
            .request("GET", path)
            .header("origin", "https://evil.example");
        assert_eq!(ask(&served, foreign, None).head.status, 403);
    }
    // Behind a proxy the workbench is reached by its public name.
    let public = served
        .request("GET", "/healthz")
        .with("host", "tools.example.com");
    assert_eq!(ask(&served, public, None).head.status, 200);
}

/// Sends a modern call of a tool, and returns its result.
fn call(served: &Served, token: &str, tool: &str, arguments: &str) -> Value {
    let request = ModernRequest::new("tools/call")
        .param("name", &json!(tool).to_string())
        .param("arguments", arguments);
    let response = ask(served, served.modern_post("1", &request), Some(token));
    let line = if response.head.is_stream() {
        response.events().last().unwrap().message().line
    } else {
        response.message().line
    };
    serde_json::from_str::<Value>(&line).unwrap()["result"].clone()
}

#[test]
fn claims_decide_which_client_a_user_is() {
    let issuer = Issuer::start();
    let mut log = PathBuf::new();
    let mut served = serve(&issuer, |setup| {
        log = setup.path("audit.jsonl");
        let tools = json!(["open_toolbox", "use_tool", "run_code"]);
        let setup = setup.top("metaTools", tools);
        setup.top("audit", json!({ "file": log }))
    });
    let ada = issuer.token(&developer());
    let root =
        issuer.token(&json!({"sub": "root", "groups": ["admins"], "scope": ["tools", "admin"]}));
    let open = |token: &str, toolbox: &str| {
        let arguments = json!({ "toolbox": toolbox }).to_string();
        let opened = call(&served, token, "open_toolbox", &arguments);
        opened["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        open(&ada, "ops"),
        "Error: Toolbox 'ops' not found. Available toolboxes: dev"
    );
    assert!(open(&ada, "dev").contains("\"read\""));
    assert!(open(&root, "ops").contains("\"read\""));
    for (token, place) in [
        (&ada, ["dev", "fs", "read"]),
        (&root, ["ops", "db", "read"]),
    ] {
        let done = call(
            &served,
            token,
            "use_tool",
            &use_arguments(place, Some("{}")),
        );
        assert_eq!(done["content"][0]["text"], "done");
    }
    // The calls of a script are those of its user.
    let code = json!({"code": "return await tools.fs.read({})"});
    let done = call(&served, &ada, "run_code", &code.to_string());
    assert_eq!(done["structuredContent"]["result"], "done");
    served.workbench.signal(rustix::process::Signal::TERM);
    assert!(served.workbench.wait_exit().success());
    let log = std::fs::read_to_string(&log).unwrap();
    let clients = log.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let client = &line["client"];
        json!([client["as"], client["principal"], client["user"]])
    });
    assert_eq!(
        clients.collect::<Vec<_>>(),
        [
            json!(["developers", "user", "ada"]),
            json!(["administrators", "user", "root"]),
            json!(["developers", "user", "ada"]),
        ]
    );
}

#[test]
fn a_session_belongs_to_its_user_and_every_request_in_it_is_checked() {
    let issuer = Issuer::start();
    let served = serve(&issuer, |setup| setup);
    let with = |name: &str, value: Value| developer_with(&issuer, name, value);
    let ada = issuer.token(&developer());
    let initialize = request_text("0", "initialize", &initialize_params("2025-11-25"));
    let response = ask(&served, served.post(&initialize), Some(&ada));
    assert_eq!(response.head.status, 200);
    let session = response.head.header("mcp-session-id").unwrap().to_owned();
    let open = call_params("open_toolbox", r#"{"toolbox":"dev"}"#);
    let open = request_text("1", "tools/call", &open);
    let in_session = |token: &str| {
        let post = served.post(&open).header("mcp-session-id", &session);
        ask(&served, post, Some(token)).head.status
    };
    for (token, status) in [
        (ada, 200),
        // The same user with a newer token.
        (with("exp", json!(now() + 600)), 200),
        (with("exp", json!(now() - 120)), 401),
        (with("sub", json!("eve")), 404),
        // The user is another client now, whose toolboxes the session does not have.
        (
            issuer.token(&json!({"groups": ["admins"], "scope": "tools admin"})),
            404,
        ),
    ] {
        assert_eq!(in_session(&token), status, "{token}");
    }
}

#[test]
fn a_new_key_of_the_issuer_is_found() {
    let issuer = Issuer::start();
    let served = serve(&issuer, |setup| setup);
    let discover = ModernRequest::new("server/discover");
    let status = |token: &str| {
        let post = served.modern_post("1", &discover);
        ask(&served, post, Some(token)).head.status
    };
    let old = issuer.token(&developer());
    assert_eq!(status(&old), 200);
    issuer.rotate();
    let new = issuer.token(&developer());
    // Keys are fetched at most every five seconds, whatever tokens arrive.
    poll(TIMEOUT, || (status(&new) == 200).then_some(())).expect("the new key");
    assert_eq!(status(&old), 401);
}

#[test]
fn no_auth_contradicts_users() {
    let issuer = Issuer::start();
    let setup = Setup::new().top("auth", json!({"issuer": issuer.url, "audience": AUDIENCE}));
    setup.write_config();
    let mut command = setup.command();
    command.arg("--config").arg(setup.config());
    command.args(["serve", "--http", "127.0.0.1:0", "--no-auth"]);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("--no-auth contradicts `auth` of the configuration"),
        "{stderr}"
    );
}
