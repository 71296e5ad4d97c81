//! `install --undo`: the file is restored to the byte.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mcp_workbench::internal::clients::{ClientName, Format, Scope, client, servers_in};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    install::{configure, prepared, with_a_namesake, writable},
    machine::{Machine, read, write},
};

#[test]
fn undo_restores_every_file_byte_for_byte() {
    let machine = prepared();
    let before = machine.files();
    for options in [
        &["--yes"][..],
        &["--yes", "--replace"],
        &["--yes", "--name", "my tools"],
    ] {
        for client in writable() {
            let word = client.word();
            let mut arguments = vec!["install", "--client", &word];
            arguments.extend(options);
            machine.run(&arguments).ends_with(0);
            assert_ne!(machine.files(), before, "{word}");
            let mut arguments = vec!["install", "--client", &word, "--undo"];
            arguments.extend(options.iter().skip(1).filter(|it| **it != "--replace"));
            machine.run(&arguments).ends_with(0).says(&["restored "]);
            assert_eq!(machine.files(), before, "{word} {options:?}");
        }
    }
}

#[test]
fn undo_deletes_a_file_that_install_created() {
    let machine = Machine::new();
    configure(&machine);
    let before = machine.files();
    for client in writable() {
        let word = client.word();
        machine
            .run(&["install", "--client", &word, "--yes"])
            .ends_with(0);
        assert!(
            read(&machine.client_file(client)).contains("workbench-config.json"),
            "{word}"
        );
        machine
            .run(&["install", "--client", &word, "--undo"])
            .ends_with(0)
            .says(&["did not exist before"]);
        assert_eq!(machine.files(), before, "{word}");
    }
}

#[cfg(unix)]
#[test]
fn a_backup_that_became_a_fifo_is_not_read() {
    use rustix::fs::{CWD, Mode, mkfifoat};

    let machine = prepared();
    let install = ["install", "--client", "cursor"];
    machine
        .run(&[&install[..], &["--yes"]].concat())
        .ends_with(0);
    let files = machine.files().into_iter();
    let mut backups = files.filter(|(file, _)| file.to_string_lossy().contains("-backup-"));
    let (backup, _) = backups.next().expect("a backup");
    fs::remove_file(&backup).expect("it can be deleted");
    mkfifoat(CWD, &backup, Mode::RUSR | Mode::WUSR).expect("a FIFO can be made");
    // Reading it would wait for a writer for ever.
    let undone = machine.run(&[&install[..], &["--undo"]].concat());
    undone.ends_with(1).says(&["not a regular file"]);
}

#[test]
fn unusual_layouts_are_restored() {
    let machine = prepared();
    let cases = [
        (
            ClientName::Cursor,
            "\u{feff}{\r\n\t\"mcpServers\" : {\r\n\t}\r\n}",
        ),
        (ClientName::Cursor, ""),
        (ClientName::Cursor, "  \n"),
        (ClientName::Cursor, "{}"),
        (
            ClientName::Cursor,
            "{\"mcpServers\":{\"a\":{\"command\":\"x\"},},/*end*/}",
        ),
        (
            ClientName::Zed,
            "// only a comment\n{ // here\n}\n// and there",
        ),
        (ClientName::Codex, "a = 1\r\n# no line end"),
        (
            ClientName::Codex,
            "mcp_servers = {}\nb = [\n  1, # one\n]\n",
        ),
        (ClientName::MistralVibe, "mcp_servers = []\n"),
        (ClientName::Goose, ""),
        (ClientName::Goose, "a: 1\r\n# no line end"),
        (ClientName::Goose, "extensions: {}\nb: 1\n"),
        (
            ClientName::Continue,
            "mcpServers:\n- name: a\n  command: x\n\n# end\nb: 1\n",
        ),
    ];
    for (name, text) in cases {
        let file = machine.client_file(client(name));
        write(&file, text);
        let before = machine.files();
        let ran = machine.run(&["install", "--client", &name.word(), "--yes"]);
        if ran.code == 0 {
            machine
                .run(&["install", "--client", &name.word(), "--undo"])
                .ends_with(0);
        }
        assert_eq!(machine.files(), before, "{name:?} {text:?}");
        assert!(
            ran.code == 0 || text == "mcp_servers = []\n",
            "{text:?}: {}",
            ran.all()
        );
    }
}

