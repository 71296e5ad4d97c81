//! The demo's configuration, and the snippet that makes a client use it.

use ::demo::DemoServer;
use serde_json::{Map, Value, json};

use crate::config::escape_references;

pub(super) const TOOLBOX: &str = "desk";

/// The toolbox and the server of the demo's own client.
pub(super) const CLIENT_TOOLBOX: &str = "demo";
pub(super) const CLIENT_SERVER: &str = "workbench";

/// Time limit for a call of the demo's own client.
const CALL_TIMEOUT_MS: u64 = 10_000;

const DESCRIPTION: &str = "A clock, a calculator and a notes store that need nothing installed";

/// Returns the configuration of `mcp-workbench serve --demo`, pretty-printed, with a line feed at its end.
///
/// `program` is the `mcp-workbench` binary, best as an absolute path. The result is an ordinary configuration
/// file: it can be saved and edited. Its member `_client`, which the workbench ignores, is the value of
/// [`client_snippet`].
pub(in crate::cli) fn configuration(program: &str) -> String {
    let servers: Map<String, Value> = DemoServer::ALL
        .into_iter()
        .map(|server| (server.name().to_owned(), entry(program, server)))
        .collect();
    let configuration = json!({
        "_client": client_entry(program),
        // As `init` writes it, so that the demo shows what a new configuration costs.
        "openDetail": "compact",
        "toolboxes": {
            TOOLBOX: { "description": DESCRIPTION, "mcpServers": servers }
        }
    });
    format!("{configuration:#}\n")
}

/// Returns the configuration of the demo's own client, whose only server is `mcp-workbench serve --demo`.
pub(super) fn client_configuration(program: &str) -> String {
    let server = json!({
        "command": escape_references(program),
        "args": ["serve", "--demo"],
        "era": "legacy",
        "callTimeoutMs": CALL_TIMEOUT_MS
    });
    json!({
        "toolboxes": {
            CLIENT_TOOLBOX: { "description": "The demo", "mcpServers": { CLIENT_SERVER: server } }
        }
    })
    .to_string()
}

/// Returns the entry for the configuration of an MCP client that uses the demo, pretty-printed, without a line
/// feed at its end.
pub(super) fn client_snippet(program: &str) -> String {
    format!("{:#}", client_entry(program))
}

fn client_entry(program: &str) -> Value {
    json!({
        "mcpServers": {
            "workbench": { "command": program, "args": ["serve", "--demo"] }
        }
    })
}

/// Returns the entry of one server. The workbench expands `${…}` in it, so a path with `${` is escaped; the
/// client's snippet is read by others and is not. The era is given, so that the workbench does not have to detect
/// it and store the result.
fn entry(program: &str, server: DemoServer) -> Value {
    json!({
        "command": escape_references(program),
        "args": ["demo-server", server.name()],
        "era": "legacy"
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_configuration_names_every_server_in_order() {
        let text = configuration("/opt/mcp workbench/\"bin\"");
        let program = "/opt/mcp workbench/\"bin\"";
        let server = |name: &str| json!({ "command": program, "args": ["demo-server", name], "era": "legacy" });
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "_client": { "mcpServers": { "workbench": {
                    "command": program, "args": ["serve", "--demo"]
                } } },
                "openDetail": "compact",
                "toolboxes": { "desk": {
                    "description": DESCRIPTION,
                    "mcpServers": {
                        "clock": server("clock"),
                        "calculator": server("calculator"),
                        "notes": server("notes")
                    }
                } }
            })
        );
        let places =
            ["\"clock\": {", "\"calculator\": {", "\"notes\": {"].map(|key| text.find(key));
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn a_path_that_looks_like_a_variable_stays_a_path() {
        let value: Value = serde_json::from_str(&configuration("/x/${HOME}/y")).unwrap();
        assert_eq!(
            value["toolboxes"]["desk"]["mcpServers"]["clock"]["command"],
            "/x/$${HOME}/y"
        );
        assert_eq!(
            value["_client"]["mcpServers"]["workbench"]["command"],
            "/x/${HOME}/y"
        );
    }

    #[test]
    fn the_snippet_is_json_a_client_understands() {
        let value: Value = serde_json::from_str(&client_snippet("mcp-workbench")).unwrap();
        assert_eq!(
            value["mcpServers"]["workbench"]["args"],
            json!(["serve", "--demo"])
        );
    }
}
