//! The failures of meta-tools: the text for the model and the details for programs. The variants carry the data; the
//! wording is only here.

use std::{fmt, sync::Arc, time::Duration};

use ident::{ToolIdentifier, ToolName, ToolboxName};
use rawjson::RawJson;
use serde_json::{Map, Value, json};

use super::parameters::ParameterProblem;
use crate::{
    call::Outcome,
    downstream::{CallError, ConnectError},
    near::nearest,
    scripts::StartError,
    toolbox::OpenError,
    visible::{visible, visible_lines},
    workbench::{CallFailure, LookupError, PageError},
};

/// The key under which programs find the details of a failure.
pub(super) const ERROR_KEY: &str = "mcp-workbench/error";

/// The message for a request that is parked in a process that cannot be reached.
pub(crate) const REPLICA_GONE: &str = "The process of the workbench that held this call has ended or cannot be reached. The call may have \
     run. Check its effects before you repeat it.";

/// The reason why a meta-tool failed.
pub(super) enum Failure {
    InvalidParameters {
        problems: Vec<ParameterProblem>,
        /// The toolboxes to choose from, if the toolbox is one of the problems.
        available: Option<Vec<String>>,
    },
    ToolboxUnknown {
        toolbox: ToolboxName,
        available: Vec<String>,
    },
    /// No server of the toolbox is up.
    NotOpened {
        toolbox: ToolboxName,
        error: OpenError,
    },
    /// The tool was not found.
    NotFound {
        tool: ToolIdentifier,
        error: LookupError,
        /// Names that the caller may have meant.
        known: Vec<String>,
    },
    /// The tool was found and the call failed.
    CallFailed {
        tool: ToolIdentifier,
        error: Box<CallError>,
    },
    /// A stored result, or a page of it, does not exist.
    NotRead {
        result: String,
        page: usize,
        error: PageError,
    },
    /// The shared process ended while it worked on a call.
    HostExited,
    /// The process that holds a parked call cannot be reached.
    ReplicaGone,
    /// A filter could not be applied to a stored result.
    NotSelected { why: String },
    /// No tool is registered under the name.
    NotRegistered { name: String },
    /// There is no worker for a script.
    NoWorker { error: StartError },
}

impl Failure {
    pub(super) fn of_call(tool: ToolIdentifier, failure: CallFailure) -> Self {
        match failure {
            CallFailure::NotFound { error, known } => Self::NotFound { tool, error, known },
            CallFailure::Failed(error) => Self::CallFailed {
                tool,
                error: Box::new(error),
            },
        }
    }

    /// Returns the failure as a tool result. Its text has names that the client sent, or a server gave.
    pub(super) fn to_result(&self) -> RawJson {
        RawJson::of(&json!({
            "content": [{ "type": "text", "text": visible_lines(&self.to_string()) }],
            // A result and not a JSON-RPC error, which many clients do not show to the model.
            "isError": true,
            "_meta": { ERROR_KEY: self.details() },
        }))
    }

    fn details(&self) -> Value {
        let mut details = Map::new();
        details.insert("code".into(), self.code().into());
        if let Some(outcome) = self.outcome() {
            details.insert("outcome".into(), json!(outcome));
        }
        if let Some(retry_after) = self.retry_after() {
            let milliseconds = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
            details.insert("retry_after_ms".into(), milliseconds.into());
        }
        if !self.stderr().is_empty() {
            let lines = self.stderr().iter().map(|line| Value::from(visible(line)));
            details.insert("stderr".into(), lines.collect());
        }
        match self {
            Self::ToolboxUnknown { toolbox, .. } | Self::NotOpened { toolbox, .. } => {
                details.insert("toolbox".into(), toolbox.as_str().into());
            }
            Self::NotFound { tool, .. } | Self::CallFailed { tool, .. } => {
                details.insert("toolbox".into(), tool.toolbox.as_str().into());
                details.insert("server".into(), tool.server.as_str().into());
                details.insert("tool".into(), tool.tool.as_str().into());
            }
            Self::InvalidParameters { .. }
            | Self::NotRead { .. }
            | Self::NotSelected { .. }
            | Self::HostExited
            | Self::ReplicaGone
            | Self::NotRegistered { .. }
            | Self::NoWorker { .. } => {}
        }
        Value::Object(details)
    }

