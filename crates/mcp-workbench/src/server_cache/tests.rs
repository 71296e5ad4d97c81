//! Files are found by those who wrote them, checked when they are read, and never a reason to fail.

#[cfg(unix)]
mod rights;

use std::ffi::OsString;

use bytes::Bytes;
use ident::ServerIdentifier;
use rawjson::RawJson;
use tempfile::TempDir;

use super::*;
use crate::{
    config::{
        self, ChildEnvironment, ListBounds, Permissions, PinMode, RemoteEndpoint, RemoteProtocol,
        Server, ServerTimes, StdioLaunch, ToolFilters, Transport,
    },
    era::Era,
};

fn launch(args: &[&str], own: &[(&str, &str)]) -> StdioLaunch {
    let list = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
    StdioLaunch {
        command: "no-such-program".into(),
        args: list(args),
        args_as_written: list(&["${ARGUMENT}"]),
        env_as_written: indexmap::IndexMap::new(),
        cwd: "/".into(),
        names_cwd: false,
        environment: ChildEnvironment {
            inherited: Vec::new(),
            file: None,
            own: own
                .iter()
                .map(|(n, v)| ((*n).into(), (*v).into()))
                .collect(),
        },
        secrets: Secrets::default(),
    }
}

fn server(transport: Transport) -> Server {
    let time = Duration::from_secs(1);
    Server {
        name: "s".into(),
        transport,
        filters: ToolFilters::default(),
        permissions: Permissions::default(),
        times: ServerTimes {
            connect: time,
            call: time,
            max_call: time,
            idle: None,
        },
        max_result_chars: None,
        result_select: indexmap::IndexMap::new(),
        list_bounds: ListBounds::default(),
        sanitize: false,
        pin: PinMode::Off,
        share: config::Share::Auto,
        learn_shapes: true,
        written: config::WrittenEntry::default(),
        era: None,
    }
}

pub(crate) fn program(own: &[(&str, &str)]) -> Server {
    server(Transport::Stdio(launch(&["a"], own)))
}

fn json(text: &str) -> RawJson {
    RawJson::parse(&Bytes::from(text.to_owned())).unwrap()
}

fn subject(server: &Server) -> Subject<'_> {
    Subject::Launch {
        server,
        grant: None,
    }
}

impl ServerCache {
    /// Stores a text as the tools of a server.
    fn put(&self, server: &Server, tools: &str) -> Result<(), NotCached> {
        self.update(&subject(server), &Secrets::default(), |record| {
            record.set_tools(json(tools));
        })
    }

    fn get(&self, server: &Server) -> Option<String> {
        let record = self.read(&self.key(&subject(server))?);
        Some(record.tools()?.0.as_str().to_owned())
    }
}

/// Returns a folder with the tools of one server.
fn cached() -> (TempDir, ServerCache, Server, PathBuf) {
    let folder = TempDir::new().unwrap();
    let cache = ServerCache::new(Some(folder.path()));
    let server = program(&[]);
    cache.put(&server, TOOLS).unwrap();
    let file = only_file(&folder);
    (folder, cache, server, file)
}

const TOOLS: &str = r#"{"x":1.0e400}"#;

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path().join(FOLDER)).unwrap();
    let files = entries.map(|it| it.unwrap().path());
    files.filter(|it| it.extension().is_some()).collect()
}

fn only_file(folder: &TempDir) -> PathBuf {
    let files = files(folder);
    assert_eq!(files.len(), 1);
    files.into_iter().next().unwrap()
}

/// Sets when a start last confirmed the tools in a file.
fn confirm(file: &Path, age: Duration) {
    let text = fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once("\"confirmed\":").unwrap();
    let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    let at = seconds_now() - age.as_secs();
    fs::write(file, format!("{before}\"confirmed\":{at}{rest}")).unwrap();
}

fn place() -> ServerIdentifier {
    ServerIdentifier {
        toolbox: "dev".into(),
        server: "fs".into(),
    }
}

