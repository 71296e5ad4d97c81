use std::time::Duration;

use pretty_assertions::assert_eq;
use rawjson::ObjectText;

use super::*;
use crate::{
    config::MetaTool,
    downstream::{StartPhase, StopReason},
    toolbox::ServerFailure,
};

fn identifier() -> ToolIdentifier {
    ToolIdentifier {
        toolbox: "dev".into(),
        server: "fs".into(),
        tool: "read".into(),
    }
}

fn not_found(error: LookupError, known: &[&str]) -> Failure {
    Failure::NotFound {
        tool: identifier(),
        error,
        known: strings(known),
    }
}

fn call_failed(error: CallError) -> Failure {
    Failure::of_call(identifier(), error.into())
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn timeout() -> Arc<ConnectError> {
    Arc::new(ConnectError::Timeout(Duration::from_millis(1500)))
}

fn down() -> CallError {
    CallError::Connect(timeout())
}

/// Returns the result as a client gets it.
fn result(failure: &Failure) -> Value {
    serde_json::from_slice(failure.to_result().as_bytes()).unwrap()
}

/// A failure, its text, and the members of its details besides the names.
type Row = (Failure, &'static str, Value);

fn check(rows: Vec<Row>, names: &Value) {
    for (failure, text, mut details) in rows {
        let members = details.as_object_mut().unwrap();
        members.extend(names.as_object().unwrap().clone());
        assert_eq!(
            result(&failure),
            json!({
                "content": [{ "type": "text", "text": text }],
                "isError": true,
                "_meta": { "mcp-workbench/error": details },
            })
        );
    }
}

#[test]
fn a_failed_call_has_reason_code_and_outcome() {
    let reason = "Error executing tool 'read' in server 'fs' (toolbox 'dev'): failed to connect: connection timeout after 1.5 s";
    let refused = |message: &str| CallError::Refused {
        code: "-32000".to_owned(),
        message: message.to_owned(),
        error: ObjectText::new().finish(),
    };
    let outcome = Outcome::NotSent;
    let rows = vec![
        (
            call_failed(down()),
            reason,
            json!({"code": "server_start_timeout", "outcome": "not_sent"}),
        ),
        (
            not_found(LookupError::NotConnected(timeout()), &[]),
            reason,
            json!({"code": "server_start_timeout", "outcome": "not_sent"}),
        ),
        (
            call_failed(CallError::ToolGone),
            "Tool 'read' not found in server 'fs' (toolbox 'dev')",
            json!({"code": "tool_unknown", "outcome": "not_sent"}),
        ),
        (
            call_failed(refused("no \u{1b}[2J way")),
            "Error executing tool 'read' in server 'fs' (toolbox 'dev'): no ⟦U+001B⟧[2J way",
            json!({"code": "server_error"}),
        ),
        (
            call_failed(refused("line 1\n\tline 2")),
            "Error executing tool 'read' in server 'fs' (toolbox 'dev'): line 1\n\tline 2",
            json!({"code": "server_error"}),
        ),
        (
            call_failed(refused("")),
            "Error executing tool 'read' in server 'fs' (toolbox 'dev'): the server answered with error -32000",
            json!({"code": "server_error"}),
        ),
        (
            call_failed(CallError::InvalidAnswer),
            "Error executing tool 'read' in server 'fs' (toolbox 'dev'): the server's response must have either a result or an error, not both or neither",
            json!({"code": "invalid_response", "outcome": "unknown"}),
        ),
        (
            call_failed(CallError::ShuttingDown { outcome }),
            "Error executing tool 'read' in server 'fs' (toolbox 'dev'): the workbench is shutting down",
            json!({"code": "shutting_down", "outcome": "not_sent"}),
        ),
    ];
    check(
        rows,
        &json!({"toolbox": "dev", "server": "fs", "tool": "read"}),
    );
}

#[test]
fn an_unknown_tool_is_reported_with_a_near_name() {
    let details = |code: &str| json!({"code": code, "outcome": "not_sent"});
    let rows = vec![
        (
            not_found(LookupError::ToolboxUnknown, &["ops", "Dev"]),
            "Error: Toolbox 'dev' not found. Available toolboxes: ops, Dev. Did you mean 'Dev'?",
            details("toolbox_unknown"),
        ),
        (
            not_found(LookupError::ToolboxUnknown, &[]),
            "Error: Toolbox 'dev' not found. Available toolboxes: none",
            details("toolbox_unknown"),
        ),
        (
            not_found(LookupError::ToolboxNotOpen(MetaTool::OpenToolbox), &[]),
            "Error: Toolbox 'dev' is not open. Call open_toolbox first.",
            details("toolbox_not_open"),
        ),
        (
            not_found(LookupError::ServerUnknown, &["FS", "db"]),
            "Server 'fs' not found in toolbox 'dev'. Did you mean 'FS'?",
            details("server_unknown"),
        ),
        (
            not_found(LookupError::ToolUnknown, &["reed"]),
            "Tool 'read' not found in server 'fs' (toolbox 'dev'). Did you mean 'reed'?",
            details("tool_unknown"),
        ),
        (
            not_found(LookupError::ToolUnknown, &["write"]),
            "Tool 'read' not found in server 'fs' (toolbox 'dev')",
            details("tool_unknown"),
        ),
    ];
    check(
        rows,
        &json!({"toolbox": "dev", "server": "fs", "tool": "read"}),
    );
}

#[test]
fn a_toolbox_that_does_not_open_is_reported_with_every_server() {
    let failure = |server: &str, error| ServerFailure {
        toolbox: "dev".into(),
        server: server.into(),
        error,
    };
    let opening = |failures| Failure::NotOpened {
        toolbox: "dev".into(),
        error: OpenError { failures },
    };
    let ending = Arc::new(ConnectError::ShuttingDown);
    let alike = opening(vec![failure("a", timeout()), failure("b", timeout())]);
    let different = opening(vec![failure("a", timeout()), failure("b", ending)]);
    let unknown = Failure::ToolboxUnknown {
        toolbox: "dev".into(),
        available: strings(&["a", "b"]),
    };
    let rows = vec![
        (
            alike,
            "Error opening toolbox 'dev': Failed to connect to server 'a' in toolbox 'dev': connection timeout after 1.5 s; Failed to connect to server 'b' in toolbox 'dev': connection timeout after 1.5 s",
            json!({"code": "server_start_timeout", "outcome": "not_sent"}),
        ),
        (
            different,
            "Error opening toolbox 'dev': Failed to connect to server 'a' in toolbox 'dev': connection timeout after 1.5 s; Failed to connect to server 'b' in toolbox 'dev': the workbench is shutting down",
            json!({"code": "server_start_failed", "outcome": "not_sent"}),
        ),
        (
            unknown,
            "Error: Toolbox 'dev' not found. Available toolboxes: a, b",
            json!({"code": "toolbox_unknown", "outcome": "not_sent"}),
        ),
    ];
    check(rows, &json!({"toolbox": "dev"}));
}

#[test]
fn a_name_that_is_not_registered_is_judged_by_its_form() {
    let malformed = |name: &str| {
        format!(
            "Error: Invalid tool name format '{name}'. Expected format: {{toolbox}}__{{server}}__{{tool}}"
        )
    };
    let missing = |name: &str| format!("Error: Tool '{name}' not found. Call open_toolbox first.");
    let cases = [
        ("x", malformed("x")),
        ("", malformed("")),
        ("a__b", malformed("a__b")),
        ("a___b", malformed("a___b")),
        ("a_b_c", malformed("a_b_c")),
        ("a__b__c", missing("a__b__c")),
        ("____", missing("____")),
        ("a__b__c__d", missing("a__b__c__d")),
    ];
    for (name, text) in cases {
        let failure = Failure::NotRegistered {
            name: name.to_owned(),
        };
        assert_eq!(failure.to_string(), text);
        assert_eq!(failure.code(), "tool_unknown");
    }
}

#[test]
fn an_empty_identifier_has_its_own_text_if_nothing_else_is_wrong() {
    let empty = |path| ParameterProblem::Empty { path };
    let required = ParameterProblem::Required { path: "tool.tool" };
    let cases = [
        (
            vec![empty("tool.server")],
            None,
            "Invalid tool identifier: server cannot be empty",
        ),
        (
            vec![empty("tool.toolbox"), empty("tool.tool")],
            None,
            "Invalid tool identifier: toolbox cannot be empty; tool cannot be empty",
        ),
        (
            vec![empty("tool.server"), required],
            None,
            "Invalid parameters: tool.server: cannot be empty; tool.tool: Required",
        ),
        (
            vec![empty("toolbox")],
            Some(strings(&["a", "b"])),
            "Invalid parameters: toolbox cannot be empty. Available toolboxes: a, b",
        ),
        (
            vec![empty("toolbox")],
            Some(Vec::new()),
            "Invalid parameters: toolbox cannot be empty. Available toolboxes: none",
        ),
    ];
    for (problems, available, text) in cases {
        let failure = Failure::InvalidParameters {
            problems,
            available,
        };
        assert_eq!(failure.to_string(), text);
        assert_eq!(failure.code(), "invalid_parameters");
        assert_eq!(failure.outcome(), Some(Outcome::NotSent));
    }
}

/// Details that help a program decide whether and when to retry.
#[test]
fn details_have_the_stderr_of_a_server_and_the_retry_time() {
    let last = Arc::new(ConnectError::GivenUp {
        why: StopReason::Unresponsive,
        phase: StartPhase::Initialize,
        stderr: strings(&["one", "two"]),
    });
    let unavailable = Arc::new(ConnectError::Unavailable {
        failures: 5,
        last,
        retry_after: Duration::from_millis(2500),
    });
    let failures = [
        call_failed(CallError::Connect(Arc::clone(&unavailable))),
        not_found(LookupError::NotConnected(Arc::clone(&unavailable)), &[]),
        Failure::NotOpened {
            toolbox: "dev".into(),
            error: OpenError {
                failures: vec![ServerFailure {
                    toolbox: "dev".into(),
                    server: "fs".into(),
                    error: unavailable,
                }],
            },
        },
    ];
    for failure in failures {
        let details = failure.details();
        assert_eq!(details["code"], "server_unavailable");
        assert_eq!(details["retry_after_ms"], 2500);
        assert_eq!(details["stderr"], json!(["one", "two"]));
    }
}
