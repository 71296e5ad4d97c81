//! The locations of sets and runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the checkout.
pub fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = crates.and_then(Path::parent);
    root.expect("the crate stands two folders below the root")
        .to_owned()
}

/// The folder of our own small set, which is always there.
pub fn own_set() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sets/own")
}

/// Returns the folders of the development sets, sorted by name. There are none if the sets are absent.
pub fn development_sets() -> Vec<PathBuf> {
    let folder = root().join("../shared/retrieval/dev");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("queries.jsonl").is_file())
        .collect();
    folders.sort();
    folders
}

/// The folder that runs are written to.
pub fn runs() -> PathBuf {
    root().join("target/retrieval")
}

/// The file of the scores that must not be lost.
pub fn baseline() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline.json")
}
