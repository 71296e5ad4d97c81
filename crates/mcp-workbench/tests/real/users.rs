//! Users of a certified authorization server: the official SDKs find it by the workbench's metadata, get a token from it,
//! and the workbench checks the token by its signature or by asking.

use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::packages;
use crate::process::Process;
use crate::services::free_address;
use crate::workbench::ConfigFile;

/// Returns the command that runs a script with Node.js and the packages.
pub(crate) fn node(script: &str) -> Command {
    let mut command = Command::new(packages::newer_node());
    command
        .arg(packages::beside(script))
        .arg(packages::folder());
    command
}

#[test]
fn programs_get_tokens_from_a_certified_authorization_server() {
    for format in ["jwt", "opaque"] {
        let address = free_address();
        let resource = format!("http://{address}/mcp");
        let mut issuer = node("servers/issuer.mjs");
        issuer.args([format, &resource]);
        let mut issuer = Process::start(issuer);
        let url = issuer.read_line().expect("its address");
        let mut auth = json!({"issuer": url, "audience": resource, "scopes": ["tools"]});
        if format == "opaque" {
            auth["introspection"] =
                json!({"clientId": "workbench", "clientSecret": "workbench-secret"});
        }
        let config = ConfigFile::new(&json!({
            "auth": auth,
            "clients": {"developers": {"claims": {"groups": "developers"}}},
            "toolboxes": {"real": {"description": "Published servers", "mcpServers": {}}},
        }));
        let mut command = config.command();
        command.args(["serve", "--http", &address]);
        let workbench = Process::start(command);
        for sdk in ["sdk", "client"] {
            for (name, expected) in [
                ("developer", "\\\"toolbox\\\":\\\"real\\\""),
                (
                    "guest",
                    "no client of the configuration has the claims of this token",
                ),
            ] {
                let mut program = node("clients/program.mjs");
                program.args([sdk, &resource, name, "real"]);
                let mut program = Process::start(program);
                let line = program.read_line().expect("an outcome");
                let is_refused = line.starts_with("refused: ");
                assert_eq!(is_refused, name == "guest", "{format} {sdk}: {line}");
                assert!(line.contains(expected), "{format} {sdk}: {line}");
            }
        }
        drop(workbench);
    }
}
