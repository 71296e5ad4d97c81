//! The code map of ARCHITECTURE.md: every file of the product is in it, and everything in it exists.

use std::{fs, path::Path};

use super::{
    none,
    page::{page, root},
};

/// The paths of the code map below `src`; those of folders end with a slash.
fn named() -> Vec<String> {
    let text = page("ARCHITECTURE.md").text;
    let (_, map) = text.split_once("In `crates/mcp-workbench/src`").unwrap();
    let (map, _) = map.split_once("\n## ").unwrap();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| paths(row.split(" |").next().unwrap()))
        .collect()
}

/// The paths in the first cell of a row. One without a slash lies beside the one before it.
fn paths(cell: &str) -> Vec<String> {
    let mut folder = String::new();
    let names = cell
        .split('`')
        .filter(|it| !it.trim_matches([',', ' ']).is_empty());
    let paths = names.map(|name| {
        if let Some((before, _)) = name.rsplit_once('/') {
            folder = format!("{before}/");
            name.to_owned()
        } else {
            format!("{folder}{name}")
        }
    });
    paths.collect()
}

/// The files below a folder, without those of unit tests.
fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    files.retain(|file| !file.contains("test"));
    files.sort();
    files
}

#[test]
fn the_code_map_has_every_file_and_nothing_else() {
    let source = root().join("crates/mcp-workbench/src");
    let named = named();
    let covers = |file: &str| {
        let mut named = named.iter();
        named.any(|it| it == file || (it.ends_with('/') && file.starts_with(it.as_str())))
    };
    let missing = files(&source).into_iter().filter(|file| !covers(file));
    let gone = named.iter().filter(|it| !source.join(it).exists());
    let findings: Vec<String> = missing
        .map(|file| format!("{file} is not in the code map"))
        .chain(gone.map(|path| format!("{path} does not exist")))
        .collect();
    none(&findings);
}
