//! The bound of the cache: files that are too old are deleted, and the oldest of those that are too many or too large
//! together.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    key::{LAUNCH_EXTENSION, PLACE_EXTENSION},
    record::TOOLS_LIFETIME,
};

/// Bound on a file that is written or read.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Bound on the number of files.
const MAX_FILES: usize = 2000;
/// Bound on the size of all files together.
const MAX_BYTES: u64 = 128 * 1024 * 1024;
/// The age at which the approved definitions of a server are deleted. They are written when something is approved or changes,
/// so they are older than files about launches, and a difference is asked for long after that.
const PLACE_LIFETIME: Duration = Duration::from_hours(365 * 24);
/// The age from which a temporary file is one that a killed process has left.
const TEMPORARY_LIFETIME: Duration = Duration::from_hours(1);
/// The files and folders of earlier versions, in the cache directory.
const EARLIER_FILES: [&str; 2] = ["eras.json", "programs.json"];
const EARLIER_FOLDERS: [&str; 2] = ["catalogue", "pins"];

struct CacheFile {
    path: PathBuf,
    bytes: u64,
    age: Duration,
    /// The age at which it is deleted.
    lifetime: Duration,
}

/// Returns the sizes of the files about launches.
pub(super) fn launch_sizes(folder: &Path) -> impl Iterator<Item = u64> + use<> {
    let files = files(folder, SystemTime::now()).into_iter();
    let launches = files.filter(|file| file.path.extension() == Some(LAUNCH_EXTENSION.as_ref()));
    launches.map(|file| file.bytes)
}

/// Deletes files beyond the bounds, and files of earlier versions.
pub(super) fn evict(folder: &Path, now: SystemTime) {
    let mut files = files(folder, now);
    // Newest first, so that the bounds are reached by the oldest.
    files.sort_by_key(|file| file.age);
    let mut bytes = 0;
    let mut count = 0;
    for file in files {
        // Deleted files count too. Beyond a bound all older files go with them.
        bytes += file.bytes;
        count += 1;
        if count > MAX_FILES || bytes > MAX_BYTES || file.age > file.lifetime {
            // One that cannot be deleted is tried again by the next eviction.
            let _ = fs::remove_file(file.path);
        }
    }
    if let Some(cache) = folder.parent() {
        remove_earlier_layouts(cache);
    }
}

/// Deletes the files of earlier versions. Nothing is migrated, because all of it can be determined again.
fn remove_earlier_layouts(cache: &Path) {
    for file in EARLIER_FILES {
        let _ = fs::remove_file(cache.join(file));
    }
    for folder in EARLIER_FOLDERS {
        let _ = fs::remove_dir_all(cache.join(folder));
    }
}

/// Returns the files of the cache, temporary ones included. Files of other kinds, such as the salt, are not among them.
fn files(folder: &Path, now: SystemTime) -> Vec<CacheFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let path = entry.path();
        let lifetime = lifetime(&path)?;
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        // A clock that was set back must not make a file last forever.
        let age = now.duration_since(written);
        Some(CacheFile {
            path,
            bytes: metadata.len(),
            age: age.unwrap_or_else(|ahead| ahead.duration()),
            lifetime,
        })
    });
    files.collect()
}

fn lifetime(path: &Path) -> Option<Duration> {
    match path.extension().and_then(OsStr::to_str)? {
        LAUNCH_EXTENSION => Some(TOOLS_LIFETIME),
        PLACE_EXTENSION => Some(PLACE_LIFETIME),
        // A temporary file has the name of the file that it becomes, and random digits.
        _ => lifetime(Path::new(path.file_stem()?)).map(|_| TEMPORARY_LIFETIME),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use tempfile::TempDir;

    use super::*;

    /// Creates a file of a size and an age.
    fn put(folder: &TempDir, name: &str, bytes: u64, age: Duration) {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_files_are_deleted_if_there_are_too_many() {
        let folder = TempDir::new().unwrap();
        for number in 0..MAX_FILES + 2 {
            let age = Duration::from_mins(u64::try_from(number).unwrap());
            put(&folder, &format!("{number:04}.json"), 1, age);
        }
        evict(folder.path(), SystemTime::now());
        let names = names(&folder);
        assert_eq!(names.len(), MAX_FILES);
        assert_eq!(names.last().unwrap(), &format!("{:04}.json", MAX_FILES - 1));
    }

    #[test]
    fn the_oldest_files_are_deleted_if_they_are_too_large_together() {
        let folder = TempDir::new().unwrap();
        put(&folder, "new.json", MAX_BYTES / 2, Duration::ZERO);
        put(
            &folder,
            "middle.json",
            MAX_BYTES / 2,
            Duration::from_mins(1),
        );
        put(&folder, "old.json", 1, Duration::from_mins(2));
        evict(folder.path(), SystemTime::now());
        assert_eq!(names(&folder), ["middle.json", "new.json"]);
    }

    #[test]
    fn old_files_are_deleted_and_foreign_ones_are_not() {
        let folder = TempDir::new().unwrap();
        let long = TOOLS_LIFETIME + Duration::from_mins(1);
        put(&folder, "old.json", 1, long);
        put(&folder, "young.json", 1, Duration::from_mins(1));
        put(
            &folder,
            "left.json.0011",
            1,
            TEMPORARY_LIFETIME + Duration::from_mins(1),
        );
        put(&folder, "written.json.0011", 1, Duration::ZERO);
        put(&folder, "salt", 32, long);
        evict(folder.path(), SystemTime::now());
        assert_eq!(names(&folder), ["salt", "written.json.0011", "young.json"]);
        assert_eq!(launch_sizes(folder.path()).count(), 1);
    }

    #[test]
    fn approved_definitions_are_stored_longer_than_tools() {
        let folder = TempDir::new().unwrap();
        let minute = Duration::from_mins(1);
        put(&folder, "a.pins", 1, TOOLS_LIFETIME + minute);
        put(&folder, "b.pins", 1, PLACE_LIFETIME + minute);
        evict(folder.path(), SystemTime::now());
        assert_eq!(names(&folder), ["a.pins"]);
    }

    #[test]
    fn files_of_earlier_versions_are_deleted_and_no_others() {
        let cache = TempDir::new().unwrap();
        for folder in ["catalogue", "pins", "servers", "other"] {
            fs::create_dir(cache.path().join(folder)).unwrap();
            fs::write(cache.path().join(folder).join("a.json"), "{}").unwrap();
        }
        for file in ["eras.json", "programs.json", "other.json"] {
            fs::write(cache.path().join(file), "{}").unwrap();
        }
        evict(&cache.path().join("servers"), SystemTime::now());
        assert_eq!(names(&cache), ["other", "other.json", "servers"]);
    }

    #[test]
    fn a_file_with_a_future_time_is_as_old_as_it_is_ahead() {
        let folder = TempDir::new().unwrap();
        put(&folder, "a.json", 1, Duration::ZERO);
        let past = SystemTime::now() - Duration::from_hours(2);
        assert!(files(folder.path(), past)[0].age >= Duration::from_hours(1));
    }
}
