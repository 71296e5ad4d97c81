//! Pictures and figures: all pictures are used, and what the README counts is what the program counts. The drawn session
//! needs published servers, so its test is among the real ones.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::Value;

use super::{
    none,
    page::{page, pages, root},
    world::World,
};

#[test]
fn every_picture_is_shown_somewhere() {
    let pages = pages();
    let mut unused = Vec::new();
    for entry in fs::read_dir(root().join("docs/images")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !pages
            .iter()
            .any(|page| page.text.contains(&format!("images/{name})")))
        {
            unused.push(name);
        }
    }
    none(&unused);
}

/// The cost of all definitions needs the published servers; the cost of the workbench does not depend on them.
#[test]
fn the_readme_has_the_measured_tokens_at_the_start() {
    let example = root().join("docs/examples/published-servers.json");
    let world = World::new();
    // A lock file is written beside it.
    world.write("work/example.json", &fs::read_to_string(example).unwrap());
    let ran = world.run("mcp-workbench --config example.json tokens --json");
    assert_eq!(ran.code, 0, "{}", ran.all());
    let counted: Value = serde_json::from_str(&ran.stdout).unwrap();
    let figure = format!(
        "{} tokens at the start",
        counted["workbench"]["start_tokens"]
    );
    let readme = page("README.md").text;
    assert!(readme.contains(&figure), "{figure} is not in the README");
}
