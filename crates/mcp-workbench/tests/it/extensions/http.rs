//! Clients over HTTP that declare different extensions do not share a server: a legacy one learns them once, at its start.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{UI, script};
use crate::harness::{
    Fault, HttpClient, Journal, ModernClient, ModernRequest, Script, Served, Setup, TIMEOUT, poll,
};

fn declaring(name: &str) -> Value {
    json!({ "extensions": { name: { "v": 1 } } })
}

/// The declarations of the clients: two extensions, an experiment, nothing, and what counts as nothing.
fn declarations() -> [Value; 5] {
    [
        declaring("com.example/a"),
        declaring(UI),
        json!({ "experimental": { "trial": {} } }),
        json!({}),
        json!({ "extensions": {} }),
    ]
}

/// Begins a session of a client with these capabilities.
fn begin(served: &Served, capabilities: &Value) -> HttpClient {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": { "name": "it", "version": "1" },
    });
    served.client_with(&params.to_string())
}

/// Returns the capabilities that the process which got the last call was started with, without what is about questions.
fn announced_to_the_last_called(journal: &Journal) -> Value {
    let lines = journal.lines();
    let of_method = |method: &str, process: &str| {
        let text = format!("\"method\":\"{method}\"");
        let mut lines = lines.iter().rev();
        let line = lines.find(|it| it.starts_with(process) && it.contains(&text));
        line.unwrap_or_else(|| panic!("no {method} of {process}"))
    };
    let (process, _) = of_method("tools/call", "").split_once(' ').unwrap();
    let started = of_method("initialize", &format!("{process} "));
    let (_, message) = started.split_once(" in ").unwrap();
    let message: Value = serde_json::from_str(message).unwrap();
    let mut capabilities = message["params"]["capabilities"].clone();
    let members = capabilities.as_object_mut().unwrap();
    members.retain(|name, value| {
        matches!(name.as_str(), "extensions" | "experimental") && *value != json!({})
    });
    capabilities
}

fn without_empty(declared: &Value) -> Value {
    if declared["extensions"] == json!({}) {
        return json!({});
    }
    declared.clone()
}

#[test]
fn a_legacy_server_learns_only_what_its_own_clients_declare() {
    for mode in ["proxy", "dynamic", "native"] {
        let setup = Setup::one(&script("legacy")).top("toolMode", json!(mode));
        let setup = match mode {
            "native" => setup.top("nativeToolbox", json!("dev")),
            _ => setup,
        };
        let mut served = setup.serve();
        let journal = served.workbench.journal("dev", "fs");
        // The second client of a kind uses the server of the first.
        for _ in 0..2 {
            for declared in declarations() {
                let mut client = begin(&served, &declared);
                let modern = |request: ModernRequest| request.capabilities(&declared.to_string());
                if mode == "native" {
                    client.call("x", "{}");
                    served.ask_modern(&modern(ModernRequest::call("x", "{}")));
                } else {
                    client.open();
                    client.use_tool("x", "{}");
                    served.ask_modern(&modern(ModernRequest::use_tool("x", "{}")));
                }
                let got = announced_to_the_last_called(&journal);
                assert_eq!(got, without_empty(&declared), "{mode}");
            }
        }
        assert_eq!(journal.pids().len(), 4, "{mode}: one process per set");
        let calls = journal.received("tools/call").len();
        assert_eq!(calls, 2 * 2 * declarations().len(), "{mode}");
    }
}

#[test]
fn a_server_that_the_user_shares_learns_no_extensions() {
    let setup = Setup::new().toolbox("dev", "d").server_with(
        "fs",
        &script("legacy"),
        &json!({ "share": "machine" }),
    );
    let served = setup.serve();
    let journal = served.workbench.journal("dev", "fs");
    for declared in declarations() {
        let mut client = begin(&served, &declared);
        client.open();
        client.use_tool("x", "{}");
        assert_eq!(announced_to_the_last_called(&journal), json!({}));
    }
    assert_eq!(journal.pids().len(), 1);
}

