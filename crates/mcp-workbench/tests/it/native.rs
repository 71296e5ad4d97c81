//! Native mode: one toolbox shown as it is, merged over its servers.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, TIMEOUT, Workbench, kill, poll};

/// A server with prompts, resources, templates, completions and logging.
fn full() -> Script {
    Script::named(&["echo", "own"])
        .set("capabilities", r#"{"tools":{},"prompts":{"listChanged":true},"resources":{"subscribe":true},"completions":{},"logging":{}}"#)
        .set("instructions", "\"use me well\"")
        .on_method("prompts/list", r#"[{"answer":{"prompts":[{"name":"greet","odd":1e400}]}}]"#)
        .on_method("prompts/get", r#"[{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"messages\":[],\"got\":$PARAMS}}"}]"#)
        .on_method("resources/list", r#"[{"answer":{"resources":[{"uri":"u:1","name":"one"}]}}]"#)
        .on_method("resources/templates/list", r#"[{"answer":{"resourceTemplates":[{"uriTemplate":"u:t/{id}","name":"t"}]}}]"#)
        .on_method("resources/read", r#"[{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"contents\":[],\"from\":\"a\",\"got\":$PARAMS}}"}]"#)
        .on_method("resources/subscribe", r#"[{"answer":{}},{"notify":{"method":"notifications/resources/updated","params":{"uri":"u:1","z":1e400}}}]"#)
        .on_method("completion/complete", r#"[{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"completion\":{\"values\":[]},\"got\":$PARAMS}}"}]"#)
        .on_method("logging/setLevel", r#"[{"answer":{}}]"#)
}

/// Another server with the same names, and some of its own.
fn second() -> Script {
    Script::named(&["echo"])
        .set(
            "capabilities",
            r#"{"tools":{},"prompts":{},"resources":{}}"#,
        )
        .on_method(
            "prompts/list",
            r#"[{"answer":{"prompts":[{"name":"greet"},{"name":"bye"}]}}]"#,
        )
        .on_method(
            "prompts/get",
            r#"[{"error":{"code":-7,"message":"no","data":{"z":1e400}}}]"#,
        )
        .on_method(
            "resources/list",
            r#"[{"answer":{"resources":[{"uri":"u:1"},{"uri":"u:2"}]}}]"#,
        )
        .on_method(
            "resources/templates/list",
            r#"[{"answer":{"resourceTemplates":[{"uriTemplate":"u:{+rest}"}]}}]"#,
        )
        .on_method(
            "resources/read",
            r#"[{"answer":{"contents":[],"from":"b"}}]"#,
        )
}

fn two_servers() -> Setup {
    Setup::new()
        .toolbox("dev", "d")
        .server("a", &full())
        .server("b", &second())
        .toolbox("other", "o")
        .server("c", &Script::new())
}

/// A workbench that shows a toolbox because its command line says so.
fn natively(setup: Setup, toolbox: &str) -> Workbench {
    setup.write_config();
    let config = setup.config();
    setup.start_with(&[
        "serve",
        "--config",
        config.to_str().unwrap(),
        "--native",
        toolbox,
    ])
}

fn connect() -> (Workbench, Value) {
    let setup = two_servers()
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let mut workbench = setup.start();
    let introduced = workbench.initialize();
    (workbench, introduced)
}

#[test]
fn the_first_initialize_opens_the_toolbox_and_announces_what_its_servers_have() {
    let (mut workbench, introduced) = connect();
    assert_eq!(
        introduced["capabilities"],
        json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "completions": {},
            "logging": {},
        })
    );
    assert_eq!(introduced["instructions"], "use me well");
    assert_eq!(introduced["serverInfo"]["name"], "mcp-workbench");
    assert_eq!(workbench.journal("other", "c").pids().len(), 0);
    assert_eq!(workbench.ask("unheard/of", "{}").error().code, -32601);
}

#[test]
fn lists_are_merged_and_duplicate_names_get_the_server_as_prefix() {
    let (mut workbench, _) = connect();
    let names = |message: Value, items: &str, key: &str| -> Vec<String> {
        let items = message[items].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item[key].as_str().unwrap().to_owned())
            .collect()
    };
    let tools = workbench.ask("tools/list", "{}").result();
    assert_eq!(names(tools, "tools", "name"), ["echo", "own", "b__echo"]);
    let prompts = workbench.ask("prompts/list", "{}");
    assert!(
        prompts
            .raw_result()
            .contains(r#"{"name":"greet","odd":1e400}"#)
    );
    let resources = workbench.ask("resources/list", "{}").result();
    assert_eq!(names(resources, "resources", "uri"), ["u:1", "u:2"]);
    let templates = workbench.ask("resources/templates/list", "{}").result();
    assert_eq!(
        names(templates, "resourceTemplates", "uriTemplate"),
        ["u:t/{id}", "u:{+rest}"]
    );
}

#[test]
fn a_call_reaches_its_server_with_the_original_name_and_unchanged() {
    let (mut workbench, _) = connect();
    let params = r#"{"extra":[1e400],"name":"b__echo","arguments":{"z":1,"a":123456789012345678901234567890}}"#;
    assert!(!workbench.ask("tools/call", params).is_error());
    let received = workbench.journal("dev", "b").received("tools/call");
    assert_eq!(received.len(), 1);
    assert_eq!(
        received[0].params.as_ref().unwrap().get(),
        params.replace("b__echo", "echo")
    );
    assert!(
        workbench
            .journal("dev", "a")
            .received("tools/call")
            .is_empty()
    );
    assert_eq!(
        workbench.ask("tools/call", r#"{"name":"no"}"#).error().code,
        -32602
    );
}

#[test]
fn prompts_and_completions_find_their_server() {
    let (mut workbench, _) = connect();
    let got = workbench.ask("prompts/get", r#"{"name":"greet","arguments":{"n":"1"}}"#);
    assert!(
        got.raw_result()
            .contains(r#""got":{"name":"greet","arguments":{"n":"1"}}"#)
    );
    let refused = workbench.ask("prompts/get", r#"{"name":"b__greet"}"#);
    assert!(
        refused
            .line
            .contains(r#""error":{"code":-7,"message":"no","data":{"z":1e400}}"#)
    );
    let params =
        r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"n","value":"x"}}"#;
    let completed = workbench.ask("completion/complete", params);
    assert!(
        completed
            .raw_result()
            .contains(&format!(r#""got":{params}"#))
    );
    let params =
        r#"{"ref":{"type":"ref/resource","uri":"u:t/{id}"},"argument":{"name":"id","value":""}}"#;
    assert!(!workbench.ask("completion/complete", params).is_error());
}

#[test]
fn a_resource_is_read_from_the_server_that_lists_it_or_has_a_template() {
    let (mut workbench, _) = connect();
    for (uri, from) in [("u:1", "a"), ("u:2", "b"), ("u:t/7", "a"), ("u:x/y", "b")] {
        let read = workbench.ask("resources/read", &json!({"uri": uri}).to_string());
        assert_eq!(read.result()["from"], from, "{uri}");
    }
    let missing = workbench.ask("resources/read", r#"{"uri":"v:1"}"#);
    assert_eq!(missing.error().code, -32002);
}

#[test]
fn only_subscribers_get_resource_updates() {
    let (mut workbench, _) = connect();
    assert_eq!(
        workbench
            .ask("resources/subscribe", r#"{"uri":"u:1"}"#)
            .raw_result(),
        "{}"
    );
    let updated = workbench.notification("notifications/resources/updated");
    assert_eq!(
        updated.params.as_ref().unwrap().get(),
        r#"{"uri":"u:1","z":1e400}"#
    );
}

#[test]
fn a_changed_list_is_announced_and_read_again() {
    let script = full().on_call(
        "own",
        r#"[{"notify":{"method":"notifications/prompts/list_changed"}},{"answer":{"content":[]}}]"#,
    );
    let setup = Setup::new().toolbox("dev", "d").server("a", &script);
    let mut workbench = natively(setup, "dev");
    workbench.initialize();
    for _ in 0..2 {
        workbench.ask("prompts/list", "{}");
    }
    assert_eq!(
        workbench.journal("dev", "a").received("prompts/list").len(),
        1
    );
    workbench.ask("tools/call", r#"{"name":"own"}"#);
    workbench.notification("notifications/prompts/list_changed");
    workbench.ask("prompts/list", "{}");
    assert_eq!(
        workbench.journal("dev", "a").received("prompts/list").len(),
        2
    );
}

#[test]
fn a_toolbox_without_prompts_or_resources_declares_neither() {
    let setup = Setup::one(&Script::named(&["echo"]).set("capabilities", r#"{"tools":{}}"#));
    let mut workbench = natively(setup, "dev");
    let introduced = workbench.initialize();
    assert_eq!(
        introduced["capabilities"],
        json!({"tools": {"listChanged": true}})
    );
    for method in [
        "prompts/list",
        "resources/list",
        "completion/complete",
        "logging/setLevel",
    ] {
        assert_eq!(
            workbench.ask(method, r#"{"level":"info"}"#).error().code,
            -32601,
            "{method}"
        );
    }
}

#[test]
fn a_failed_server_does_not_hide_the_others() {
    let setup = two_servers().entry("broken", json!({"command": "/no/such/program"}));
    let mut workbench = natively(setup, "other");
    workbench.initialize();
    let result = workbench
        .ask("tools/call", r#"{"name":"crash","arguments":{}}"#)
        .result();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "Error executing tool 'crash' in server 'c' (toolbox 'other'): the server exited"
        ),
        "{text}"
    );
    workbench.wait_stderr("command '/no/such/program' not found");
}

#[test]
fn a_failed_request_names_toolbox_server_and_resource() {
    let script = full().on_method("resources/read", r#"[{"exit":3}]"#);
    let setup = Setup::new().toolbox("dev", "d").server("a", &script);
    let mut workbench = natively(setup, "dev");
    workbench.initialize();
    let failed = workbench.ask("resources/read", r#"{"uri":"u:1"}"#);
    let error = failed.error();
    assert_eq!(error.code, -32603);
    assert_eq!(
        error.message,
        "Error executing resources/read of 'u:1' in server 'a' (toolbox 'dev'): the server exited with code 3 during the call"
    );
}

#[test]
fn a_server_that_is_up_after_the_handshake_is_announced() {
    let setup = Setup::new();
    let gate = json!([{"awaitFile": setup.path("gate")}]).to_string();
    let script = Script::named(&["late"]).set("onStart", &gate);
    let setup = setup.toolbox("dev", "d").server("slow", &script);
    let mut workbench = natively(setup, "dev");
    workbench.initialize();
    let listed = workbench.ask("tools/list", "{}").result();
    assert_eq!(listed["tools"], json!([]));
    workbench.setup.write("gate", "");
    workbench.notification("notifications/tools/list_changed");
    let listed = workbench.ask("tools/list", "{}").result();
    assert_eq!(listed["tools"][0]["name"], "late");
}

#[test]
fn an_unknown_native_toolbox_stops_the_start() {
    let mut workbench = natively(two_servers(), "othr");
    assert_eq!(workbench.wait_exit().code(), Some(1));
    workbench.wait_stderr("did you mean `other`?");
}

#[test]
fn subscriptions_and_the_log_level_outlive_a_restart_of_the_server() {
    let (mut workbench, _) = connect();
    workbench.ask("resources/subscribe", r#"{"uri":"u:1"}"#);
    workbench.notification("notifications/resources/updated");
    workbench.ask("logging/setLevel", r#"{"level":"error"}"#);
    let journal = workbench.journal("dev", "a");
    kill(journal.pids()[0], Signal::KILL);
    // The next call starts it again, whatever becomes of the ones before.
    let back = poll(TIMEOUT, || {
        let answer = workbench.ask("tools/call", r#"{"name":"echo","arguments":{}}"#);
        (journal.pids().len() == 2 && !answer.is_error()).then_some(())
    });
    assert!(back.is_some(), "the server comes back");
    workbench.notification("notifications/resources/updated");
    assert_eq!(journal.received("resources/subscribe").len(), 2);
    assert_eq!(journal.received("logging/setLevel").len(), 2);
}
