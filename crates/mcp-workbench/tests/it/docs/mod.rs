//! The documentation, held against the program: every block of every page is parsed, loaded, run or compared, and every
//! link leads somewhere. A block that nothing here knows how to test fails.

mod calls;
mod commands;
mod data;
mod followed;
mod links;
mod page;
mod pictures;
mod remote;
mod scripts;
mod shown;
mod threats;
mod world;

use page::{Block, Page, pages};

/// The languages of blocks that are tested, and where.
const LANGUAGES: &[(&str, &str)] = &[
    ("json", "data"),
    ("jsonc", "data"),
    ("toml", "data"),
    ("yaml", "data"),
    ("js", "scripts"),
    ("sh", "commands"),
    ("text", "shown"),
];

/// The blocks of all pages.
fn blocks() -> Vec<Block> {
    pages().iter().flat_map(Page::blocks).collect()
}

/// Ends the test with all findings at once.
#[track_caller]
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn every_code_block_has_a_tested_language() {
    let blocks = blocks();
    assert!(blocks.len() > 60, "only {} blocks", blocks.len());
    let unknown = blocks.iter().filter(|block| {
        let mut languages = LANGUAGES.iter();
        !languages.any(|(language, _)| block.language == *language)
    });
    let findings: Vec<String> = unknown
        .map(|block| format!("{}: `{}` is not tested", block.place(), block.language))
        .collect();
    none(&findings);
}

#[test]
fn the_changelog_and_the_packages_have_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = page::page("CHANGELOG.md").text;
    let mut versions = { changelog.lines() }
        .filter_map(|line| line.strip_prefix("## ["))
        .filter(|heading| !heading.starts_with("Unreleased"));
    let newest = versions.next().unwrap();
    assert!(newest.starts_with(&format!("{version}] - ")), "{newest}");
    let installing = page::page("docs/installing.md").text;
    let other: Vec<&str> = { installing.split_whitespace() }
        .filter(|word| word.contains("target/packages/mcp-workbench-"))
        .filter(|word| !word.contains(version))
        .collect();
    assert!(other.is_empty(), "packages of another version: {other:?}");
}
