//! Calls whose last steps panic: the client gets an error, and the other calls of the server are answered.

use pretty_assertions::assert_eq;

use super::*;
use crate::{
    call::Principal,
    downstream::{
        test_client::{TestClient, json},
        test_server::TestServer,
    },
    era::Era,
    serve::{
        exchange::Exchange,
        modern::ModernRequest,
        test_pipe::{connect, read_message},
    },
    wire::Message,
    workbench::call::test_call::ready_call,
};

const CONFIG: &str = r#"{"toolboxes":{"dev":{"description":"d","mcpServers":{"fs":{"command":"c","maxResultChars":1000}}}}}"#;
const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const SMALL: &str = r#"{"content":[]}"#;

/// Returns a result that is over its budget.
fn large() -> String {
    let text = "x".repeat(5000);
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn test_server(connection: &Connection) -> TestServer {
    let toolbox = connection.workbench().toolbox("dev").unwrap();
    TestServer::in_place_of(&toolbox.server(&"fs".into()).unwrap())
}

/// Returns a call whose last steps panic if its result is large.
fn failing_call(connection: &Connection, server: &TestServer, era: Era) -> ReadyCall {
    let client = TestClient {
        panics_over_budget: true,
        ..TestClient::new(era, "{}")
    };
    ready_call(connection.workbench(), &server.handle, client)
}

fn failed(id: u64) -> RawJson {
    json(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"internal error"}}}}"#
    ))
}

#[tokio::test]
async fn a_panic_in_the_last_steps_of_a_call_fails_this_call_only() {
    let (connection, mut pipe) = connect(CONFIG, Principal::Local);
    let mut server = test_server(&connection);
    for id in [1, 2] {
        let call = failing_call(&connection, &server, Era::Legacy);
        let id = RequestId::from_json(RawJson::of(&id)).unwrap();
        let place = ReplyPlace::Line(connection.output());
        take_begun(
            &connection,
            Begun::Call(CallStart::Ready(call)),
            id,
            place,
            0,
        );
    }
    server.answer(&large());
    server.answer(SMALL);
    assert_eq!(read_message(&mut pipe).await, failed(1));
    let done = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{SMALL}}}"#);
    assert_eq!(read_message(&mut pipe).await, json(&done));
}

/// Sends a call of a modern client.
fn send_modern(connection: &Arc<Connection>, call: ReadyCall, id: u64) {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#);
    let Ok(Message::Request(request)) = Message::parse(&text.into()) else {
        panic!("not a request");
    };
    let mut meta = RequestMeta::read(&json(META));
    let mut said = ModernRequest::new(&mut meta, None).ok().unwrap();
    let exchange = Exchange::new(connection, true);
    let place = ReplyPlace::Line(connection.output());
    assert!(exchange.attach(connection, request, place, &mut said));
    exchange.send(call);
}

#[tokio::test]
async fn a_panic_in_the_last_steps_of_a_modern_call_fails_this_call_only() {
    let (connection, mut pipe) = connect(CONFIG, Principal::Local);
    let mut server = test_server(&connection);
    for id in [1, 2] {
        let call = failing_call(&connection, &server, Era::Modern);
        send_modern(&connection, call, id);
    }
    server.answer(&large());
    server.answer(SMALL);
    assert_eq!(read_message(&mut pipe).await, failed(1));
    let done = read_message(&mut pipe).await;
    assert_eq!(done.member("id"), Some(json("2")));
    let result = done.member("result").expect("a result");
    assert_eq!(result.member("content"), Some(json("[]")));
}
