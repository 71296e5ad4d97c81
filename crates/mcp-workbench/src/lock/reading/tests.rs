use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::lock::{Base, Differences, Observation, Selection};

fn observation(tools: &[(&str, &str)]) -> Observation {
    let tools = tools.iter();
    let tools = tools.map(|(name, text)| ((*name).into(), Digest::of(text.as_bytes())));
    let parts = [("command".to_owned(), Value::from("x"))];
    Observation {
        launch: Launch::of_parts(parts.into()),
        tools: tools.collect(),
        ..Observation::default()
    }
}

fn place() -> ident::ServerIdentifier {
    ident::ServerIdentifier {
        toolbox: "dev".into(),
        server: "fs".into(),
    }
}

fn lock(server: PinnedServer) -> Lock {
    let mut lock = Lock::default();
    *lock.server_mut(&place()) = server;
    lock
}

#[test]
fn faults_are_reported_with_their_location() {
    let good = lock(PinnedServer::of(&observation(&[("add", "1")]))).text();
    let cases = [
        (String::new(), "invalid JSON at line 1"),
        (good.replace("\n}\n", ""), "invalid JSON at line 14"),
        (
            good.replace("    \"dev\"", "=======\n    \"dev\""),
            "line 4 is a merge conflict marker",
        ),
        (
            "{}".to_owned(),
            "its layout is not given, but this version supports only 1",
        ),
        (
            "{\"layout\": \"1\"}".to_owned(),
            "its layout is \"1\", but this version supports only 1",
        ),
        (
            "[]".to_owned(),
            "its layout is not given, but this version supports only 1",
        ),
        (
            "{\"layout\": 1, \"toolboxes\": []}".to_owned(),
            "toolboxes is invalid",
        ),
        (
            "{\"layout\": 1, \"more\": []}".to_owned(),
            "more is invalid",
        ),
        (
            good.replace("\"launch\"", "\"start\""),
            "toolboxes.dev.fs.start is invalid",
        ),
        (
            good.replace("sha256-", "sha256-0"),
            "toolboxes.dev.fs.tools.add is invalid",
        ),
        // Nobody approves a finding without a definition.
        (
            good.replace(
                "\"add\": \"sha256-",
                &format!(
                    "\"add\": {{\"finding\": \"x\", \"seen\": \"{}\"}}, \"sub\": \"sha256-",
                    Digest::of(b"1")
                ),
            ),
            "toolboxes.dev.fs.tools.add is invalid",
        ),
        (
            good.replace("\"dev\":", "\"dev\": {}, \"dev\":"),
            "duplicate key toolboxes.dev",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            Lock::parse(text.clone().into()).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    }
    let with_mark = format!("\u{feff}{}", good.replace('\n', "\r\n"));
    assert_eq!(Lock::parse(with_mark.into()), Lock::parse(good.into()));
}

#[test]
fn a_change_of_one_tool_is_a_change_of_one_line() {
    let mut server = PinnedServer::of(&observation(&[("b", "1"), ("a\u{202E}", "2"), ("c", "3")]));
    let before = lock(server.clone()).text();
    server.see(&observation(&[("b", "changed"), ("a\u{202E}", "2")]));
    let after = lock(server).text();
    let differing = before.lines().zip(after.lines()).filter(|(a, b)| a != b);
    assert_eq!(differing.count(), 1);
    assert!(after.contains("\"a\\u202e\": \"sha256-"), "{after}");
}

#[test]
fn a_seen_change_is_reported_once_and_not_approved() {
    let mut server = PinnedServer::of(&observation(&[("a", "1"), ("b", "2")]));
    let found = observation(&[("a", "other"), ("c", "3")]);
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = Differences {
        launch: Vec::new(),
        changed: names(&["a"]),
        new: names(&["c"]),
        gone: names(&["b"]),
    };
    assert_eq!(server.differences(&found, Base::Seen), expected);
    server.see(&found);
    assert!(!server.differences(&found, Base::Seen).is_notable());
    assert_eq!(server.differences(&found, Base::Pinned), expected);
    let later = observation(&[("a", "yet another"), ("c", "3")]);
    assert_eq!(server.differences(&later, Base::Seen).changed, ["a"]);
    server.approve(&later, Selection::Tool("a"));
    let expected = Differences {
        changed: Vec::new(),
        ..expected
    };
    assert_eq!(server.differences(&later, Base::Pinned), expected);
    server.approve(&later, Selection::Whole);
    assert_eq!(server, PinnedServer::of(&later));
}

#[test]
fn a_finding_is_approved_with_one_definition() {
    let with_finding = |text: &str, code: &str| {
        let mut found = observation(&[("a", text), ("b", "2")]);
        found.findings.insert("a".to_owned(), code.to_owned());
        found
    };
    let releases = |server: &PinnedServer, text: &str, code: &str| {
        let digest = || Digest::of(text.as_bytes());
        server.tools["a"].releases(digest, code)
    };
    let mut server = PinnedServer::of(&observation(&[("a", "1"), ("b", "2")]));
    assert!(!releases(&server, "1", "hidden_character"));
    // The definition is the pinned one, but nobody has approved its finding.
    let found = with_finding("1", "hidden_character");
    assert_eq!(server.differences(&found, Base::Pinned).changed, ["a"]);
    server.approve(&found, Selection::Tool("a"));
    assert_eq!(
        server.differences(&found, Base::Pinned),
        Differences::default()
    );
    assert!(releases(&server, "1", "hidden_character"));
    assert!(!releases(&server, "1", "schema_bomb"));
    assert!(!releases(&server, "other", "hidden_character"));
    let text = lock(server.clone()).text();
    assert!(
        text.contains("\", \"finding\": \"hidden_character\" }"),
        "{text}"
    );
    assert_eq!(Lock::parse(text.clone().into()), Ok(lock(server.clone())));
    // Approving the whole server keeps what is as it was released, and nothing else.
    server.approve(&found, Selection::Whole);
    assert!(releases(&server, "1", "hidden_character"));
    server.approve(&observation(&[("a", "1"), ("b", "2")]), Selection::Whole);
    assert!(!releases(&server, "1", "hidden_character"));
}

fn servers() -> impl Strategy<Value = PinnedServer> {
    let digest = || prop::option::of(any::<u8>().prop_map(|it| Digest::of(&[it])));
    let tool = (digest(), digest(), prop::option::of(".{0,8}"));
    let tool = tool.prop_map(|(pinned, seen, finding)| PinnedTool {
        pinned,
        seen,
        finding: finding.filter(|_| pinned.is_some()),
    });
    let tool = tool.prop_filter("one of the two", |it| it.pinned.or(it.seen).is_some());
    let parts = || {
        let part = prop_oneof![
            ".{0,8}".prop_map(Value::from),
            prop::collection::vec(".{0,4}", 0..3).prop_map(Value::from)
        ];
        prop::collection::btree_map(".{0,4}", part, 0..3).prop_map(Launch::of_parts)
    };
    let tools = prop::collection::btree_map(".{0,6}", tool, 0..4);
    (parts(), prop::option::of(parts()), tools).prop_map(|(launch, seen, tools)| PinnedServer {
        launch,
        seen,
        tools,
    })
}

/// Returns a server as it was last seen.
fn last_seen(server: &PinnedServer) -> Observation {
    let tools = server.tools.iter();
    let tools =
        tools.filter_map(|(name, tool)| Some((name.as_str().into(), tool.seen.or(tool.pinned)?)));
    Observation {
        launch: server.seen.clone().unwrap_or_else(|| server.launch.clone()),
        tools: tools.collect(),
        ..Observation::default()
    }
}

proptest! {
    #[test]
    fn what_was_seen_is_not_reported_again(mut server in servers(), other in servers()) {
        for found in [last_seen(&server), last_seen(&other)] {
            let is_notable = server.differences(&found, Base::Seen).is_notable();
            prop_assert!(!(server.has_seen(&found) && is_notable));
            server.see(&found);
            prop_assert!(server.has_seen(&found));
        }
    }

    #[test]
    fn a_lock_file_is_read_back(server in servers()) {
        let lock = lock(server);
        let text = lock.text();
        prop_assert_eq!(Lock::parse(text.clone().into()), Ok(lock));
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = Lock::parse(text.into());
    }
}
