//! `import`: what is found, what our file becomes, and what is said.

use std::{fs, path::Path};

use mcp_workbench::internal::clients::{CLIENTS, Client, ClientName, Scope, client};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::machine::{Machine, read, write};
#[cfg(unix)]
use crate::everyday::OnTerminal;
use crate::harness::{Script, Setup};

/// Something that must not be printed.
const SECRET: &str = "hunter2-hunter2-hunter2";

fn cursor(machine: &Machine, servers: &Value) {
    let text = json!({"mcpServers": servers}).to_string();
    write(&machine.client_file(client(ClientName::Cursor)), &text);
}

#[test]
fn every_client_is_read_and_shared_servers_are_imported_once() {
    let machine = Machine::with_all_clients();
    let ran = machine
        .run(&["import", "--toolbox", "all", "--json"])
        .ends_with(0);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["written"], json!(true));
    let servers = report["servers"].as_array().unwrap();
    let shared: Vec<&Value> = servers.iter().filter(|it| it["name"] == "shared").collect();
    let [shared] = shared.as_slice() else {
        panic!("{shared:#?}");
    };
    let places: Vec<&str> = shared["places"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["client"].as_str().unwrap())
        .collect();
    let words: Vec<String> = CLIENTS.iter().map(Client::word).collect();
    assert_eq!(places, words);
    insta::assert_snapshot!(read(&machine.config()));
}

#[test]
fn the_report_has_a_table_and_the_next_steps() {
    let machine = Machine::with_all_clients();
    let ran = machine
        .run(&["import", "--from", "cursor,windsurf,goose,claude-code"])
        .ends_with(0);
    let stdout = ran.stdout.replace(machine.path("").to_str().unwrap(), "/");
    insta::assert_snapshot!(format!("{stdout}--- stderr\n{}", ran.stderr));
}

#[test]
fn by_client_makes_one_toolbox_per_client_with_unique_names() {
    let machine = Machine::new();
    cursor(
        &machine,
        &json!({"db": {"command": "one"}, "git": {"url": "https://git.example.com"}}),
    );
    let file = machine.client_file(client(ClientName::Kiro));
    write(
        &file,
        r#"{"mcpServers": {"db": {"command": "two"}, "again": {"command": "one"}}}"#,
    );
    machine.run(&["import", "--by-client"]).ends_with(0);
    let by_client = machine.config_value();
    assert_eq!(
        by_client["toolboxes"],
        json!({
            "cursor": {
                "description": "Servers from Cursor: db, git",
                "mcpServers": {"db": {"command": "one"}, "git": {"url": "https://git.example.com"}},
            },
            "kiro": {"description": "Servers from Kiro: db", "mcpServers": {"db": {"command": "two"}}},
        })
    );
    fs::remove_file(machine.config()).unwrap();
    machine
        .run(&["import", "--toolbox", "one"])
        .ends_with(0)
        .says(&["db-kiro", "(as db)"]);
    let servers = &machine.config_value()["toolboxes"]["one"]["mcpServers"];
    let names: Vec<&String> = servers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["db", "git", "db-kiro"]);
}

#[test]
fn servers_are_grouped_by_what_they_do() {
    let machine = Machine::new();
    let servers = json!({
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/x"]},
        "pg": {"command": "uvx", "args": ["mcp-server-postgres"]},
        "mine": {"command": "./server"},
    });
    cursor(&machine, &servers);
    let file = machine.client_file(client(ClientName::Kiro));
    write(
        &file,
        r#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}"#,
    );
    machine.run(&["import"]).ends_with(0);
    let config = machine.config_value();
    let toolboxes = config["toolboxes"].as_object().unwrap();
    let described: Vec<(&str, &Value)> = toolboxes
        .iter()
        .map(|(name, toolbox)| (name.as_str(), &toolbox["description"]))
        .collect();
    assert_eq!(
        described,
        [
            (
                "files",
                &json!("Read, write and search files; look at git history: files, git")
            ),
            ("data", &json!("Query and change databases: pg")),
            ("general", &json!("Other tools: mine")),
        ]
    );
    machine.run(&["init", "--toolbox", "x"]).ends_with(0);
    let meta_tools = "\"metaTools\": [\"open_toolbox\", \"use_tool\", \"search_tools\"],";
    let init = read(&machine.path("work/workbench-config.json"));
    for text in [init, read(&machine.config())] {
        assert!(text.contains(meta_tools), "{text}");
        assert!(text.contains("\"openDetail\": \"compact\","), "{text}");
    }
}

