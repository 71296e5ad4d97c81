//! Requests without a session that do not simply end: a client that goes away cancels, too many are refused, and
//! the end of the workbench lets them finish.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::stateless::{asking, begin, begin_at, open, with_steps};
use crate::harness::{Fault, Journal, Script, TIMEOUT, poll};

fn wait_called(journal: &Journal, count: usize) {
    poll(TIMEOUT, || (journal.called().len() == count).then_some(())).unwrap();
}

fn wait_cancelled(journal: &Journal) {
    let cancels = || journal.received("notifications/cancelled");
    poll(TIMEOUT, || (!cancels().is_empty()).then_some(())).expect("a cancel");
}

#[test]
fn a_disconnect_while_reading_cancels_the_request() {
    let fault = Fault::within(
        10,
        "T31a",
        "a client without a session disconnects in the middle of a stream",
        "the call is cancelled at its server; others are served",
    );
    let served = with_steps().serve();
    open(&served);
    let mut stream = begin(&served, "work");
    assert!(stream.head().is_stream());
    assert_eq!(stream.message().params()["progress"], 1);
    drop(stream);
    wait_cancelled(&served.workbench.journal("dev", "fs"));
    served.workbench.setup.write("gate", "");
    let list = asking(&served, "tools/list", json!({}));
    assert_eq!(served.connection().ask(&list).head.status, 200);
    fault.ends();
}

#[test]
fn a_disconnect_before_the_first_byte_cancels_the_request() {
    let fault = Fault::within(
        10,
        "T31b",
        "a client without a session disconnects before it was told anything",
        "the call is cancelled at its server",
    );
    let served = with_steps().serve();
    open(&served);
    let hanging = begin(&served, "hang");
    let journal = served.workbench.journal("dev", "fs");
    wait_called(&journal, 1);
    drop(hanging);
    wait_cancelled(&journal);
    fault.ends();
}

#[test]
fn too_many_concurrent_requests_are_refused_until_one_ends() {
    let fault = Fault::within(
        30,
        "T31c",
        "more than 384 requests without a session at once",
        "503; sessions are served; there is room when they go",
    );
    // One server has at most 320 calls that run or wait.
    let served = with_steps().server("more", &Script::named(&["hang"]));
    let served = served.serve();
    open(&served);
    let servers = ["fs", "more"].into_iter().cycle().take(384);
    let hanging: Vec<_> = servers
        .map(|server| begin_at(&served, server, "hang"))
        .collect();
    let list = asking(&served, "tools/list", json!({}));
    let ask = || served.connection().ask(&list).head;
    let refused = poll(TIMEOUT, || Some(ask()).filter(|head| head.status == 503));
    assert_eq!(refused.unwrap().header("retry-after"), Some("1"));
    assert_eq!(served.client().ask("ping", "{}").raw_result(), "{}");
    drop(hanging);
    let room = poll(TIMEOUT, || (ask().status == 200).then_some(()));
    assert!(room.is_some());
    fault.ends();
}

#[test]
fn requests_without_a_session_finish_or_fail_at_shutdown() {
    let mut served = with_steps().serve();
    open(&served);
    let mut working = begin(&served, "work");
    assert!(working.head().is_stream());
    let mut hanging = begin(&served, "hang");
    wait_called(&served.workbench.journal("dev", "fs"), 2);
    let mut idle = served.connection();
    served.workbench.signal(Signal::TERM);
    idle.wait_closed();
    served.workbench.setup.write("gate", "");
    assert_eq!(working.message().params()["progress"], 1);
    assert_eq!(working.message().params()["progress"], 2);
    assert_eq!(working.message().result()["done"], true);
    let failed = hanging.response();
    assert!(failed.body.contains("shutting_down"), "{}", failed.body);
    assert_eq!(served.workbench.wait_exit().code(), Some(0));
}
