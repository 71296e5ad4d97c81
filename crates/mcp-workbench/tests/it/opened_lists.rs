//! Prompts and resources of opened toolboxes, in proxy and dynamic mode.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{ModernClient, ModernRequest, Script, Setup, Workbench};

/// A server that says its name in every answer, with prompts, resources and templates of these names.
fn server(name: &str, prompts: &[&str], resources: &[&str], templates: &[&str]) -> Script {
    let list = |key: &str, names: &[&str]| {
        let items = names.iter().map(|name| json!({ key: name, "name": name }));
        items.collect::<Value>()
    };
    let says = |member: &str| {
        format!(
            r#"[{{"line":"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"{member}\":[],\"from\":\"{name}\",\"got\":$PARAMS}}}}"}}]"#
        )
    };
    Script::named(&["x"])
        .set("capabilities", r#"{"tools":{},"prompts":{"listChanged":true},"resources":{},"completions":{}}"#)
        .on_method("prompts/list", &json!([{ "answer": { "prompts": list("name", prompts) } }]).to_string())
        .on_method("resources/list", &json!([{ "answer": { "resources": list("uri", resources) } }]).to_string())
        .on_method(
            "resources/templates/list",
            &json!([{ "answer": { "resourceTemplates": list("uriTemplate", templates) } }]).to_string(),
        )
        .on_method("prompts/get", &says("messages"))
        .on_method("resources/read", &says("contents"))
        .on_method("completion/complete", &says("values"))
        .on_call(
            "x",
            r#"[{"notify":{"method":"notifications/prompts/list_changed"}},{"answer":{"content":[]}}]"#,
        )
}

fn setup() -> Setup {
    Setup::new()
        .toolbox("one", "First")
        .server(
            "a",
            &server(
                "one/a",
                &["greet", "own"],
                &["u:1", "u:shared", "ui://app/main"],
                &["u:a/{id}", "t:{+rest}"],
            ),
        )
        .toolbox("two", "Second")
        .server(
            "a",
            &server(
                "two/a",
                &["greet"],
                &["u:2", "u:shared", "ui://app/main"],
                &["u:b/{id}", "t:{+rest}"],
            ),
        )
}

fn shown(workbench: &mut Workbench, method: &str, items: &str, key: &str) -> Vec<String> {
    let list = workbench.ask(method, "{}").result();
    let items = list[items].as_array().unwrap().iter();
    items
        .map(|item| {
            let meta = &item["_meta"];
            let part = |value: &Value| value.as_str().unwrap().to_owned();
            format!(
                "{}/{} {}",
                part(&meta["toolbox"]),
                part(&meta["server"]),
                part(&item[key])
            )
        })
        .collect()
}

#[test]
fn what_is_open_is_listed_with_its_server() {
    for mode in ["proxy", "dynamic"] {
        let mut workbench = setup().top("toolMode", json!(mode)).connect();
        let none: Vec<String> = Vec::new();
        assert_eq!(
            shown(&mut workbench, "prompts/list", "prompts", "name"),
            none
        );
        assert_eq!(
            shown(&mut workbench, "resources/list", "resources", "uri"),
            none
        );
        assert!(
            workbench.journal("one", "a").lines().is_empty(),
            "nothing starts before it is needed"
        );

        workbench.open("two");
        workbench.notification("notifications/prompts/list_changed");
        workbench.notification("notifications/resources/list_changed");
        assert_eq!(
            shown(&mut workbench, "prompts/list", "prompts", "name"),
            ["two/a greet"]
        );

        workbench.open("one");
        workbench.notification("notifications/prompts/list_changed");
        assert_eq!(
            shown(&mut workbench, "prompts/list", "prompts", "name"),
            ["one/a one__a__greet", "one/a own", "two/a two__a__greet"]
        );
        assert_eq!(
            shown(&mut workbench, "resources/list", "resources", "uri"),
            [
                "one/a u:1",
                "one/a mcp-workbench://resource/one/a/u:shared",
                "one/a ui://mcp-workbench/one/a/app/main",
                "two/a u:2",
                "two/a mcp-workbench://resource/two/a/u:shared",
                "two/a ui://mcp-workbench/two/a/app/main",
            ]
        );
        assert_eq!(
            shown(
                &mut workbench,
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate"
            ),
            [
                "one/a u:a/{id}",
                "one/a mcp-workbench://resource/one/a/t:{+rest}",
                "two/a u:b/{id}",
                "two/a mcp-workbench://resource/two/a/t:{+rest}",
            ]
        );
        // Opening again announces nothing.
        workbench.open("one");
        workbench.ask("ping", "{}");
        let told = |method: &str| {
            workbench
                .untaken()
                .iter()
                .filter(|it| it.method.as_deref() == Some(method))
                .count()
        };
        assert_eq!(told("notifications/prompts/list_changed"), 0);
    }
}

/// The rows: method, parameters, the server that gets it, and the parameters that it gets.
fn routed() -> Vec<(&'static str, Value, &'static str, Value)> {
    let read = |uri: &str| json!({ "uri": uri });
    vec![
        (
            "prompts/get",
            json!({ "name": "own" }),
            "one/a",
            json!({ "name": "own" }),
        ),
        (
            "prompts/get",
            json!({ "name": "two__a__greet", "arguments": {} }),
            "two/a",
            json!({ "name": "greet", "arguments": {} }),
        ),
        ("resources/read", read("u:1"), "one/a", read("u:1")),
        ("resources/read", read("u:2"), "two/a", read("u:2")),
        ("resources/read", read("u:b/7"), "two/a", read("u:b/7")),
        (
            "resources/read",
            read("mcp-workbench://resource/two/a/u:shared"),
            "two/a",
            read("u:shared"),
        ),
        (
            "resources/read",
            read("mcp-workbench://resource/one/a/t:x/y"),
            "one/a",
            read("t:x/y"),
        ),
        (
            "resources/read",
            read("ui://mcp-workbench/two/a/app/main"),
            "two/a",
            read("ui://app/main"),
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "one__a__greet" }, "argument": {} }),
            "one/a",
            json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": {} }),
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "u:b/{id}" }, "argument": {} }),
            "two/a",
            json!({ "ref": { "type": "ref/resource", "uri": "u:b/{id}" }, "argument": {} }),
        ),
    ]
}

