//! Guides that are followed to the letter.

use pretty_assertions::assert_eq;

use super::{
    page::{Block, page},
    world::{WORKBENCH, World},
};

const GETTING_STARTED: &str = "docs/guides/getting-started.md";

/// The client whose entry a block of commands writes.
fn client(block: &Block) -> Option<&str> {
    let line = block.text.trim();
    let client = line.strip_prefix("mcp-workbench install --client ")?;
    (!client.contains(char::is_whitespace)).then_some(client)
}

/// Returns the output of `install --print`, as it is for the user `me`.
fn printed(world: &World, client: &str) -> String {
    let ran = world.run(&format!("mcp-workbench install --client {client} --print"));
    assert_eq!(ran.code, 0, "{}", ran.all());
    let (entry, _link) = ran.stdout.split_once("\n\n").unwrap_or((&ran.stdout, ""));
    let program = "/home/me/.local/bin/mcp-workbench";
    let entry = entry
        .replace(world.path("bin/mcp-workbench").to_str().unwrap(), program)
        .replace(WORKBENCH, program)
        .replace(world.path("home").to_str().unwrap(), "/home/me");
    entry.trim_end().to_owned() + "\n"
}

#[test]
fn client_entries_in_the_docs_are_those_that_install_prints() {
    let world = World::new();
    let config = "home/.config/mcp-workbench/workbench-config.json";
    world.write(config, "{\"toolboxes\": {}}\n");
    let blocks = page(GETTING_STARTED).blocks();
    let mut compared = Vec::new();
    for pair in blocks.windows(2) {
        let (Some(client), [_, entry]) = (client(&pair[0]), pair) else {
            continue;
        };
        if entry.language != "sh" {
            assert_eq!(entry.text, printed(&world, client), "{}", entry.place());
            compared.push(client);
        }
    }
    assert!(compared.len() >= 10, "only {compared:?}");
}

#[test]
fn getting_started_can_be_followed_from_the_top() {
    let world = World::new();
    let programs = format!(
        "PATH={}:$PATH; ",
        world.path("home/.local/bin").to_str().unwrap()
    );
    for block in page(GETTING_STARTED).blocks() {
        for line in block.text.lines().filter(|_| block.language == "sh") {
            if line.starts_with("cargo ") {
                continue;
            }
            let asks = line.contains("install --client") && !line.contains("--print");
            let answer = if asks { " --yes" } else { "" };
            let ran = world.run(&format!("{programs}{line}{answer}"));
            assert_eq!(ran.code, 0, "{line}\n{}", ran.all());
        }
    }
    for file in [
        ".claude.json",
        ".cursor/mcp.json",
        ".codex/config.toml",
        ".config/goose/config.yaml",
    ] {
        let path = world.path("home").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("workbench-config.json"), "{file}: {text}");
    }
}