#[test]
fn cached_tools_decide_the_group_of_a_server() {
    let machine = Machine::new();
    let setup = Setup::one(&Script::named(&["run_sql", "list_tables"]));
    let entry: Value = serde_json::from_str(&setup.config_text()).unwrap();
    cursor(
        &machine,
        &json!({"mine": entry["toolboxes"]["dev"]["mcpServers"]["fs"]}),
    );
    let toolbox = || {
        let config = machine.config_value();
        let toolboxes = config["toolboxes"].as_object().unwrap();
        toolboxes.keys().next().unwrap().clone()
    };
    machine.run(&["import"]).ends_with(0);
    assert_eq!(toolbox(), "general");
    machine.run(&["warm"]).ends_with(0);
    fs::remove_file(machine.config()).unwrap();
    machine.run(&["import"]).ends_with(0);
    assert_eq!(toolbox(), "data");
}

#[cfg(unix)]
#[test]
fn toolboxes_can_be_renamed_on_a_terminal() {
    let setup = Setup::new();
    let servers = json!({
        "fs": {"command": "npx", "args": ["server-filesystem"]},
        "pg": {"command": "uvx", "args": ["mcp-server-postgres"]},
    });
    setup.write(
        "work/.mcp.json",
        &json!({"mcpServers": servers}).to_string(),
    );
    let arguments = ["import", "--from", "claude-code", "--project"];
    let mut import = OnTerminal::start(setup, &arguments);
    import.wait_for("Choice [Enter]: ");
    let shown = import.text().replace('\r', "");
    assert!(shown.contains("  files  fs\n  data   pg\n"), "{shown}");
    import.type_line("r");
    import.wait_for("Name for fs [files]: ");
    import.type_line("code");
    import.wait_for("Name for pg [data]: ");
    import.type_line("");
    assert!(import.finish().success(), "{}", import.text());
    let config = read(&import.setup.config());
    let config: Value = serde_json::from_str(&config).expect("JSON");
    let toolboxes = config["toolboxes"].as_object().unwrap();
    assert_eq!(toolboxes.keys().collect::<Vec<_>>(), ["code", "data"]);
}

#[test]
fn an_existing_configuration_is_extended_in_place_and_only_once() {
    let machine = Machine::new();
    let text = "{\n  // mine\n  \"_note\": 1,\n  \"toolboxes\": {\n    \"dev\": {\n      \"description\": \"d\", // why\n      \"mcpServers\": {\n        \"a\": { \"command\": \"x\" },\n      },\n    },\n  },\n}\n";
    let file = machine.path("work/workbench-config.json");
    write(&file, text);
    cursor(
        &machine,
        &json!({"same": {"command": "x"}, "new": {"command": "y"}}),
    );
    machine
        .run(&["import", "--toolbox", "dev"])
        .ends_with(0)
        .says(&["already configured", "added 1 server to "]);
    let after = read(&file);
    let added = "        \"a\": { \"command\": \"x\" },\n        \"new\": {\n          \"command\": \"y\",\n        },\n";
    assert_eq!(
        after,
        text.replace("        \"a\": { \"command\": \"x\" },\n", added)
    );
    machine
        .run(&["import", "--toolbox", "dev"])
        .ends_with(0)
        .says(&["nothing to add"]);
    assert_eq!(read(&file), after);
    assert!(!machine.config().exists());
}

#[test]
fn a_dry_run_writes_nothing() {
    let machine = Machine::with_all_clients();
    let before = machine.files();
    machine
        .run(&["import", "--dry-run"])
        .ends_with(0)
        .says(&["nothing was written", "shared"]);
    machine
        .run(&["import", "--dry-run", "--json"])
        .ends_with(0)
        .says(&["\"written\": false"]);
    assert_eq!(machine.files(), before);
}

#[test]
fn secrets_are_imported_and_never_printed() {
    let machine = Machine::new();
    cursor(
        &machine,
        &json!({
            "a": {"command": "x", "args": ["--token", SECRET], "env": {"API_KEY": SECRET}},
            "b": {"url": format!("https://b.example.com/{SECRET}?key={SECRET}"), "headers": {"Authorization": format!("Bearer {SECRET}")}},
        }),
    );
    for arguments in [
        &["import", "--dry-run"][..],
        &["import", "--json", "--dry-run"],
        &["import"],
    ] {
        let ran = machine
            .run(arguments)
            .ends_with(0)
            .says(&["env.API_KEY", "args[1]"]);
        assert!(!ran.all().contains("hunter2"), "{}", ran.all());
    }
    assert_eq!(read(&machine.config()).matches(SECRET).count(), 5);
}

#[cfg(unix)]
#[test]
fn a_configuration_with_secrets_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |machine: &Machine| {
        let mode = fs::metadata(machine.config()).unwrap().permissions().mode();
        mode & 0o777
    };
    let machine = Machine::new();
    cursor(
        &machine,
        &json!({"a": {"command": "x", "env": {"API_KEY": SECRET}}}),
    );
    machine
        .run(&["import"])
        .ends_with(0)
        .says(&["only you can read it"]);
    assert_eq!(mode(&machine), 0o600);
    write(&machine.config(), "{\"toolboxes\": {}}");
    fs::set_permissions(machine.config(), fs::Permissions::from_mode(0o644)).unwrap();
    machine.run(&["import"]).ends_with(0);
    assert_eq!(mode(&machine), 0o600);
    write(&machine.config(), "{\"toolboxes\": {}}");
    fs::set_permissions(machine.config(), fs::Permissions::from_mode(0o644)).unwrap();
    cursor(
        &machine,
        &json!({"a": {"command": "x", "env": {"MODE": "fast"}}}),
    );
    machine.run(&["import"]).ends_with(0);
    assert_eq!(mode(&machine), 0o644);
}

