//! The table of threats: the test that a row names must exist.

use std::{fs, path::Path};

use super::none;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/evidence/threats.md"
);

/// Returns the texts between backticks that look like the path of a test.
fn named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|it| it.contains("::")).collect()
}

/// Returns true if the test exists.
fn exists(test: &str) -> bool {
    let Some((module, name)) = test.rsplit_once("::") else {
        return false;
    };
    let path = Path::new(TESTS).join(module.replace("::", "/"));
    let files = [path.with_extension("rs"), path.join("mod.rs")];
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    let function = format!("fn {name}(");
    texts.into_iter().any(|text| text.contains(&function))
}

#[test]
fn every_test_named_in_the_threats_exists() {
    let text = fs::read_to_string(PAGE).unwrap();
    let tests = named(&text);
    assert!(tests.len() > 40, "only {} tests are named", tests.len());
    let missing = tests.iter().filter(|test| !exists(test));
    let missing: Vec<String> = missing.map(|test| format!("no test {test}")).collect();
    none(&missing);
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("---"));
    let bare = rows.filter(|row| {
        !row.contains("::") && !row.contains("./scripts/") && !row.contains("shown by")
    });
    let bare: Vec<String> = bare.map(|row| format!("nothing shows {row}")).collect();
    none(&bare);
    assert!(!exists("use_tool::a_test_that_nobody_wrote"));
}
