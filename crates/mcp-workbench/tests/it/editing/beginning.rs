//! `init`.

use std::fs;

use super::Account;

#[test]
fn the_new_file_passes_check_and_add() {
    let account = Account::new();
    let said = account.done(&["init"]);
    assert!(
        said.starts_with(&format!("wrote {}\n\nnext:\n", account.config().display())),
        "{said}"
    );
    for command in [
        "import",
        "add main NAME -- COMMAND",
        "doctor",
        "install --client NAME",
    ] {
        assert!(
            said.contains(&format!("\n  mcp-workbench {command} ")),
            "{said}"
        );
    }
    let steps = said.lines().skip_while(|line| *line != "next:");
    let widest = steps.map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "the steps fit a terminal\n{said}");
    assert!(account.text().starts_with("// "), "it is explained");
    account.done(&["check"]);
    account.done(&["add", "main", "x", "--", "y"]);
    account.done(&["check"]);
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let account = Account::with("mine");
    let said = account.refused(1, &["init"]);
    assert!(said.contains("exists already"), "{said}");
    let said = account.refused(1, &["init", "--toolbox", "x", "--dry-run"]);
    assert!(said.contains("exists already"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_not_written_through() {
    let account = Account::new();
    std::os::unix::fs::symlink("elsewhere.json", account.config()).unwrap();
    account.refused(1, &["init"]);
    assert!(!account.path("work/elsewhere.json").exists());
}

#[test]
fn flags_decide_the_content_of_the_file() {
    let account = Account::new();
    let arguments = [
        "init",
        "--toolbox",
        "my box",
        "--description",
        "For \"x\"",
        "--",
        "npx",
        "-y",
        "@a/server-files",
        ".",
    ];
    let shown = account.run(&[&["init", "--dry-run"], &arguments[1..]].concat());
    assert!(!account.config().exists(), "a dry run writes nothing");
    let said = account.done(&arguments);
    assert!(said.contains("mcp-workbench add 'my box' NAME"), "{said}");
    let text = account.text();
    assert!(
        text.contains("    \"my box\": {\n")
            && text.contains("\"description\": \"For \\\"x\\\"\",\n"),
        "{text}"
    );
    assert!(
        text.contains("        \"files\": {\n          \"command\": \"npx\",\n          \"args\": [\"-y\", \"@a/server-files\", \".\"],\n        },\n"),
        "{text}"
    );
    let added: Vec<&str> = shown.stdout[3..]
        .iter()
        .map(|line| line.strip_prefix('+').unwrap())
        .collect();
    assert_eq!(added.join("\n") + "\n", text);
}

#[test]
fn the_file_is_written_to_the_given_path() {
    let account = Account::new();
    let said = account.done(&["init", "--config", "deep/down/my box.json"]);
    let file = account.path("work/deep/down/my box.json");
    assert!(file.exists());
    assert!(
        said.contains(&format!("each with --config '{}'", file.display())),
        "{said}"
    );
    assert!(!account.config().exists());

    let said = account.done(&["init", "--global"]);
    let file = account.path("home/.config/mcp-workbench/workbench-config.json");
    assert!(fs::read_to_string(file).unwrap().contains("toolboxes"));
    assert!(!said.contains("--config"), "it is found: {said}");
    account.done(&["check"]);
    account.refused(2, &["init", "--global", "--config", "x"]);
    account.refused(2, &["init", "--description", "x"]);
}

#[test]
fn an_unusable_configuration_is_not_written() {
    let account = Account::new();
    let said = account.refused(1, &["init", "--toolbox", " "]);
    assert!(said.contains("the name of a toolbox is empty"), "{said}");
    let said = account.refused(1, &["init", "--toolbox", "a", "--description", ""]);
    assert!(
        said.contains("toolboxes.a.description: the description is empty"),
        "{said}"
    );
    assert!(!account.config().exists());
}