#[test]
fn a_broken_file_is_reported_and_the_others_are_read() {
    let machine = Machine::new();
    cursor(&machine, &json!({"a": {"command": "x"}}));
    let broken = machine.client_file(client(ClientName::Codex));
    write(&broken, &format!("model = \"x\"\ntoken = {SECRET}\n"));
    let place = format!("{}:2:", broken.display());
    let ran = machine
        .run(&["import"])
        .ends_with(1)
        .says(&[&place, "hint: ", "added 1 server"]);
    assert!(!ran.all().contains("hunter2"), "{}", ran.all());
    assert_eq!(
        machine.config_value()["toolboxes"]["general"]["mcpServers"]["a"],
        json!({"command": "x"})
    );
}

#[test]
fn an_import_without_servers_says_so() {
    let machine = Machine::new();
    machine
        .run(&["import"])
        .ends_with(1)
        .says(&["no servers were found", "hint: "]);
    machine
        .run(&["import", "--from", "zed"])
        .ends_with(1)
        .says(&["the files of Zed"]);
    machine
        .run(&["import", "--from", "emacs"])
        .ends_with(2)
        .says(&["claude-code"]);
    assert_eq!(machine.files(), []);
}

#[test]
fn an_invalid_configuration_is_not_changed() {
    let machine = Machine::new();
    cursor(&machine, &json!({"a": {"command": "x"}}));
    let text = "{\"toolboxes\": {\"t\": {}}}";
    write(&machine.config(), text);
    machine
        .run(&["import"])
        .ends_with(1)
        .says(&["toolboxes.t", "mcpServers"]);
    assert_eq!(read(&machine.config()), text);
}

#[test]
fn a_named_configuration_is_created() {
    let machine = Machine::new();
    cursor(&machine, &json!({"a": {"command": "x"}}));
    let named = machine.path("work/sub/mine.json");
    machine
        .run(&["import", "--config", "sub/mine.json"])
        .ends_with(0)
        .says(&[&format!("--config {} doctor", named.display())]);
    assert!(read(&named).contains("\"command\": \"x\""));
    assert!(!machine.config().exists());
}

#[cfg(unix)]
#[test]
fn project_files_are_read_from_the_current_directory() {
    let machine = Machine::new();
    let file = machine.client_file_for(client(ClientName::VsCode), Scope::Project);
    write(&machine.path("work/server.py"), "");
    write(
        &file,
        r#"{"servers": {"a": {"command": "python", "args": ["server.py", "${workspaceFolder}/x"]}, "b": {"command": "./run"}}}"#,
    );
    machine
        .run(&["import", "--project"])
        .ends_with(0)
        .says(&["VS Code in ", "its working directory is "]);
    let work = machine.path("work");
    let work = work.to_str().unwrap();
    assert_eq!(
        machine.config_value()["toolboxes"]["general"]["mcpServers"],
        json!({
            "a": {"command": "python", "args": ["server.py", format!("{work}/x")], "cwd": work, "disabled": true},
            "b": {"command": format!("{work}/run"), "disabled": true},
        })
    );
}

#[test]
fn an_imported_server_works() {
    let machine = Machine::new();
    let setup = Setup::one(&Script::new());
    let entry: Value = serde_json::from_str(&setup.config_text()).unwrap();
    cursor(&machine, &entry["toolboxes"]["dev"]["mcpServers"]);
    machine.run(&["import"]).ends_with(0);
    let mut workbench = setup.text(&read(&machine.config())).connect();
    let opened = workbench.open("files").json();
    assert_eq!(opened["servers_connected"], 1);
}

#[test]
fn the_guide_names_every_client() {
    let guide =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/import-and-install.md");
    let guide = read(&guide);
    for client in CLIENTS {
        assert!(
            guide.contains(&format!("| `{}`", client.word())),
            "{}",
            client.title
        );
    }
}

#[test]
fn install_is_not_suggested_for_a_client_that_has_the_workbench() {
    let machine = Machine::new();
    cursor(&machine, &json!({"a": {"command": "x"}}));
    let proposal = "install --client cursor --replace";
    machine.run(&["import"]).ends_with(0).says(&[proposal]);
    machine
        .run(&["install", "--client", "cursor", "--replace", "--yes"])
        .ends_with(0);
    let ran = machine.run(&["import"]).ends_with(0);
    assert!(
        ran.stderr.contains("the workbench itself"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains(proposal), "{}", ran.stderr);
}