#[test]
fn undo_removes_only_our_entry_from_a_file_changed_since() {
    let machine = prepared();
    for name in [
        ClientName::Cursor,
        ClientName::Codex,
        ClientName::ClaudeCode,
    ] {
        let file = machine.client_file(client(name));
        let original = read(&file);
        let word = name.word();
        machine
            .run(&["install", "--client", &word, "--yes"])
            .ends_with(0);
        let changed = |text: &str| match name {
            ClientName::Codex => text.replace("# Codex", "# Codex, changed"),
            ClientName::Cursor => text.replace("// Servers of", "// Changed:"),
            _ => text.replace("\"numStartups\": 42", "\"numStartups\": 43"),
        };
        write(&file, &changed(&read(&file)));
        let before = machine.files();
        machine
            .run(&["install", "--client", &word, "--undo", "--dry-run"])
            .ends_with(0);
        assert_eq!(machine.files(), before, "{word}");
        machine
            .run(&["install", "--client", &word, "--undo"])
            .ends_with(0)
            .says(&["which has changed since", "backup: "]);
        assert_ne!(changed(&original), original, "{word}");
        assert_eq!(read(&file), changed(&original), "{word}");
        machine
            .run(&["install", "--client", &word, "--undo"])
            .ends_with(1)
            .says(&["nothing to undo"]);
        assert_eq!(read(&file), changed(&original), "{word}");
    }
}

/// Rewrites a file as a client does that saves its settings: without comments, in a layout of its own.
fn rewrite(machine: &Machine, name: ClientName) {
    let file = machine.client_file(client(name));
    let text = read(&file);
    let changed = match client(name).format {
        Format::Toml => text.replace("command", "\n  command"),
        Format::Yaml => format!("saved: true\n{text}"),
        Format::Json => {
            let mut value = jsonc(&text);
            value["saved"] = json!(true);
            value.to_string()
        }
    };
    assert_ne!(changed, text, "{name:?}");
    write(&file, &changed);
}

fn jsonc(text: &str) -> Value {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
        .expect("JSON with comments")
}

/// The servers of a client's file, by the project whose section has them and their name.
fn entries(machine: &Machine, name: ClientName) -> Vec<(Option<PathBuf>, String, Value)> {
    let text = read(&machine.client_file(client(name)));
    let servers = servers_in(client(name), &text, Scope::User, Path::new("/"));
    let servers = servers.expect("it can be read").into_iter();
    let mut entries: Vec<_> = servers
        .map(|it| (it.project, it.name, Value::Object(it.entry)))
        .collect();
    entries.sort_by_key(|(project, name, _)| (project.clone(), name.clone()));
    entries
}

#[test]
fn undo_restores_replaced_servers_after_the_client_rewrote_its_file() {
    let machine = prepared();
    for client in writable() {
        let (name, word) = (client.name, client.word());
        let before = entries(&machine, name);
        let replace = ["install", "--client", &word, "--yes", "--replace"];
        machine.run(&replace).ends_with(0);
        assert!(entries(&machine, name).len() <= before.len(), "{word}");
        rewrite(&machine, name);
        let undo = ["install", "--client", &word, "--undo"];
        let ran = machine.run(&undo).ends_with(0);
        let ran = ran.says(&["which has changed since", "restored: ", "backup: "]);
        assert!(!ran.all().contains("not restored"), "{}", ran.all());
        assert_eq!(entries(&machine, name), before, "{word}");
        machine.run(&undo).ends_with(1).says(&["nothing to undo"]);
    }
}

#[test]
fn undo_restores_replaced_servers_after_the_workbench_was_removed_in_the_client() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Cursor));
    let before = entries(&machine, ClientName::Cursor);
    let undo = ["install", "--client", "cursor", "--undo"];
    let remove = |name: &str| {
        let mut value = jsonc(&read(&file));
        let servers = value["mcpServers"].as_object_mut().expect("servers");
        servers.remove(name).expect("the entry is there");
        write(&file, &value.to_string());
    };
    machine
        .run(&["install", "--client", "cursor", "--yes", "--replace"])
        .ends_with(0);
    remove("workbench");
    let removed = read(&file);
    machine
        .run(&[&undo[..], &["--dry-run"]].concat())
        .ends_with(0)
        .says(&["would restore: common"]);
    assert_eq!(read(&file), removed);
    machine
        .run(&undo)
        .ends_with(0)
        .says(&["was removed from", "restored: common", "backup: "]);
    assert_eq!(entries(&machine, ClientName::Cursor), before);
    // A server that the user removes after the undo stays removed.
    remove("common");
    machine.run(&undo).ends_with(1).says(&["nothing to undo"]);
}

