//! Snapshots are read as they were stored, and the rules are applied after reading.

use bytes::Bytes;
use rawjson::RawJson;
use tempfile::TempDir;

use super::*;
use crate::{
    config::ToolFilters,
    downstream::introduction::{Introduction, ServerFamily},
    era::{CacheHints, CacheScope, Era},
    server_cache::tests::program,
};

fn learned(tools: &[&str]) -> CacheUpdate {
    let tools = tools.iter().map(|name| {
        let text = format!("{{ \"name\":\"{name}\", \"inputSchema\":{{}}, \"x\":1.0e400 }}");
        RawJson::parse(&Bytes::from(text)).unwrap()
    });
    let snapshot = ServerSnapshot {
        era: Era::Legacy,
        introduction: Introduction {
            left_out: None,
            revision: "2025-11-25".into(),
            product: Some("files 1.0".into()),
            instructions: Some("Read \"it\" first\n".into()),
            families: vec![ServerFamily::Prompts],
            subscriptions: true,
            tasks: false,
            ..Introduction::default()
        },
        definitions: tools.collect(),
        notices: vec!["cut short".into()],
        incomplete: Some("only the first 2 are listed".into()),
        hints: CacheHints {
            ttl_ms: 7,
            scope: CacheScope::Public,
        },
    };
    CacheUpdate {
        snapshot,
        protocol: None,
    }
}

/// Returns a cache with the tools `a` and `b` of a server.
fn cached() -> (TempDir, ToolCache, Server) {
    let folder = TempDir::new().unwrap();
    let cache = Arc::new(ServerCache::new(Some(folder.path())));
    let cache = ToolCache::new(cache, None);
    let server = program(&[]);
    let secrets = Secrets::default();
    cache
        .store(&server, None, &learned(&["a", "b"]), &secrets)
        .unwrap();
    (folder, cache, server)
}

fn offered(cache: &ToolCache, server: &Server) -> Vec<String> {
    let (list, _) = cache.list(server).unwrap();
    list.tools().iter().map(|it| it.name.to_string()).collect()
}

#[test]
fn a_stored_snapshot_is_read_back() {
    let (_folder, cache, server) = cached();
    let (snapshot, _) = cache.snapshot(&server).unwrap();
    assert_eq!(snapshot, learned(&["a", "b"]).snapshot);
    assert_eq!(offered(&cache, &server), ["a", "b"]);
}

#[test]
fn filters_are_applied_when_a_list_is_read() {
    let (_folder, cache, mut server) = cached();
    server.filters = ToolFilters::new(Some(vec!["b".into()]), None, Vec::new());
    assert_eq!(offered(&cache, &server), ["b"]);
}

#[test]
fn invalid_snapshots_are_ignored() {
    let (_folder, cache, server) = cached();
    let subject = Subject::Launch {
        server: &server,
        grant: None,
    };
    let stored = cache.cache.update(&subject, &Secrets::default(), |record| {
        record.set_tools(RawJson::of(&serde_json::json!({"tools": []})));
    });
    stored.unwrap();
    assert!(cache.list(&server).is_none());
}

#[test]
fn a_definition_that_was_broken_by_hand_is_withheld() {
    let (_folder, cache, server) = cached();
    let broken = r#"{"name":"a","inputSchema":1}"#;
    let mut learned = learned(&["b"]);
    let broken = RawJson::parse(&Bytes::from_static(broken.as_bytes())).unwrap();
    learned.snapshot.definitions.push(broken);
    let secrets = Secrets::default();
    cache.store(&server, None, &learned, &secrets).unwrap();
    let (list, _) = cache.list(&server).unwrap();
    assert_eq!((list.tools().len(), list.withheld.len()), (1, 1));
}

#[test]
fn a_credential_of_the_entry_is_not_stored() {
    let (folder, cache, _) = cached();
    let server = program(&[("API_TOKEN", "canary-in-the-file")]);
    let refused = cache.store(
        &server,
        None,
        &learned(&["canary-in-the-file"]),
        &Secrets::default(),
    );
    assert!(matches!(refused, Err(NotCached::Secret)));
    assert!(cache.list(&server).is_none());
    drop(folder);
}