    /// Returns the stable code for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::InvalidParameters { .. } => "invalid_parameters",
            Self::ToolboxUnknown { .. } => "toolbox_unknown",
            Self::NotOpened { error, .. } => common_code(error),
            Self::NotFound { error, .. } => error.code(),
            Self::CallFailed { error, .. } => error.code(),
            Self::NotRead { error, .. } => page_error_code(*error),
            Self::HostExited => "host_exited",
            Self::ReplicaGone => "replica_gone",
            Self::NotSelected { .. } => "select_failed",
            Self::NotRegistered { .. } => "tool_unknown",
            Self::NoWorker {
                error: StartError::TooMany,
            } => "overloaded",
            Self::NoWorker {
                error: StartError::Unsupported,
            } => "script_unsupported",
            Self::NoWorker { .. } => "script_worker_gone",
        }
    }

    /// Returns the error of the server, if exactly one is responsible.
    fn connect_error(&self) -> Option<&ConnectError> {
        match self {
            Self::NotOpened { error, .. } => match &error.failures[..] {
                [failure] => Some(&failure.error),
                _ => None,
            },
            Self::NotFound {
                error: LookupError::NotConnected(error),
                ..
            } => Some(error),
            _ => None,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CallFailed { error, .. } => error.retry_after(),
            other => other.connect_error()?.retry_after(),
        }
    }

    fn stderr(&self) -> &[String] {
        match self {
            Self::CallFailed { error, .. } => error.stderr(),
            other => other.connect_error().map_or(&[], ConnectError::stderr),
        }
    }

    /// Returns the known effect: nothing was sent unless a call was made.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::CallFailed { error, .. } => error.outcome(),
            Self::HostExited | Self::ReplicaGone => Some(Outcome::Unknown),
            _ => Some(Outcome::NotSent),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidParameters {
                problems,
                available,
            } => {
                write_problems(f, problems)?;
                match available {
                    Some(available) => write!(f, ". {}", list_available(available)),
                    None => Ok(()),
                }
            }
            Self::ToolboxUnknown { toolbox, available } => {
                write_unknown_toolbox(f, toolbox, available)
            }
            Self::NotOpened { toolbox, error } => {
                let failures = error
                    .failures
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ");
                write!(f, "Error opening toolbox '{toolbox}': {failures}")
            }
            Self::NotFound { tool, error, known } => write_not_found(f, tool, error, known),
            Self::CallFailed { tool, error } => write_call_failed(f, tool, error),
            Self::NotRead {
                result,
                page,
                error,
            } => write!(f, "Error: {}", page_error_text(result, *page, *error)),
            Self::NoWorker { error } => write!(f, "Error: {error}"),
            Self::HostExited => f.write_str(
                "Error: The shared workbench process ended during the call, which may have run. Check its effects \
                 before you repeat it.",
            ),
            Self::ReplicaGone => write!(f, "Error: {REPLICA_GONE}"),
            Self::NotSelected { why } => write!(f, "Error: select was not applied: {why}"),
            // A registered name has three parts, so this one is malformed and not only unknown.
            Self::NotRegistered { name } if name.matches("__").count() < 2 => write!(
                f,
                "Error: Invalid tool name format '{name}'. \
                 Expected format: {{toolbox}}__{{server}}__{{tool}}"
            ),
            Self::NotRegistered { name } => {
                write!(
                    f,
                    "Error: Tool '{name}' not found. Call open_toolbox first."
                )
            }
        }
    }
}

/// Writes all problems as one text. If empty parts of the identifier are the only problems, the text has its own
/// lead.
fn write_problems(f: &mut fmt::Formatter<'_>, problems: &[ParameterProblem]) -> fmt::Result {
    let identifier_only = problems
        .iter()
        .all(ParameterProblem::is_empty_identifier_part);
    let (lead, words): (_, fn(&ParameterProblem) -> String) = if identifier_only {
        ("Invalid tool identifier: ", ParameterProblem::short)
    } else {
        ("Invalid parameters: ", ToString::to_string)
    };
    let problems = problems.iter().map(words).collect::<Vec<_>>().join("; ");
    write!(f, "{lead}{problems}")
}

fn write_unknown_toolbox(
    f: &mut fmt::Formatter<'_>,
    toolbox: &ToolboxName,
    available: &[String],
) -> fmt::Result {
    write!(
        f,
        "Error: Toolbox '{toolbox}' not found. {}",
        list_available(available)
    )?;
    write_near(f, toolbox.as_str(), available)
}