#[test]
fn undo_names_no_backup_of_a_file_that_did_not_exist() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Kiro));
    fs::remove_file(&file).expect("the file can be removed");
    machine
        .run(&["install", "--client", "kiro", "--yes"])
        .ends_with(0);
    rewrite(&machine, ClientName::Kiro);
    let ran = machine
        .run(&["install", "--client", "kiro", "--undo"])
        .ends_with(0);
    assert!(!ran.all().contains("backup"), "{}", ran.all());
    assert_eq!(
        jsonc(&read(&file)),
        json!({"mcpServers": {}, "saved": true})
    );
    let files = machine.files().into_iter().map(|(path, _)| path);
    let mut backups = files.filter(|it| it.to_string_lossy().contains("mcp.json.workbench-backup"));
    assert_eq!(backups.next(), None);
}

#[test]
fn undo_restores_the_servers_of_several_installs() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Cursor));
    let before = entries(&machine, ClientName::Cursor);
    for options in [&["--yes"][..], &["--yes", "--replace"]] {
        let install = ["install", "--client", "cursor"];
        machine.run(&[&install, options].concat()).ends_with(0);
        write(&file, &format!("{}\n", read(&file)));
    }
    machine
        .run(&["install", "--client", "cursor", "--undo"])
        .ends_with(0)
        .says(&["restored: common"]);
    assert_eq!(entries(&machine, ClientName::Cursor), before);
}

#[test]
fn a_server_that_was_changed_or_removed_since_is_named_and_not_restored() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Kiro));
    let servers = json!({
        "same": {"command": "npx", "args": ["-y", "shared-server"], "env": {"KEY": "${SHARED_KEY}"}},
        "gone": {"command": "gone"},
    });
    let undo = ["install", "--client", "kiro", "--undo"];
    // Without --replace the install takes nothing out, so whatever is missing was removed by somebody else.
    write(&file, &json!({"mcpServers": servers}).to_string());
    machine
        .run(&["install", "--client", "kiro", "--yes"])
        .ends_with(0);
    let mut value = jsonc(&read(&file));
    value["mcpServers"]
        .as_object_mut()
        .expect("servers")
        .remove("gone");
    write(&file, &value.to_string());
    machine
        .run(&undo)
        .ends_with(0)
        .says(&["in the backup, not restored: gone", "backup: "]);
    assert_eq!(
        jsonc(&read(&file)),
        json!({"mcpServers": {"same": servers["same"]}})
    );
    // A new server under the name of a replaced one stays.
    write(&file, &json!({"mcpServers": servers}).to_string());
    machine
        .run(&["install", "--client", "kiro", "--yes", "--replace"])
        .ends_with(0);
    let mut value = jsonc(&read(&file));
    value["mcpServers"]["same"] = json!({"command": "other"});
    write(&file, &value.to_string());
    machine
        .run(&undo)
        .ends_with(0)
        .says(&["different from the backup, not changed: same"]);
    assert_eq!(
        jsonc(&read(&file)),
        json!({"mcpServers": {"gone": {"command": "gone"}, "same": {"command": "other"}}})
    );
}

#[test]
fn undo_restores_an_older_entry_of_the_workbench() {
    let machine = prepared();
    let file = machine.client_file(client(ClientName::Kiro));
    let old =
        json!({"mcpServers": {"workbench": {"command": "npx", "args": ["-y", "mcp-workbench"]}}});
    write(&file, &old.to_string());
    machine
        .run(&["install", "--client", "kiro", "--yes"])
        .ends_with(0);
    write(&file, &format!("{} ", read(&file)));
    machine
        .run(&["install", "--client", "kiro", "--undo"])
        .ends_with(0)
        .says(&["restored: workbench"]);
    assert_eq!(jsonc(&read(&file)), old);
}

#[test]
fn installs_are_undone_one_by_one() {
    let machine = prepared();
    let zero = machine.files();
    machine
        .run(&["install", "--client", "cursor", "--yes"])
        .ends_with(0);
    let file = machine.client_file(client(ClientName::Cursor));
    let one = read(&file);
    machine
        .run(&["install", "--client", "cursor", "--yes", "--replace"])
        .ends_with(0);
    assert_ne!(read(&file), one);
    machine
        .run(&["install", "--client", "cursor", "--undo"])
        .ends_with(0);
    assert_eq!(read(&file), one);
    machine
        .run(&["install", "--client", "cursor", "--undo"])
        .ends_with(0);
    assert_eq!(machine.files(), zero);
    machine
        .run(&["install", "--client", "cursor", "--undo"])
        .ends_with(1)
        .says(&["nothing to undo"]);
    assert_eq!(machine.files(), zero);
}

#[test]
fn an_entry_of_another_server_with_our_name_stays() {
    let machine = with_a_namesake();
    let before = machine.files();
    machine
        .run(&["install", "--client", "kiro", "--undo"])
        .ends_with(1)
        .says(&["nothing to undo"]);
    assert_eq!(machine.files(), before);
}
