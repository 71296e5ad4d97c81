use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::clients::{ClientName, Scope, client, own_servers, servers_in};

/// Returns the content of a client's file.
fn file(name: ClientName, servers: &Value) -> DiscoveredFile {
    let client = client(name);
    let text = json!({client.key[0]: servers}).to_string();
    DiscoveredFile {
        client,
        path: format!("/{}", client.word()).into(),
        scope: Scope::User,
        servers: Ok(servers_in(client, &text, Scope::User, Path::new("/")).expect("it is JSON")),
    }
}

fn gathered(files: Vec<DiscoveredFile>, own: &str) -> Vec<ImportCandidate> {
    gather(files, &own_servers(own), Path::new("/opt/renamed"))
}

fn assigned(
    candidates: &[ImportCandidate],
    grouping: &Grouping,
    own: &str,
) -> Vec<(String, String)> {
    let additions = assign(candidates, grouping, &own_servers(own));
    additions
        .into_iter()
        .map(|it| (it.toolbox, it.name))
        .collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
}

#[test]
fn duplicate_servers_are_merged() {
    let files = vec![
        file(
            ClientName::Cursor,
            &json!({
                "git": {"command": "npx", "args": ["git"], "env": {"T": "${env:T}"}},
                "db": {"command": "db", "args": ["one"]},
            }),
        ),
        file(
            ClientName::OpenCode,
            &json!({
                "github": {"type": "local", "command": ["npx", "git"], "environment": {"T": "{env:T}"}},
                "db": {"type": "local", "command": ["db", "two"]},
            }),
        ),
    ];
    let candidates = gathered(files, "{}");
    let found: Vec<(&str, usize)> = candidates
        .iter()
        .map(|it| (it.name.as_str(), it.places.len()))
        .collect();
    assert_eq!(found, [("git", 2), ("db", 1), ("db", 1)]);
    assert_eq!(
        assigned(&candidates, &Grouping::ByClient, "{}"),
        pairs([("cursor", "git"), ("cursor", "db"), ("opencode", "db")])
    );
    let one = Grouping::One("all".to_owned());
    assert_eq!(
        assigned(&candidates, &one, "{}"),
        pairs([("all", "git"), ("all", "db"), ("all", "db-opencode")])
    );
    let own = r#"{"toolboxes": {"all": {"description": "d", "mcpServers": {"db": {"command": "other"}, "db-cursor": {"command": "more"}}}}}"#;
    assert_eq!(
        assigned(&candidates, &one, own),
        pairs([
            ("all", "git"),
            ("all", "db-cursor-2"),
            ("all", "db-opencode")
        ])
    );
}

#[test]
fn known_servers_and_the_workbench_are_skipped() {
    let own = r#"{"toolboxes": {"t": {"description": "d", "mcpServers": {"mine": {"url": "https://host/"}}}}}"#;
    let files = vec![
        file(
            ClientName::Cursor,
            &json!({
                "a": {"url": "https://host"},
                "b": {"command": "mcp-workbench"},
                "c": {"command": "/opt/renamed"},
                "d": {"note": "nothing"},
                "e": {"url": "https://host/", "headers": {"X": "y"}},
            }),
        ),
        file(
            ClientName::Kiro,
            &json!({"f": {"url": "https://other", "headers": {"X": "a\nb"}}}),
        ),
    ];
    let candidates = gathered(files, own);
    let kinds: Vec<&CandidateKind> = candidates.iter().map(|it| &it.kind).collect();
    let [
        CandidateKind::Present { toolbox, name, .. },
        CandidateKind::Ourselves,
        CandidateKind::Ourselves,
        CandidateKind::NotAServer,
        CandidateKind::Unusable(places),
    ] = kinds.as_slice()
    else {
        panic!("{kinds:?}");
    };
    assert_eq!((toolbox.as_str(), name.as_str()), ("t", "mine"));
    assert_eq!(candidates[0].places.len(), 2, "a and e");
    assert_eq!(places, &["headers.X"]);
    assert_eq!(assigned(&candidates, &Grouping::ByClient, own), pairs([]));
}

#[test]
fn an_enabled_entry_wins_over_a_disabled_one() {
    let files = vec![
        file(
            ClientName::Cursor,
            &json!({"a": {"command": "x", "disabled": true}}),
        ),
        file(ClientName::Kiro, &json!({"a": {"command": "x"}})),
    ];
    let candidates = gathered(files, "{}");
    let [
        ImportCandidate {
            kind: CandidateKind::New(new),
            places,
            ..
        },
    ] = candidates.as_slice()
    else {
        panic!("{candidates:?}");
    };
    assert_eq!(new.entry, json!({"command": "x"}));
    assert_eq!(places.len(), 2);
}

