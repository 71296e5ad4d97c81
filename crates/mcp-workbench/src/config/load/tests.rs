//! Reading files from disk, and the examples of the documentation.

use std::fs;

use proptest::prelude::*;

use super::*;

const VALID: &str = r#"{"toolboxes": {}}"#;

fn environment() -> Environment {
    Environment::new([], "/start".into(), Some("/home/me".into()))
}

fn load_bytes(bytes: &[u8]) -> (Result<Loaded, LoadError>, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("c.json");
    fs::write(&file, bytes).expect("writing it");
    (load(&file, &environment()), file)
}

#[test]
fn a_valid_file_is_loaded() {
    let (loaded, file) = load_bytes(VALID.as_bytes());
    assert_eq!(loaded.expect("a valid file").config.file, file);
}

#[test]
fn a_relative_path_is_resolved_against_the_start_directory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("c.json"), VALID).expect("writing it");
    let environment = Environment::new([], folder.path().into(), None);
    let loaded = load(Path::new("c.json"), &environment).expect("a valid file");
    assert_eq!(loaded.config.file, Path::new("c.json"));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let missing = load(Path::new("/no/such/c.json"), &environment()).expect_err("not there");
    assert_eq!(
        missing.to_string(),
        "the configuration file `/no/such/c.json` does not exist"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let directory = load(folder.path(), &environment()).expect_err("a directory");
    assert!(
        matches!(directory, LoadError::Directory { .. }),
        "{directory}"
    );
    let (binary, _) = load_bytes(b"{\n\n\"\xff\": 1}");
    let binary = binary.expect_err("no text");
    assert!(
        matches!(binary, LoadError::NotText { line: 3, .. }),
        "{binary}"
    );
    let mut large = vec![b' '; usize::try_from(MAX_FILE_BYTES).expect("it fits") + 1];
    large[0] = b'{';
    let large = load_bytes(&large).0.expect_err("too large");
    assert!(matches!(large, LoadError::TooLarge { .. }), "{large}");
    for error in [missing, directory, binary, large] {
        assert!(error.remedy().is_some(), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_path_through_a_file_is_unreadable() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("c.json");
    fs::write(&file, VALID).expect("writing it");
    let error = load(&file.join("x"), &environment()).expect_err("not a folder");
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error}");
}

#[test]
fn an_invalid_file_reports_its_problems() {
    let (error, file) = load_bytes(b"{}");
    let error = error.expect_err("nothing in it").to_string();
    assert!(
        error.starts_with(&format!("{}:1:1: ", file.display())),
        "{error}"
    );
}

#[test]
fn the_example_of_the_contract_is_valid() {
    let text = r#"{
      "toolboxes": {
        "dev": {
          "description": "Development environment tools",
          "mcpServers": {
            "filesystem": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-filesystem", "${PROJECT_ROOT:-.}"],
              "env": { "LOG_LEVEL": "${LOG_LEVEL:-info}" },
              "toolFilters": ["*"]
            }
          }
        }
      }
    }"#;
    let loaded = parse(text, Path::new("c.json"), &environment()).expect("a valid file");
    assert_eq!((loaded.warnings, loaded.unset), (vec![], vec![]));
}

/// Every `jsonc` block of the reference is a whole file.
#[test]
fn the_examples_of_the_documentation_are_valid() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let reference = fs::read_to_string(reference).expect("the reference exists");
    let examples: Vec<&str> = reference
        .split("```jsonc\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(examples.len() >= 3, "only {} examples", examples.len());
    for example in examples {
        let loaded = parse(example, Path::new("example.json"), &environment());
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}\n{example}"));
        assert_eq!(loaded.warnings, [], "{example}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        pieces in prop::collection::vec(
            prop_oneof![
                Just("{".to_owned()),
                Just("}".to_owned()),
                Just("\"toolboxes\":".to_owned()),
                Just("\"t\": {\"description\": \"d\", \"mcpServers\": {".to_owned()),
                Just("\"s\": {\"command\": [\"${A\", 1],}".to_owned()),
                "[ -~äß\n\"\\\\{}:,\\[\\]/*]{0,6}",
            ],
            0..12,
        ),
    ) {
        if let Err(problems) = parse(&pieces.concat(), Path::new("c.json"), &environment()) {
            prop_assert!(problems.iter().len() > 0);
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}
