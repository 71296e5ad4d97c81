//! Lists are kept for whom they were told, checked when they are read, and never a reason to fail.

mod at_once;
#[cfg(unix)]
mod rights;

use std::{ffi::OsString, fs};

use bytes::Bytes;
use tempfile::TempDir;

use super::*;
use crate::{
    config::{
        self, ChildEnvironment, ListBounds, Permissions, PinMode, RemoteEndpoint, RemoteProtocol,
        ServerTimes, StdioLaunch, ToolFilters, Transport,
    },
    downstream::introduction::{Introduction, ServerFamily},
    era::{CacheHints, CacheScope, Era},
    wire::RawJson,
};

impl KeptLists {
    /// The tools of a server of which nothing is pinned.
    fn recall(&self, server: &Server) -> Option<ToolList> {
        Some(self.read(server)?.0)
    }
}

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
        list_bounds: ListBounds::default(),
        sanitize: false,
        pin: PinMode::Off,
        written: config::Written::default(),
        era: None,
    }
}

fn program(own: &[(&str, &str)]) -> Server {
    server(Transport::Stdio(launch(&["a"], own)))
}

fn snapshot(tools: &[&str]) -> ServerSnapshot {
    let tools = tools.iter().map(|name| {
        let text = format!("{{ \"name\":\"{name}\", \"inputSchema\":{{}}, \"x\":1.0e400 }}");
        RawJson::parse(&Bytes::from(text)).unwrap()
    });
    ServerSnapshot {
        era: Era::Legacy,
        introduction: Introduction {
            left_out: None,
            revision: "2025-11-25".into(),
            product: Some("files 1.0".into()),
            instructions: Some("Read \"it\" first\n".into()),
            families: vec![ServerFamily::Prompts],
            subscriptions: true,
            tasks: false,
        },
        definitions: tools.collect(),
        notices: vec!["cut short".into()],
        incomplete: Some("only the first 2 are listed".into()),
        hints: CacheHints {
            ttl_ms: 7,
            scope: CacheScope::Public,
        },
    }
}

/// A folder with the list of one server.
fn kept() -> (TempDir, KeptLists, Server, PathBuf) {
    let folder = TempDir::new().unwrap();
    let lists = KeptLists::new(Some(folder.path()), None);
    let server = program(&[]);
    lists
        .keep((&server, None), &snapshot(&["a", "b"]), &Secrets::default())
        .unwrap();
    let file = only_file(&folder);
    (folder, lists, server, file)
}

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

fn names(list: Option<ToolList>) -> Option<Vec<String>> {
    let list = list?;
    let names = list.tools().iter().map(|tool| tool.name.to_string());
    Some(names.collect())
}

#[test]
fn a_list_comes_back_as_it_was_told() {
    let (folder, lists, server, _) = kept();
    let snapshot = snapshot(&["a", "b"]);
    let expected = ToolList::of(&snapshot, &ListRules::of(&server, Era::Legacy));
    assert_eq!(lists.recall(&server), Some(expected));
    let other = KeptLists::new(Some(folder.path()), None);
    assert_eq!(
        names(other.recall(&server)),
        Some(vec!["a".into(), "b".into()])
    );
}

#[test]
fn filters_are_applied_when_a_list_is_read() {
    let (_folder, lists, mut server, _) = kept();
    server.filters = ToolFilters::new(Some(vec!["b".into()]), None, Vec::new());
    assert_eq!(names(lists.recall(&server)), Some(vec!["b".into()]));
    let list = lists.recall(&server).unwrap();
    assert_eq!(list.introduction, snapshot(&[]).introduction);
}

