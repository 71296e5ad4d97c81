//! The page of a host, its commands and its metrics: they show all clients.

use std::net::SocketAddr;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Client, Machine, initialize_params};
use crate::harness::{
    HttpConnection, HttpRequest, HttpResponse, Script, Setup, TIMEOUT, ToolResult, poll,
};

/// The server `fs`, which may `read` without asking.
fn machine() -> Machine {
    let script = Script::named(&["read", "wipe"])
        .answers("read", r#"{"content":[{"type":"text","text":"hi"}]}"#)
        .answers("wipe", r#"{"content":[{"type":"text","text":"gone"}]}"#);
    let entry = json!({"cwd": ".", "permissions": {"allow": ["read"]}});
    let setup = Setup::new().toolbox("dev", "Development tools");
    Machine::new(setup.server_with("fs", &script, &entry))
}

fn named(machine: &Machine, name: &str) -> Client {
    let mut client = machine.start();
    let params = initialize_params(&json!({})).replace("\"it\"", &format!("{name:?}"));
    client.ask("initialize", &params);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.open();
    client
}

fn live(machine: &Machine, what: &str) -> Value {
    serde_json::from_str(&machine.run(&["live", what, "--json"])).unwrap()
}

/// Opens a link in a browser without cookies; returns the address and the response.
fn enter(link: &str) -> (SocketAddr, HttpResponse) {
    let rest = link.trim().strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    (address, get(address, &format!("/{path}"), &[]))
}

fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let mut request = HttpRequest::new("GET", path).header("host", &address.to_string());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    HttpConnection::open(address).ask(&request)
}

#[test]
fn the_page_of_a_host_leaves_the_record_of_another_workbench_alone() {
    let machine = machine();
    let _client = named(&machine, "editor");
    let file = "home/.local/state/mcp-workbench/page.json";
    // That of a `serve --http`, which runs on when the host ends.
    let file = machine.setup.write(file, "{}");
    let (_, entered) = enter(&machine.run(&["ui", "--print"]));
    assert_eq!(entered.head.status, 303);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "{}");
}

#[test]
fn the_page_of_a_host_shows_the_calls_of_all_clients() {
    let machine = machine();
    let (mut one, mut two) = (named(&machine, "editor"), named(&machine, "terminal"));
    // Somebody looks, so calls are kept from now on.
    assert_eq!(live(&machine, "calls"), json!({"calls": []}));
    assert!(!one.use_tool("read", "{}").failed());
    assert!(!two.use_tool("read", "{}").failed());
    let calls = live(&machine, "calls");
    let calls = calls["calls"].as_array().unwrap().iter();
    let callers: Vec<_> = calls
        .map(|it| {
            let client = &it["client"];
            (
                client["name"].clone(),
                client["number"].clone(),
                it["hops"].as_array().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(
        callers,
        [
            (json!("editor"), json!(1), 1),
            (json!("terminal"), json!(2), 1),
        ]
    );
    let host = machine.host_pid();
    let servers = live(&machine, "servers");
    assert_eq!(servers["servers"].as_array().unwrap().len(), 1, "{servers}");
    let server = &servers["servers"][0];
    assert_eq!(
        (&server["state"], &server["calls"]),
        (&json!("up"), &json!(2))
    );
    let pid = server["pid"].clone();
    machine.run(&["live", "restart", "dev", "fs"]);
    let restarted = live(&machine, "servers")["servers"][0]["pid"].clone();
    assert_ne!(restarted, pid);
    assert_eq!(machine.host_pid(), host);
    assert!(!one.use_tool("read", "{}").failed());
}

#[test]
fn a_call_of_any_client_is_decided_on_the_page_of_the_host() {
    let machine = machine();
    let mut asking = machine.start();
    asking.initialize_with(&json!({"elicitation": {}}));
    asking.open();
    let _other = named(&machine, "other");
    let id = asking.send_use("wipe", "{}");
    // The client is asked too; it does not answer.
    let question = asking.next();
    assert_eq!(question.method.as_deref(), Some("elicitation/create"));
    let waiting = poll(TIMEOUT, || {
        let approvals = live(&machine, "approvals");
        let first = approvals["approvals"].as_array().unwrap().first().cloned();
        first.map(|it| it["id"].to_string())
    });
    machine.run(&["live", "decide", &waiting.unwrap(), "once"]);
    let result = ToolResult::of(&asking.response(&id));
    assert!(result.text().contains("gone"), "{}", result.text());
}

#[test]
fn the_page_of_a_host_begins_on_demand_and_is_guarded() {
    let machine = machine();
    let mut client = machine.connect();
    client.open();
    assert_eq!(listeners(machine.host_pid()), 0, "nobody asked for a page");
    let link = machine.run(&["ui", "--print"]);
    assert_eq!(listeners(machine.host_pid()), 1);
    let (address, entered) = enter(&link);
    assert!(address.ip().is_loopback());
    assert_eq!(entered.head.status, 303);
    let cookie = entered.head.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(enter(&link).1.head.status, 403, "a link is good once");
    let cases = [
        ("/ui/", &[("cookie", cookie)][..], 200),
        ("/ui/api/servers", &[("cookie", cookie)], 200),
        ("/metrics", &[("cookie", cookie)], 200),
        ("/ui/", &[], 401),
        ("/metrics", &[], 401),
        ("/mcp", &[("cookie", cookie)], 404),
        ("/mcp", &[], 401),
        (
            "/ui/",
            &[("cookie", cookie), ("origin", "http://evil.example")],
            403,
        ),
        ("/metrics", &[("cookie", cookie), ("origin", "null")], 403),
    ];
    for (path, headers, status) in cases {
        let response = get(address, path, headers);
        assert_eq!(response.head.status, status, "{path} {headers:?}");
    }
    let metrics = get(address, "/metrics", &[("cookie", cookie)]).body;
    let up = r#"mcp_workbench_server_up{toolbox="dev",server="fs"} 1"#;
    assert!(metrics.contains(up), "{metrics}");
    assert!(machine.run(&["live", "metrics"]).contains(up));
    // A second look is at the same page.
    assert_eq!(enter(&machine.run(&["ui", "--print"])).0, address);
}

/// Returns the number of TCP ports that a process listens at.
fn listeners(pid: u32) -> usize {
    let sockets = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let sockets = sockets
        .flatten()
        .filter_map(|it| std::fs::read_link(it.path()).ok());
    let own: Vec<String> = sockets
        .filter_map(|it| {
            Some(
                it.to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
    let listening = table.lines().filter(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // The fourth field is the state, the tenth the inode.
        fields.get(3) == Some(&"0A") && own.iter().any(|it| fields.get(9) == Some(&it.as_str()))
    });
    listening.count()
}
