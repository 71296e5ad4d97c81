//! Writing files to disk: the properties that are preserved, and the writes that are refused.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;

use crate::config::edit::{WriteError, create_new, replace_unchanged, write_atomically};

/// Creates a folder with one file, `a.json`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("a.json"), "old").expect("writing a file");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn writing_leaves_no_temporary_files() {
    let folder = folder();
    let file = folder.path().join("a.json");
    write_atomically(&file, "new").unwrap();
    write_atomically(&folder.path().join("b.json"), "b").unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "new");
    assert_eq!(names(folder.path()), ["a.json", "b.json"]);
}

#[test]
fn a_file_that_another_program_changed_is_not_overwritten() {
    let folder = folder();
    let file = folder.path().join("a.json");
    let refused = replace_unchanged(&file, "read before", "new");
    assert!(matches!(refused, Err(WriteError::Changed { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(names(folder.path()), ["a.json"]);
    replace_unchanged(&file, "old", "new").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
}

#[test]
fn an_existing_file_is_never_replaced_by_create() {
    let folder = folder();
    let file = folder.path().join("a.json");
    let refused = create_new(&file, "new");
    assert!(matches!(refused, Err(WriteError::Exists { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    let deep = folder.path().join("x/y/b.json");
    create_new(&deep, "b").unwrap();
    assert_eq!(fs::read_to_string(&deep).unwrap(), "b");
}

#[test]
fn a_read_only_file_and_a_folder_that_is_missing_are_refused() {
    let folder = folder();
    let file = folder.path().join("a.json");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).unwrap();
    let refused = write_atomically(&file, "new");
    assert!(matches!(refused, Err(WriteError::ReadOnly { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    let refused = write_atomically(&folder.path().join("no/b.json"), "b");
    assert!(matches!(refused, Err(WriteError::Failed { .. })));
}

#[cfg(unix)]
#[test]
fn permissions_are_preserved() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let file = folder.path().join("a.json");
    for mode in [0o600, 0o664, 0o755] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        write_atomically(&file, "new").unwrap();
        let kept = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(kept & 0o777, mode);
    }
}

#[cfg(unix)]
#[test]
fn writing_through_a_link_replaces_its_target() {
    use std::os::unix::fs::symlink;
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    symlink("../a.json", at("sub/first")).unwrap();
    symlink("sub/first", at("second")).unwrap();
    write_atomically(&at("second"), "new").unwrap();
    assert_eq!(fs::read_to_string(at("a.json")).unwrap(), "new");
    assert!(at("second").is_symlink() && at("sub/first").is_symlink());
    assert_eq!(names(&at("sub")), ["first"]);

    symlink("later.json", at("dangling")).unwrap();
    write_atomically(&at("dangling"), "late").unwrap();
    assert_eq!(fs::read_to_string(at("later.json")).unwrap(), "late");

    symlink("round", at("round")).unwrap();
    let refused = write_atomically(&at("round"), "x");
    assert!(matches!(refused, Err(WriteError::Failed { .. })));
}
