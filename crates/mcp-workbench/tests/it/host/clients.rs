//! Clients of one host: they share servers and nothing else.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Client, Machine, alive};
use crate::harness::{Script, Setup, TIMEOUT, ToolResult, poll};

#[test]
fn clients_share_one_server_process() {
    let machine = Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#));
    let mut clients: Vec<_> = (0..4).map(|_| machine.connect()).collect();
    for client in &mut clients {
        client.open();
        client.use_tool("one", "{}");
    }
    assert_eq!(machine.journal().pids().len(), 1);
    let host = machine.host();
    assert_eq!(host["clients"].as_array().unwrap().len(), 4);
    let server = &host["servers"][0];
    assert_eq!(server["state"], "up");
    assert_eq!(server["clients"], json!([1, 2, 3, 4]));
    assert_eq!(server["calls"], 4);
    for client in clients {
        assert!(client.finish().success());
    }
    machine.run(&["stop"]);
    machine.wait_clean();
}

#[test]
fn a_client_with_sockets_sends_and_gets_long_messages() {
    let echo = r#"[{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"got\":$PARAMS}}"}]"#;
    let machine = Machine::one(&Script::named(&["echo"]).on_call("echo", echo));
    let mut client = Client::spawn_with_sockets(machine.command());
    client.initialize();
    client.open();
    let text = "x".repeat(300_000);
    // Several at once, so that the end of one and the beginning of the next arrive together.
    let arguments = serde_json::json!({ "text": text }).to_string();
    let calls = [0; 3].map(|_| client.send_use("echo", &arguments));
    // The server answers them in any order.
    let mut answered = Vec::new();
    for _ in &calls {
        let answer = client.next();
        answered.push(answer.id().unwrap().to_owned());
        assert_eq!(answer.result()["got"]["arguments"]["text"], text);
    }
    answered.sort();
    assert_eq!(answered, calls);
    assert_eq!(machine.host()["clients"].as_array().unwrap().len(), 1);
}

#[test]
fn a_client_that_ends_leaves_the_others_alone() {
    let machine = Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#));
    let mut stays = machine.connect();
    let mut ends = machine.connect();
    for client in [&mut stays, &mut ends] {
        client.open();
    }
    assert!(ends.finish().success());
    assert!(!stays.use_tool("one", "{}").failed());
    assert_eq!(machine.journal().pids().len(), 1);
}

