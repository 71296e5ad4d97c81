//! The record of a call, and the log line that it becomes. The event loop only collects the data; the writer
//! thread formats it.

use std::time::{Duration, SystemTime};

use ident::{ClientName, ToolIdentifier};
use rawjson::RawJson;
use tokio::time::Instant;

use super::{
    line::{redact_and_cut, write_number, write_redacted, write_text},
    shape::write_shape,
    time::write_time,
};
use crate::{
    call::{ClientHandle, ClientIdentity, Principal},
    config::{AuditArguments, Secrets},
    era::{ResultType, result_type},
    wire::ResultMarks,
};

/// The number of characters of a name that are recorded: callers can send names of any length.
const NAME: usize = 200;
/// The largest arguments whose values are recorded.
const MAX_VALUES: usize = 16 * 1024;
/// The largest request that a record copies. The line needs much less of a larger one.
const MAX_COPY: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditOutcome {
    /// A result of this size.
    Ok(usize),
    /// A result of this size with `isError`.
    ToolError(usize),
    /// A question of this size: the client calls again with the answer.
    InputRequired(usize),
    /// A failure with this code.
    Error(&'static str),
    /// Not permitted, with this code.
    Denied(&'static str),
    /// The caller did not wait for the end.
    Cancelled,
}

#[derive(PartialEq, Eq)]
pub(super) struct LineFormat {
    /// Values that must not be in the log.
    pub(super) secrets: Secrets,
    pub(super) arguments: AuditArguments,
    /// The client that is served, if it is one of the configuration.
    pub(super) client: Option<ClientName>,
}

pub(super) struct Record {
    time: SystemTime,
    began: Instant,
    duration: Duration,
    outcome: AuditOutcome,
    client: ClientIdentity,
    principal: Principal,
    request: Request,
    arguments_bytes: usize,
}

/// The tool and the arguments of a call.
enum Request {
    Copied {
        tool: ToolIdentifier,
        arguments: RawJson,
    },
    /// The formatted members of the line. They are formatted when the call begins, because a copy of the request
    /// would be too large.
    Written { tool: Vec<u8>, arguments: Vec<u8> },
}

impl AuditOutcome {
    /// Returns the outcome of a call with this result, whose marks were found when it was scanned.
    pub(crate) fn with(result: &RawJson, marks: ResultMarks) -> Self {
        let size = result.as_bytes().len();
        if marks.is_error {
            Self::ToolError(size)
        } else if !marks.is_complete() && result_type(result) == ResultType::InputRequired {
            Self::InputRequired(size)
        } else {
            Self::Ok(size)
        }
    }

    /// Returns the outcome of a call that failed with this code.
    pub(crate) fn failed(code: &'static str) -> Self {
        if code.starts_with("permission_") {
            Self::Denied(code)
        } else {
            Self::Error(code)
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::ToolError(_) => "tool_error",
            Self::InputRequired(_) => "input_required",
            Self::Error(_) => "error",
            Self::Denied(_) => "denied",
            Self::Cancelled => "cancelled",
        }
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Error(code) | Self::Denied(code) => Some(code),
            _ => None,
        }
    }

    fn size(self) -> Option<usize> {
        match self {
            Self::Ok(size) | Self::ToolError(size) | Self::InputRequired(size) => Some(size),
            _ => None,
        }
    }
}

impl Record {
    /// Creates the record of a call that begins now.
    pub(super) fn begin(
        tool: &ToolIdentifier,
        arguments: &RawJson,
        client: &dyn ClientHandle,
        format: &LineFormat,
    ) -> Self {
        Self {
            time: SystemTime::now(),
            began: Instant::now(),
            duration: Duration::ZERO,
            outcome: AuditOutcome::Cancelled,
            client: client.identity(),
            principal: client.principal(),
            request: Request::new(tool, arguments, format),
            arguments_bytes: arguments.as_bytes().len(),
        }
    }

    /// Records the end of the call.
    pub(super) fn end(&mut self, outcome: AuditOutcome) {
        self.outcome = outcome;
        self.duration = self.began.elapsed();
    }

    /// Returns the approximate memory size of the record.
    pub(super) fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let client = length(&self.client.name) + length(&self.client.version);
        size_of::<Self>() + client + self.request.size()
    }

    pub(super) fn write_line(&self, line: &mut Vec<u8>, format: &LineFormat) {
        line.extend_from_slice(br#"{"time":""#);
        write_time(line, self.time);
        line.extend_from_slice(br#"","client":{"#);
        self.write_client(line, format);
        line.extend_from_slice(b"},");
        self.request.write_tool(line, format);
        line.extend_from_slice(br#","outcome":""#);
        line.extend_from_slice(self.outcome.word().as_bytes());
        if let Some(code) = self.outcome.code() {
            line.extend_from_slice(br#"","code":""#);
            line.extend_from_slice(code.as_bytes());
        }
        line.extend_from_slice(br#"","duration_ms":"#);
        let duration = self.duration.as_millis();
        write_number(line, u64::try_from(duration).unwrap_or(u64::MAX), 1);
        line.extend_from_slice(br#","arguments_bytes":"#);
        write_number(line, self.arguments_bytes as u64, 1);
        if let Some(size) = self.outcome.size() {
            line.extend_from_slice(br#","result_bytes":"#);
            write_number(line, size as u64, 1);
        }
        line.push(b',');
        self.request.write_arguments(line, format);
        line.extend_from_slice(b"}\n");
    }

    /// Appends the client. Of a token only its existence is recorded.
    fn write_client(&self, line: &mut Vec<u8>, format: &LineFormat) {
        if let Some(client) = &format.client {
            line.extend_from_slice(br#""as":"#);
            write_text(line, client.as_str());
            line.push(b',');
        }
        if let Some(name) = &self.client.name {
            line.extend_from_slice(br#""name":"#);
            write_text(line, name);
            line.push(b',');
        }
        if let Some(version) = &self.client.version {
            line.extend_from_slice(br#""version":"#);
            write_text(line, version);
            line.push(b',');
        }
        line.extend_from_slice(match self.principal {
            Principal::Local => br#""principal":"local""#,
            Principal::Anybody => br#""principal":"anybody""#,
            Principal::Holder(_) => br#""principal":"token""#,
        });
    }
}

impl Request {
    fn new(tool: &ToolIdentifier, arguments: &RawJson, format: &LineFormat) -> Self {
        if names_length(tool) + arguments.as_bytes().len() <= MAX_COPY {
            return Self::Copied {
                tool: tool.clone(),
                // A slice of the connection's buffer would keep the whole buffer alive.
                arguments: arguments.copied(),
            };
        }
        let (mut names, mut text) = (Vec::new(), Vec::new());
        write_tool(&mut names, tool, format);
        write_arguments(&mut text, arguments, format);
        Self::Written {
            tool: names,
            arguments: text,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Copied { tool, arguments } => names_length(tool) + arguments.as_bytes().len(),
            Self::Written { tool, arguments } => tool.len() + arguments.len(),
        }
    }

    fn write_tool(&self, line: &mut Vec<u8>, format: &LineFormat) {
        match self {
            Self::Copied { tool, .. } => write_tool(line, tool, format),
            Self::Written { tool, .. } => line.extend_from_slice(tool),
        }
    }

    fn write_arguments(&self, line: &mut Vec<u8>, format: &LineFormat) {
        match self {
            Self::Copied { arguments, .. } => write_arguments(line, arguments, format),
            Self::Written { arguments, .. } => line.extend_from_slice(arguments),
        }
    }
}

/// Appends the line that reports how many calls are missing.
pub(super) fn write_missed_line(line: &mut Vec<u8>, calls: u64) {
    line.extend_from_slice(br#"{"time":""#);
    write_time(line, SystemTime::now());
    line.extend_from_slice(br#"","not_noted":"#);
    write_number(line, calls, 1);
    line.extend_from_slice(b"}\n");
}

fn names_length(tool: &ToolIdentifier) -> usize {
    tool.toolbox.as_str().len() + tool.server.as_str().len() + tool.tool.as_str().len()
}

/// Appends the identifier of the tool.
fn write_tool(line: &mut Vec<u8>, tool: &ToolIdentifier, format: &LineFormat) {
    let mut write_name = |key: &[u8], name: &str| {
        line.extend_from_slice(key);
        write_text(line, &redact_and_cut(name.into(), &format.secrets, NAME));
    };
    write_name(br#""toolbox":"#, tool.toolbox.as_str());
    write_name(br#","server":"#, tool.server.as_str());
    write_name(br#","tool":"#, tool.tool.as_str());
}

/// Appends the shape of the arguments, and their values if configured.
fn write_arguments(line: &mut Vec<u8>, arguments: &RawJson, format: &LineFormat) {
    line.extend_from_slice(br#""shape":"#);
    write_shape(line, arguments, &format.secrets);
    let has_values = format.arguments == AuditArguments::Values;
    // Large values would make the log useless; their shape is recorded in any case.
    if !has_values || arguments.as_bytes().len() > MAX_VALUES {
        return;
    }
    let end = line.len();
    line.extend_from_slice(br#","arguments":"#);
    if !write_redacted(line, arguments, &format.secrets) {
        line.truncate(end);
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
pub(super) mod tests;
