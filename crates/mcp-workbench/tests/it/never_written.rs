//! Calls that are cancelled before anything of them was written.

use std::{thread, time::Duration};

use pretty_assertions::assert_eq;

use crate::harness::{Script, Setup};

const CALL: &str = r#"{"jsonrpc":"2.0","id":"gone","method":"tools/call","params":{"name":"use_tool","arguments":{"tool":{"toolbox":"dev","server":"fs","tool":"pid"}}}}"#;
const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}"#;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "what is waited for must not happen, so there is no event"
)]
fn a_call_that_was_never_written_does_not_count_as_unanswered() {
    let mut workbench = Setup::new()
        .toolbox("dev", "d")
        .server("fs", &Script::new())
        .connect();
    workbench.open("dev");
    let before = workbench.use_tool_of(["dev", "fs", "pid"], "{}").raw;
    // Both are read at once, so the call is taken back before anything is written.
    workbench.send_bytes(format!("{CALL}\n{CANCEL}\n").as_bytes());
    // A server that leaves its input unread is given up after 30 s.
    thread::sleep(Duration::from_secs(31));
    let after = workbench.use_tool_of(["dev", "fs", "pid"], "{}").raw;
    assert_eq!(after, before, "it is another process");
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.received("tools/call").len(), 2);
}
