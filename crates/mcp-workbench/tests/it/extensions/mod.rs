//! Protocol extensions: declared capabilities travel to servers and back, whatever they are.

mod apps;
mod http;
pub(crate) mod skills;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{
    asking_back::connect,
    harness::{Journal, ModernClient, ModernRequest, Script, Setup, TOKEN},
};

const UI: &str = "io.modelcontextprotocol/ui";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The token of another principal.
const ANOTHER: &str = "another-token-of-the-tests";

/// The capabilities of a client with two extensions and an experiment.
fn declared() -> Value {
    json!({
        "extensions": { UI: { "mimeTypes": ["text/html;profile=mcp-app"] }, "com.example/new": { "n": 1 } },
        "experimental": { "trial": { "depth": [1, 2] } },
    })
}

fn script(era: &str) -> Script {
    Script::named(&["x"])
        .set("era", &json!(era).to_string())
        .answers("x", r#"{"content":[]}"#)
}

/// Returns the client capabilities that a server got: a legacy one at its start, a modern one with a call.
fn announced(journal: &Journal, era: &str) -> Value {
    let method = if era == "legacy" {
        "initialize"
    } else {
        "tools/call"
    };
    let request = journal.received(method).pop().expect("a request");
    let params: Value = serde_json::from_str(request.params.unwrap().get()).unwrap();
    match era {
        "legacy" => params["capabilities"].clone(),
        _ => params["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone(),
    }
}

#[test]
fn servers_of_both_eras_get_the_extensions_of_clients_of_both_eras() {
    for era in ["legacy", "modern"] {
        let mut workbench = connect(Setup::one(&script(era)), &declared());
        workbench.use_tool("x", "{}");
        let got = announced(&workbench.journal("dev", "fs"), era);
        assert_eq!(got["extensions"], declared()["extensions"], "{era}");
        assert_eq!(got["experimental"], declared()["experimental"], "{era}");

        let mut workbench = Setup::one(&script(era)).start();
        let declared_text = declared().to_string();
        for request in [
            ModernRequest::open("dev"),
            ModernRequest::use_tool("x", "{}"),
        ] {
            workbench.ask_modern(&request.capabilities(&declared_text));
        }
        let got = announced(&workbench.journal("dev", "fs"), era);
        assert_eq!(got["extensions"], declared()["extensions"], "modern, {era}");
        assert_eq!(
            got["experimental"],
            declared()["experimental"],
            "modern, {era}"
        );
    }
}

#[test]
fn tasks_are_announced_only_where_they_work() {
    // Tasks of the legacy era are a different protocol.
    let tasks = json!({ "extensions": { TASKS: {}, "com.example/new": {} } });
    let mut workbench = connect(Setup::one(&script("legacy")), &tasks);
    workbench.use_tool("x", "{}");
    let got = announced(&workbench.journal("dev", "fs"), "legacy");
    assert_eq!(got["extensions"], json!({ "com.example/new": {} }));

    let capabilities = json!({ "tools": {}, "extensions": { TASKS: {} } }).to_string();
    let server = script("modern").set("capabilities", &capabilities);
    let mut workbench = connect(Setup::one(&server), &declared());
    workbench.use_tool("x", "{}");
    let got = announced(&workbench.journal("dev", "fs"), "modern");
    let mut expected = declared()["extensions"].clone();
    expected[TASKS] = json!({});
    assert_eq!(got["extensions"], expected);
}

#[test]
fn requests_of_modern_clients_are_not_mixed_up() {
    let mut workbench = Setup::one(&script("modern")).start();
    workbench.ask_modern(&ModernRequest::open("dev"));
    let own = |name: &str| json!({ "extensions": { name: {} } });
    for name in ["com.example/a", "com.example/b"] {
        let request = ModernRequest::use_tool("x", "{}").capabilities(&own(name).to_string());
        workbench.ask_modern(&request);
        let got = announced(&workbench.journal("dev", "fs"), "modern");
        assert_eq!(got, own(name));
    }
    workbench.ask_modern(&ModernRequest::use_tool("x", "{}"));
    assert_eq!(
        announced(&workbench.journal("dev", "fs"), "modern"),
        json!({})
    );
}

#[test]
fn native_mode_announces_the_extensions_of_its_servers() {
    let server =
        |capabilities: Value| Script::named(&[]).set("capabilities", &capabilities.to_string());
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("a", &server(json!({ "tools": {}, "extensions": { UI: { "a": 1.5 }, TASKS: {} } })))
        .server("b", &server(json!({ "tools": {}, "extensions": { UI: { "b": 1 }, "x.y/z": {} }, "experimental": { "t": {} } })))
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let mut workbench = setup.start();
    let capabilities = workbench.initialize()["capabilities"].clone();
    assert_eq!(
        capabilities["extensions"],
        json!({ UI: { "a": 1.5 }, "x.y/z": {} })
    );
    assert_eq!(capabilities["experimental"], json!({ "t": {} }));
}

#[test]
fn hostile_declarations_are_harmless() {
    let many: Value = (0..10_000)
        .map(|n| (format!("com.example/{n}"), json!({})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let large = json!({ "com.example/large": "x".repeat(1_000_000), "com.example/small": {} });
    for (extensions, expected) in [
        (json!("text"), Value::Null),
        (json!([1]), Value::Null),
        (json!({}), Value::Null),
        (large, json!({ "com.example/small": {} })),
    ] {
        let capabilities = json!({ "tools": {}, "extensions": extensions }).to_string();
        let setup = Setup::one(&Script::named(&["x"]).set("capabilities", &capabilities))
            .top("toolMode", json!("native"))
            .top("nativeToolbox", json!("dev"));
        let mut workbench = setup.start();
        assert_eq!(
            workbench.initialize()["capabilities"]["extensions"],
            expected
        );
    }
    let capabilities = json!({ "tools": {}, "extensions": many }).to_string();
    let setup = Setup::one(&Script::named(&["x"]).set("capabilities", &capabilities))
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let introduced = setup.start().initialize();
    assert_eq!(
        introduced["capabilities"]["extensions"]
            .as_object()
            .unwrap()
            .len(),
        100
    );
    // A client's own nonsense declares nothing.
    let mut workbench = connect(
        Setup::one(&script("legacy")),
        &json!({ "extensions": 3, "experimental": "x" }),
    );
    workbench.use_tool("x", "{}");
    assert_eq!(
        announced(&workbench.journal("dev", "fs"), "legacy"),
        json!({})
    );
}

#[test]
fn clients_with_different_tokens_and_sessions_are_not_mixed_up() {
    for mode in ["proxy", "dynamic"] {
        let setup = Setup::one(&script("modern"))
            .toolbox("apps", "d")
            .server("ui", &apps::app("ui", "show", "ui://app/main"))
            .top("toolMode", json!(mode));
        let file = setup.write("tokens", &format!("{TOKEN}\n{ANOTHER}\n"));
        let served = setup.serve_with(&["--token-file", file.to_str().unwrap()]);
        let own = |name: &str| json!({ "extensions": { name: {} } });
        let clients = ["com.example/a", UI].map(|name| {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": own(name),
                "clientInfo": { "name": "it", "version": "1" },
            });
            (name, served.client_with(&params.to_string()))
        });
        let journal = served.workbench.journal("dev", "fs");
        for (name, mut client) in clients {
            for toolbox in ["dev", "apps"] {
                client.call("open_toolbox", &json!({ "toolbox": toolbox }).to_string());
            }
            client.use_tool("x", "{}");
            assert_eq!(announced(&journal, "modern"), own(name), "{mode}");
            let answer = client.ask("tools/call", r#"{"name":"show","arguments":{}}"#);
            let is_called = answer.line.contains("structuredContent");
            assert_eq!(is_called, name == UI, "{mode}: {}", answer.line);
        }
        for (name, token) in [("com.example/a", TOKEN), (UI, ANOTHER)] {
            let ask = |request: ModernRequest| {
                let request = request.capabilities(&own(name).to_string());
                let post = served.post(&request.text("1"));
                let headers = request.headers().into_iter();
                let post = headers.fold(post, |post, (name, value)| post.header(name, &value));
                let post = post.with("authorization", &format!("Bearer {token}"));
                served.connection().ask(&post).message()
            };
            ask(ModernRequest::use_tool("x", "{}"));
            assert_eq!(announced(&journal, "modern"), own(name), "{mode}");
            let answer = ask(ModernRequest::call("show", "{}"));
            let is_called = answer.line.contains("structuredContent");
            assert_eq!(is_called, name == UI, "{mode}: {}", answer.line);
        }
    }
}