#[test]
fn a_changed_configuration_reaches_clients_with_extensions() {
    let served = Setup::one(&script("legacy")).serve();
    let mut client = begin(&served, &declaring(UI));
    client.open();
    let config = served.workbench.setup.config();
    let text = std::fs::read_to_string(&config).unwrap();
    let more = text.replacen(
        "\"toolboxes\": {",
        "\"toolboxes\": { \"more\": { \"description\": \"d\", \"mcpServers\": {} },",
        1,
    );
    assert_ne!(more, text);
    std::fs::write(&config, more).unwrap();
    let opened = poll(TIMEOUT, || {
        let opened = client.call("open_toolbox", r#"{"toolbox":"more"}"#);
        (!opened.failed()).then_some(())
    });
    assert!(opened.is_some());
}

#[test]
fn declarations_of_one_client_are_bounded() {
    let fault = Fault::within(
        60,
        "X4",
        "a client over HTTP declares other extensions with every request, and in 17 sessions at once",
        "at most 16 sets have servers, those of earlier requests are stopped; the 17th session is refused with 503; others are served",
    );
    let mut served = Setup::one(&Script::named(&["x"]).answers("x", r#"{"content":[]}"#)).serve();
    let set = |n: usize| declaring(&format!("com.example/{n}"));
    for n in 0..40 {
        for request in [
            ModernRequest::open("dev"),
            ModernRequest::use_tool("x", "{}"),
        ] {
            let answer = served.ask_modern(&request.capabilities(&set(n).to_string()));
            assert!(answer.line.contains("\"result\""), "{}", answer.line);
        }
    }
    let journal = served.workbench.journal("dev", "fs");
    let is_running = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let ended = poll(TIMEOUT, || {
        let running = journal.pids().iter().filter(|pid| is_running(pid)).count();
        (running <= 16).then_some(())
    });
    assert!(ended.is_some(), "servers of forgotten sets are stopped");
    let sessions: Vec<HttpClient> = (0..16).map(|n| begin(&served, &set(n))).collect();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": set(100),
        "clientInfo": { "name": "it", "version": "1" },
    });
    let body = crate::harness::request_text("0", "initialize", &params.to_string());
    let refused = served.connection().ask(&served.post(&body));
    assert_eq!(refused.head.status, 503, "{}", refused.body);
    for mut client in sessions {
        client.open();
        assert!(!client.use_tool("x", "{}").failed());
    }
    let mut plain = served.client();
    plain.open();
    assert!(!plain.use_tool("x", "{}").failed());
    fault.ends();
}

#[test]
fn a_cut_result_is_readable_whatever_its_client_declares() {
    let long = json!({ "content": [{ "type": "text", "text": "line\n".repeat(1000) }] });
    let script = Script::named(&["x"]).answers("x", &long.to_string());
    let setup = Setup::one(&script).top("maxResultChars", json!(1000));
    let mut served = setup
        .top(
            "metaTools",
            json!(["open_toolbox", "use_tool", "read_result"]),
        )
        .serve();
    let mut client = begin(&served, &declaring(UI));
    client.open();
    let cut: Value = serde_json::from_str(&client.use_tool("x", "{}").raw).unwrap();
    let uri = &cut["_meta"]["mcp-workbench/result"]["uri"];
    let request = ModernRequest::call("read_result", &json!({ "result": uri }).to_string());
    let read = served.ask_modern(&request).result();
    let text = read["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("line\nline\n"), "{text}");
}

#[test]
fn an_approved_tool_appears_for_clients_with_extensions() {
    let script = Script::named(&["add", "sub"]);
    let setup = Setup::one(&script).top("pin", json!("enforce"));
    setup.write_config();
    let trust = |setup: &Setup, arguments: &[&str]| {
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).arg("trust");
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    trust(&setup, &["approve", "dev", "fs", "--yes"]);
    trust(&setup, &["revoke", "dev", "fs", "add", "--yes"]);
    let served = setup.serve();
    let mut client = begin(&served, &declaring(UI));
    assert_eq!(client.open().tool_names(), ["sub"]);
    trust(
        &served.workbench.setup,
        &["approve", "dev", "fs", "add", "--yes"],
    );
    let appeared = poll(TIMEOUT, || {
        (client.open().tool_names() == ["add", "sub"]).then_some(())
    });
    assert!(appeared.is_some(), "{}", served.workbench.stderr());
}

#[test]
fn servers_of_clients_with_extensions_are_in_the_metrics() {
    let served = Setup::one(&script("legacy")).serve();
    for declared in [declaring(UI), json!({})] {
        begin(&served, &declared).open();
    }
    let metrics = served
        .connection()
        .ask(&served.request("GET", "/metrics"))
        .body;
    let up = "mcp_workbench_server_up{toolbox=\"dev\",server=\"fs\"} 1\n";
    assert_eq!(metrics.matches(up).count(), 1, "{metrics}");
    let pids = served.workbench.journal("dev", "fs").pids();
    assert_eq!(pids.len(), 2, "one process per set");
}

#[test]
fn the_shutdown_waits_for_nothing_of_clients_with_extensions() {
    let mut served = Setup::one(&script("legacy")).serve();
    begin(&served, &declaring(UI)).open();
    served.workbench.signal(Signal::TERM);
    assert_eq!(served.workbench.wait_exit().code(), Some(0));
    let stderr = served.workbench.stderr();
    assert!(!stderr.contains("timed out stopping"), "{stderr}");
}
