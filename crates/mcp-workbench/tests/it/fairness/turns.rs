//! Principals that use one server: none of them waits for all calls of another.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{ALICE, BOB, CAROL, Caller, ERAS, Era, serve};
use crate::harness::{Journal, RemoteFixture, Script, Setup, TIMEOUT, poll};

/// The calls of each greedy principal, more than its share.
const CALLS: usize = 60;
/// The calls of a server, and of one principal among them.
const IN_FLIGHT: usize = 64;
const SHARE: usize = 48;
/// The calls that end early, and so the number of calls that are sent next: one of each principal.
const EARLY: usize = 3;

#[test]
fn a_modest_principal_waits_for_one_call_of_each_greedy_one() {
    for era in ERAS {
        for is_remote in [false, true] {
            // One greedy principal leaves room. Two fill the server, and then all take turns.
            for greedy in [&[ALICE][..], &[ALICE, BOB]] {
                run(era, is_remote, greedy);
            }
        }
    }
}

fn run(era: Era, is_remote: bool, greedy: &[&str]) {
    let case = format!("{era:?}, remote: {is_remote}, greedy: {greedy:?}");
    let folder = tempfile::tempdir().unwrap();
    let gates = ["early", "late"].map(|name| folder.path().join(name));
    let until = |gate| json!([{"awaitFile": gate}, {"answer": {"content": []}}]).to_string();
    let script = Script::named(&["early", "late"])
        .on_call("early", &until(&gates[0]))
        .on_call("late", &until(&gates[1]));
    let remote = is_remote.then(|| RemoteFixture::start(&script));
    let setup = remote
        .as_ref()
        .map_or_else(|| Setup::one(&script), RemoteFixture::setup);
    let served = serve(setup, &json!({}));
    let journal = remote.as_ref().map_or_else(
        || served.workbench.journal("dev", "fs"),
        |remote| remote.journal().clone(),
    );
    let mut running = Vec::new();
    for token in greedy {
        let caller = Caller::new(&served, token, era);
        for call in 0..CALLS {
            let is_early = *token == ALICE && call < EARLY;
            running.push(caller.begin(if is_early { "early" } else { "late" }, "{}"));
        }
        // Their responses have become streams, so the workbench has all of them.
        for connection in running.iter_mut().rev().take(CALLS) {
            assert!(connection.head().is_stream(), "{case}");
        }
    }
    let full = if greedy.len() == 1 { SHARE } else { IN_FLIGHT };
    assert_eq!(received(&journal, full).len(), full, "{case}");
    let caller = Caller::new(&served, CAROL, era);
    let mut modest = caller.begin("late", r#"{"of":"modest"}"#);
    let sent = if greedy.len() == 1 {
        received(&journal, SHARE + 1)
    } else {
        assert!(modest.head().is_stream(), "{case}");
        std::fs::write(&gates[0], "").unwrap();
        received(&journal, IN_FLIGHT + EARLY)
    };
    assert!(sent.contains(&r#"{"of":"modest"}"#.to_owned()), "{case}");
    for gate in &gates {
        std::fs::write(gate, "").unwrap();
    }
    received(&journal, greedy.len() * CALLS + 1);
}

/// Waits for so many calls at the server and returns their arguments.
fn received(journal: &Journal, count: usize) -> Vec<String> {
    let arguments = poll(TIMEOUT, || {
        let arguments = journal.arguments();
        (arguments.len() >= count).then_some(arguments)
    });
    arguments.unwrap_or_else(|| panic!("{count} calls, not {}", journal.arguments().len()))
}
