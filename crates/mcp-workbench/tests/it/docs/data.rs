//! Blocks of data: JSON, TOML and YAML parse, and every configuration loads.

use std::{ffi::OsString, fs, path::Path};

use mcp_workbench::config::{Environment, parse};
use serde_json::Value;

use super::{Block, blocks, none, page::root};

/// Surroundings in which every variable that a text refers to is set.
fn surroundings(text: &str) -> Environment {
    let references = text.split("${").skip(1);
    let names = references.map(|rest| {
        let name = rest.strip_prefix("env:").unwrap_or(rest);
        let end = name.find(|char: char| !char.is_alphanumeric() && char != '_');
        &name[..end.unwrap_or(name.len())]
    });
    let variables = names.map(|name| (OsString::from(name), OsString::from("value")));
    Environment::new(variables, "/work".into(), Some("/home/me".into()))
}

/// Loads a configuration as a start of the workbench would.
fn load(text: &str) -> Result<(), String> {
    let loaded = parse(text, Path::new("example.json"), &surroundings(text));
    let loaded = loaded.map_err(|problems| problems.to_string())?;
    let warnings: Vec<_> = loaded.warnings.iter().chain(&loaded.unset).collect();
    match warnings.as_slice() {
        [] => Ok(()),
        warnings => Err(format!("{warnings:?}")),
    }
}

/// Tests a block of data; nothing to say of other blocks.
fn test(block: &Block) -> Result<(), String> {
    match block.language.as_str() {
        "jsonc" => load(&block.text),
        "json" => {
            let parsed: Result<Value, _> = serde_json::from_str(&block.text);
            let value = parsed.map_err(|error| error.to_string())?;
            if value.get("toolboxes").is_some() {
                load(&block.text)
            } else {
                Ok(())
            }
        }
        "toml" => block
            .text
            .parse::<toml_edit::DocumentMut>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "yaml" => serde_saphyr::from_str::<Value>(&block.text)
            .map(|_| ())
            .map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

#[test]
fn data_parses_and_every_configuration_loads() {
    let blocks = blocks();
    let findings: Vec<String> = blocks
        .iter()
        .filter_map(|block| {
            let error = test(block).err()?;
            Some(format!("{}: {error}", block.place()))
        })
        .collect();
    none(&findings);
}

#[test]
fn the_example_files_load() {
    let folder = root().join("docs/examples");
    let mut findings = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if let Err(error) = load(&fs::read_to_string(&file).unwrap()) {
            findings.push(format!("{}: {error}", file.display()));
        }
    }
    none(&findings);
}
