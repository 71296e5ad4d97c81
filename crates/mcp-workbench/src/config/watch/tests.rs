use std::fs;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

#[test]
fn a_fingerprint_depends_on_the_content_of_a_file() {
    let folder = folder();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    fs::write(&one, "text").unwrap();
    fs::write(&other, "text").unwrap();
    let fingerprint = Fingerprint::of_file(&one);
    assert_eq!(fingerprint, Fingerprint::of_file(&other));
    assert_eq!(fingerprint, Fingerprint::of_text("text"));
    fs::write(&one, "texu").unwrap();
    assert!(fingerprint != Fingerprint::of_file(&one));
    assert!(fingerprint.is_readable());
    for nothing in [&folder.path().join("missing"), folder.path()] {
        assert!(!Fingerprint::of_file(nothing).is_readable(), "{nothing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn polling_detects_a_change() {
    let folder = folder();
    let file = folder.path().join("file");
    let mut polled = Polled::new(vec![file.clone()]);
    for text in [Some("a"), Some("longer"), None] {
        match text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        polled.next().await;
    }
}

#[cfg(target_os = "linux")]
mod inotify {
    use std::{os::unix::fs::symlink, path::Path};

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::config::watch::path_entries::path_entries;

    /// Returns the entries of a path, relative to a folder.
    fn seen_from(folder: &Path, path: &str) -> Vec<String> {
        let root = folder.canonicalize().unwrap();
        let path_entries = path_entries(&root.join(path)).into_iter();
        let path_entries = path_entries.map(|it| it.folder.join(it.name));
        path_entries
            .map(|it| it.strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn all_links_of_a_path_and_its_target_are_watched() {
        let folder = folder();
        let root = folder.path();
        fs::create_dir_all(root.join("store/one")).unwrap();
        fs::write(root.join("store/one/file"), "").unwrap();
        symlink("one", root.join("store/current")).unwrap();
        symlink("store/current/file", root.join("link")).unwrap();
        symlink("../link", root.join("store/back")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let cases = [
            ("store/one/file", &["store/one/file"][..]),
            ("store/./one/../one/file", &["store/one/file"]),
            ("link", &["link", "store/current", "store/one/file"]),
            (
                "store/back",
                &["store/back", "link", "store/current", "store/one/file"],
            ),
            ("store/missing/file", &["store/missing"]),
            (
                "store/current/missing",
                &["store/current", "store/one/missing"],
            ),
            ("store/one/file/below", &["store/one/file"]),
        ];
        for (path, expected) in cases {
            assert_eq!(seen_from(root, path), expected, "{path}");
        }
        assert_eq!(seen_from(root, "circle").last().unwrap(), "circle");
    }

    #[tokio::test]
    async fn only_events_of_the_watched_files_count() {
        let folder = folder();
        let root = folder.path();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "").unwrap();
        symlink("real/file", root.join("link")).unwrap();
        let told = |act: &dyn Fn()| {
            let inotify = Inotify::new(&[root.join("link")]).unwrap();
            act();
            inotify.take()
        };
        let write = |name: &'static str| move || fs::write(root.join(name), "x").unwrap();
        assert!(!told(&|| {}));
        assert!(!told(&write("other")));
        assert!(!told(&write("real/other")));
        assert!(told(&write("real/file")));
        assert!(told(&write("link")), "written through the link");
        assert!(!told(&|| _ = fs::read(root.join("link")).unwrap()));
        assert!(told(
            &|| fs::rename(root.join("other"), root.join("link")).unwrap()
        ));
        assert!(told(&|| fs::remove_file(root.join("link")).unwrap()));
        assert!(told(&|| symlink("real/other", root.join("link")).unwrap()));
        assert!(told(&|| fs::remove_dir_all(root.join("real")).unwrap()));
        assert!(!told(&|| fs::create_dir(root.join("elsewhere")).unwrap()));
        assert!(told(&|| fs::create_dir(root.join("real")).unwrap()));
    }

    #[tokio::test]
    async fn a_wait_ends_with_a_change() {
        let folder = folder();
        let file = folder.path().join("file");
        let mut watch = FileWatch::new(vec![file.clone()]);
        assert!(!watch.is_polled());
        fs::write(&file, "x").unwrap();
        watch.changed().await;
    }
}
