//! The bounds of a server's list of tools, and lists that are too large for the event loop.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{ModernClient, ModernRequest, Script, Setup};

/// A definition of about this many bytes.
fn definition(name: &str, bytes: usize) -> Value {
    let description = "word ".repeat(bytes / 5);
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Pages of two tools each, which are called `t0`, `t1` and so on.
fn pages(count: usize, bytes: usize) -> Script {
    let pages: Vec<Value> = (0..count)
        .map(|page| {
            let tools = [2 * page, 2 * page + 1].map(|number| format!("t{number}"));
            json!(tools.map(|name| definition(&name, bytes)))
        })
        .collect();
    Script::new().set("pages", &json!(pages).to_string())
}

fn bounded(keys: &Value) -> Setup {
    Setup::new()
        .toolbox("dev", "Development tools")
        .server_with("fs", &pages(10, 1000), keys)
        .server("other", &Script::named(&["own"]))
}

const TOO_MANY: &str = "only the first 3 are listed, because the list has more than maxTools (3)";
const TOO_LARGE: &str =
    "only the first 4 are listed, because the list is larger than maxToolListBytes (5000)";

/// The keys of an entry, the tools that fit, the pages that are read for them, and what is said.
fn table() -> [(Value, usize, usize, &'static str); 2] {
    [
        (json!({"maxTools": 3}), 3, 2, TOO_MANY),
        (json!({"maxToolListBytes": 5000}), 4, 3, TOO_LARGE),
    ]
}

fn names(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
    names.push("own".to_owned());
    names
}

#[test]
fn a_list_over_a_bound_is_cut_and_reported() {
    for (keys, count, pages_read, incomplete) in table() {
        let mut workbench = bounded(&keys).connect();
        let opened = workbench.open("dev");
        assert_eq!(opened.tool_names(), names(count), "{keys}");
        let error = format!("Incomplete tool list of server 'fs' in toolbox 'dev': {incomplete}");
        let json = opened.json();
        assert_eq!(json["_errors"], json!([error]), "{keys}");
        assert_eq!(json["servers_connected"], 2);
        assert_eq!(json["notices"], Value::Null);
        let requests = workbench.journal("dev", "fs").received("tools/list");
        assert_eq!(requests.len(), pages_read, "{keys}");
        let lines = r#"{"toolbox":"dev","detail":"names"}"#;
        let lines = workbench.call("open_toolbox", lines);
        assert!(lines.text().contains(&error), "{}", lines.text());
        let modern = workbench.call_modern(&ModernRequest::open("dev"));
        assert_eq!(modern.json()["_errors"], json!([error]), "{keys}");
        // A toolbox that is opened again has not changed.
        assert_eq!(workbench.open("dev").raw, opened.raw);
    }
}

#[test]
fn in_native_mode_a_list_over_a_bound_is_logged() {
    for (keys, count, _, incomplete) in table() {
        let mut workbench = bounded(&keys)
            .top("toolMode", json!("native"))
            .top("nativeToolbox", json!("dev"))
            .connect();
        let listed = workbench.ask("tools/list", "{}").result();
        let listed = listed["tools"].as_array().unwrap().iter();
        let listed: Vec<&str> = listed.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(listed, names(count), "{keys}");
        workbench.wait_stderr(incomplete);
    }
}

/// A server whose large list has the tools `old` and `change`, and after `change` was called the tools `new` and `change`.
fn changing(setup: &Setup) -> Script {
    let marker = json!(setup.path("changed"));
    let page = |name: &str| {
        let tools = ["change", name].map(|name| definition(name, 200_000));
        json!({"answer": {"tools": tools}})
    };
    let list =
        json!([{"once": {"file": marker, "actions": [page("old")], "otherwise": [page("new")]}}]);
    let changed = json!({"notify": {"method": "notifications/tools/list_changed"}});
    let change = json!([changed, {"answer": {"content": []}}]);
    Script::new()
        .on_method("tools/list", &list.to_string())
        .on_call("change", &change.to_string())
        .answers("new", r#"{"content":[],"from":"new"}"#)
}

#[test]
fn a_changed_large_list_applies_to_the_next_call() {
    let setup = Setup::new().toolbox("dev", "d");
    let script = changing(&setup);
    let mut workbench = setup.server("fs", &script).connect();
    assert_eq!(workbench.open("dev").tool_names(), ["change", "old"]);
    assert!(!workbench.use_tool("change", "{}").failed());
    let new = workbench.use_tool("new", "{}");
    assert_eq!(new.raw, r#"{"content":[],"from":"new"}"#);
    let old = workbench.use_tool("old", "{}");
    assert_eq!(
        old.error(),
        "Tool 'old' not found in server 'fs' (toolbox 'dev')"
    );
    assert_eq!(workbench.open("dev").tool_names(), ["change", "new"]);
}

#[test]
fn the_tools_of_all_servers_together_are_listed_in_pages() {
    let large = |server: &str| {
        let tools: Vec<Value> = (0..25)
            .map(|number| definition(&format!("{server}{number}"), 200_000))
            .collect();
        Script::new().set("pages", &json!([tools]).to_string())
    };
    for mode in ["dynamic", "native"] {
        let mut workbench = Setup::new()
            .toolbox("dev", "d")
            .server("a", &large("a"))
            .server("b", &large("b"))
            .top("toolMode", json!(mode))
            .top("nativeToolbox", json!("dev"))
            .connect();
        if mode == "dynamic" {
            workbench.open("dev");
        }
        let (mut tools, mut pages, mut params) = (0, 0, json!({}));
        loop {
            let page = workbench.ask("tools/list", &params.to_string());
            assert!(page.line.len() < 9 << 20, "{mode}: {}", page.line.len());
            let page = page.result();
            let names = page["tools"].as_array().expect("tools").iter();
            let names = names.filter_map(|tool| tool["name"].as_str());
            tools += names
                .filter(|name| name.ends_with(char::is_numeric))
                .count();
            pages += 1;
            let Some(next) = page.get("nextCursor") else {
                break;
            };
            params = json!({ "cursor": next });
        }
        assert_eq!((tools, pages), (50, 2), "{mode}");
        let unknown = workbench.ask("tools/list", r#"{"cursor":"x"}"#);
        assert_eq!(unknown.error().message, "cursor: unknown", "{mode}");
    }
}

/// The detail of an open without definitions.
const NAMES: &str = r#"{"toolbox":"dev","detail":"names"}"#;

#[test]
fn withheld_tools_are_listed_up_to_a_bound() {
    // Each is withheld, and each hidden character is shown by a longer number, in the name and in two commands.
    let name = |number: usize| format!("{number}{}", "\u{E0041}".repeat(100));
    let tools: Vec<Value> = (0..2000).map(|it| definition(&name(it), 0)).collect();
    let hostile = Script::new().tools(&json!(tools).to_string());
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server("fs", &hostile)
        .server("other", &Script::named(&["own", "hid\u{202E}den"]))
        .connect();
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["own"]);
    assert!(opened.raw.len() < 2 << 20, "{}", opened.raw.len());
    let json = opened.json();
    let withheld = json["withheld"].as_array().unwrap();
    let of = |server: &str| withheld.iter().filter(|it| it["server"] == server).count();
    assert_eq!(of("other"), 1, "a server that needs little has room");
    let error = format!(
        "Incomplete list of withheld tools of toolbox 'dev': {} are left out, because they are larger than 1048576 bytes together",
        2000 - of("fs")
    );
    assert_eq!(json["_errors"], json!([error]));
    let lines = workbench.call("open_toolbox", NAMES);
    let lines = lines.text();
    assert!(lines.contains(&error), "{error}");
    assert!(lines.len() < 2 << 20, "{}", lines.len());
    workbench.wait_stderr("2000 tools are withheld in all");
    let logged = workbench.stderr();
    assert_eq!(logged.matches("the hidden character U+E0041").count(), 20);
}

#[test]
fn a_tool_with_an_endless_name_is_withheld() {
    let longest = "x".repeat(512);
    let too_long = "y".repeat(200_000);
    let duplicate = format!(r#"{{"name":"d","{too_long}":1,"{too_long}":2}}"#);
    let tools = json!([definition(&longest, 0), definition(&too_long, 0)]).to_string();
    let tools = tools.replace(']', &format!(",{duplicate}]"));
    let mut workbench = Setup::one(&Script::new().tools(&tools)).connect();
    let opened = workbench.open("dev").json();
    assert_eq!(opened["tools"][0]["name"], longest);
    let shown = format!("{}…", "y".repeat(100));
    let withheld = opened["withheld"].as_array().unwrap();
    assert_eq!(withheld.len(), 2);
    assert_eq!(withheld[0]["tool"], shown);
    let reasons = [0, 1].map(|index| withheld[index]["reason"].as_str().unwrap());
    assert!(
        reasons[0].starts_with("name is longer than 512 bytes; "),
        "{}",
        reasons[0]
    );
    let duplicate = format!("the definition has the duplicate key '{shown}'; ");
    assert!(reasons[1].starts_with(&duplicate), "{}", reasons[1]);
}

#[test]
fn endless_instructions_are_omitted() {
    let instructions = |bytes: usize| {
        Script::named(&["own"]).set("instructions", &json!("x".repeat(bytes)).to_string())
    };
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server("fs", &instructions(256 * 1024 - 1))
        .server("other", &instructions(256 * 1024 - 2))
        .connect();
    let opened = workbench.open("dev").json();
    let said = opened["instructions"].as_object().unwrap();
    assert_eq!(said.keys().collect::<Vec<_>>(), ["other"]);
    let notice = "server 'fs': the server's instructions are omitted: larger than 256 KiB";
    assert_eq!(opened["notices"], json!([notice]));
}
