//! Limits: requests that are too large, too slow or too many are refused, and do not affect other clients.

use std::time::Duration;

use pretty_assertions::assert_eq;

use crate::harness::{
    Fault, HttpRequest, Script, Served, Setup, TIMEOUT, initialize_params, poll, request_text,
    use_params,
};

const LIMIT: usize = 16 * 1024 * 1024;

fn is_served(served: &Served) {
    let ping = request_text("1", "ping", "{}");
    assert_eq!(served.client().post(&ping).head.status, 200);
}

#[test]
fn a_body_that_is_too_large_is_refused_declared_or_not() {
    let fault = Fault::within(
        20,
        "T29a",
        "a body over 16 MiB, declared or in chunks",
        "413; others are served",
    );
    let served = Setup::new().serve();
    let client = served.client();
    let declared = client
        .posting("")
        .with("content-length", &(LIMIT + 1).to_string());
    assert_eq!(served.connection().ask(&declared).head.status, 413);
    let chunked = client
        .posting("")
        .without("content-length")
        .header("transfer-encoding", "chunked");
    let mut connection = served.connection();
    connection.send(&chunked);
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1024 * 1024));
    for _ in 0..17 {
        let _refused = connection.send_bytes(chunk.as_bytes());
    }
    assert_eq!(connection.head().status, 413);
    let all_spaces = " ".repeat(LIMIT);
    let response = served.connection().ask(&client.posting(&all_spaces));
    assert_eq!(response.head.status, 400, "at the limit it is read");
    is_served(&served);
    fault.ends();
}

#[test]
fn a_body_that_is_declared_too_large_is_refused_before_it_is_sent() {
    let fault = Fault::within(
        20,
        "T29k",
        "declares a body of 5 GiB, waits for 100 Continue or sends it at once",
        "413 and nothing before it; at most 16 MiB are read",
    );
    let served = Setup::new().serve();
    let declared = served.post("").with("content-length", "5368709120");
    let waiting = declared.clone().header("expect", "100-continue");
    let mut connection = served.connection();
    let refused = connection.ask(&waiting).head;
    assert_eq!(refused.status, 413);
    assert_eq!(refused.header("connection"), Some("close"));
    connection.wait_closed();
    let mut connection = served.connection();
    connection.send(&declared);
    // More than the buffers of the system and what is discarded.
    let piece = " ".repeat(1024 * 1024);
    let sent = (0..256).find(|_| connection.send_bytes(piece.as_bytes()).is_err());
    assert!(sent.is_some(), "the rest is not read");
    is_served(&served);
    fault.ends();
}

#[test]
fn a_client_that_sends_a_little_too_much_reads_the_refusal() {
    let served = Setup::new().serve();
    let body = " ".repeat(LIMIT + LIMIT / 2);
    let mut connection = served.connection();
    let response = connection.ask(&served.post(&body));
    assert_eq!(response.head.status, 413);
    assert!(response.body.contains("larger than 16 MiB"));
    connection.wait_closed();
}

#[test]
fn a_client_that_is_refused_while_it_sends_reads_the_refusal() {
    let served = Setup::new().serve();
    let body = " ".repeat(LIMIT - 1);
    let post = served.post(&body);
    let refused = [
        (401, post.clone().without("authorization")),
        (403, post.clone().with("host", "evil.example.com")),
        (404, post.clone().header("mcp-session-id", "unknown")),
        (415, post.with("content-type", "text/plain")),
    ];
    for (status, request) in refused {
        let mut connection = served.connection();
        let sent = connection.send_bytes(request.text().as_bytes());
        assert!(sent.is_ok(), "{status}: the body is not read");
        let response = connection.response();
        assert_eq!(response.head.status, status);
        assert_eq!(response.head.header("connection"), Some("close"));
        connection.wait_closed();
    }
    let small = served.post("{}").without("authorization");
    let mut connection = served.connection();
    for _ in 0..2 {
        let response = connection.ask(&small);
        assert_eq!(response.head.status, 401);
        assert_eq!(response.head.header("connection"), None);
    }
}

#[test]
fn a_body_that_arrives_in_pieces_is_read_to_its_end() {
    let served = Setup::new().serve();
    let ping = request_text("1", "ping", "{}");
    let mut client = served.client();
    let whole = client.posting(&ping);
    let text = whole.text();
    let (head, _) = text.split_at(text.len() - ping.len());
    let (start, end) = ping.split_at(ping.len() / 2);
    let chunked = client
        .posting("")
        .without("content-length")
        .header("transfer-encoding", "chunked");
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let chunks = [chunked.text(), chunk(start), chunk(end), chunk("")];
    let mut connection = served.connection();
    for pieces in [&[head, start, end][..], &chunks.each_ref().map(|it| &**it)] {
        for piece in pieces {
            connection.send_bytes(piece.as_bytes()).unwrap();
            // It was read when a request after it is answered.
            assert_eq!(client.post(&ping).head.status, 200);
        }
        assert_eq!(connection.response().head.status, 200);
    }
    let waiting = whole.header("expect", "100-continue").text();
    let (head, body) = waiting.split_at(waiting.len() - ping.len());
    connection.send_bytes(head.as_bytes()).unwrap();
    assert_eq!(connection.head().status, 100);
    connection.send_bytes(body.as_bytes()).unwrap();
    assert_eq!(connection.response().head.status, 200);
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let fault = Fault::within(
        10,
        "T29b",
        "a head of 40 kB, a hundred headers, no HTTP at all",
        "431, 400; others are served",
    );
    let served = Setup::new().serve();
    let large = served.post("{}").header("x-large", &"x".repeat(40_000));
    assert_eq!(served.connection().ask(&large).head.status, 431);
    let many = (0..100).fold(served.post("{}"), |request, number| {
        request.header(&format!("x-{number}"), "x")
    });
    assert_eq!(served.connection().ask(&many).head.status, 431);
    let mut garbage = served.connection();
    garbage.send_bytes(b"\x16\x03\x01 no http\r\n\r\n").unwrap();
    assert_eq!(garbage.head().status, 400);
    is_served(&served);
    fault.ends();
}

