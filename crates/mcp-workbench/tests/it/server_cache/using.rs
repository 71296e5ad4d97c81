//! Opening from the catalogue, the first use, and what is found to be different then.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{LIST_CHANGED, on_use, only_list, open, replace_script, session, starts, warmed};
use crate::harness::{RemoteFixture, Script, Setup, TIMEOUT, poll};

#[test]
fn a_toolbox_opens_from_the_cache_without_starting_servers() {
    let tools = r#"[{"name":"a", "odd":[ 1 ], "inputSchema":{"type":"object"}},{"name":"broken"}]"#;
    let script = Script::new()
        .tools(tools)
        .set("instructions", "\"be kind\"");
    let setup = on_use(&script).server("two", &Script::named(&["b"]));
    let mut workbench = warmed(setup).connect();
    let opened = workbench.open("dev").json();
    let config = workbench.setup.config();
    let reason = format!(
        "inputSchema is missing; `mcp-workbench --config {} trust list dev fs` lists the withheld tools",
        config.display()
    );
    assert_eq!(
        opened,
        json!({
            "toolbox": "dev", "description": "Development tools", "servers_connected": 0,
            "tools": [
                {"name": "a", "odd": [1], "inputSchema": {"type": "object"}, "server": "fs", "toolbox": "dev"},
                {"name": "b", "inputSchema": {"type": "object"}, "server": "two", "toolbox": "dev"},
            ],
            "withheld": [{"server": "fs", "tool": "broken", "reason": reason}],
            "instructions": {"fs": "be kind"},
        })
    );
    assert_eq!(
        (starts(&workbench, "fs"), starts(&workbench, "two")),
        (1, 1)
    );
}

#[test]
fn an_incomplete_list_is_reported_without_starting_the_server() {
    let setup = Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &Script::named(&["a", "b"]), &json!({"maxTools": 1}))
        .top("connect", json!("on-use"));
    let mut workbench = warmed(setup).connect();
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["a"]);
    let error = "Incomplete tool list of server 'fs' in toolbox 'dev': only the first 1 are listed, because the list has \
                 more than maxTools (1)";
    assert_eq!(opened.json()["_errors"], json!([error]));
    assert_eq!(starts(&workbench, "fs"), 1);
}

