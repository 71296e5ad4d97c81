//! How much is kept, and for how long: the oldest go.

use std::{
    fs::{self, Metadata},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The largest file that is written or read.
pub(super) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How many files are kept.
const MAX_FILES: usize = 1000;
/// How large all of them are together.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// For how long a list counts that no start of its server has confirmed.
pub(super) const LIFETIME: Duration = Duration::from_hours(30 * 24);
/// For how long a file may be half written: what is older was left by a process that was killed.
const WRITING: Duration = Duration::from_hours(1);
/// How the names of files end.
const ENDING: &str = ".json";

/// A list that is kept.
pub(super) struct KeptFile {
    path: PathBuf,
    pub(super) bytes: u64,
    age: Duration,
}

/// How long ago a file was written. A clock that was set back must not make it last for ever.
pub(super) fn age(metadata: &Metadata, now: SystemTime) -> Duration {
    let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let age = now.duration_since(written);
    age.unwrap_or_else(|ahead| ahead.duration())
}

/// The lists in a folder.
pub(super) fn kept_files(folder: &Path) -> Vec<KeptFile> {
    files(folder, SystemTime::now(), |name| name.ends_with(ENDING))
}

/// Deletes what is too old, and the oldest of what is too much.
pub(super) fn clear_out(folder: &Path, now: SystemTime) {
    let half_written = |name: &str| name.contains(&format!("{ENDING}."));
    for file in files(folder, now, half_written) {
        if file.age > WRITING {
            let _ = fs::remove_file(file.path);
        }
    }
    let mut kept = files(folder, now, |name| name.ends_with(ENDING));
    kept.sort_by_key(|file| file.age);
    let mut bytes = 0;
    for (index, file) in kept.into_iter().enumerate() {
        bytes += file.bytes;
        if index >= MAX_FILES || bytes > MAX_BYTES || file.age > LIFETIME {
            let _ = fs::remove_file(file.path);
        }
    }
}

fn files(folder: &Path, now: SystemTime, is_wanted: impl Fn(&str) -> bool) -> Vec<KeptFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name();
        let metadata = entry.metadata().ok()?;
        let is_wanted = metadata.is_file() && is_wanted(name.to_str()?);
        is_wanted.then(|| KeptFile {
            path: entry.path(),
            bytes: metadata.len(),
            age: age(&metadata, now),
        })
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use tempfile::TempDir;

    use super::*;

    /// A file of a size that was written so long ago.
    fn put(folder: &TempDir, name: &str, bytes: u64, age: Duration) {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let names = fs::read_dir(folder.path()).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let folder = TempDir::new().unwrap();
        for number in 0..MAX_FILES + 2 {
            let age = Duration::from_mins(u64::try_from(number).unwrap());
            put(&folder, &format!("{number:04}.json"), 1, age);
        }
        clear_out(folder.path(), SystemTime::now());
        let names = names(&folder);
        assert_eq!(names.len(), MAX_FILES);
        assert_eq!(names.last().unwrap(), &format!("{:04}.json", MAX_FILES - 1));
    }

    #[test]
    fn the_oldest_go_when_they_are_too_large_together() {
        let folder = TempDir::new().unwrap();
        put(&folder, "new.json", MAX_BYTES / 2, Duration::ZERO);
        put(
            &folder,
            "middle.json",
            MAX_BYTES / 2,
            Duration::from_mins(1),
        );
        put(&folder, "old.json", 1, Duration::from_mins(2));
        clear_out(folder.path(), SystemTime::now());
        assert_eq!(names(&folder), ["middle.json", "new.json"]);
    }

    #[test]
    fn what_is_too_old_goes_and_nothing_that_is_not_ours() {
        let folder = TempDir::new().unwrap();
        let long = LIFETIME + Duration::from_mins(1);
        put(&folder, "old.json", 1, long);
        put(&folder, "young.json", 1, Duration::from_mins(1));
        put(
            &folder,
            "left.json.0011",
            1,
            WRITING + Duration::from_mins(1),
        );
        put(&folder, "written.json.0011", 1, Duration::ZERO);
        put(&folder, "salt", 32, long);
        clear_out(folder.path(), SystemTime::now());
        assert_eq!(names(&folder), ["salt", "written.json.0011", "young.json"]);
        let kept = kept_files(folder.path());
        assert_eq!(kept.len(), 1);
    }

    #[test]
    fn a_file_of_the_future_is_as_old_as_it_is_ahead() {
        let folder = TempDir::new().unwrap();
        put(&folder, "a.json", 1, Duration::ZERO);
        let metadata = fs::metadata(folder.path().join("a.json")).unwrap();
        let past = SystemTime::now() - Duration::from_hours(2);
        assert!(age(&metadata, past) >= Duration::from_hours(1));
    }
}
