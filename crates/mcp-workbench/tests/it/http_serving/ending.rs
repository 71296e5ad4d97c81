//! The end: requests that were read finish or fail, streams end, servers go, and the exit code is 0.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Fault, Script, Setup, TIMEOUT, poll, survivors, use_params};

const ENOUGH: Duration = Duration::from_millis(5500);

#[test]
fn requests_in_flight_are_answered_at_shutdown() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let setup = Setup::new();
        let wait = json!([{"awaitFile": setup.path("gate")}, {"answer": {"content": []}}]);
        let script = Script::named(&["wait", "hang"]).on_call("wait", &wait.to_string());
        let mut served = setup.toolbox("dev", "d").server("fs", &script).serve();
        let mut client = served.client();
        client.open();
        let mut listening = client.listen(None);
        assert!(listening.head().is_stream());
        let mut hanging = client.begin("1", "tools/call", &use_params("hang", "{}"));
        let mut waiting = client.begin("2", "tools/call", &use_params("wait", "{}"));
        let journal = served.workbench.journal("dev", "fs");
        poll(TIMEOUT, || (journal.called().len() == 2).then_some(())).unwrap();
        let mut idle = served.connection();
        let start = Instant::now();
        served.workbench.signal(signal);
        // Streams that belong to no request end first, and idle connections are closed.
        while listening.event().is_some() {}
        idle.wait_closed();
        served.workbench.setup.write("gate", "");
        let finished = waiting.response();
        assert!(
            finished.body.contains(r#""id":2,"result":{"content":[]"#),
            "{}",
            finished.body
        );
        let failed = hanging.response();
        assert!(failed.body.contains("shutting_down"), "{}", failed.body);
        assert_eq!(served.workbench.wait_exit().code(), Some(0), "{signal:?}");
        assert!(start.elapsed() < ENOUGH, "{:?}", start.elapsed());
        assert!(survivors(&served.workbench.setup.mark).is_empty());
    }
}

#[test]
fn over_http_the_end_of_stdin_is_ignored() {
    let mut served = Setup::new().serve();
    served.workbench.close_stdin();
    let mut client = served.client();
    assert_eq!(client.ask("ping", "{}").raw_result(), "{}");
    served.workbench.signal(Signal::TERM);
    let finished = served.workbench.finish();
    assert_eq!(finished.status.code(), Some(0));
    assert_eq!(finished.stdout, Vec::<String>::new());
}

#[test]
fn a_client_that_reads_nothing_does_not_delay_shutdown() {
    let mut fault = Fault::within(
        6,
        "T29h",
        "does not read a result of 15 MB when the workbench is ended",
        "exit code 0 in time",
    );
    let mut served = Setup::one(&Script::new()).serve();
    let mut client = served.client();
    client.open();
    let big = r#"{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"big"},"arguments":{"size":15000000}}}"#;
    let _unread = client.begin("1", "tools/call", big);
    let journal = served.workbench.journal("dev", "fs");
    poll(TIMEOUT, || (!journal.called().is_empty()).then_some(())).unwrap();
    fault.begins();
    let start = Instant::now();
    served.workbench.signal(Signal::TERM);
    assert_eq!(served.workbench.wait_exit().code(), Some(0));
    assert!(start.elapsed() < ENOUGH, "{:?}", start.elapsed());
    fault.ends();
}
