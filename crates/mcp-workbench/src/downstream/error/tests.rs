use std::sync::Arc;

use pretty_assertions::assert_eq;
use rawjson::ObjectText;

use super::*;
use crate::{
    call::Outcome,
    config::{MissingValue, Unset},
    downstream::process::Exit,
};

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

fn exited(exit: Exit, phase: StartPhase, stderr: &[&str]) -> ConnectError {
    ConnectError::Exited {
        exit,
        phase,
        stderr: lines(stderr),
    }
}

fn unset(variable: &str, path: &str) -> Unset {
    Unset {
        value: MissingValue::Variable(variable.to_owned()),
        path: path.to_owned(),
    }
}

#[test]
fn every_failed_start_has_its_message_and_code() {
    const FAILED: &str = "server_start_failed";
    const LATE: &str = "server_start_timeout";
    let milliseconds = |it| ConnectError::Timeout(Duration::from_millis(it));
    let command = || "no\u{1b}where".to_owned();
    let unset = vec![
        unset("A", "toolboxes.y.mcpServers.x.env.T"),
        unset("B", "p"),
    ];
    let cases = [
        (
            ConnectError::Unset(unset),
            "variable A is not set (toolboxes.y.mcpServers.x.env.T); variable B is not set (p)",
            FAILED,
        ),
        (
            ConnectError::CommandNotFound { command: command() },
            "command 'no⟦U+001B⟧where' not found",
            FAILED,
        ),
        (
            ConnectError::DirectoryNotFound("/no\nwhere".into()),
            "working directory '/no where' not found",
            FAILED,
        ),
        (
            milliseconds(120_000),
            "connection timeout after 120 s",
            LATE,
        ),
        (milliseconds(1500), "connection timeout after 1.5 s", LATE),
        (milliseconds(1), "connection timeout after 0.001 s", LATE),
        (ConnectError::StillStarting, "still starting", LATE),
        (
            exited(Exit::Code(3), StartPhase::Initialize, &[]),
            "exited with code 3 before answering initialize",
            FAILED,
        ),
        (
            exited(Exit::Code(3), StartPhase::ListTools, &["one", "two"]),
            "exited with code 3 before answering tools/list; stderr: one | two",
            FAILED,
        ),
        (
            exited(Exit::Signal(15), StartPhase::Initialize, &["\u{1b}[31mred"]),
            "was killed by signal 15 before answering initialize; stderr: ⟦U+001B⟧[31mred",
            FAILED,
        ),
        (
            exited(Exit::Closed, StartPhase::Initialize, &[]),
            "closed its output before answering initialize",
            FAILED,
        ),
        (
            ConnectError::Refused {
                phase: StartPhase::Initialize,
                code: "-32602".to_owned(),
                message: "no\u{202e}".to_owned(),
            },
            "answered initialize with error -32602: no⟦U+202E⟧",
            FAILED,
        ),
        (
            ConnectError::InvalidAnswer {
                phase: StartPhase::ListTools,
            },
            "answered tools/list with an invalid result",
            FAILED,
        ),
        (
            ConnectError::ShuttingDown,
            "the workbench is shutting down",
            "shutting_down",
        ),
    ];
    for (error, words, code) in cases {
        assert_eq!((error.to_string().as_str(), error.code()), (words, code));
    }
}

const UNKNOWN: Option<Outcome> = Some(Outcome::Unknown);
const NOT_SENT: Option<Outcome> = Some(Outcome::NotSent);

#[test]
fn every_stop_reason_has_its_message_and_code() {
    let cases = [
        (
            StopReason::Nonsense,
            "invalid_response",
            "wrote 1000 consecutive lines that are not MCP messages",
        ),
        (
            StopReason::EndlessMessage,
            "frame_too_large",
            "wrote a message larger than 16 MiB without ending it",
        ),
        (
            StopReason::NotReading,
            "server_unresponsive",
            "did not read its input for 30 s",
        ),
        (
            StopReason::Unresponsive,
            "server_unresponsive",
            "did not answer a ping after its calls had timed out",
        ),
    ];
    for (why, code, words) in cases {
        let stderr = lines(&["bye"]);
        let call = CallError::GivenUp {
            why,
            stderr: stderr.clone(),
            outcome: Outcome::Unknown,
        };
        let phase = StartPhase::Initialize;
        let start = Arc::new(ConnectError::GivenUp {
            why,
            phase,
            stderr: stderr.clone(),
        });
        assert_eq!(
            call.to_string(),
            format!("the server {words} and was stopped; stderr: bye")
        );
        assert_eq!(
            start.to_string(),
            format!("{words} before answering initialize; stderr: bye")
        );
        assert_eq!(
            (call.code(), call.outcome(), call.stderr()),
            (code, UNKNOWN, &stderr[..])
        );
        assert_eq!(
            (start.code(), start.is_failed_start()),
            ("server_start_failed", true)
        );

        let unavailable = ConnectError::Unavailable {
            failures: 5,
            last: start,
            retry_after: Duration::from_millis(2500),
        };
        let text = unavailable.to_string();
        let begin = "failed 5 times within a minute; retrying is paused for 3 s; last failure: ";
        assert_eq!(
            text.strip_prefix(begin),
            Some(&format!("{words} before answering initialize; stderr: bye")[..])
        );
        assert_eq!(
            (unavailable.code(), unavailable.stderr()),
            ("server_unavailable", &stderr[..])
        );
        assert!(!unavailable.is_failed_start());
        assert_eq!(
            CallError::Connect(Arc::new(unavailable)).retry_after(),
            Some(Duration::from_millis(2500))
        );
    }
}

