use super::*;

/// A program in a folder.
struct ProgramFile {
    folder: tempfile::TempDir,
}

impl ProgramFile {
    fn new(content: &str) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(place.program(), content).unwrap();
        place
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("server")
    }

    /// Returns programs of which an earlier run says that the program, as it is now, has this digest.
    fn cached(&self, digest: Digest) -> Programs {
        let metadata = fs::metadata(self.program()).unwrap();
        let stamp = stamp(&self.program(), &metadata);
        let programs = Programs::default();
        programs.add_cached(&BTreeMap::from([(stamp, digest.to_string())]));
        programs
    }
}

/// Returns whether no file has to be read for a digest.
fn is_known(programs: &Programs, path: &Path, reusable: ReusableDigests) -> bool {
    let metadata = program(path);
    metadata.is_none_or(|it| programs.known().get(&stamp(path, &it), reusable).is_some())
}

#[test]
fn a_cached_digest_is_used_unless_pins_are_enforced() {
    let place = ProgramFile::new("one");
    let planted = Digest::of(b"planted, to tell it from what is read");
    let run = place.cached(planted);
    assert!(is_known(&run, &place.program(), ReusableDigests::Cached));
    let now = ReusableDigests::of(PinMode::Enforce);
    assert!(!is_known(&run, &place.program(), now));
    assert_eq!(
        run.digest(&place.program(), ReusableDigests::Cached),
        Some(planted)
    );
    let read = Some(Digest::of(b"one"));
    assert_eq!(run.digest(&place.program(), now), read);
    assert_eq!(run.digest(&place.program(), ReusableDigests::Cached), read);
    assert!(is_known(&run, &place.program(), now), "others wait for it");
}

/// Whoever writes through a mapping of a file can leave its times, and so its stamp, as they were.
#[test]
fn with_enforced_pins_a_digest_of_this_run_is_read_again() {
    let place = ProgramFile::new("one");
    let run = Programs::default();
    let stamp = stamp(&place.program(), &fs::metadata(place.program()).unwrap());
    let stale = Digest::of(b"what the file was when it was read");
    run.known().read.insert(stamp, (stale, Instant::now()));
    let now = ReusableDigests::of(PinMode::Enforce);
    assert!(!is_known(&run, &place.program(), now));
    assert_eq!(run.digest(&place.program(), now), Some(Digest::of(b"one")));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_does_not_block() {
    let place = ProgramFile::new("one");
    let pipe = place.folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(read(&pipe).is_err());
}

#[cfg(unix)]
#[test]
fn a_change_with_a_forged_modification_time_is_detected() {
    let place = ProgramFile::new("one");
    let run = place.cached(Digest::of(b"one"));
    let modified = fs::metadata(place.program()).unwrap().modified().unwrap();
    // The time of the change itself is in the stamp too, and nobody can set that; it has steps of a few milliseconds.
    let before = stamp(&place.program(), &fs::metadata(place.program()).unwrap());
    let now = loop {
        fs::write(place.program(), "two").unwrap();
        let file = fs::File::options()
            .write(true)
            .open(place.program())
            .unwrap();
        file.set_modified(modified).unwrap();
        let metadata = fs::metadata(place.program()).unwrap();
        if stamp(&place.program(), &metadata) != before {
            break metadata;
        }
    };
    assert_eq!((now.len(), now.modified().unwrap()), (3, modified));
    assert!(!is_known(&run, &place.program(), ReusableDigests::Cached));
    let digest = run.digest(&place.program(), ReusableDigests::Cached);
    assert_eq!(digest, Some(Digest::of(b"two")));
}

#[cfg(unix)]
#[test]
fn a_digest_is_cached_only_when_a_later_change_is_detectable() {
    let place = ProgramFile::new("one");
    let run = Programs::default();
    run.digest(&place.program(), ReusableDigests::Cached)
        .unwrap();
    let fresh = run.cacheable([place.program()].into_iter());
    assert!(fresh.is_empty(), "it has just been written");

    // A program of the system was not changed in the last seconds.
    let settled = PathBuf::from("/bin/sh");
    let digest = run
        .digest(&settled, ReusableDigests::of(PinMode::Enforce))
        .unwrap();
    let next = Programs::default();
    next.add_cached(&run.cacheable([settled.clone()].into_iter()));
    assert!(is_known(&next, &settled, ReusableDigests::Cached));
    assert_eq!(next.digest(&settled, ReusableDigests::Cached), Some(digest));
    assert!(next.known().read.is_empty(), "nothing had to be read");
    let again = next.cacheable([settled].into_iter());
    assert_eq!(again.len(), 1, "it stays for the run after that");
}

#[test]
fn an_invalid_cached_digest_is_dropped() {
    let programs = Programs::default();
    programs.add_cached(&BTreeMap::from([("x".to_owned(), "y".to_owned())]));
    assert!(programs.known().cached.is_empty());
}

#[test]
fn folders_and_the_workbench_itself_have_no_digest() {
    let place = ProgramFile::new("one");
    let run = Programs::default();
    let own = std::env::current_exe().unwrap();
    for path in [place.folder.path(), Path::new("/nowhere"), &own] {
        let now = ReusableDigests::of(PinMode::Enforce);
        assert!(is_known(&run, path, now), "{path:?}");
        assert_eq!(run.digest(path, now), None, "{path:?}");
    }
}