/// Names that no one server has.
const UNKNOWN: [(&str, &str); 6] = [
    ("prompts/get", r#"{"name":"greet"}"#),
    ("prompts/get", r#"{"name":"nothing"}"#),
    ("resources/read", r#"{"uri":"u:shared"}"#),
    ("resources/read", r#"{"uri":"t:x"}"#),
    ("resources/read", r#"{"uri":"ui://app/main"}"#),
    (
        "resources/read",
        r#"{"uri":"mcp-workbench://resource/three/a/u:1"}"#,
    ),
];

#[test]
fn requests_go_to_the_server_that_the_name_belongs_to() {
    let mut workbench = setup().connect();
    workbench.open("one");
    workbench.open("two");
    for (method, params, server, got) in routed() {
        let result = workbench.ask(method, &params.to_string()).result();
        assert_eq!(
            (&result["from"], &result["got"]),
            (&json!(server), &got),
            "{method} {params}"
        );
    }
    for (method, params) in UNKNOWN {
        let refused = workbench.ask(method, params);
        assert!(
            matches!(refused.error().code, -32602 | -32002),
            "{}",
            refused.line
        );
    }
}

#[test]
fn modern_clients_use_the_same_names_and_their_lists_do_not_change() {
    let mut workbench = setup().start();
    for toolbox in ["one", "two"] {
        workbench.ask_modern(&ModernRequest::open(toolbox));
    }
    for (method, items) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let list = workbench.ask_modern(&ModernRequest::new(method)).result();
        assert_eq!(list[items], json!([]), "{method}");
    }
    for (method, params, server, _) in routed() {
        let members = params.as_object().unwrap().iter();
        let request = members.fold(ModernRequest::new(method), |request, (name, value)| {
            request.param(name, &value.to_string())
        });
        let result = workbench.ask_modern(&request).result();
        assert_eq!(result["from"], server, "{method} {params}");
    }
}

#[test]
fn a_change_of_a_server_is_announced_and_read_again() {
    let mut workbench = setup().connect();
    workbench.open("two");
    workbench.notification("notifications/prompts/list_changed");
    shown(&mut workbench, "prompts/list", "prompts", "name");
    shown(&mut workbench, "prompts/list", "prompts", "name");
    let journal = workbench.journal("two", "a");
    assert_eq!(
        journal.received("prompts/list").len(),
        1,
        "the list is cached"
    );
    workbench.use_tool_of(["two", "a", "x"], "{}");
    workbench.notification("notifications/prompts/list_changed");
    shown(&mut workbench, "prompts/list", "prompts", "name");
    assert_eq!(journal.received("prompts/list").len(), 2);
}

#[test]
fn a_link_cannot_take_a_listed_resource_over() {
    let link = r#"{"content":[{"type":"resource_link","uri":"u:1","name":"n"},{"type":"resource_link","uri":"l:1","name":"n"}]}"#;
    let setup = Setup::new()
        .toolbox("one", "First")
        .server("a", &server("one/a", &[], &["u:1"], &[]))
        .toolbox("two", "Second")
        .server("a", &server("two/a", &[], &[], &[]).answers("x", link));
    let mut workbench = setup.connect();
    workbench.open("one");
    workbench.open("two");
    shown(&mut workbench, "resources/list", "resources", "uri");
    let linked = workbench.use_tool_of(["two", "a", "x"], "{}");
    assert_eq!(linked.raw, link);
    for (uri, server) in [("u:1", "one/a"), ("l:1", "two/a")] {
        let result = workbench
            .ask("resources/read", &json!({ "uri": uri }).to_string())
            .result();
        assert_eq!(result["from"], server, "{uri}");
    }
}
