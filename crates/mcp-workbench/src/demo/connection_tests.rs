use std::sync::mpsc::{self, SyncSender};

use pretty_assertions::assert_eq;

use super::*;

/// Returns a connection without a peer that receives these lines.
fn connected(lines: &[&str]) -> (Connection<Vec<u8>>, SyncSender<io::Result<Vec<u8>>>) {
    let (sender, incoming) = mpsc::sync_channel(16);
    for line in lines {
        sender.send(Ok(line.as_bytes().to_vec())).unwrap();
    }
    (
        Connection::new(Vec::new(), incoming, Duration::from_millis(20)),
        sender,
    )
}

/// The answer to a `ping` for which these lines come in, and then nothing more.
fn ping(lines: &[&str]) -> Result<Value, String> {
    let (mut connection, sender) = connected(lines);
    drop(sender);
    connection
        .request("ping", &json!({}))
        .map(|exchange| exchange.result)
        .map_err(|error| error.to_string())
}

#[test]
fn the_answer_is_found_among_other_messages() {
    let answer = ping(&[
        r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{"of":"another"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"of":"ours"}}"#,
    ]);
    assert_eq!(answer, Ok(json!({"of": "ours"})));
}

#[test]
fn failures_say_what_happened() {
    for (lines, expected) in [
        (vec![], "the workbench exited before it answered `ping`"),
        (
            vec!["hello\n"],
            "the workbench wrote a line that is not JSON: `hello`",
        ),
        (
            vec![r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#],
            "`ping` was refused with error -32601: no",
        ),
    ] {
        assert_eq!(ping(&lines), Err(expected.to_owned()));
    }
}

#[test]
fn silence_ends_at_the_deadline() {
    let (mut connection, _sender) = connected(&[]);
    let error = connection.request("ping", &json!({})).unwrap_err();
    assert!(matches!(error, DemoError::NoAnswer { .. }), "{error}");
}

#[test]
fn an_output_that_cannot_be_read_is_an_error() {
    let (mut connection, sender) = connected(&[]);
    sender.send(Err(io::Error::other("broken"))).unwrap();
    let error = connection.request("ping", &json!({})).unwrap_err();
    assert!(matches!(error, DemoError::Receive { .. }), "{error}");
}

#[test]
fn requests_of_the_workbench_are_answered() {
    let (mut connection, _sender) = connected(&[
        r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ]);
    connection.request("tools/list", &json!({})).unwrap();
    connection.notify("notifications/initialized").unwrap();
    let sent: Vec<Value> = String::from_utf8(connection.output)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        sent,
        [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
            json!({"jsonrpc": "2.0", "id": "p", "result": {}}),
            json!({"jsonrpc": "2.0", "id": "r", "error": {
                "code": -32601, "message": "the demo offers no methods"
            }}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ]
    );
}
