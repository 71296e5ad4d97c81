//! Permissions of the configuration, and of the files that we write.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use pretty_assertions::assert_eq;

use crate::harness::{Script, Setup};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Returns the refusal to serve a configuration with these permissions.
fn refused(change: impl FnOnce(&Path)) -> String {
    let setup = Setup::one(&Script::new());
    setup.write_config();
    let config = setup.config();
    change(&config);
    let config = config.to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["--config", &config]);
    let finished = workbench.finish();
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert_eq!(workbench.journal("dev", "fs").lines(), Vec::<String>::new());
    finished.stderr
}

#[test]
fn a_world_writable_configuration_is_refused() {
    let words = refused(|config| set_mode(config, 0o666));
    assert!(
        words.contains("every user of this machine can write"),
        "{words}"
    );
    assert!(words.contains("hint: chmod o-w '"), "{words}");
    let words = refused(|config| set_mode(config.parent().unwrap(), 0o777));
    assert!(
        words.contains("every user of this machine can write"),
        "{words}"
    );
}

#[test]
fn a_configuration_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file away; what is checked then is that root's own files are taken.
        Setup::one(&Script::new()).connect();
        return;
    }
    let words = refused(|config| std::os::unix::fs::chown(config, Some(12_345), None).unwrap());
    assert!(
        words.contains("another user (uid 12345) can write"),
        "{words}"
    );
    assert!(words.contains("chown"), "{words}");
}

#[test]
fn a_group_writable_configuration_is_only_warned_about() {
    let setup = Setup::one(&Script::new());
    setup.write_config();
    let config = setup.config();
    set_mode(&config, 0o664);
    let config = config.to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["--config", &config]);
    workbench.initialize();
    workbench.open("dev");
    // Whether the group has other members depends on the machine; the rule itself has a test of its own.
    let words = workbench.stderr();
    let warned = words.contains("every member of the group");
    assert!(warned || !words.contains("can write to"), "{words}");
}

#[test]
fn a_group_writable_folder_is_warned_about() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a folder to a group that it is not in; the rule itself has a test of its own.
        return;
    }
    let setup = Setup::one(&Script::new());
    setup.write_config();
    let config = setup.config();
    let folder = config.parent().unwrap();
    std::os::unix::fs::chown(folder, None, Some(12_345)).unwrap();
    set_mode(folder, 0o775);
    let hint = format!(
        "hint: chmod g-w '{}'",
        folder.canonicalize().unwrap().display()
    );
    let config = config.to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["--config", &config]);
    workbench.initialize();
    workbench.open("dev");
    let words = workbench.finish().stderr;
    assert!(
        words.contains("every member of the group 12345 can write"),
        "{words}"
    );
    assert!(words.contains(&hint), "{words}");
}

#[test]
fn the_file_of_init_is_private_to_the_user() {
    let setup = Setup::new();
    let file = setup.path("new/folder/workbench.json");
    let config = file.to_str().unwrap().to_owned();
    let mut workbench = setup.start_with(&["init", "--config", &config]);
    let finished = workbench.finish();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
}