/// An error, its code, its outcome and its message.
type CallRow = (CallError, &'static str, Option<Outcome>, &'static str);

fn check_calls(rows: impl IntoIterator<Item = CallRow>) {
    for (error, code, outcome, words) in rows {
        let found = error.to_string();
        assert_eq!(
            (error.code(), error.outcome(), found.as_str()),
            (code, outcome, words)
        );
    }
}

#[test]
fn calls_that_a_server_failed_have_message_code_and_outcome() {
    let refused = |message: &str| CallError::Refused {
        code: "-32000".to_owned(),
        message: message.to_owned(),
        error: ObjectText::new().finish(),
    };
    let crash = CallError::Exited {
        exit: Exit::Signal(9),
        stderr: lines(&["bye"]),
        outcome: Outcome::Unknown,
    };
    let invalid =
        "the server's response must have either a result or an error, not both or neither";
    let killed = "the server was killed by signal 9 (out of memory?) during the call; stderr: bye";
    let nameless = "the server answered with error -32000";
    let large = CallError::TooLarge { limit: 16 << 20 };
    check_calls([
        (refused("a\nb\u{7f}"), "server_error", None, "a\nb⟦U+007F⟧"),
        (refused(""), "server_error", None, nameless),
        (crash, "server_exited", UNKNOWN, killed),
        (
            CallError::InvalidAnswer,
            "invalid_response",
            UNKNOWN,
            invalid,
        ),
        (
            large,
            "frame_too_large",
            UNKNOWN,
            "the server's response is larger than 16 MiB",
        ),
    ]);
}

#[test]
fn calls_that_the_workbench_failed_have_message_code_and_outcome() {
    let starting = CallError::Connect(Arc::new(ConnectError::StillStarting));
    let overloaded = CallError::Overloaded { waiting: 256 };
    let waiting = "the server already has 256 calls waiting; try again later";
    let ending = |outcome| CallError::ShuttingDown { outcome };
    let silent = CallError::Timeout {
        limit: TimeLimit::Silence(Duration::from_millis(500)),
        outcome: Outcome::Unknown,
    };
    let long = CallError::Timeout {
        limit: TimeLimit::Total(Duration::from_hours(1)),
        outcome: Outcome::NotSent,
    };
    let end = "the workbench is shutting down";
    check_calls([
        (
            starting,
            "server_start_timeout",
            NOT_SENT,
            "failed to connect: still starting",
        ),
        (
            CallError::ToolGone,
            "tool_unknown",
            NOT_SENT,
            "the server no longer has this tool",
        ),
        (
            silent,
            "call_timeout",
            UNKNOWN,
            "timed out after 0.5 s waiting for a response",
        ),
        (
            long,
            "call_timeout",
            NOT_SENT,
            "timed out: the call did not finish within 3600 s",
        ),
        (overloaded, "overloaded", NOT_SENT, waiting),
        (ending(Outcome::Unknown), "shutting_down", UNKNOWN, end),
        (ending(Outcome::NotSent), "shutting_down", NOT_SENT, end),
    ]);
}

#[test]
fn errors_show_the_last_500_characters_of_stderr() {
    let cases = [
        (lines(&[]), 0, ""),
        (vec!["é".repeat(500)], 500, "éé"),
        (vec!["x".repeat(600), "é".repeat(100)], 500, "xx | éé"),
        (vec!["\u{1b}".repeat(300)], 500, "⟦U+001B⟧⟦U+001B⟧"),
        (vec!["start".to_owned(), "x".repeat(497)], 500, "xx"),
    ];
    for (stderr, length, sample) in cases {
        let part = stderr_part(&stderr);
        let shown = part.strip_prefix("; stderr: ").unwrap_or(&part);
        assert_eq!(shown.chars().count(), length, "{part}");
        assert!(shown.contains(sample) && !shown.contains("start"), "{part}");
    }
}
