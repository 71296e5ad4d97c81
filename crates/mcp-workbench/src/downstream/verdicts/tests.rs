//! Verdicts are kept, forgotten, bounded, and never a reason to fail.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::config::StdioLaunch;

fn key(name: &str) -> VerdictKey {
    VerdictKey(name.to_owned())
}

fn identity() -> ServerIdentity {
    ServerIdentity::new(Some("files"), Some("1.0"))
}

#[test]
fn what_one_workbench_finds_out_another_knows() {
    let folder = TempDir::new().unwrap();
    let place = Some(folder.path().join("deep/mcp-workbench"));
    let one = Verdicts::new(place.clone());
    assert_eq!(one.get(&key("a")), None);
    one.put(&key("a"), Era::Modern, identity());
    let other = Verdicts::new(place.clone());
    let verdict = other.get(&key("a")).unwrap();
    assert_eq!((verdict.era, verdict.identity), (Era::Modern, identity()));
    // Neither takes away what the other has written since it last looked.
    other.put(&key("b"), Era::Legacy, ServerIdentity::default());
    one.put(&key("c"), Era::Legacy, ServerIdentity::default());
    let third = Verdicts::new(place);
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|it| third.get(&key(it)).is_some())
    );
    third.forget(&key("b"));
    assert_eq!(third.get(&key("b")), None);
    assert!(third.get(&key("c")).is_some());
}

#[cfg(unix)]
#[test]
fn the_file_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("mcp-workbench");
    let verdicts = Verdicts::new(Some(place.clone()));
    verdicts.put(&key("a"), Era::Modern, identity());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o700);
    assert_eq!(mode(&place.join(FILE)), 0o600);
    let names: Vec<_> = fs::read_dir(&place).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing temporary stays");
}

#[test]
fn garbage_and_other_layouts_are_nothing_known() {
    let folder = TempDir::new().unwrap();
    let now = seconds_now();
    let good = &format!(r#"{{"a":{{"era":"modern","at":{now}}}}}"#);
    let future = r#"{"layout":1,"verdicts":{"a":{"era":"modern","at":99999999999}}}"#;
    let cases = [
        ("", false),
        (future, false),
        ("{", false),
        ("[]", false),
        (&format!(r#"{{"layout":2,"verdicts":{good}}}"#), false),
        (r#"{"layout":1,"verdicts":{"a":{"era":"x","at":1}}}"#, false),
        (
            r#"{"layout":1,"verdicts":{"a":{"era":"modern","at":1}}}"#,
            false,
        ),
        (&format!(r#"{{"layout":1,"verdicts":{good}}}"#), true),
    ];
    for (text, known) in cases {
        fs::write(folder.path().join(FILE), text).unwrap();
        let verdicts = Verdicts::new(Some(folder.path().into()));
        assert_eq!(verdicts.get(&key("a")).is_some(), known, "{text}");
        verdicts.put(&key("b"), Era::Legacy, identity());
        assert!(verdicts.get(&key("b")).is_some(), "{text}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_no_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [Some(file.join("below")), None] {
        let verdicts = Verdicts::new(place);
        verdicts.put(&key("a"), Era::Modern, identity());
        verdicts.put(&key("b"), Era::Legacy, identity());
        assert!(verdicts.get(&key("a")).is_some());
        verdicts.forget(&key("b"));
        assert!(verdicts.get(&key("a")).is_some() && verdicts.get(&key("b")).is_none());
    }
}

#[test]
fn only_so_many_are_kept_and_the_oldest_go() {
    let mut verdicts: Known = (0..=MAX_VERDICTS)
        .map(|number| {
            let verdict = Verdict {
                era: Era::Legacy,
                identity: ServerIdentity::default(),
                at: number as u64,
            };
            let text = RawJson::of(&StoredVerdict::from(verdict));
            (number.to_string(), text)
        })
        .collect();
    keep_newest(&mut verdicts);
    assert_eq!(verdicts.len(), MAX_VERDICTS);
    assert!(!verdicts.contains_key("0"));
}

#[test]
fn a_key_follows_the_program_and_its_files_and_shows_nothing() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("server.py");
    fs::write(&script, "one").unwrap();
    let key_in = |cwd: Option<&Path>, args: &[&str], written: &[&str]| {
        let list = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
        let launch = StdioLaunch {
            command: "no-such-program".into(),
            args: list(args),
            args_as_written: list(written),
            env_as_written: indexmap::IndexMap::new(),
            cwd: cwd.unwrap_or(folder.path()).into(),
            names_cwd: cwd.is_some(),
            environment: crate::config::ChildEnvironment {
                inherited: Vec::new(),
                file: None,
                own: indexmap::IndexMap::new(),
            },
            secrets: crate::config::Secrets::default(),
        };
        let mut hash = LaunchHash::default();
        hash.add_program(&launch);
        hash.finish().to_vec()
    };
    let key = |args: &[&str], written: &[&str]| key_in(None, args, written);
    let before = key(&["server.py"], &["server.py"]);
    assert_eq!(key(&["server.py"], &["server.py"]), before);
    // The value of a variable is no part of it.
    assert_eq!(key(&["x"], &["${TOKEN}"]), key(&["y"], &["${TOKEN}"]));
    assert_ne!(
        key(&["ab", "c"], &["ab", "c"]),
        key(&["a", "bc"], &["a", "bc"])
    );
    fs::write(&script, "longer").unwrap();
    assert_ne!(key(&["server.py"], &["server.py"]), before);
    let elsewhere = |name: &str| key_in(Some(&folder.path().join(name)), &["x"], &["x"]);
    assert_ne!(elsewhere("one"), elsewhere("other"));
    // What the server works on changes without another program.
    let database = folder.path().join("notes.db");
    fs::write(&database, "one").unwrap();
    let before = key(&["notes.db"], &["notes.db"]);
    fs::write(&database, "longer").unwrap();
    assert_eq!(key(&["notes.db"], &["notes.db"]), before);
}