#[test]
fn every_part_is_read_back() {
    let (folder, cache, server, _) = cached();
    let protocol = CachedProtocol::new(Era::Modern, ServerIdentity::new(Some("a"), None));
    let programs = std::collections::BTreeMap::from([("stamp".to_owned(), "digest".to_owned())]);
    let definitions = json(r#"{"sha256-1":"{}"}"#);
    let update = |change: &dyn Fn(&mut CachedServer)| {
        let updated = cache.update(&subject(&server), &Secrets::default(), |it| change(it));
        updated.unwrap();
    };
    update(&|record| record.set_protocol(Some(protocol.clone())));
    update(&|record| record.set_programs(programs.clone()));
    update(&|record| record.set_definitions(Some(definitions.clone())));
    let other = ServerCache::new(Some(folder.path()));
    let record = other.read(&other.key(&subject(&server)).unwrap());
    assert_eq!(record.protocol(), Some(&protocol));
    assert_eq!(record.programs(), &programs);
    assert_eq!(record.tools().unwrap().0.as_str(), TOOLS);
    assert_eq!(record.definitions()["sha256-1"], "{}");
    // A record without any part has no file.
    update(&|record| *record = CachedServer::default());
    assert!(files(&folder).is_empty());
}

#[test]
fn a_start_reads_the_first_line_only() {
    let (_folder, cache, server, file) = cached();
    let protocol = CachedProtocol::new(Era::Legacy, ServerIdentity::default());
    let shapes = json(r#"{"t":{}}"#);
    let update = |change: &dyn Fn(&mut CachedServer)| {
        let updated = cache.update(&subject(&server), &Secrets::default(), |it| change(it));
        updated.unwrap();
    };
    let head = || cache.read_head(&cache.key(&subject(&server)).unwrap());
    update(&|record| record.set_protocol(Some(protocol.clone())));
    update(&|record| record.set_shapes(Some(shapes.clone())));
    assert_eq!(head().protocol(), Some(&protocol));
    assert_eq!(head().shapes(), Some(&shapes));
    assert_eq!(head().tools(), None);
    // Neither a list without an end nor a missing one matters.
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, good.strip_suffix("}").unwrap()).unwrap();
    assert_eq!(head().protocol(), Some(&protocol));
    fs::write(&file, &good).unwrap();
    update(&|record| record.leave_out_lists());
    assert_eq!(head().protocol(), Some(&protocol));
    assert_eq!(head().tools(), None);
    // Earlier versions wrote one line, with the tools in front of the shapes.
    let (start, tools) = good.split_once(",\n").unwrap();
    let (start, shapes) = start.split_once(",\"shapes\":").unwrap();
    let tools = tools.strip_suffix("}").unwrap();
    fs::write(&file, format!("{start},{tools},\"shapes\":{shapes}}}")).unwrap();
    assert_eq!(head().protocol(), Some(&protocol));
    assert_eq!(head().shapes().unwrap().as_str(), shapes);
}

#[test]
fn no_two_launches_that_differ_in_a_value_share_a_file() {
    let (_folder, cache, plain, _) = cached();
    let stdio = |change: fn(&mut StdioLaunch)| {
        let mut launch = launch(&["a"], &[]);
        change(&mut launch);
        server(Transport::Stdio(launch))
    };
    let remote = |url: &str, token: &str| {
        server(Transport::Remote(RemoteEndpoint {
            url: url.into(),
            headers: [("Authorization".to_owned(), token.to_owned())].into(),
            oauth: crate::config::OAuth::Off,
            protocol: RemoteProtocol::Http,
            secrets: Secrets::default(),
        }))
    };
    let others = [
        program(&[("TOKEN", "one")]),
        program(&[("TOKEN", "two")]),
        program(&[("TOKE", "None")]),
        stdio(|it| it.args = vec!["b".into()]),
        stdio(|it| it.args = vec!["a".into(), String::new()]),
        stdio(|it| it.args_as_written = vec!["a".into()]),
        stdio(|it| it.command = "other".into()),
        stdio(|it| it.names_cwd = true),
        stdio(|it| it.environment.file = Some("/no/such".into())),
        stdio(|it| it.environment.inherited = vec![("GH_TOKEN".into(), "one".into())]),
        stdio(|it| it.environment.inherited = vec![("LANGFUSE_SECRET_KEY".into(), "one".into())]),
        stdio(|it| it.environment.inherited = vec![("HOME".into(), "/other".into())]),
        Server {
            era: Some(Era::Modern),
            ..program(&[])
        },
        remote("https://example.com", "one"),
        remote("https://example.com", "two"),
        remote("https://example.org", "one"),
    ];
    for other in &others {
        assert_eq!(cache.get(other), None, "{other:?}");
        cache.put(other, "[]").unwrap();
    }
    assert_eq!(cache.get(&plain).as_deref(), Some(TOOLS));
    // Variables that differ from terminal to terminal do not count.
    let session: OsString = "TERM_SESSION_ID".into();
    let mut elsewhere = launch(&["a"], &[]);
    elsewhere.environment.inherited = vec![(session, "1".into()), ("PATH".into(), "/x".into())];
    assert!(cache.get(&server(Transport::Stdio(elsewhere))).is_some());
    let signed_in = Subject::Launch {
        server: &plain,
        grant: Some("account"),
    };
    assert_ne!(cache.key(&signed_in), cache.key(&subject(&plain)));
}

#[test]
fn a_place_of_a_lock_file_has_a_file_of_its_own_that_does_not_depend_on_the_launch() {
    let (folder, cache, ..) = cached();
    let (dev, lock, other) = (place(), Path::new("/a/lock"), Path::new("/b/lock"));
    let at = |lock| Subject::Place { lock, server: &dev };
    let stored = cache.update(&at(lock), &Secrets::default(), |record| {
        record.set_definitions(Some(json(r#"{"a":"b"}"#)));
    });
    stored.unwrap();
    let read = |lock| cache.read(&cache.key(&at(lock)).unwrap()).definitions();
    assert_eq!(read(lock).len(), 1);
    assert!(read(other).is_empty());
    assert_eq!(files(&folder).len(), 2);
    assert_eq!(cache.size().servers, 1, "only launches count");
}

#[test]
fn the_content_of_an_env_file_counts() {
    let (folder, cache, ..) = cached();
    let file = folder.path().join("variables");
    fs::write(&file, "TOKEN=one").unwrap();
    let mut launch = launch(&["a"], &[]);
    launch.environment.file = Some(file.clone());
    let server = server(Transport::Stdio(launch));
    cache.put(&server, TOOLS).unwrap();
    assert!(cache.get(&server).is_some());
    fs::write(&file, "TOKEN=two").unwrap();
    assert_eq!(cache.get(&server), None);
}

#[test]
fn the_key_follows_the_program_and_its_files() {
    let (folder, cache, ..) = cached();
    let key = |cwd: Option<&Path>, args: &[&str]| {
        let mut launch = launch(args, &[]);
        launch.cwd = cwd.unwrap_or(folder.path()).into();
        launch.names_cwd = cwd.is_some();
        let server = server(Transport::Stdio(launch));
        cache.key(&subject(&server)).unwrap()
    };
    let script = folder.path().join("server.py");
    fs::write(&script, "one").unwrap();
    let before = key(None, &["server.py"]);
    assert_eq!(key(None, &["server.py"]), before);
    fs::write(&script, "longer").unwrap();
    assert_ne!(key(None, &["server.py"]), before);
    assert_ne!(key(None, &["ab", "c"]), key(None, &["a", "bc"]));
    let elsewhere = |name: &str| key(Some(&folder.path().join(name)), &["x"]);
    assert_ne!(elsewhere("one"), elsewhere("other"));
    // A file that the server works on changes without another program.
    let database = folder.path().join("notes.db");
    fs::write(&database, "one").unwrap();
    let before = key(None, &["notes.db"]);
    fs::write(&database, "longer").unwrap();
    assert_eq!(key(None, &["notes.db"]), before);
}

#[test]
fn a_file_that_is_broken_or_foreign_is_not_read_and_is_replaced() {
    let (_folder, cache, server, file) = cached();
    let good = fs::read_to_string(&file).unwrap();
    let huge = format!(
        "{good}{}",
        " ".repeat(usize::try_from(MAX_FILE_BYTES).unwrap())
    );
    let cases = [
        ("nothing", String::new()),
        ("truncated", good[..good.len() / 2].to_owned()),
        ("not JSON", "what?".to_owned()),
        ("another shape", "[]".to_owned()),
        (
            "another layout",
            good.replace("\"layout\":1", "\"layout\":2"),
        ),
        ("another key", good.replace("\"key\":\"", "\"key\":\"0")),
        ("huge", huge),
    ];
    for (what, text) in cases {
        assert_ne!(text, good, "{what}");
        fs::write(&file, text).unwrap();
        assert_eq!(cache.get(&server), None, "{what}");
        cache.put(&server, TOOLS).unwrap();
        assert_eq!(cache.get(&server).as_deref(), Some(TOOLS), "{what}");
    }
}

#[test]
fn the_file_of_another_launch_under_this_name_is_not_read() {
    let (folder, cache, server, file) = cached();
    let other = program(&[("TOKEN", "other")]);
    cache.put(&other, r#"["secret"]"#).unwrap();
    let theirs = files(&folder).into_iter().find(|it| *it != file).unwrap();
    fs::copy(theirs, &file).unwrap();
    assert_eq!(cache.get(&server), None);
}

#[test]
fn parts_expire_after_their_lifetime() {
    let (_folder, cache, server, file) = cached();
    confirm(&file, record::TOOLS_LIFETIME / 2);
    assert!(cache.get(&server).is_some());
    confirm(&file, record::TOOLS_LIFETIME + Duration::from_mins(1));
    assert_eq!(cache.get(&server), None);
    // A start that lists the same tools confirms them.
    cache.put(&server, TOOLS).unwrap();
    assert!(cache.get(&server).is_some());
    let protocol = |at: u64| {
        let text = format!(r#"{{"era":"legacy","at":{at}}}"#);
        let protocol: CachedProtocol = serde_json::from_str(&text).unwrap();
        let mut record = CachedServer::default();
        record.set_protocol(Some(protocol));
        record.protocol().is_some()
    };
    let week = 7 * 24 * 60 * 60;
    assert!(protocol(seconds_now() - week + 60));
    assert!(!protocol(seconds_now() - week - 60));
    assert!(!protocol(seconds_now() + week + 60), "a clock was set back");
}

#[test]
fn unchanged_tools_are_confirmed_once_per_day() {
    let (_folder, cache, server, file) = cached();
    confirm(&file, Duration::from_hours(1));
    let before = fs::read(&file).unwrap();
    cache.put(&server, TOOLS).unwrap();
    assert_eq!(fs::read(&file).unwrap(), before);
    confirm(&file, Duration::from_hours(25));
    let before = fs::read(&file).unwrap();
    cache.put(&server, TOOLS).unwrap();
    assert_ne!(fs::read(&file).unwrap(), before);
    cache.put(&server, "[]").unwrap();
    assert_eq!(cache.get(&server).as_deref(), Some("[]"));
}

#[test]
fn tools_with_a_secret_or_too_many_are_not_stored_and_the_rest_is() {
    let mut secrets = Secrets::default();
    secrets.add("TOKEN", "can\"ary");
    let large = "x".repeat(usize::try_from(MAX_FILE_BYTES).unwrap());
    for text in [r#"can\"ary"#, large.as_str()] {
        let (folder, cache, server, _) = cached();
        let protocol = CachedProtocol::new(Era::Modern, ServerIdentity::default());
        let refused = cache.update(&subject(&server), &secrets, |record| {
            record.set_tools(json(&format!("\"{text}\"")));
            record.set_protocol(Some(protocol));
        });
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, NotCached::Secret | NotCached::TooLarge(_)),
            "{refused}"
        );
        assert_eq!(cache.get(&server), None, "the earlier list is not true now");
        let record = cache.read(&cache.key(&subject(&server)).unwrap());
        assert!(record.protocol().is_some(), "{refused}");
        // A name with a secret is a reason to store nothing.
        let refused = cache.update(&subject(&server), &secrets, |record| {
            let named = ServerIdentity::new(Some("can\"ary"), None);
            record.set_protocol(Some(CachedProtocol::new(Era::Modern, named)));
        });
        assert!(matches!(refused, Err(NotCached::Secret)));
        assert!(files(&folder).is_empty());
    }
}

#[test]
fn everything_may_be_deleted_while_it_is_used() {
    let (folder, cache, server, _) = cached();
    fs::remove_dir_all(folder.path().join(FOLDER)).unwrap();
    assert_eq!(cache.get(&server), None);
    cache.put(&server, TOOLS).unwrap();
    assert!(cache.get(&server).is_some());
    let next = ServerCache::new(Some(folder.path()));
    assert!(next.get(&server).is_some());
}

#[test]
fn without_a_folder_nothing_is_stored_and_nothing_fails() {
    let server = program(&[]);
    let nowhere = ServerCache::new(None);
    assert_eq!(nowhere.get(&server), None);
    let refused = nowhere.put(&server, TOOLS);
    assert!(matches!(refused, Err(NotCached::NoFolder)));
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let blocked = ServerCache::new(Some(&file));
    assert_eq!(blocked.get(&server), None);
    let refused = blocked.put(&server, TOOLS);
    assert!(matches!(refused, Err(NotCached::Unwritable { .. })));
}

#[test]
fn two_processes_agree_on_the_salt() {
    let folder = TempDir::new().unwrap();
    let one = ServerCache::new(Some(folder.path()));
    let other = ServerCache::new(Some(folder.path()));
    let server = program(&[]);
    one.put(&server, "1").unwrap();
    other.put(&server, "2").unwrap();
    assert_eq!(one.get(&server).as_deref(), Some("2"));
    // A broken salt is replaced, and both use the new one.
    fs::write(folder.path().join(FOLDER).join("salt"), "short").unwrap();
    other.put(&server, "3").unwrap();
    one.put(&server, "3").unwrap();
    let third = ServerCache::new(Some(folder.path()));
    assert_eq!(third.get(&server).as_deref(), Some("3"));
}

#[test]
fn writers_of_different_parts_of_a_file_keep_each_others_parts() {
    let folder = TempDir::new().unwrap();
    let server = program(&[]);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (folder, server) = (&folder, &server);
            scope.spawn(move || {
                let cache = ServerCache::new(Some(folder.path()));
                for round in 0..20 {
                    let stored = cache.update(&subject(server), &Secrets::default(), |record| {
                        let mut programs = record.programs().clone();
                        programs.insert(format!("{writer} {round}"), String::new());
                        record.set_programs(programs);
                    });
                    stored.unwrap();
                    let tools = "1".repeat(1 + writer);
                    cache.put(server, &tools).unwrap();
                    assert!(cache.get(server).is_some(), "a whole file");
                }
            });
        }
    });
    let cache = ServerCache::new(Some(folder.path()));
    let record = cache.read(&cache.key(&subject(&server)).unwrap());
    assert_eq!(record.programs().len(), 80);
    let mut left: Vec<_> = fs::read_dir(folder.path().join(FOLDER))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_none())
        .map(|it| it.file_name().unwrap().to_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["lock", "salt"]);
    assert_eq!(files(&folder).len(), 1, "nothing temporary is left");
}
