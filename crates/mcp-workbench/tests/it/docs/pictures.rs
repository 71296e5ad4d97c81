//! Pictures and figures: the drawn session is what the program shows, all pictures are used, and what the README counts is
//! what the program counts.

use std::{fs, process::Command};

use pretty_assertions::assert_eq;
use serde_json::Value;

use super::{
    none,
    page::{page, pages, root},
    world::{WORKBENCH, World},
};

/// A text with the digits of times such as `0.4 s` and `12.1 ms` made zero.
fn without_times(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let masked = words.iter().enumerate().map(|(at, word)| {
        let unit = words.get(at + 1).copied().unwrap_or_default();
        let unit = unit.split(['\n', '<']).next().unwrap_or_default();
        if ["s", "ms"].contains(&unit) && word.starts_with(|char: char| char.is_ascii_digit()) {
            "0.0"
        } else {
            word
        }
    });
    masked.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_drawn_session_is_what_the_program_shows() {
    let folder = tempfile::TempDir::new().unwrap();
    let drawn = folder.path().join("session.svg");
    let output = Command::new("python3")
        .arg(root().join("scripts/render-session"))
        .args(["--binary", WORKBENCH, "--output"])
        .arg(&drawn)
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let kept = fs::read_to_string(root().join("docs/images/session.svg")).unwrap();
    assert_eq!(
        without_times(&fs::read_to_string(drawn).unwrap()),
        without_times(&kept),
        "draw it anew with scripts/render-session"
    );
}

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

/// What all definitions cost needs the published servers; what the workbench costs does not depend on them.
#[test]
fn the_readme_says_what_a_model_reads_at_the_start() {
    let example = root().join("docs/examples/published-servers.json");
    let world = World::new();
    // A lock file is written beside it.
    world.write("work/example.json", &fs::read_to_string(example).unwrap());
    let ran = world.run("mcp-workbench --config example.json tokens --json");
    assert_eq!(ran.code, 0, "{}", ran.all());
    let counted: Value = serde_json::from_str(&ran.stdout).unwrap();
    let figure = format!("become {}**", counted["workbench"]["start_tokens"]);
    let readme = page("README.md").text;
    assert!(readme.contains(&figure), "{figure} is not in the README");
}