#[test]
fn a_killed_waiting_process_cancels_the_calls_of_its_client() {
    let hangs = Script::named(&["hang", "one"])
        .on_call("hang", r#"["awaitCancel"]"#)
        .answers("one", r#"{"content":[]}"#);
    let machine = Machine::one(&hangs);
    let mut killed = machine.connect();
    let mut other = machine.connect();
    killed.open();
    other.open();
    killed.send_use("hang", "{}");
    machine.wait_received("tools/call", 1);
    drop(killed);
    machine.wait_received("notifications/cancelled", 1);
    assert!(!other.use_tool("one", "{}").failed());
    let left = poll(crate::harness::TIMEOUT, || {
        let clients = machine.host()["clients"].as_array().unwrap().len();
        (clients == 1).then_some(())
    });
    assert!(left.is_some(), "the host forgets the client");
}

#[test]
fn a_toolbox_that_one_client_opens_is_not_open_for_another() {
    let machine = Machine::one(&Script::named(&["one"]));
    let mut one = machine.connect();
    let mut other = machine.connect();
    one.open();
    let refused = other.use_tool("one", "{}");
    assert_eq!(
        refused.error(),
        "Error: Toolbox 'dev' is not open. Call open_toolbox first."
    );
}

#[test]
fn tools_that_one_client_registers_do_not_appear_for_another() {
    let setup = Setup::new()
        .top("toolMode", json!("dynamic"))
        .toolbox("dev", "Development tools")
        .server_with("fs", &Script::named(&["one"]), &json!({"cwd": "."}));
    let machine = Machine::new(setup);
    let mut one = machine.connect();
    let mut other = machine.connect();
    one.open();
    let names = |listed: serde_json::Value| -> Vec<String> {
        let tools = listed["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    let registered = "dev__fs__one".to_owned();
    assert!(names(one.ask("tools/list", "{}").result()).contains(&registered));
    assert!(!names(other.ask("tools/list", "{}").result()).contains(&registered));
    assert_eq!(machine.journal().pids().len(), 1);
}

#[test]
fn nothing_is_left_after_the_last_client_and_the_host() {
    let machine = Machine::one(&Script::named(&["one"]));
    let mut client = machine.connect();
    client.open();
    let [server] = machine.journal().pids()[..] else {
        panic!("one server was started");
    };
    assert!(client.finish().success());
    machine.run(&["stop"]);
    machine.wait_clean();
    assert!(!alive(server));
    assert_eq!(super::sockets(&machine.place()), Vec::<String>::new());
}

/// Answers a question of the workbench or of a server.
fn answer(client: &mut Client, result: &str) {
    let question = client.next();
    assert_eq!(question.method.as_deref(), Some("elicitation/create"));
    let id = question.id().unwrap();
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ));
}

/// A check of something that belongs to the first client, and not to the second.
type Check = fn(&mut Client, &mut Client);

#[test]
fn nothing_that_belongs_to_one_client_becomes_another_s() {
    let script = Script::named(&["log", "ask", "big"])
        .on_call(
            "log",
            r#"[{"notify":{"method":"notifications/message","params":{"level":"info","data":"x"}}},
                {"answer":{"content":[]}}]"#,
        )
        .answers("ask", r#"{"content":[]}"#)
        .answers(
            "big",
            &json!({"content": [{"type": "text", "text": "line\n".repeat(200)}]}).to_string(),
        );
    let keys = json!({"cwd": ".", "permissions": {"ask": ["ask"]}, "maxResultChars": 100});
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &script, &keys);
    let rows: [(&str, Check); 3] = [
        ("log level", |one, other| {
            one.ask("logging/setLevel", r#"{"level":"error"}"#);
            let id = one.send_use("log", "{}");
            assert!(one.next().answers(&id), "one wants errors only");
            other.send_use("log", "{}");
            let message = other.next();
            assert_eq!(message.method.as_deref(), Some("notifications/message"));
        }),
        ("consent", |one, other| {
            let id = one.send_use("ask", "{}");
            let yes = r#"{"action":"accept","content":{"decision":"for this session"}}"#;
            answer(one, yes);
            assert!(!ToolResult::of(&one.response(&id)).failed());
            assert!(!one.use_tool("ask", "{}").failed(), "it is not asked again");
            let id = other.send_use("ask", "{}");
            answer(other, r#"{"action":"decline"}"#);
            assert!(ToolResult::of(&other.response(&id)).failed());
        }),
        ("principal", |one, other| {
            let shown = one.use_tool("big", "{}").raw;
            let (_, after) = shown.split_once(r#""uri":""#).expect("a link to the rest");
            let (uri, _) = after.split_once('"').unwrap();
            let uri = json!({ "uri": uri }).to_string();
            assert!(
                one.ask("resources/read", &uri)
                    .raw_result()
                    .contains("line")
            );
            let refused = other.ask("resources/read", &uri);
            assert!(refused.line.contains("\"error\""), "{}", refused.line);
        }),
    ];
    let machine = Machine::new(setup);
    for (subject, check) in rows {
        let mut clients = [machine.start(), machine.start()];
        for client in &mut clients {
            client.initialize_with(&json!({"elicitation": {}}));
            client.open();
        }
        let [one, other] = &mut clients;
        check(one, other);
        let servers = machine.host()["servers"].as_array().unwrap().len();
        assert_eq!(servers, 1, "{subject}: they share the server");
    }
}

#[test]
fn a_server_ends_with_its_last_client() {
    let machine = Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#));
    let mut stays = machine.connect();
    for _ in 0..2 {
        let mut client = machine.connect();
        client.open();
        client.use_tool("one", "{}");
        assert!(client.finish().success());
        let ended = poll(TIMEOUT, || {
            let host = machine.host();
            let is_empty = host["servers"].as_array().unwrap().is_empty();
            (is_empty && machine.journal().pids().iter().all(|pid| !alive(*pid))).then_some(())
        });
        assert!(ended.is_some(), "{}", machine.host());
    }
    stays.open();
    assert!(!stays.use_tool("one", "{}").failed());
}

/// The number of clients that come and go.
const ROUNDS: usize = 10;

#[test]
fn no_descriptor_is_left_of_clients_that_have_ended() {
    let machine = Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#));
    let mut stays = machine.connect();
    stays.open();
    let folder = format!("/proc/{}/fd", machine.host_pid());
    let count = || std::fs::read_dir(&folder).unwrap().count();
    let round = || {
        let mut client = machine.connect();
        client.open();
        assert!(client.finish().success());
        machine.run(&["call", "dev", "fs", "one"]);
    };
    // The first round brings in what the host opens once.
    round();
    let before = count();
    for _ in 0..ROUNDS {
        round();
    }
    // What every client leaves would be as many as there were rounds.
    let after = poll(TIMEOUT, || (count() < before + ROUNDS).then_some(()));
    assert!(after.is_some(), "{before} before, {} after", count());
}
