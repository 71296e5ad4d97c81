//! The resolved configuration of valid files.

mod oauth;
mod rules;
mod seal;

use std::path::{Path, PathBuf};

use ident::Name;
use pretty_assertions::assert_eq;

use super::*;
use crate::config::{Loaded, parse};

fn environment() -> Environment {
    let variables = [
        ("PATH", "/bin"),
        ("TOKEN", "hunter2hunter2"),
        ("EMPTY", ""),
        ("KIND", "sse"),
        ("OTHER", "swordfish"),
    ];
    Environment::new(
        variables.map(|(name, value)| (name.into(), value.into())),
        "/start".into(),
        Some("/home/me".into()),
    )
}

fn load(text: &str) -> Loaded {
    match parse(text, Path::new("/etc/box/c.json"), &environment()) {
        Ok(loaded) => loaded,
        Err(problems) => panic!("{problems}"),
    }
}

/// Resolves an entry as the only server `x` of the toolbox `y`; returns the server and the whole.
fn server(entry: &str) -> (Arc<Server>, Loaded) {
    let loaded = load(&format!(
        r#"{{"toolboxes": {{"y": {{"description": "d", "mcpServers": {{"x": {entry}}}}}}}}}"#
    ));
    let server = Arc::clone(&loaded.config.toolboxes["y"].servers["x"]);
    (server, loaded)
}