fn write_not_found(
    f: &mut fmt::Formatter<'_>,
    tool: &ToolIdentifier,
    error: &LookupError,
    known: &[String],
) -> fmt::Result {
    let ToolIdentifier {
        toolbox,
        server,
        tool: name,
    } = tool;
    match error {
        LookupError::ToolboxUnknown => write_unknown_toolbox(f, toolbox, known),
        LookupError::ToolboxNotOpen(opener) => write!(
            f,
            "Error: Toolbox '{toolbox}' is not open. Call {} first.",
            opener.name()
        ),
        LookupError::ServerUnknown => {
            write!(f, "Server '{server}' not found in toolbox '{toolbox}'")?;
            write_near(f, server.as_str(), known)
        }
        LookupError::ToolUnknown => {
            write_unknown_tool(f, tool)?;
            write_near(f, name.as_str(), known)
        }
        // A similar name would be a different tool, so none is suggested.
        LookupError::ToolWithheld { reason } => write_withheld(f, tool, reason),
        LookupError::NotPermitted(refusal) => {
            write_call_failed(f, tool, &CallError::NotPermitted(refusal.clone()))
        }
        LookupError::ToolNotApproved { reason } => write_not_approved(f, tool, reason),
        LookupError::NotConnected(error) => {
            write_call_failed(f, tool, &CallError::Connect(Arc::clone(error)))
        }
    }
}

fn write_unknown_tool(f: &mut fmt::Formatter<'_>, tool: &ToolIdentifier) -> fmt::Result {
    let (toolbox, server, name): (_, _, &ToolName) = (&tool.toolbox, &tool.server, &tool.tool);
    write!(
        f,
        "Tool '{name}' not found in server '{server}' (toolbox '{toolbox}')"
    )
}

/// Adds that only a person can approve a tool, because that is the next step.
fn write_not_approved(
    f: &mut fmt::Formatter<'_>,
    tool: &ToolIdentifier,
    reason: &str,
) -> fmt::Result {
    write_withheld(f, tool, reason)?;
    f.write_str(". Only the user can do that; ask them to")
}

fn write_withheld(f: &mut fmt::Formatter<'_>, tool: &ToolIdentifier, reason: &str) -> fmt::Result {
    let (toolbox, server, name): (_, _, &ToolName) = (&tool.toolbox, &tool.server, &tool.tool);
    write!(
        f,
        "Tool '{name}' of server '{server}' (toolbox '{toolbox}') is withheld: {reason}"
    )
}

fn write_call_failed(
    f: &mut fmt::Formatter<'_>,
    tool: &ToolIdentifier,
    error: &CallError,
) -> fmt::Result {
    match error {
        CallError::ToolGone => return write_unknown_tool(f, tool),
        CallError::NotApproved { reason } => return write_not_approved(f, tool, reason),
        CallError::Withheld { reason } => return write_withheld(f, tool, reason),
        _ => {}
    }
    write!(
        f,
        "Error executing tool '{}' in server '{}' (toolbox '{}'): {error}",
        tool.tool, tool.server, tool.toolbox
    )
}

fn write_near(f: &mut fmt::Formatter<'_>, name: &str, known: &[String]) -> fmt::Result {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => write!(f, ". Did you mean '{}'?", visible(near)),
        None => Ok(()),
    }
}

/// Returns the code that all failed servers of a toolbox have in common, or the general one.
fn common_code(error: &OpenError) -> &'static str {
    let mut codes = error.failures.iter().map(|failure| failure.error.code());
    let first = codes.next();
    first
        .filter(|first| codes.all(|code| code == *first))
        .unwrap_or("server_start_failed")
}

/// Returns the code for a page that cannot be read.
pub(crate) fn page_error_code(error: PageError) -> &'static str {
    match error {
        PageError::Gone => "result_gone",
        PageError::Unknown { .. } => "page_unknown",
        PageError::Unreachable => "store_unreachable",
    }
}

/// Returns the message for a page that cannot be read. Expired, unknown and foreign results have the same message, so
/// that it reveals nothing about other clients.
pub(crate) fn page_error_text(result: &str, page: usize, error: PageError) -> String {
    let result = visible(result);
    match error {
        PageError::Gone => format!(
            "Result '{result}' is not available. Results are stored for an hour at most, and for less when they are \
             many or large. Call the tool again."
        ),
        PageError::Unreachable => format!(
            "Result '{result}' cannot be read now: another replica has made it, and the store that they share cannot be \
             reached. Try again later."
        ),
        PageError::Unknown { pages } => {
            format!("Result '{result}' has no page {page}. Its pages are 1 to {pages}.")
        }
    }
}

fn list_available(available: &[String]) -> String {
    if available.is_empty() {
        return "Available toolboxes: none".to_owned();
    }
    format!("Available toolboxes: {}", available.join(", "))
}

#[cfg(test)]
mod tests;
