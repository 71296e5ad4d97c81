use super::*;

/// A program that was put there some time ago, and a cache directory.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
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

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn run(&self) -> Programs {
        Programs::new(Some(&self.cache()))
    }

    /// Says of the program, as it is now, that it has this digest.
    fn keep(&self, digest: Digest) {
        let metadata = fs::metadata(self.program()).unwrap();
        let kept = HashMap::from([(stamp(&self.program(), &metadata), digest)]);
        write(&self.cache(), &kept).unwrap();
    }
}

#[test]
fn a_digest_of_an_earlier_run_does_where_it_may() {
    let place = Place::new("one");
    let planted = Digest::of(b"planted, to tell it from what is read");
    place.keep(planted);
    let run = place.run();
    assert!(run.is_known(&place.program(), Recall::Kept));
    let now = Recall::of(PinMode::Enforce);
    assert!(!run.is_known(&place.program(), now));
    assert_eq!(run.digest(&place.program(), Recall::Kept), Some(planted));
    let read = Some(Digest::of(b"one"));
    assert_eq!(run.digest(&place.program(), now), read);
    assert_eq!(run.digest(&place.program(), Recall::Kept), read);
    assert!(run.is_known(&place.program(), now), "others wait for it");
}

/// Whoever writes through a mapping of a file can leave its times, and so its stamp, as they were.
#[test]
fn a_digest_that_was_read_earlier_in_this_run_does_not_do_where_only_what_is_approved_may_start() {
    let place = Place::new("one");
    let run = place.run();
    let stamp = stamp(&place.program(), &fs::metadata(place.program()).unwrap());
    let stale = Digest::of(b"what the file was when it was read");
    run.known().read.insert(stamp, (stale, Instant::now()));
    let now = Recall::of(PinMode::Enforce);
    assert!(!run.is_known(&place.program(), now));
    assert_eq!(run.digest(&place.program(), now), Some(Digest::of(b"one")));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let place = Place::new("one");
    let pipe = place.folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(read(&pipe).is_err());
}

#[cfg(unix)]
#[test]
fn a_change_that_hides_its_time_is_read() {
    let place = Place::new("one");
    place.keep(Digest::of(b"one"));
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
    let run = place.run();
    assert!(!run.is_known(&place.program(), Recall::Kept));
    let digest = run.digest(&place.program(), Recall::Kept);
    assert_eq!(digest, Some(Digest::of(b"two")));
}

#[cfg(unix)]
#[test]
fn what_was_read_is_kept_once_a_change_would_show() {
    let place = Place::new("one");
    let metadata = fs::metadata(place.program()).unwrap();
    assert!(!is_settled(&metadata), "it has just been written");
    let run = place.run();
    run.digest(&place.program(), Recall::Kept).unwrap();
    run.keep();
    assert!(!place.cache().join(FILE).exists());

    // A program of the system was not changed in the last seconds.
    let settled = Path::new("/bin/sh");
    let digest = run.digest(settled, Recall::of(PinMode::Enforce)).unwrap();
    run.keep();
    let next = place.run();
    assert!(next.is_known(settled, Recall::Kept));
    assert_eq!(next.digest(settled, Recall::Kept), Some(digest));
    assert!(next.known().read.is_empty(), "nothing had to be read");
}

#[test]
fn what_others_kept_stays_and_too_many_go() {
    let place = Place::new("one");
    let digest = Digest::of(b"x");
    let run = place.run();
    let other = HashMap::from([("other".to_owned(), digest)]);
    write(&place.cache(), &other).unwrap();
    run.known().new.insert("ours".to_owned(), digest);
    run.keep();
    let kept = place.run().kept();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let many = (0..MAX_REMEMBERED).map(|number| (number.to_string(), digest));
    write(&place.cache(), &many.collect()).unwrap();
    run.known().new.insert("newest".to_owned(), digest);
    run.keep();
    let kept = place.run().kept();
    assert_eq!(kept.into_keys().collect::<Vec<_>>(), ["newest"]);
}

#[test]
fn a_file_that_cannot_be_used_is_as_none() {
    let place = Place::new("one");
    let run = place.run();
    for text in [
        "",
        "{",
        r#"{"layout":2,"programs":{}}"#,
        r#"{"layout":1,"programs":{"x":"y"}}"#,
    ] {
        private_files::replace(&place.cache(), FILE, text.as_bytes()).unwrap();
        assert_eq!(run.kept(), HashMap::new(), "{text}");
    }
    assert!(Programs::new(None).digest(&place.program(), Recall::Kept) == Some(Digest::of(b"one")));
}

#[test]
fn folders_and_the_workbench_itself_have_no_digest() {
    let place = Place::new("one");
    let run = place.run();
    let own = std::env::current_exe().unwrap();
    for path in [place.folder.path(), Path::new("/nowhere"), &own] {
        let now = Recall::of(PinMode::Enforce);
        assert!(run.is_known(path, now), "{path:?}");
        assert_eq!(run.digest(path, now), None, "{path:?}");
    }
}
