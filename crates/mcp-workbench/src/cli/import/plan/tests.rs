use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::clients::{ClientName, Scope, client, own_servers, servers_in};

/// What a client has in its file.
fn file(name: ClientName, servers: &Value) -> FoundFile {
    let client = client(name);
    let text = json!({client.key[0]: servers}).to_string();
    FoundFile {
        client,
        path: format!("/{}", client.word()).into(),
        scope: Scope::User,
        servers: Ok(servers_in(client, &text, Scope::User, Path::new("/")).expect("it is JSON")),
    }
}

fn gathered(files: Vec<FoundFile>, own: &str) -> Vec<Finding> {
    gather(files, &own_servers(own), Path::new("/opt/renamed"))
}

fn assigned(findings: &[Finding], grouping: &Grouping, own: &str) -> Vec<(String, String)> {
    let additions = assign(findings, grouping, &own_servers(own));
    additions
        .into_iter()
        .map(|it| (it.toolbox, it.name))
        .collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
}

#[test]
fn the_same_server_is_taken_once_and_others_are_told_apart() {
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
    let findings = gathered(files, "{}");
    let found: Vec<(&str, usize)> = findings
        .iter()
        .map(|it| (it.name.as_str(), it.places.len()))
        .collect();
    assert_eq!(found, [("git", 2), ("db", 1), ("db", 1)]);
    assert_eq!(
        assigned(&findings, &Grouping::ByClient, "{}"),
        pairs([("cursor", "git"), ("cursor", "db"), ("opencode", "db")])
    );
    let one = Grouping::One("all".to_owned());
    assert_eq!(
        assigned(&findings, &one, "{}"),
        pairs([("all", "git"), ("all", "db"), ("all", "db-opencode")])
    );
    let own = r#"{"toolboxes": {"all": {"description": "d", "mcpServers": {"db": {"command": "other"}, "db-cursor": {"command": "more"}}}}}"#;
    assert_eq!(
        assigned(&findings, &one, own),
        pairs([
            ("all", "git"),
            ("all", "db-cursor-2"),
            ("all", "db-opencode")
        ])
    );
}

#[test]
fn what_we_have_and_what_we_are_is_left_out() {
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
    let findings = gathered(files, own);
    let kinds: Vec<&Kind> = findings.iter().map(|it| &it.kind).collect();
    let [
        Kind::Present { toolbox, name, .. },
        Kind::Ourselves,
        Kind::Ourselves,
        Kind::NotAServer,
        Kind::Unusable(places),
    ] = kinds.as_slice()
    else {
        panic!("{kinds:?}");
    };
    assert_eq!((toolbox.as_str(), name.as_str()), ("t", "mine"));
    assert_eq!(findings[0].places.len(), 2, "a and e");
    assert_eq!(places, &["headers.X"]);
    assert_eq!(assigned(&findings, &Grouping::ByClient, own), pairs([]));
}

#[test]
fn a_server_that_is_on_anywhere_is_on() {
    let files = vec![
        file(
            ClientName::Cursor,
            &json!({"a": {"command": "x", "disabled": true}}),
        ),
        file(ClientName::Kiro, &json!({"a": {"command": "x"}})),
    ];
    let findings = gathered(files, "{}");
    let [
        Finding {
            kind: Kind::New(new),
            places,
            ..
        },
    ] = findings.as_slice()
    else {
        panic!("{findings:?}");
    };
    assert_eq!(new.entry, json!({"command": "x"}));
    assert_eq!(places.len(), 2);
}

proptest! {
    /// Whatever names clients use, no two servers of a toolbox get one name, and all get in.
    #[test]
    fn names_are_free(names in prop::collection::vec(("[ab -]{0,2}", 0..3_usize), 0..12), one in any::<bool>()) {
        let clients = [ClientName::Cursor, ClientName::Kiro, ClientName::Zed];
        let files = names.iter().enumerate().map(|(number, (name, which))| {
            file(clients[*which], &json!({name.as_str(): {"command": format!("x{number}")}}))
        });
        let findings = gathered(files.collect(), "{}");
        let grouping = if one { Grouping::One("all".into()) } else { Grouping::ByClient };
        let mut given = assigned(&findings, &grouping, "{}");
        prop_assert_eq!(given.len(), names.len());
        prop_assert!(given.iter().all(|(_, name)| !name.trim().is_empty()));
        given.sort();
        given.dedup();
        prop_assert_eq!(given.len(), names.len());
    }
}
