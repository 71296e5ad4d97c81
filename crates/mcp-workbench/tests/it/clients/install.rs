//! `install`: what becomes of a client's file.

use std::fs;

use mcp_workbench::internal::clients::{CLIENTS, Client, ClientName, Format, Scope, client};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::machine::{Machine, read, sample, write};
use crate::harness::Setup;

/// A machine with our file, which has the shared server of all samples, and all clients.
pub(super) fn prepared() -> Machine {
    let machine = Machine::with_all_clients();
    configure(&machine);
    machine
}

/// The same, and Kiro has another server under our name.
pub(super) fn with_a_namesake() -> Machine {
    let machine = prepared();
    write(
        &machine.client_file(client(ClientName::Kiro)),
        r#"{"mcpServers": {"workbench": {"command": "bench"}}}"#,
    );
    machine
}

pub(super) fn configure(machine: &Machine) {
    let config = json!({"toolboxes": {"t": {"description": "d", "mcpServers": {
        "s": {"command": "npx", "args": ["-y", "shared-server"], "env": {"KEY": "${SHARED_KEY}"}},
    }}}});
    write(&machine.config(), &config.to_string());
}

/// The clients that we write to.
pub(super) fn writable() -> impl Iterator<Item = &'static Client> {
    CLIENTS.iter().filter(|client| client.can_be_written())
}

/// A JSON file of a client as a value.
fn value(machine: &Machine, name: ClientName) -> Value {
    let text = read(&machine.client_file(client(name)));
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    serde_json::from_str(&lines.collect::<String>()).expect("JSON")
}

#[test]
fn every_client_gets_the_workbench_and_keeps_the_rest() {
    let machine = prepared();
    for client in writable() {
        let word = client.word();
        machine
            .run(&["install", "--client", &word, "--yes"])
            .ends_with(0)
            .says(&["wrote ", "--undo"]);
        let after = read(&machine.client_file(client));
        let before = sample(client);
        let missing: Vec<&str> = before
            .lines()
            .map(|line| line.trim_end_matches(','))
            .filter(|line| {
                client.format != Format::Json || before.lines().count() > 1 && !line.is_empty()
            })
            .filter(|line| !after.contains(line))
            .collect();
        assert_eq!(missing, Vec::<&str>::new(), "{word}:\n{after}");
        assert!(after.contains("workbench-config.json"), "{word}:\n{after}");
        let again = machine
            .run(&["install", "--client", &word, "--yes"])
            .ends_with(0);
        assert!(
            again.stderr.contains("already has the workbench"),
            "{word}: {}",
            again.all()
        );
        assert_eq!(read(&machine.client_file(client)), after, "{word}");
    }
}

#[test]
fn variables_are_in_the_syntax_of_the_client() {
    let machine = prepared();
    let cases = [
        (ClientName::ClaudeCode, "${SHARED_KEY}"),
        (ClientName::Cursor, "${env:SHARED_KEY}"),
        (ClientName::Gemini, "$SHARED_KEY"),
    ];
    for (name, reference) in cases {
        machine
            .run(&["install", "--client", &name.word(), "--yes"])
            .ends_with(0);
        let entry = &value(&machine, name)["mcpServers"]["workbench"];
        assert_eq!(entry["env"], json!({"SHARED_KEY": reference}), "{name:?}");
    }
    machine
        .run(&["install", "--client", "codex", "--yes"])
        .ends_with(0);
    let codex = read(&machine.client_file(client(ClientName::Codex)));
    assert!(codex.contains("env_vars = [\"SHARED_KEY\"]"), "{codex}");
    machine
        .run(&["install", "--client", "claude-desktop", "--yes"])
        .ends_with(0)
        .says(&["SHARED_KEY", "cannot refer to variables"]);
}

#[test]
fn replace_keeps_servers_that_are_disabled_in_the_workbench_and_names_them() {
    let machine = prepared();
    machine.run(&["disable", "t", "s"]).ends_with(0);
    let ran = machine.run(&["install", "--client", "cursor", "--replace", "--yes"]);
    ran.ends_with(0).says(&[
        "these stay in Cursor: cursor-only; `mcp-workbench import --from cursor` imports them",
        "these stay in Cursor, because they are disabled in the workbench: common; `mcp-workbench enable`",
    ]);
    let servers = value(&machine, ClientName::Cursor)["mcpServers"].clone();
    assert!(servers.get("common").is_some(), "{servers}");
}

