//! docs/guides/team.md, followed: its configuration with a certified identity provider, three replicas that are started with its
//! command, Redis, the balancer of packaging/compose, and official clients of both eras that sign in.

use std::net::TcpStream;

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::deployment::manifest;
use crate::process::Process;
use crate::services::{free_address, get, haproxy_at, redis, wait_for};
use crate::users::node;
use crate::workbench::{ConfigFile, PROGRAM};

const GUIDE: &str = include_str!("../../../../docs/guides/team.md");
const REPLICAS: usize = 3;
const SEAL_KEY: &str = "0123456789abcdef0123456789abcdef";

/// Returns the first block of a language after a heading of the guide.
fn block(heading: &str, language: &str) -> &'static str {
    let (_, section) = GUIDE.split_once(heading).expect("the heading");
    let (_, block) = section.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0
}

/// Starts a replica with the command of the guide, at a free address.
fn replica(config: &ConfigFile, host: &str) -> (String, Process) {
    let line = block("## 2. One process", "sh").trim();
    let arguments = line.strip_prefix("mcp-workbench ").unwrap();
    let address = free_address();
    let arguments = arguments.replace("127.0.0.1:8700", &address);
    let mut command = config.command();
    command.env("SEAL_KEY", SEAL_KEY);
    // The health checks of the balancer name this host.
    command
        .args(arguments.split(' '))
        .args(["--allow-host", host]);
    let process = Process::start(command);
    wait_for("the workbench", || TcpStream::connect(&address).ok());
    (address, process)
}

/// Signs a program in at the balancer and returns what it prints.
fn sign_in(sdk: &str, resource: &str, name: &str) -> String {
    let mut program = node("clients/program.mjs");
    program.args([sdk, resource, name, "docs"]);
    Process::start(program).read_line().expect("an outcome")
}

#[test]
fn the_guide_can_be_followed() {
    let config = block("## 1. Sign-in and rights", "json");
    let mut config: Value = serde_json::from_str(config).unwrap();
    // The manifests and the guide show the same.
    let map = manifest("config-map")["data"]["workbench-config.json"].clone();
    let map: Value = serde_json::from_str(map.as_str().unwrap()).unwrap();
    for key in ["limits", "clients"] {
        assert_eq!(map[key], config[key], "{key}");
    }
    let server = &mut config["toolboxes"]["docs"]["mcpServers"]["clock"];
    assert_eq!(server["command"], "mcp-workbench");
    server["command"] = PROGRAM.into();

    let shared = block("## 4. Three replicas", "json");
    let mut shared: Value = serde_json::from_str(shared).unwrap();
    let Some(redis) = redis() else { return };
    shared["store"] = redis.url().into();
    shared["replicaAddress"] = "http://127.0.0.1:0".into();
    for key in ["seal", "replicaAddress", "store"] {
        config[key] = shared[key].take();
    }

    // The replicas need the address of the balancer, which starts after them.
    let public = free_address();
    let resource = format!("http://{public}/mcp");
    let mut issuer = node("servers/issuer.mjs");
    issuer.args(["jwt", &resource]);
    let mut issuer = Process::start(issuer);
    config["auth"]["issuer"] = issuer.read_line().expect("its address").into();
    config["auth"]["audience"] = resource.as_str().into();
    let config = ConfigFile::new(&config);
    let mut check = config.command_with(&["check"]);
    check.env("SEAL_KEY", SEAL_KEY);
    Process::start(check).finish();

    let mut replicas: Vec<_> = (0..REPLICAS)
        .map(|_| replica(&config, "localhost"))
        .collect();
    let addresses: Vec<String> = replicas.iter().map(|(it, _)| it.clone()).collect();
    let Some(balancer) = haproxy_at(&public, &addresses) else {
        return;
    };
    assert_eq!(get(balancer.address(), "localhost", "/mcp"), 401);
    while !replicas.is_empty() {
        for sdk in ["sdk", "client", "modern"] {
            let opened = sign_in(sdk, &resource, "developer");
            let is_opened = opened.contains("\\\"toolbox\\\":\\\"docs\\\"");
            assert!(is_opened, "{sdk}: {opened}");
        }
        replicas.pop();
    }
}