#[test]
fn the_stricter_restriction_of_tools_wins() {
    let cases = [
        // Neither, or the same in different words: nothing to say.
        (json!({}), json!({}), json!({}), false),
        (
            json!({"disabledTools": ["a"]}),
            json!({"excludeTools": ["a"]}),
            json!({"disabledTools": ["a"]}),
            false,
        ),
        // One of them, in either order.
        (
            json!({}),
            json!({"disabledTools": ["a"]}),
            json!({"disabledTools": ["a"]}),
            true,
        ),
        (
            json!({"includeTools": ["a"]}),
            json!({}),
            json!({"includeTools": ["a"]}),
            true,
        ),
        (
            json!({"disabled": true, "disabledTools": ["a"]}),
            json!({"includeTools": ["b"]}),
            json!({"includeTools": ["b"], "disabledTools": ["a"]}),
            true,
        ),
        // Both.
        (
            json!({"includeTools": ["a", "b"], "excludeTools": ["x"]}),
            json!({"includeTools": ["c", "b"], "disabledTools": ["x", "y"]}),
            json!({"includeTools": ["b"], "excludeTools": ["x"], "disabledTools": ["y"]}),
            true,
        ),
        (
            json!({"includeTools": ["a"]}),
            json!({"includeTools": ["b"]}),
            json!({"includeTools": []}),
            true,
        ),
    ];
    for (one, other, expected, said) in cases {
        let entry = |mut restrictions: Value| {
            restrictions["command"] = "x".into();
            json!({"a": restrictions})
        };
        let files = vec![
            file(ClientName::Cursor, &entry(one)),
            file(ClientName::Kiro, &entry(other)),
        ];
        let candidates = gathered(files, "{}");
        let [
            ImportCandidate {
                kind: CandidateKind::New(new),
                ..
            },
        ] = candidates.as_slice()
        else {
            panic!("{candidates:?}");
        };
        let mut expected = expected;
        expected["command"] = "x".into();
        assert_eq!(new.entry, expected);
        assert_eq!(
            new.remarks.contains(&Remark::StricterTools),
            said,
            "{expected}"
        );
    }
}

#[test]
fn a_client_that_allows_fewer_tools_than_the_configuration_is_named() {
    let own = |entry: Value| {
        json!({"toolboxes": {"t": {"description": "d", "mcpServers": {"s": entry}}}}).to_string()
    };
    let strict = json!({"a": {"command": "x", "disabledTools": ["write"]}});
    let plain = json!({"b": {"command": "x"}});
    let remarks = |own: &str| {
        let files = vec![
            file(ClientName::Cursor, &plain),
            file(ClientName::Windsurf, &strict),
            file(ClientName::Kiro, &strict),
        ];
        let candidates = gathered(files, own);
        let [
            ImportCandidate {
                kind: CandidateKind::Present { remarks, .. },
                ..
            },
        ] = candidates.as_slice()
        else {
            panic!("{candidates:?}");
        };
        remarks.clone()
    };
    let named = ["Windsurf", "Kiro"].map(|client| Remark::FewerToolsIn { client });
    assert_eq!(remarks(&own(json!({"command": "x"}))), named);
    for entry in [
        json!({"command": "x", "excludeTools": ["write"]}),
        json!({"command": "x", "includeTools": ["read"]}),
        json!({"command": "x", "toolFilters": ["*"]}),
    ] {
        assert_eq!(remarks(&own(entry.clone())), [], "{entry}");
    }
}

#[test]
fn restrictions_of_a_project_do_not_reach_an_entry_of_the_user() {
    let own = || file(ClientName::Cursor, &json!({"a": {"command": "x"}}));
    let project = || DiscoveredFile {
        scope: Scope::Project,
        ..file(
            ClientName::Kiro,
            &json!({"a": {"command": "x", "disabledTools": ["t"]}}),
        )
    };
    for files in [vec![own(), project()], vec![project(), own()]] {
        let candidates = gathered(files, "{}");
        let CandidateKind::New(new) = &candidates[0].kind else {
            panic!("{candidates:?}");
        };
        assert_eq!(new.entry, json!({"command": "x"}));
        assert_eq!(new.remarks, []);
    }
}

proptest! {
    /// Whatever names clients use, no two servers of a toolbox get one name, and all get in.
    #[test]
    fn names_are_free(names in prop::collection::vec(("[ab -]{0,2}", 0..3_usize), 0..12), one in any::<bool>()) {
        let clients = [ClientName::Cursor, ClientName::Kiro, ClientName::Zed];
        let files = names.iter().enumerate().map(|(number, (name, which))| {
            file(clients[*which], &json!({name.as_str(): {"command": format!("x{number}")}}))
        });
        let candidates = gathered(files.collect(), "{}");
        let grouping = if one { Grouping::One("all".into()) } else { Grouping::ByClient };
        let mut given = assigned(&candidates, &grouping, "{}");
        prop_assert_eq!(given.len(), names.len());
        prop_assert!(given.iter().all(|(_, name)| !name.trim().is_empty()));
        given.sort();
        given.dedup();
        prop_assert_eq!(given.len(), names.len());
    }
}