#[test]
fn replace_removes_servers_that_the_workbench_has() {
    let machine = prepared();
    machine
        .run(&["install", "--client", "cursor", "--yes"])
        .ends_with(0)
        .says(&[
            "the workbench also has these: common",
            "these stay in Cursor: cursor-only",
        ]);
    machine
        .run(&["install", "--client", "cursor", "--replace", "--yes"])
        .ends_with(0)
        .says(&["- common", "these stay in Cursor: cursor-only"]);
    let servers = value(&machine, ClientName::Cursor)["mcpServers"].clone();
    let names: Vec<&String> = servers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["cursor-only", "workbench"]);
    assert!(
        read(&machine.client_file(client(ClientName::Cursor))).contains("// Servers of Cursor.")
    );
}

#[test]
fn replace_names_servers_of_which_the_client_allows_fewer_tools() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Kiro));
    let server =
        json!({"command": "npx", "args": ["-y", "shared-server"], "env": {"KEY": "${SHARED_KEY}"}});
    let mut strict = server.clone();
    strict["disabledTools"] = json!(["write"]);
    let words = "Kiro allows fewer tools of these than the workbench: common";
    for (entry, is_named) in [(server, false), (strict, true)] {
        write(&file, &json!({"mcpServers": {"common": entry}}).to_string());
        let ran = machine
            .run(&["install", "--client", "kiro", "--replace", "--yes"])
            .ends_with(0);
        assert_eq!(ran.all().contains(words), is_named, "{}", ran.all());
    }
}

#[test]
fn import_is_not_suggested_for_entries_that_cannot_be_imported() {
    let machine = prepared();
    let servers = json!({"own": {"command": "own-server", "args": []},
        "mcp-server-github": {"source": "extension", "settings": {"token": "x"}}});
    let text = json!({ "context_servers": servers }).to_string();
    write(&machine.client_file(client(ClientName::Zed)), &text);
    machine
        .run(&["install", "--client", "zed", "--replace", "--yes"])
        .ends_with(0)
        .says(&[
            "these stay in Zed: own; `mcp-workbench import --from zed` imports them",
            "these stay in Zed, because only it can start them: mcp-server-github",
        ]);
}

#[test]
fn replace_reaches_the_sections_of_projects() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::ClaudeCode));
    let shared =
        json!({"command": "npx", "args": ["-y", "shared-server"], "env": {"KEY": "${SHARED_KEY}"}});
    let text = json!({"projects": {"/p": {"mcpServers": {"x": shared, "y": {"command": "y"}}, "history": [1]}}});
    write(&file, &text.to_string());
    machine
        .run(&["install", "--client", "claude-code", "--replace", "--yes"])
        .ends_with(0);
    let after = value(&machine, ClientName::ClaudeCode);
    assert_eq!(
        after["projects"],
        json!({"/p": {"mcpServers": {"y": {"command": "y"}}, "history": [1]}})
    );
    assert_eq!(after["mcpServers"]["workbench"]["type"], "stdio");
}

#[test]
fn without_a_terminal_nothing_is_written_unless_yes_is_given() {
    let machine = prepared();
    let before = machine.files();
    machine
        .run(&["install", "--client", "cursor"])
        .ends_with(1)
        .says(&["+ \"workbench\": {", "hint: add --yes"]);
    machine
        .run(&["install", "--client", "cursor", "--dry-run"])
        .ends_with(0)
        .says(&["+ \"workbench\": {"]);
    machine
        .run(&["install", "--client", "cursor", "--print"])
        .ends_with(0);
    machine.run(&["install"]).ends_with(2);
    machine
        .run(&["install", "--client", "cursor", "--undo", "--print"])
        .ends_with(2);
    assert_eq!(machine.files(), before);
}

