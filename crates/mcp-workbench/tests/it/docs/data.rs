//! Blocks of data: JSON, TOML and YAML parse, and every configuration loads.

use std::{ffi::OsString, fs, path::Path};

use mcp_workbench::internal::{
    config::{Environment, parse},
    lock::Lock,
};
use serde_json::Value;

use super::{Block, blocks, none, page::root, world::World};

/// The value of every variable, long enough for a key.
const VALUE: &str = "a-value-that-is-long-enough-for-a-key";

/// Surroundings in which every variable that a text refers to is set.
fn surroundings(text: &str) -> Environment {
    let references = text.split("${").skip(1);
    let names = references.map(|rest| {
        let name = rest.strip_prefix("env:").unwrap_or(rest);
        let end = name.find(|char: char| !char.is_alphanumeric() && char != '_');
        &name[..end.unwrap_or(name.len())]
    });
    let variables = names.map(|name| (OsString::from(name), OsString::from(VALUE)));
    Environment::new(variables, "/project".into(), Some("/home/me".into()))
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

/// A document with toolboxes that a command prints, told apart by a key that only this one has.
fn printed(value: &Value) -> Result<(), String> {
    let commands = [
        ("tool_mode", "list --tools"),
        ("healthy", "doctor"),
        ("tokenizer", "tokens"),
    ];
    let mut commands = commands.iter();
    let Some((_, command)) = commands.find(|(key, _)| value.get(key).is_some()) else {
        return Err("no command prints this".to_owned());
    };
    let world = World::new().configured();
    let ran = world.run(&format!("mcp-workbench {command} --json"));
    let real: Value = serde_json::from_str(&ran.stdout).map_err(|_| ran.all())?;
    let keys = |value: &Value| -> Vec<String> {
        let members = value.as_object();
        members.map_or_else(Vec::new, |it| it.keys().cloned().collect())
    };
    if keys(&real) == keys(value) {
        Ok(())
    } else {
        Err(format!("{command} prints {:?}", keys(&real)))
    }
}

/// Tests a block of data; nothing to say of other blocks.
fn test(block: &Block) -> Result<(), String> {
    match block.language.as_str() {
        "jsonc" => load(&block.text),
        "json" => {
            let parsed: Result<Value, _> = serde_json::from_str(&block.text);
            let value = parsed.map_err(|error| error.to_string())?;
            if value.get("layout").is_some() {
                let lock = Lock::parse(block.text.clone().into());
                return lock.map(drop).map_err(|fault| fault.to_string());
            }
            match value.get("toolboxes") {
                Some(Value::Array(_)) => printed(&value),
                Some(_) => load(&block.text),
                None => Ok(()),
            }
        }
        "toml" => block
            .text
            .parse::<toml_edit::DocumentMut>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "yaml" => saphyr_parser::Parser::new_from_str(&block.text)
            .try_for_each(|event| event.map(|_| ()))
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
fn documents_that_no_command_prints_are_detected() {
    for (text, good) in [
        (r#"{"file":"f","tool_mode":"proxy","toolboxes":[]}"#, true),
        (r#"{"tool_mode":"proxy","toolboxes":[]}"#, false),
        (r#"{"toolboxes":[]}"#, false),
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(printed(&value).is_ok(), good, "{text}");
    }
}

#[test]
fn the_example_files_load() {
    let folder = root().join("docs/examples");
    let mut findings = Vec::new();
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        if let Err(error) = load(&fs::read_to_string(&file).unwrap()) {
            findings.push(format!("{}: {error}", file.display()));
        }
    }
    none(&findings);
}