#[test]
fn no_two_that_differ_in_a_value_share_a_list() {
    let (_folder, lists, plain, _) = kept();
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
        assert_eq!(lists.recall(other), None, "{other:?}");
        let snapshot = snapshot(&["own"]);
        lists
            .keep((other, None), &snapshot, &Secrets::default())
            .unwrap();
    }
    assert_eq!(
        names(lists.recall(&plain)),
        Some(vec!["a".into(), "b".into()])
    );
    // What is different in every terminal does not count.
    let session: OsString = "TERM_SESSION_ID".into();
    let mut elsewhere = launch(&["a"], &[]);
    elsewhere.environment.inherited = vec![(session, "1".into()), ("PATH".into(), "/x".into())];
    assert!(lists.recall(&server(Transport::Stdio(elsewhere))).is_some());
}

#[test]
fn the_content_of_an_env_file_counts() {
    let (folder, lists, ..) = kept();
    let file = folder.path().join("variables");
    fs::write(&file, "TOKEN=one").unwrap();
    let mut launch = launch(&["a"], &[]);
    launch.environment.file = Some(file.clone());
    let server = server(Transport::Stdio(launch));
    lists
        .keep((&server, None), &snapshot(&["a"]), &Secrets::default())
        .unwrap();
    assert!(lists.recall(&server).is_some());
    fs::write(&file, "TOKEN=two").unwrap();
    assert_eq!(lists.recall(&server), None);
}

#[test]
fn what_is_broken_or_foreign_is_not_read_and_is_replaced() {
    let (_folder, lists, server, file) = kept();
    let good = fs::read_to_string(&file).unwrap();
    let huge = format!(
        "{good}{}",
        " ".repeat(usize::try_from(MAX_FILE_BYTES).unwrap())
    );
    let cases = [
        ("nothing", String::new()),
        ("truncated", good[..good.len() / 2].to_owned()),
        ("no JSON", "what?".to_owned()),
        ("another shape", "[]".to_owned()),
        (
            "tools that are none",
            good.replace("\"tools\":[", "\"tool\":["),
        ),
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
        assert_eq!(lists.recall(&server), None, "{what}");
        lists
            .keep((&server, None), &snapshot(&["a", "b"]), &Secrets::default())
            .unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), good, "{what}");
    }
    // A definition that was broken by hand is withheld as one of a server is.
    fs::write(
        &file,
        good.replacen("\"inputSchema\":{}", "\"inputSchema\":1", 1),
    )
    .unwrap();
    let list = lists.recall(&server).unwrap();
    assert_eq!((list.tools().len(), list.withheld.len()), (1, 1));
}

#[test]
fn the_list_of_another_server_under_this_name_is_not_read() {
    let (folder, lists, server, file) = kept();
    let other = program(&[("TOKEN", "other")]);
    lists
        .keep((&other, None), &snapshot(&["secret"]), &Secrets::default())
        .unwrap();
    let theirs = files(&folder).into_iter().find(|it| *it != file).unwrap();
    fs::copy(theirs, &file).unwrap();
    assert_eq!(lists.recall(&server), None);
}

#[test]
fn a_list_that_nobody_has_confirmed_for_long_does_not_count() {
    let (_folder, lists, server, file) = kept();
    let set_age = |age: Duration| mark(&file, SystemTime::now() - age).unwrap();
    set_age(LIFETIME / 2);
    assert!(lists.recall(&server).is_some());
    set_age(LIFETIME + Duration::from_mins(1));
    assert_eq!(lists.recall(&server), None);
    // Saying it again makes it count again.
    lists
        .keep((&server, None), &snapshot(&["a", "b"]), &Secrets::default())
        .unwrap();
    assert!(lists.recall(&server).is_some());
}

#[test]
fn a_list_that_is_the_same_is_not_written_again() {
    let (_folder, lists, server, file) = kept();
    let written = SystemTime::now() - Duration::from_mins(1);
    mark(&file, written).unwrap();
    lists
        .keep((&server, None), &snapshot(&["a", "b"]), &Secrets::default())
        .unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
    lists
        .keep((&server, None), &snapshot(&["b"]), &Secrets::default())
        .unwrap();
    assert!(fs::metadata(&file).unwrap().modified().unwrap() > written);
    assert_eq!(names(lists.recall(&server)), Some(vec!["b".into()]));
}

