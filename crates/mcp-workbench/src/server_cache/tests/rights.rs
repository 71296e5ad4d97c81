//! The owners and permissions of cache files.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn all_files_are_private_to_the_user() {
    let (folder, _, _, file) = cached();
    let servers = folder.path().join(FOLDER);
    assert_eq!(mode(&servers), 0o700);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&servers.join("salt")), 0o600);
}

#[test]
fn files_writable_by_others_are_not_read() {
    for open in [0o666, 0o620, 0o602] {
        let (_folder, cache, server, file) = cached();
        set_mode(&file, open);
        assert_eq!(cache.get(&server), None, "{open:o}");
        cache.put(&server, TOOLS).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(cache.get(&server).is_some());
    }
}

#[test]
fn a_folder_that_others_can_write_to_is_not_used() {
    let (folder, cache, server, _) = cached();
    set_mode(&folder.path().join(FOLDER), 0o777);
    assert_eq!(cache.get(&server), None);
    let refused = cache.put(&server, TOOLS);
    assert!(matches!(refused, Err(NotCached::Exposed(_))));
}

#[test]
fn a_salt_that_others_could_read_is_replaced() {
    let (folder, _, server, _) = cached();
    let salt = folder.path().join(FOLDER).join("salt");
    let before = fs::read(&salt).unwrap();
    set_mode(&salt, 0o644);
    let next = ServerCache::new(Some(folder.path()));
    assert_eq!(next.get(&server), None);
    next.put(&server, TOOLS).unwrap();
    assert_ne!(fs::read(&salt).unwrap(), before);
    assert_eq!(mode(&salt), 0o600);
}

#[test]
fn a_folder_or_link_in_place_of_a_file_is_not_read() {
    let (folder, cache, server, file) = cached();
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(cache.get(&server), None);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(cache.get(&server), None);
}
