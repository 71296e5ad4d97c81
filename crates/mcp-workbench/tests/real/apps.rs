//! The official example servers of MCP Apps behind the workbench, and a host made of the official SDKs in front of it.

use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use crate::packages::{self, Entry};
use crate::process::Process;
use crate::workbench::{ConfigFile, PROGRAM};

/// The example servers: one with an interface, and two whose interfaces call tools that the model does not see.
const SERVERS: [&str; 3] = [
    "mcp-budget-allocator-server",
    "mcp-system-monitor-server",
    "mcp-server-debug",
];

/// Runs the host, which opens a toolbox first if one is given, and returns what it saw by tool.
fn host(mode: &str, toolbox: Option<&str>, server: &Command, cache: &ConfigFile) -> Value {
    let mut host = Command::new("node");
    host.arg(packages::beside("clients/apps.mjs"))
        .arg(packages::folder())
        .args([mode, toolbox.unwrap_or("-")])
        .arg(server.get_program())
        .args(server.get_args())
        .env("XDG_CACHE_HOME", cache.cache());
    let lines = Process::start(host).finish();
    assert_eq!(lines.len(), 1, "one line expected: {lines:?}");
    serde_json::from_str(&lines[0]).unwrap()
}

/// Returns what the host sees of the servers without the workbench.
fn direct(mode: &str, cache: &ConfigFile) -> Value {
    let mut seen = Map::new();
    for name in SERVERS {
        let Value::Object(tools) = host(mode, None, &Entry::app(name).command(), cache) else {
            panic!("not an object");
        };
        seen.extend(tools);
    }
    Value::Object(seen)
}

fn config(more: &Value) -> ConfigFile {
    let servers = SERVERS.map(|name| (name.to_owned(), Entry::app(name).config()));
    let servers: Map<String, Value> = servers.into_iter().collect();
    let mut config = json!({
        "toolboxes": { "apps": { "description": "Apps", "mcpServers": servers } },
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    ConfigFile::new(&config)
}

#[test]
fn example_apps_look_the_same_through_the_workbench() {
    for mode in ["legacy", "auto"] {
        let native = config(&json!({ "toolMode": "native", "nativeToolbox": "apps" }));
        let proxy = config(&json!({}));
        let expected = direct(mode, &native);
        let tools = expected.as_object().unwrap();
        let is_hidden = |tool: &Value| tool["ui"]["visibility"] == json!(["app"]);
        assert!(
            tools.len() > 3 && tools.values().any(is_hidden),
            "{expected}"
        );
        for (config, toolbox) in [(&native, None), (&proxy, Some("apps"))] {
            let mut workbench = Command::new(PROGRAM);
            workbench.arg("--config").arg(config.path());
            assert_eq!(
                host(mode, toolbox, &workbench, config),
                expected,
                "{mode} {toolbox:?}"
            );
        }
    }
}
