//! The requests of clients of each era, as servers of each era get them.

use pretty_assertions::assert_eq;

use super::*;
use crate::{
    call::{CallContext, CallReports, Retry},
    downstream::test_client::{TestClient, json},
};

fn identity() -> String {
    own_identity().as_str().to_owned()
}

fn call(client: TestClient, request: CallRequest, meta: Option<&str>) -> Call {
    Call {
        request,
        context: CallContext {
            client: client.handle(),
            meta: meta.map(json),
            retry: None,
            reports: CallReports::default(),
        },
    }
}

fn tool() -> CallRequest {
    CallRequest::Tool(ToolRequest {
        name: "x".into(),
        arguments: json(r#"{ "a": 1.0 }"#),
        params: None,
        consent: None,
    })
}

fn modern(tasks: bool) -> Dialect {
    let extensions = if tasks {
        r#"{"io.modelcontextprotocol/tasks":{}}"#
    } else {
        "{}"
    };
    let said = json(&format!(
        r#"{{"capabilities":{{"extensions":{extensions}}}}}"#
    ));
    Dialect::modern(Some(&said), false)
}

/// Returns the parameters of a call as the server gets them.
fn params(dialect: Dialect, call: &Call) -> String {
    let mut meta = ClientMeta::default();
    let own = meta.of(dialect, &*call.context.client);
    dialect
        .call_params(call, 7, own)
        .into_json()
        .as_str()
        .to_owned()
}

const MODERN_META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"traceparent":"t","progressToken":"p"}"#;

#[test]
fn a_legacy_server_gets_the_request_of_a_legacy_client_unchanged() {
    let mut client = TestClient::new(Era::Legacy, "{}");
    let params = |client: &TestClient| {
        let call = call(client.clone(), tool(), Some(r#"{"x":1}"#));
        params(Dialect::LEGACY, &call)
    };
    assert_eq!(
        params(&client),
        r#"{"name":"x","arguments":{ "a": 1.0 },"_meta":{"x":1}}"#
    );
    client.progress_token = Some(r#""p""#);
    assert_eq!(
        params(&client),
        r#"{"name":"x","arguments":{ "a": 1.0 },"_meta":{"x":1,"progressToken":7}}"#
    );
}

#[test]
fn a_legacy_server_gets_no_modern_members() {
    let mut client = TestClient::new(Era::Modern, "{}");
    client.progress_token = Some(r#""p""#);
    let request = CallRequest::Relayed {
        method: "prompts/get",
        params: json(&format!(
            r#"{{"name":"x","inputResponses":{{}},"requestState":"s","_meta":{MODERN_META}}}"#
        )),
    };
    let call = call(client, request, Some(r#"{"traceparent":"t"}"#));
    assert_eq!(
        params(Dialect::LEGACY, &call),
        r#"{"name":"x","_meta":{"traceparent":"t","progressToken":7}}"#
    );
}

#[test]
fn modern_servers_get_the_description_of_legacy_clients() {
    let mut client = TestClient::new(
        Era::Legacy,
        r#"{"experimental":{},"elicitation":{"form":{}}}"#,
    );
    client.log_level = Some("info");
    client.progress_token = Some(r#""p""#);
    let call = call(client, tool(), Some(r#"{"x":1}"#));
    let expected = format!(
        r#"{{"name":"x","arguments":{{ "a": 1.0 }},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}},"experimental":{{}},"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}},"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/logLevel":"info","x":1,"progressToken":7}}}}"#,
        identity()
    );
    assert_eq!(params(modern(true), &call), expected);
}

#[test]
fn answers_of_modern_clients_reach_modern_servers_unchanged() {
    let client = TestClient::new(Era::Modern, "{}");
    let mut call = call(client, tool(), Some(r#"{"traceparent":"t"}"#));
    call.context.retry = Some(Box::new(Retry {
        responses: Some(json(r#"{ "k": {} }"#)),
        state: Some(json(r#""s\u0061""#)),
    }));
    let expected = format!(
        r#"{{"name":"x","arguments":{{ "a": 1.0 }},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{},"traceparent":"t"}},"inputResponses":{{ "k": {{}} }},"requestState":"s\u0061"}}"#,
        identity()
    );
    assert_eq!(params(modern(false), &call), expected);
}

#[test]
fn extensions_are_declared_as_they_are_and_tasks_where_they_work() {
    let other = r#"{"extensions":{"com.example/y":{}}}"#;
    let both = r#"{"extensions":{"com.example/y":{},"io.modelcontextprotocol/tasks":{}}}"#;
    let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let cases = [
        (Era::Modern, r#"{"x":1}"#, false, r#"{"x":1}"#),
        (Era::Modern, other, false, other),
        (Era::Modern, other, true, both),
        (Era::Modern, both, false, both),
        (Era::Modern, tasks, false, tasks),
        (Era::Legacy, both, false, other),
        (Era::Legacy, other, true, both),
        (Era::Legacy, tasks, false, "{}"),
        (Era::Legacy, "{}", true, tasks),
    ];
    for (era, declared, server_has_tasks, expected) in cases {
        let declared_now = TestClient::new(era, declared).handle().declaration();
        let capabilities = modern(server_has_tasks).capabilities(Some((era, &declared_now)));
        assert_eq!(capabilities.as_str(), expected, "{era:?} {declared}");
    }
}

#[test]
fn configured_roots_are_declared_for_all_clients() {
    let dialect = Dialect::modern(None, true);
    assert_eq!(dialect.capabilities(None).as_str(), r#"{"roots":{}}"#);
    let client = TestClient::new(Era::Modern, r#"{"roots":{"listChanged":true}}"#).handle();
    let declared = client.declaration();
    assert_eq!(
        dialect
            .capabilities(Some((Era::Modern, &declared)))
            .as_str(),
        r#"{"roots":{"listChanged":true}}"#
    );
}

#[test]
fn each_client_is_described_to_a_modern_server_as_it_is_now() {
    let mut meta = ClientMeta::default();
    let mut told = |client: &TestClient| {
        let own = meta.of(modern(false), client).to_vec();
        String::from_utf8(own).unwrap()
    };
    let mut client = TestClient::new(Era::Modern, r#"{"roots":{}}"#);
    let first = told(&client);
    assert!(
        first.contains(r#"clientCapabilities":{"roots":{}}"#),
        "{first}"
    );
    assert_eq!(told(&client), first);
    client.log_level = Some("error");
    assert!(told(&client).contains(r#"logLevel":"error""#));
    client.log_level = None;
    assert_eq!(told(&client), first);
    let other = TestClient::new(Era::Modern, r#"{"sampling":{}}"#);
    assert!(told(&other).contains(r#"clientCapabilities":{"sampling":{}}"#));
    assert_eq!(meta.of(Dialect::LEGACY, &other), b"");
}
