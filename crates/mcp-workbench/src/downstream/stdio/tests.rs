//! The exit of a child process whose output is read late.
#![cfg(unix)]

use std::process::Stdio;

use tokio::process::ChildStdout;
use tokio_util::task::TaskTracker;

use super::*;

/// Returns the link to a shell that has run a script and exited, with its output still unread.
fn late_link(script: &str) -> StdioLink {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdin, stdout, stderr) = (shell.stdin.take(), shell.stdout.take(), shell.stderr.take());
    shell.wait().unwrap();
    let stderr = ChildStderr::from_std(stderr.unwrap()).unwrap();
    StdioLink {
        reader: LineReader::new(ServerOutput::new(
            ChildStdout::from_std(stdout.unwrap()).unwrap(),
        )),
        output_ended: false,
        writer: FrameWriter::new(ChildStdin::from_std(stdin.unwrap()).unwrap()),
        writer_broken: false,
        stalls_at: None,
        bad_lines: 0,
        process: None,
        table: ProcessTable::new(TaskTracker::new()),
        exit: Some(Exit::Code(0)),
        over_at: Some(Instant::now()),
        closing_since: None,
        stderr: StderrTail::follow(stderr, Secrets::default()),
        secrets: Secrets::default(),
    }
}

/// Returns the lines until the end that are not messages.
async fn lines(mut link: StdioLink) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        match link.next_event().await {
            LinkEvent::BadLine(line) => lines.push(String::from_utf8(line.to_vec()).unwrap()),
            LinkEvent::Message { .. } => {}
            LinkEvent::Ended(Exit::Code(0)) => return lines,
            _ => panic!("neither a line nor the end"),
        }
    }
}

#[tokio::test]
async fn late_read_output_of_an_exited_process_counts() {
    // Repeated, because the order of the checks is random.
    for _ in 0..16 {
        let link = late_link("echo one; echo two; printf three");
        assert_eq!(lines(link).await, ["one", "two", "three"]);
    }
}

#[tokio::test]
async fn a_child_that_keeps_writing_does_not_keep_the_link_open() {
    let message = r#"{"jsonrpc":"2.0","method":"m"}"#;
    let link = late_link(&format!("echo one; while echo '{message}'; do :; done &"));
    let said = tokio::time::timeout(DRAIN_TIMEOUT * 100, lines(link)).await;
    assert_eq!(said.expect("it ends"), ["one"]);
}
