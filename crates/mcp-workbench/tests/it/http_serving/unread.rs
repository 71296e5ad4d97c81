//! Unread responses: all together they are bounded, and the oldest are dropped.

use pretty_assertions::assert_eq;

use crate::harness::{Fault, Script, Setup, TIMEOUT, call_params, poll, use_arguments};

const SIZE: usize = 15_000_000;

/// The position before the first event of a stream.
fn before(stream: u64) -> String {
    format!("{stream}-0")
}

#[test]
fn unread_responses_are_bounded_over_all_sessions() {
    let mut fault = Fault::within(
        120,
        "T29j",
        "ten sessions leave two results of 15 MB unread each and go away",
        "beyond 256 MiB some become errors; the others can be read",
    );
    let served = Setup::one(&Script::new()).serve();
    served.client().open();
    fault.begins();
    let size = format!(r#"{{"size":{SIZE}}}"#);
    let big = call_params(
        "use_tool",
        &use_arguments(["dev", "fs", "big"], Some(&size)),
    );
    let sessions: Vec<_> = (0..10).map(|_| served.client()).collect();
    for session in &sessions {
        for id in ["2", "3"] {
            drop(session.begin(id, "tools/call", &big));
        }
    }
    let dropped = poll(TIMEOUT, || {
        let stderr = served.workbench.stderr();
        stderr.contains("that clients did not read").then_some(())
    });
    assert!(dropped.is_some(), "{}", served.workbench.stderr());
    // The stream of `initialize` is the first of a session.
    let (mut lost, mut read) = (0, 0);
    for session in &sessions {
        for stream in [2, 3] {
            let mut resumed = session.listen(Some(&before(stream)));
            assert!(resumed.head().is_stream());
            // Enough to tell a result from an error. Reading all of it takes most of a minute on a busy machine.
            let beginning = resumed.text(180);
            if beginning.contains(&format!(r#""id":{stream},"result":"#)) {
                read += 1;
            } else {
                let error = format!(r#""id":{stream},"error":{{"code":-32000,"#);
                assert!(beginning.contains(&error), "{beginning}");
                assert!(beginning.contains("was dropped"), "{beginning}");
                lost += 1;
            }
        }
    }
    assert!((5..10).contains(&lost), "{lost}");
    assert_eq!(read + lost, 20);
    fault.ends();
}