#[test]
fn print_gives_the_entry_and_the_link() {
    let machine = prepared();
    let links = [
        (
            "cursor",
            "\ncursor://anysphere.cursor-deeplink/mcp/install?name=workbench&config=",
        ),
        (
            "vscode",
            "\nvscode:mcp/install?%7B%22name%22%3A%22workbench%22",
        ),
    ];
    for (word, link) in links {
        let ran = machine
            .run(&["install", "--client", word, "--print"])
            .ends_with(0)
            .says(&[link]);
        let entry: Value =
            serde_json::from_str(ran.stdout.split("\n\n").next().unwrap()).expect("JSON");
        assert_eq!(ran.stderr, "");
        assert!(entry.is_object());
    }
    let ran = machine
        .run(&["install", "--client", "codex", "--print"])
        .ends_with(0);
    assert!(
        ran.stdout.starts_with("[mcp_servers.workbench]\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_yaml_file_that_cannot_be_changed_in_place_gets_the_lines_to_paste() {
    let machine = prepared();
    for (name, text) in [
        (ClientName::Goose, "extensions: {a: {type: builtin}}\n"),
        (
            ClientName::Goose,
            "'extensions':\n  a:\n    type: builtin\n",
        ),
        (
            ClientName::Continue,
            "mcpServers: [{name: a, command: x}]\n",
        ),
        (ClientName::Continue, "name: a\n...\n"),
    ] {
        let file = machine.client_file(client(name));
        write(&file, text);
        let word = name.word();
        let ran = machine
            .run(&["install", "--client", &word, "--yes"])
            .ends_with(1);
        let ran = ran.says(&["hint: add the lines above to ", file.to_str().unwrap()]);
        let printed = machine
            .run(&["install", "--client", &word, "--print"])
            .ends_with(0);
        assert_eq!(ran.stdout, printed.stdout);
        assert_eq!(read(&file), text);
    }
    let before = machine.files();
    machine
        .run(&["install", "--client", "roo", "--yes"])
        .ends_with(1)
        .says(&["import --from roo"]);
    assert_eq!(machine.files(), before);
}

#[test]
fn goose_gets_the_name_that_it_requires() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Goose));
    let before = read(&file);
    machine
        .run(&["install", "--client", "goose", "--yes"])
        .ends_with(0);
    let after = read(&file);
    let added = after.strip_prefix(&before).expect("it is added at the end");
    assert!(
        added.starts_with("  workbench:\n    name: \"workbench\"\n    type: \"stdio\"\n    cmd: "),
        "{after}"
    );
}

#[test]
fn an_entry_of_another_server_with_our_name_is_not_changed() {
    let machine = with_a_namesake();
    let before = machine.files();
    machine
        .run(&["install", "--client", "kiro", "--yes"])
        .ends_with(1)
        .says(&[
            "a different server",
            "hint: choose another name with --name",
        ]);
    assert_eq!(machine.files(), before);
    machine
        .run(&["install", "--client", "kiro", "--yes", "--name", "tools"])
        .ends_with(0);
    let servers = value(&machine, ClientName::Kiro)["mcpServers"].clone();
    assert_eq!(servers["workbench"], json!({"command": "bench"}));
    assert!(servers["tools"].is_object());
}

#[test]
fn a_name_that_the_client_cannot_use_is_refused() {
    let machine = prepared();
    let before = machine.files();
    let longest = "n".repeat(64 - "mcp____open_toolbox".len());
    let longer = format!("{longest}n");
    let install = ["install", "--client", "claude-code", "--yes", "--name"];
    machine
        .run(&[&install[..], &[&longer]].concat())
        .ends_with(1)
        .says(&[&format!("at most {} characters", longest.len())]);
    assert_eq!(machine.files(), before);
    machine
        .run(&[&install[..], &[&longest]].concat())
        .ends_with(0);
    machine
        .run(&["install", "--client", "kiro", "--yes", "--name", &longer])
        .ends_with(0);
}

#[test]
fn a_broken_client_file_is_not_changed() {
    let machine = prepared();
    for (name, text) in [
        (ClientName::Cursor, "{\n  \"mcpServers\": {\n"),
        (ClientName::Kiro, "{\"mcpServers\": []}"),
        (ClientName::Codex, "model = \n"),
    ] {
        let file = machine.client_file(client(name));
        write(&file, text);
        let before = machine.files();
        let ran = machine
            .run(&["install", "--client", &name.word(), "--yes"])
            .ends_with(1);
        ran.says(&[file.to_str().unwrap(), "hint: "]);
        assert_eq!(machine.files(), before, "{name:?}");
    }
}

#[test]
fn install_without_a_configuration_is_an_error() {
    let machine = Machine::new();
    machine
        .run(&["install", "--client", "cursor", "--yes"])
        .ends_with(1)
        .says(&["no configuration file found"]);
    assert_eq!(machine.files(), []);
}

#[test]
fn install_with_project_writes_the_file_of_the_project() {
    let machine = prepared();
    machine
        .run(&["install", "--client", "claude-code", "--project", "--yes"])
        .ends_with(0)
        .says(&["(new)"]);
    let file = machine.client_file_for(client(ClientName::ClaudeCode), Scope::Project);
    assert_eq!(file, machine.path("work/.mcp.json"));
    let entry: Value = serde_json::from_str(&read(&file)).unwrap();
    assert_eq!(
        entry["mcpServers"]["workbench"]["env"],
        json!({"SHARED_KEY": "${SHARED_KEY}"})
    );
    machine
        .run(&["install", "--client", "lm-studio", "--project", "--yes"])
        .ends_with(1)
        .says(&["hint: remove --project"]);
}