#[test]
fn the_budget_of_an_entry_wins_over_that_of_the_file() {
    for (top, entry, budget) in [
        ("null", "null", None),
        ("0", "null", None),
        ("500", "null", Some(500)),
        ("500", "0", None),
        ("500", "600", Some(600)),
        ("null", "600", Some(600)),
    ] {
        let server = format!(r#"{{"command": "c", "maxResultChars": {entry}}}"#);
        let loaded = load(&format!(
            r#"{{"maxResultChars": {top}, "toolboxes": {{"y": {{"description": "d", "mcpServers": {{"x": {server}}}}}}}}}"#
        ));
        let server = &loaded.config.toolboxes["y"].servers["x"];
        assert_eq!(server.max_result_chars, budget, "{top} {entry}");
    }
}

#[test]
fn the_bounds_of_a_tool_list_are_those_of_the_entry() {
    let (server, _) = server(r#"{"command": "x", "maxTools": 7, "maxToolListBytes": 2048}"#);
    let bounds = ListBounds {
        tools: 7,
        bytes: 2048,
    };
    assert_eq!(server.list_bounds, bounds);
}

fn with_stdio<T>(entry: &str, look: impl Fn(&StdioLaunch) -> T) -> T {
    let (server, _) = server(entry);
    match &server.transport {
        Transport::Stdio(launch) => look(launch),
        other => panic!("{entry} became {other:?}"),
    }
}

fn with_remote<T>(entry: &str, look: impl Fn(&RemoteEndpoint) -> T) -> T {
    let (server, _) = server(entry);
    match &server.transport {
        Transport::Remote(endpoint) => look(endpoint),
        other => panic!("{entry} became {other:?}"),
    }
}

#[test]
fn an_era_is_fixed_or_detected() {
    let era = |keys: &str| server(&format!(r#"{{"command": "x"{keys}}}"#)).0.era;
    assert_eq!(era(""), None);
    assert_eq!(era(r#", "era": "auto""#), None);
    assert_eq!(era(r#", "era": "legacy""#), Some(Era::Legacy));
    assert_eq!(era(r#", "era": "modern""#), Some(Era::Modern));
}

#[test]
fn arguments_are_also_stored_as_written() {
    let entry = r#"{"command": ["x", "${TOKEN}"], "args": ["a", "${OTHER}"]}"#;
    let written = with_stdio(entry, |launch| launch.args_as_written.clone());
    assert_eq!(written, ["${TOKEN}", "a", "${OTHER}"]);
}

#[test]
fn defaults() {
    let (server, loaded) = server(r#"{"command": "x"}"#);
    assert_eq!(loaded.config.tool_mode, ToolMode::Proxy);
    assert_eq!(loaded.config.tool_name_limit, 64);
    assert_eq!(loaded.config.meta_tools, MetaTool::DEFAULT);
    assert_eq!(loaded.config.open_detail, Detail::Full);
    assert_eq!(server.max_result_chars, None);
    let bounds = ListBounds {
        tools: 10_000,
        bytes: 16_777_216,
    };
    assert_eq!(server.list_bounds, bounds);
    assert_eq!(loaded.config.file, Path::new("/etc/box/c.json"));
    assert_eq!(
        server.times,
        ServerTimes {
            connect: Duration::from_mins(2),
            call: Duration::from_mins(10),
            max_call: Duration::from_hours(1),
            idle: None,
        }
    );
    assert!(server.filters.allows("anything"));
    with_stdio(r#"{"command": "x"}"#, |launch| {
        assert_eq!(launch.args, Vec::<String>::new());
        assert_eq!(launch.cwd, Path::new("/start"));
        assert_eq!(
            launch.environment.inherited,
            [("PATH".into(), "/bin".into())]
        );
        assert_eq!(launch.environment.file, None);
        assert!(launch.environment.own.is_empty());
    });
}

#[test]
fn settings_are_applied() {
    let (server, _) = server(
        r#"{"command": "x", "connectTimeoutMs": 1, "callTimeoutMs": 2, "maxCallMs": 3, "idleTimeoutMs": 4}"#,
    );
    assert_eq!(
        server.times,
        ServerTimes {
            connect: Duration::from_millis(1),
            call: Duration::from_millis(2),
            max_call: Duration::from_millis(3),
            idle: Some(Duration::from_millis(4)),
        }
    );
    let loaded = load(r#"{"toolboxes": {}, "toolMode": "dynamic", "toolNameLimit": 40}"#);
    assert_eq!(loaded.config.tool_mode, ToolMode::Dynamic);
    assert_eq!(loaded.config.tool_name_limit, 40);
}

#[test]
fn order_and_names_are_preserved() {
    let loaded = load(
        r#"{"toolboxes": {
            "zz": {"description": "d", "mcpServers": {"b__c": {"command": "x"}, "a.b/c d": {"command": "x"}, "Ä": {"command": "x"}}},
            "AA": {"description": "d", "mcpServers": {}},
            "aa": {"description": "d", "mcpServers": {}}
        }}"#,
    );
    let toolboxes: Vec<&str> = loaded.config.toolboxes.keys().map(Name::as_str).collect();
    assert_eq!(toolboxes, ["zz", "AA", "aa"]);
    let servers = &loaded.config.toolboxes["zz"].servers;
    let names: Vec<&str> = servers.keys().map(Name::as_str).collect();
    assert_eq!(names, ["b__c", "a.b/c d", "Ä"]);
}

#[test]
fn one_server_name_may_be_in_several_toolboxes() {
    let loaded = load(
        r#"{"toolboxes": {
            "a": {"description": "d", "mcpServers": {"s": {"command": "x", "env": {"A": "1"}}}},
            "b": {"description": "d", "mcpServers": {"s": {"command": "x", "env": {"A": "2"}}}}
        }}"#,
    );
    let value = |toolbox: &str| match &loaded.config.toolboxes[toolbox].servers["s"].transport {
        Transport::Stdio(launch) => launch.environment.own["A"].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((value("a"), value("b")), ("1".into(), "2".into()));
}

#[test]
fn disabled_servers_are_dropped_and_not_expanded() {
    let loaded = load(
        r#"{"toolboxes": {"t": {"description": "d", "mcpServers": {
            "a": {"command": "${NOT_SET}", "disabled": true},
            "b": {"command": "${", "enabled": false},
            "c": {"disabled": true},
            "d": {"command": "x", "disabled": false, "enabled": true}
        }}}}"#,
    );
    let servers = &loaded.config.toolboxes["t"].servers;
    assert_eq!(servers.keys().map(Name::as_str).collect::<Vec<_>>(), ["d"]);
    assert_eq!(loaded.unset, []);
}

#[test]
fn paths_are_relative_to_the_folder_of_the_file() {
    let cases = [
        ("x", "x"),
        ("./x", "/etc/box/x"),
        ("bin/x", "/etc/box/bin/x"),
        ("../x", "/etc/box/../x"),
        ("/usr/bin/x", "/usr/bin/x"),
        ("${userHome}/x", "/home/me/x"),
    ];
    for (command, expected) in cases {
        let found = with_stdio(&format!(r#"{{"command": "{command}"}}"#), |launch| {
            launch.command.clone()
        });
        assert_eq!(found, expected, "{command}");
    }
    let cases = [
        (r#""cwd": ".""#, "/etc/box", None),
        (r#""cwd": "sub/./x""#, "/etc/box/sub/x", None),
        (r#""cwd": "/abs""#, "/abs", None),
        (r#""cwd": "${workspaceFolder}""#, "/start", None),
        (r#""cwd": "${EMPTY}""#, "/start", None),
        (r#""envFile": ".env""#, "/start", Some("/etc/box/.env")),
        (r#""envFile": "/abs/.env""#, "/start", Some("/abs/.env")),
        (r#""envFile": "${EMPTY}""#, "/start", None),
    ];
    for (keys, cwd, file) in cases {
        let entry = format!(r#"{{"command": "x", {keys}}}"#);
        let found = with_stdio(&entry, |launch| {
            (launch.cwd.clone(), launch.environment.file.clone())
        });
        assert_eq!(found, (cwd.into(), file.map(PathBuf::from)), "{keys}");
    }
}

#[test]
fn a_relative_file_is_resolved_against_the_start_directory() {
    let text =
        r#"{"toolboxes": {"y": {"description": "d", "mcpServers": {"x": {"command": "./x"}}}}}"#;
    let loaded = parse(text, Path::new("sub/c.json"), &environment()).expect("a valid file");
    let Transport::Stdio(launch) = &loaded.config.toolboxes["y"].servers["x"].transport else {
        panic!("a program");
    };
    assert_eq!(launch.command, "/start/sub/x");
}

#[test]
fn a_command_may_be_a_whole_line() {
    let entry = r#"{"command": ["npx", "-y", "${EMPTY}"], "args": ["z"]}"#;
    with_stdio(entry, |launch| {
        assert_eq!(launch.command, "npx");
        assert_eq!(launch.args, ["-y", "", "z"]);
    });
}

#[test]
fn every_string_of_an_entry_is_expanded() {
    let entry = r#"{"command": "${NO:-cmd}", "args": ["${TOKEN}", "a${NO:-b}"], "env": {"K": "${env:TOKEN}"},
        "cwd": "${userHome}", "envFile": "${userHome}/e", "inheritEnv": ["${NO:-OTHER}"],
        "toolFilters": ["${NO:-read}_*"], "type": "${NO:-stdio}"}"#;
    with_stdio(entry, |launch| {
        assert_eq!(launch.command, "cmd");
        assert_eq!(launch.args, ["hunter2hunter2", "ab"]);
        assert_eq!(launch.environment.own["K"], "hunter2hunter2");
        assert_eq!(launch.cwd, Path::new("/home/me"));
        assert_eq!(launch.environment.file, Some("/home/me/e".into()));
        assert_eq!(
            launch.environment.inherited,
            [
                ("PATH".into(), "/bin".into()),
                ("OTHER".into(), "swordfish".into())
            ]
        );
    });
    let (server, _) = server(entry);
    assert!(server.filters.allows("read_file"));
    assert!(!server.filters.allows("write_file"));
    let entry = r#"{"type": "${KIND}", "url": "https://${NO:-h}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}"#;
    with_remote(entry, |endpoint| {
        assert_eq!(endpoint.url, "https://h/mcp");
        assert_eq!(endpoint.headers["Authorization"], "Bearer hunter2hunter2");
        assert_eq!(endpoint.protocol, RemoteProtocol::Sse);
    });
}

#[test]
fn values_of_variables_are_secrets_and_never_shown() {
    let entry = r#"{"command": "x", "args": ["--token=${TOKEN}", "plain"], "env": {"A": "${TOKEN}"}, "inheritEnv": ["OTHER"]}"#;
    with_stdio(entry, |launch| {
        let text = "hunter2hunter2 swordfish plain /bin";
        assert_eq!(
            launch.secrets.redact(text),
            "[redacted] [redacted] plain /bin"
        );
        assert!(!format!("{launch:?}").contains("hunter2"), "{launch:?}");
        assert!(!format!("{launch:?}").contains("swordfish"), "{launch:?}");
    });
    let entry = r#"{"url": "https://x/${TOKEN}", "headers": {"A": "${TOKEN}"}}"#;
    with_remote(entry, |endpoint| {
        assert_eq!(endpoint.secrets.redact("hunter2hunter2"), "[redacted]");
        assert!(!format!("{endpoint:?}").contains("hunter2"), "{endpoint:?}");
    });
}

#[test]
fn unset_variables_fail_only_their_server() {
    let loaded = load(
        r#"{"toolboxes": {"y": {"description": "for ${TEAM}", "mcpServers": {
            "x": {"command": "c", "env": {"B": "${B_TOKEN}", "OK": "${TOKEN}"}, "args": ["${A_TOKEN}${B_TOKEN}"]},
            "w": {"command": "c"}
        }}}}"#,
    );
    let toolbox = &loaded.config.toolboxes["y"];
    assert_eq!(toolbox.description, "for ${TEAM}");
    assert!(matches!(
        toolbox.servers["w"].transport,
        Transport::Stdio(_)
    ));
    let Transport::Unset(unset) = &toolbox.servers["x"].transport else {
        panic!("the server lacks variables");
    };
    let unset: Vec<String> = unset.iter().map(ToString::to_string).collect();
    assert_eq!(
        unset,
        [
            "variable B_TOKEN is not set (toolboxes.y.mcpServers.x.env.B)",
            "variable A_TOKEN is not set (toolboxes.y.mcpServers.x.args[0])",
            "variable B_TOKEN is not set (toolboxes.y.mcpServers.x.args[0])",
        ]
    );
    let together: Vec<String> = loaded.unset.iter().map(ToString::to_string).collect();
    assert_eq!(together.len(), 4);
    assert_eq!(
        together[0],
        "/etc/box/c.json:1:37: toolboxes.y.description: variable TEAM is not set\n  \
         hint: set TEAM before the workbench starts, or give it a default: `${TEAM:-…}`"
    );
    assert_eq!(loaded.warnings, []);
}

#[test]
fn an_unset_type_is_not_also_an_unclear_transport() {
    let (server, loaded) = server(r#"{"type": "${NOT_SET}", "command": "x", "url": "https://x"}"#);
    assert!(matches!(&server.transport, Transport::Unset(unset) if unset.len() == 1));
    assert_eq!(loaded.unset.len(), 1);
}

#[test]
fn remote_entries() {
    let cases = [
        (
            r#"{"url": "https://x/mcp"}"#,
            "https://x/mcp",
            RemoteProtocol::Http,
        ),
        (
            r#"{"serverUrl": "https://x/mcp"}"#,
            "https://x/mcp",
            RemoteProtocol::Http,
        ),
        (
            r#"{"httpUrl": "https://x/a", "url": "https://x/b"}"#,
            "https://x/a",
            RemoteProtocol::Http,
        ),
        (r#"{"url": "${OTHER}"}"#, "swordfish", RemoteProtocol::Http),
        (
            r#"{"type": "sse", "url": "https://x/sse"}"#,
            "https://x/sse",
            RemoteProtocol::Sse,
        ),
        (
            r#"{"type": "http", "url": "https://x", "command": "y"}"#,
            "https://x",
            RemoteProtocol::Http,
        ),
    ];
    for (entry, url, protocol) in cases {
        let found = with_remote(entry, |endpoint| (endpoint.url.clone(), endpoint.protocol));
        assert_eq!(found, (url.into(), protocol), "{entry}");
    }
}

#[test]
fn filters_of_all_clients_are_combined() {
    let (server, _) = server(
        r#"{"command": "x", "toolFilters": ["*", "!d_*"], "includeTools": ["a", "b", "c", "d_1"], "excludeTools": ["b"], "disabledTools": ["c"]}"#,
    );
    let offered = ["a", "b", "c", "d_1", "e"].map(|tool| server.filters.allows(tool));
    assert_eq!(offered, [true, false, false, false, false]);
}

#[test]
fn the_whole_environment_can_be_inherited() {
    let entry = r#"{"command": "x", "inheritEnv": true}"#;
    let count = with_stdio(entry, |launch| launch.environment.inherited.len());
    assert_eq!(count, 5);
}
