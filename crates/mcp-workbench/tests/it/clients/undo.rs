//! `install --undo`: the file is as it was, to the byte.

use mcp_workbench::clients::{ClientName, client};
use pretty_assertions::assert_eq;

use super::{
    install::{configure, prepared, with_a_namesake, writable},
    machine::{Machine, read, write},
};

#[test]
fn every_file_is_as_it_was() {
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
            machine.run(&arguments).ends_with(0).says(&["is as it was"]);
            assert_eq!(machine.files(), before, "{word} {options:?}");
        }
    }
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
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
            .says(&["was not there before"]);
        assert_eq!(machine.files(), before, "{word}");
    }
}

#[test]
fn strange_layouts_come_back() {
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
fn in_a_file_that_has_changed_since_only_our_entry_goes() {
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
            .says(&["which has changed since", "as it was before: "]);
        assert_ne!(changed(&original), original, "{word}");
        assert_eq!(read(&file), changed(&original), "{word}");
        machine
            .run(&["install", "--client", &word, "--undo"])
            .ends_with(1)
            .says(&["nothing to undo"]);
        assert_eq!(read(&file), changed(&original), "{word}");
    }
}

#[test]
fn installs_are_taken_back_one_by_one() {
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
fn an_entry_of_our_name_that_is_not_ours_stays() {
    let machine = with_a_namesake();
    let before = machine.files();
    machine
        .run(&["install", "--client", "kiro", "--undo"])
        .ends_with(1)
        .says(&["nothing to undo"]);
    assert_eq!(machine.files(), before);
}