#[test]
fn a_slow_request_head_times_out() {
    let fault = Fault::within(
        20,
        "T29c",
        "begins a head and stops; connects and says nothing; asks for the health and stays",
        "cut off after 10 s; others are served meanwhile",
    );
    let served = Setup::new().serve();
    let mut slow = served.connection();
    slow.send_bytes(b"POST /mcp HTTP/1.1\r\nhost: ").unwrap();
    let mut silent = served.connection();
    let mut guest = served.connection();
    guest.ask(&served.request("GET", "/healthz").without("authorization"));
    is_served(&served);
    slow.wait_closed();
    silent.wait_closed();
    guest.wait_closed();
    fault.ends();
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let fault = Fault::within(
        120,
        "T29e",
        "begins more than 16,384 sessions",
        "503 with Retry-After",
    );
    let served = Setup::new().serve();
    let begin: HttpRequest = served.post(&request_text(
        "1",
        "initialize",
        &initialize_params("2025-11-25"),
    ));
    let mut connection = served.connection();
    for number in 0..16_384 {
        assert_eq!(connection.ask(&begin).head.status, 200, "{number}");
    }
    let refused = connection.ask(&begin);
    assert_eq!(refused.head.status, 503);
    assert_eq!(refused.head.header("retry-after"), Some("1"));
    fault.ends();
}

#[test]
fn too_many_requests_of_one_client_are_refused_and_others_are_served() {
    let fault = Fault::within(
        20,
        "T29f",
        "one session has more than 256 requests at once",
        "429; other sessions are served",
    );
    let served = Setup::one(&Script::new()).serve();
    let (mut client, mut other) = (served.client(), served.client());
    client.open();
    let mut hanging: Vec<_> = (0..270)
        .map(|id| client.begin(&id.to_string(), "tools/call", &use_params("hang", "{}")))
        .collect();
    let refused = hanging
        .iter_mut()
        .map(|connection| connection.head().status)
        .filter(|status| *status == 429)
        .count();
    assert_eq!(refused, 270 - 256);
    let more = client.post(&request_text("\"more\"", "ping", "{}"));
    assert_eq!(more.head.status, 429);
    assert_eq!(other.ask("ping", "{}").raw_result(), "{}");
    fault.ends();
}

#[test]
fn a_client_that_does_not_read_does_not_affect_others() {
    let fault = Fault::within(
        25,
        "T29g",
        "does not read ten results of 4 MB",
        "others are served; all ten arrive when it reads",
    );
    let served = Setup::one(&Script::new()).serve();
    let (mut client, mut other) = (served.client(), served.client());
    client.open();
    let big = r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"big"},"arguments":{"size":4000000}}}"#;
    let unread: Vec<_> = (0..10)
        .map(|id| client.begin(&id.to_string(), "tools/call", big))
        .collect();
    assert!(!other.use_tool("pid", "{}").failed());
    for mut connection in unread {
        assert_eq!(connection.response().head.status, 200);
    }
    fault.ends();
}

#[test]
fn a_client_that_disconnects_with_unread_data_does_not_affect_others() {
    let fault = Fault::within(
        25,
        "T29h",
        "is the only user of a server and leaves 48 MB unread",
        "others are served",
    );
    let served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    client.open();
    let big = r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"big"},"arguments":{"size":12000000}}}"#;
    // A server that has something to say when the client is already full has to be looked at again.
    let slow = big
        .replace("big", "sleep")
        .replace("\"size\":12000000", "\"ms\":1500");
    drop(client.begin("8", "tools/call", &slow));
    let unread: Vec<_> = (0..4)
        .map(|id| client.begin(&id.to_string(), "tools/call", big))
        .collect();
    drop(unread);
    let ping = request_text("9", "ping", "{}");
    let full = poll(TIMEOUT, || {
        (client.post(&ping).head.status == 429).then_some(())
    });
    assert!(full.is_some(), "more waits for it than may");
    let slow_is_over = Duration::from_secs(3);
    poll(slow_is_over, || {
        is_served(&served);
        None::<()>
    });
    fault.ends();
}