#[test]
fn what_tells_a_secret_or_is_too_much_is_not_kept_and_what_was_goes() {
    let mut from_variable = Secrets::default();
    from_variable.add("TOKEN", "can\"ary");
    let literal = program(&[("API_TOKEN", "canary-in-the-file")]);
    let large = "x".repeat(usize::try_from(MAX_FILE_BYTES).unwrap());
    let cases = [
        (program(&[]), r#"can\"ary"#, &from_variable),
        (literal, "canary-in-the-file", &Secrets::default()),
        (program(&[]), large.as_str(), &Secrets::default()),
    ];
    for (server, description, secrets) in cases {
        let folder = TempDir::new().unwrap();
        let lists = KeptLists::new(Some(folder.path()), None);
        lists
            .keep((&server, None), &snapshot(&["a"]), secrets)
            .unwrap();
        let text = format!(r#"{{"name":"a","inputSchema":{{}},"description":"{description}"}}"#);
        let mut snapshot = snapshot(&[]);
        snapshot.definitions = vec![RawJson::parse(&Bytes::from(text)).unwrap()];
        let refused = lists.keep((&server, None), &snapshot, secrets).unwrap_err();
        assert!(
            matches!(refused, NotKept::Secret | NotKept::TooLarge(_)),
            "{refused}"
        );
        assert!(files(&folder).is_empty(), "{refused}");
    }
}

#[test]
fn everything_may_be_deleted_while_it_is_used() {
    let (folder, lists, server, _) = kept();
    fs::remove_dir_all(folder.path().join(FOLDER)).unwrap();
    assert_eq!(lists.recall(&server), None);
    lists
        .keep((&server, None), &snapshot(&["a"]), &Secrets::default())
        .unwrap();
    assert!(lists.recall(&server).is_some());
    // Whoever runs next finds it too.
    let next = KeptLists::new(Some(folder.path()), None);
    assert!(next.recall(&server).is_some());
}

#[test]
fn without_a_place_nothing_is_kept_and_nothing_fails() {
    let server = program(&[]);
    let nowhere = KeptLists::new(None, None);
    assert_eq!(nowhere.recall(&server), None);
    let refused = nowhere.keep((&server, None), &snapshot(&["a"]), &Secrets::default());
    assert!(matches!(refused, Err(NotKept::NoPlace)));
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let blocked = KeptLists::new(Some(&file), None);
    assert_eq!(blocked.recall(&server), None);
    let refused = blocked.keep((&server, None), &snapshot(&["a"]), &Secrets::default());
    assert!(matches!(refused, Err(NotKept::Unwritable { .. })));
}

#[test]
fn two_workbenches_agree_on_the_salt_whoever_is_first() {
    let folder = TempDir::new().unwrap();
    let one = KeptLists::new(Some(folder.path()), None);
    let other = KeptLists::new(Some(folder.path()), None);
    let server = program(&[]);
    one.keep((&server, None), &snapshot(&["a"]), &Secrets::default())
        .unwrap();
    other
        .keep((&server, None), &snapshot(&["b"]), &Secrets::default())
        .unwrap();
    assert_eq!(names(one.recall(&server)), Some(vec!["b".into()]));
    // One that was broken is made anew, and everybody goes on with that.
    fs::write(folder.path().join(FOLDER).join("salt"), "short").unwrap();
    other
        .keep((&server, None), &snapshot(&["c"]), &Secrets::default())
        .unwrap();
    one.keep((&server, None), &snapshot(&["c"]), &Secrets::default())
        .unwrap();
    let third = KeptLists::new(Some(folder.path()), None);
    assert_eq!(names(third.recall(&server)), Some(vec!["c".into()]));
}