#[test]
fn the_installed_entry_starts_the_workbench() {
    let machine = prepared();
    machine
        .run(&["install", "--client", "cursor", "--yes"])
        .ends_with(0);
    let entry = value(&machine, ClientName::Cursor)["mcpServers"]["workbench"].clone();
    assert_eq!(
        fs::canonicalize(entry["command"].as_str().unwrap()).unwrap(),
        fs::canonicalize(env!("CARGO_BIN_EXE_mcp-workbench")).unwrap()
    );
    let arguments: Vec<&str> = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut workbench = Setup::new().start_with(&arguments);
    let answer = workbench.initialize();
    assert!(
        answer["instructions"]
            .as_str()
            .unwrap()
            .contains("**t** (1 server)"),
        "{answer}"
    );
}

#[cfg(unix)]
#[test]
fn permissions_and_links_are_preserved_and_the_backup_is_private() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Kiro));
    let real = machine.path("home/dotfiles/kiro.json");
    write(&real, &read(&file));
    fs::remove_file(&file).unwrap();
    symlink(&real, &file).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
    machine
        .run(&["install", "--client", "kiro", "--yes"])
        .ends_with(0);
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    let mut copies = machine.files();
    copies.retain(|(path, _)| path.to_string_lossy().contains("workbench-backup"));
    let [(copy, _)] = copies.as_slice() else {
        panic!("{copies:?}");
    };
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&real), 0o644);
    // The copy may contain secrets.
    assert_eq!(mode(copy), 0o600);
}

#[test]
fn several_clients_are_set_up_at_once() {
    let machine = Machine::new();
    configure(&machine);
    let all: Vec<ClientName> = writable().map(|client| client.name).take(3).collect();
    for name in &all {
        write(&machine.client_file(client(*name)), &sample(client(*name)));
    }
    let has_workbench = |name: ClientName| {
        let file = machine.client_file(client(name));
        file.exists() && read(&file).contains("workbench-config.json")
    };
    let [one, two, three] = all[..] else {
        panic!("three clients");
    };
    let (first, second) = (client(one).word(), client(two).word());
    machine
        .run(&["install", "--client", &first, "--client", &second, "--yes"])
        .ends_with(0);
    assert_eq!(
        all.iter().map(|it| has_workbench(*it)).collect::<Vec<_>>(),
        [true, true, false]
    );
    // All whose file exists, and no other.
    machine.run(&["install", "--all", "--yes"]).ends_with(0);
    assert!(has_workbench(three));
    let others = writable().filter(|it| !all.contains(&it.name));
    for other in others {
        let file = machine.client_file(other);
        assert!(
            !file.exists() || !read(&file).contains("workbench-config.json"),
            "{}",
            other.title
        );
    }
}

#[test]
fn a_client_that_fails_does_not_keep_the_others_from_being_set_up() {
    let machine = with_a_namesake();
    machine
        .run(&["install", "--client", "kiro", "--client", "cursor", "--yes"])
        .ends_with(1)
        .says(&["kiro"]);
    let file = machine.client_file(client(ClientName::Cursor));
    assert!(read(&file).contains("workbench-config.json"));
}

#[test]
fn an_error_that_all_clients_have_is_printed_once() {
    let machine = prepared();
    let said = machine.run(&["install", "--client", "kiro", "--client", "cursor"]);
    let said = said.ends_with(1).says(&["kiro", "cursor"]).all();
    assert_eq!(
        said.matches("no terminal to confirm on").count(),
        1,
        "{said}"
    );
}

#[test]
fn all_without_any_client_is_an_error() {
    let machine = Machine::new();
    configure(&machine);
    machine
        .run(&["install", "--all", "--yes"])
        .ends_with(1)
        .says(&["no client with a configuration file was found", "--client"]);
}

#[test]
fn the_entry_of_a_client_that_shares_says_so() {
    let machine = prepared();
    machine
        .run(&["install", "--client", "cursor", "--shared", "--yes"])
        .ends_with(0);
    let entry = &value(&machine, ClientName::Cursor)["mcpServers"]["workbench"]["args"];
    let words: Vec<&str> = entry
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(words[words.len() - 2..], ["serve", "--shared"], "{words:?}");
    // Without the option it says nothing about it.
    machine
        .run(&["install", "--client", "cursor", "--yes"])
        .ends_with(0);
    let entry = value(&machine, ClientName::Cursor)["mcpServers"]["workbench"]["args"].to_string();
    assert!(!entry.contains("--shared"), "{entry}");
}