#[test]
fn an_open_from_the_cache_has_the_same_text() {
    let script = Script::new().set("instructions", "\"be kind\"");
    let mut connected = warmed(Setup::one(&script)).connect();
    let expected = connected.open("dev").text().to_owned();
    let mut recalled = warmed(on_use(&script)).connect();
    let text = recalled.open("dev").text().to_owned();
    let expected = expected.replace(r#""servers_connected":1"#, r#""servers_connected":0"#);
    assert_eq!(text, expected);
}

#[test]
fn only_the_server_that_is_used_starts_and_it_is_counted() {
    let setup = on_use(&Script::new()).server("two", &Script::new());
    let mut workbench = warmed(setup).connect();
    assert_eq!(open(&mut workbench).0, 0);
    assert!(!workbench.use_tool("echo", "{}").failed());
    assert!(!workbench.use_tool("echo", "{}").failed());
    assert_eq!(
        (starts(&workbench, "fs"), starts(&workbench, "two")),
        (2, 1)
    );
    assert_eq!(open(&mut workbench).0, 1);
    assert_eq!(starts(&workbench, "two"), 1);
}

#[test]
fn an_uncached_server_is_connected_and_cached() {
    let setup = on_use(&Script::named(&["a"]));
    let said = session(&setup, &[("open_toolbox", r#"{"toolbox":"dev"}"#)]);
    assert!(said.contains(r#"\"servers_connected\":1"#), "{said}");
    // The next workbench knows it.
    let mut workbench = setup.connect();
    assert_eq!(open(&mut workbench), (json!(0), vec!["a".to_owned()]));
    assert_eq!(starts(&workbench, "fs"), 1);
}

#[test]
fn without_on_use_an_open_connects_all_servers() {
    for setup in [
        Setup::one(&Script::new()),
        Setup::one(&Script::new()).top("connect", json!("on-open")),
    ] {
        let mut workbench = warmed(setup).connect();
        assert_eq!(open(&mut workbench).0, 1);
        assert_eq!(starts(&workbench, "fs"), 2);
    }
}

#[test]
fn a_toolbox_can_override_connect() {
    let rows = [
        (json!("on-open"), json!("on-use"), 0),
        (json!("on-use"), json!("on-open"), 1),
        (json!("on-use"), Value::Null, 0),
    ];
    for (top, own, connected) in rows {
        let setup = Setup::one(&Script::new()).top("connect", top);
        let mut config: Value = serde_json::from_str(&setup.config_text()).unwrap();
        config["toolboxes"]["dev"]["connect"] = own;
        let mut workbench = warmed(setup.text(&config.to_string())).connect();
        assert_eq!(open(&mut workbench).0, connected, "{config}");
    }
}

#[test]
fn a_changed_list_replaces_the_cached_one_at_the_first_use() {
    let setup = warmed(on_use(&Script::named(&["stays", "goes"])));
    let now = Script::named(&["stays", "comes"])
        .answers("stays", r#"{"content":[]}"#)
        .answers("comes", r#"{"content":[]}"#);
    replace_script(&setup, 0, &now);
    let file = only_list(&setup);
    let mut workbench = setup.connect();
    assert_eq!(open(&mut workbench).1, ["stays", "goes"]);
    assert!(!workbench.use_tool("stays", "{}").failed());
    assert_eq!(
        workbench.use_tool("goes", "{}").error(),
        "Tool 'goes' not found in server 'fs' (toolbox 'dev')"
    );
    assert_eq!(
        open(&mut workbench),
        (json!(1), vec!["stays".into(), "comes".into()])
    );
    assert!(!workbench.use_tool("comes", "{}").failed());
    let taken_up = poll(TIMEOUT, || {
        let kept = std::fs::read_to_string(&file).unwrap();
        (kept.contains("comes") && !kept.contains("goes")).then_some(())
    });
    assert!(taken_up.is_some());
    assert_eq!(starts(&workbench, "fs"), 2);
}

#[test]
fn removed_tools_are_unknown_and_new_ones_are_found_at_the_first_use() {
    let setup = warmed(on_use(&Script::named(&["old_name"])));
    replace_script(&setup, 0, &Script::named(&["new_name"]));
    let mut workbench = setup.connect();
    open(&mut workbench);
    let gone = workbench.use_tool("old_name", "{}");
    let text = gone.error();
    let unknown = "Tool 'old_name' not found in server 'fs' (toolbox 'dev')";
    assert!(text.starts_with(unknown), "{text}");
    assert!(workbench.journal("dev", "fs").called().is_empty());
    assert_eq!(starts(&workbench, "fs"), 2);

    let setup = warmed(on_use(&Script::named(&["old"])));
    let now = Script::named(&["old", "new"]).answers("new", r#"{"content":[]}"#);
    replace_script(&setup, 0, &now);
    let mut workbench = setup.connect();
    open(&mut workbench);
    assert!(!workbench.use_tool("new", "{}").failed());
}

#[test]
fn a_server_that_fails_at_its_first_use_is_reported_by_the_next_open() {
    let setup = on_use(&Script::new()).server("two", &Script::named(&["b"]));
    let setup = warmed(setup);
    let dies = Script::new().on_method("initialize", r#"[{"stderr":"no database"},{"exit":3}]"#);
    replace_script(&setup, 0, &dies);
    let mut workbench = setup.connect();
    assert!(open(&mut workbench).1.contains(&"echo".to_owned()));
    let failed = workbench.use_tool("echo", "{}");
    let text = failed.error();
    let beginning = "Error executing tool 'echo' in server 'fs' (toolbox 'dev'): failed to connect: exited with code 3";
    assert!(text.starts_with(beginning), "{text}");
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["b"]);
    let errors = opened.json()["_errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
    assert_eq!(starts(&workbench, "two"), 1);
}

#[test]
fn changed_filters_apply_to_cached_tools() {
    let script = Script::named(&["read", "write"]);
    let setup = warmed(on_use(&script));
    let mut config: Value = serde_json::from_str(&setup.config_text()).unwrap();
    config["toolboxes"]["dev"]["mcpServers"]["fs"]["toolFilters"] = json!(["write"]);
    let mut workbench = setup.text(&config.to_string()).connect();
    assert_eq!(open(&mut workbench), (json!(0), vec!["write".to_owned()]));
    assert_eq!(starts(&workbench, "fs"), 1);
    assert_eq!(
        workbench.use_tool("read", "{}").error(),
        "Tool 'read' not found in server 'fs' (toolbox 'dev')"
    );
}

#[test]
fn with_auto_open_a_call_starts_its_own_server_only() {
    let setup = on_use(&Script::new()).server("two", &Script::new());
    let setup = setup.top("autoOpen", json!(true));
    let mut workbench = warmed(setup).connect();
    assert!(!workbench.use_tool("echo", "{}").failed());
    assert_eq!(open(&mut workbench).0, 1);
    assert_eq!(starts(&workbench, "two"), 1);
}

#[test]
fn dynamic_mode_registers_cached_tools_and_announces_only_changes() {
    let setup = on_use(&Script::named(&["same"]).answers("same", r#"{"content":[]}"#))
        .server("two", &Script::named(&["old"]))
        .top("toolMode", json!("dynamic"));
    let setup = warmed(setup);
    let now = Script::named(&["old", "new"]).answers("old", r#"{"content":[]}"#);
    replace_script(&setup, 1, &now);
    let mut workbench = setup.connect();
    workbench.open("dev");
    workbench.notification(LIST_CHANGED);
    assert!(!workbench.call("dev__fs__same", "{}").failed());
    let listed = workbench.ask("tools/list", "{}").result().to_string();
    assert!(
        listed.contains("dev__two__old") && !listed.contains("dev__two__new"),
        "{listed}"
    );
    assert!(
        workbench
            .untaken()
            .iter()
            .all(|it| !it.line.contains(LIST_CHANGED))
    );
    assert!(!workbench.call("dev__two__old", "{}").failed());
    workbench.notification(LIST_CHANGED);
    let listed = workbench.ask("tools/list", "{}").result().to_string();
    assert!(listed.contains("dev__two__new"), "{listed}");
}

#[test]
fn native_mode_lists_cached_tools_and_starts_servers_on_use() {
    let capabilities = r#"{"tools":{},"prompts":{}}"#;
    let one = Script::named(&["one"])
        .set("capabilities", capabilities)
        .set("instructions", "\"be kind\"")
        .on_method(
            "prompts/list",
            r#"[{"answer":{"prompts":[{"name":"greet"}]}}]"#,
        );
    let setup = on_use(&one).server("two", &Script::named(&["echo", "old"]));
    let setup = warmed(setup);
    replace_script(&setup, 1, &Script::named(&["echo", "new"]));
    let mut workbench = setup
        .argument("serve")
        .argument("--native")
        .argument("dev")
        .start();
    let announced = workbench.initialize();
    assert_eq!(announced["instructions"], "be kind");
    assert!(
        announced["capabilities"]["prompts"].is_object(),
        "{announced}"
    );
    let names = |listed: &Value| -> Vec<String> {
        let tools = listed["tools"].as_array().unwrap().iter();
        tools
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = workbench.ask("tools/list", "{}").result();
    assert_eq!(names(&listed), ["one", "echo", "old"]);
    assert_eq!(
        (starts(&workbench, "fs"), starts(&workbench, "two")),
        (1, 1)
    );
    assert!(!workbench.call("echo", "{}").failed());
    workbench.notification(LIST_CHANGED);
    let listed = workbench.ask("tools/list", "{}").result();
    assert_eq!(names(&listed), ["one", "echo", "new"]);
    assert_eq!(
        (starts(&workbench, "fs"), starts(&workbench, "two")),
        (1, 2)
    );
    let prompts = workbench.ask("prompts/list", "{}").result();
    assert_eq!(prompts["prompts"][0]["name"], "greet");
    assert_eq!(starts(&workbench, "fs"), 2);
}

#[test]
fn a_cached_remote_server_is_not_contacted_before_its_use() {
    let remote = RemoteFixture::start(&Script::named(&["echo"]));
    let setup = Setup::new()
        .toolbox("dev", "d")
        .entry("far", json!({"url": remote.url()}))
        .top("connect", json!("on-use"));
    let mut workbench = warmed(setup).connect();
    let before = remote.journal().lines().len();
    assert_eq!(open(&mut workbench), (json!(0), vec!["echo".to_owned()]));
    assert_eq!(remote.journal().lines().len(), before);
    assert!(!workbench.use_tool_of(["dev", "far", "echo"], "{}").failed());
    assert_eq!(open(&mut workbench).0, 1);
}
