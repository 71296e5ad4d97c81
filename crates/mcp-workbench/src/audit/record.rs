//! The record of a call, and the log line that it becomes. The event loop only collects the data; the writer
//! thread formats it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use ident::{ClientName, ToolIdentifier};
use rawjson::{RawJson, write_json};

use super::{
    line::{redact_and_cut, write_redacted, write_text},
    shape::write_shape,
};
use crate::{
    call::{ClientIdentity, Principal},
    config::{AuditArguments, Secrets},
    events::{CallOutcome, OperationEnd},
    moment::write_time,
};

/// The number of characters of a name that are recorded: callers can send names of any length.
const NAME: usize = 200;
/// The largest arguments whose values are recorded.
const MAX_VALUES: usize = 16 * 1024;
/// The largest request that a record copies. The line needs much less of a larger one.
const MAX_COPY: usize = 64 * 1024;

#[derive(PartialEq, Eq)]
pub(super) struct LineFormat {
    /// Values that must not be in the log.
    pub(super) secrets: Arc<Secrets>,
    pub(super) arguments: AuditArguments,
}

pub(super) struct Record {
    time: SystemTime,
    duration: Duration,
    outcome: CallOutcome,
    client: Arc<ClientIdentity>,
    principal: Principal,
    /// The name that the authorization server has for the user.
    user: Option<Arc<str>>,
    /// The name of the client in the configuration.
    configured: Option<ClientName>,
    /// The run whose script made the call.
    run: Option<Arc<str>>,
    request: Request,
    arguments_bytes: usize,
    trace_id: Option<u128>,
}

/// The tool and the arguments of a call.
enum Request {
    Copied {
        tool: ToolIdentifier,
        arguments: RawJson,
    },
    /// The formatted members of the line, where a copy of the request would be too large.
    Written { tool: Vec<u8>, arguments: Vec<u8> },
}

impl Record {
    /// Creates the record of an operation that ended; `None` if it is not a call of a server's tool.
    pub(super) fn of(end: &OperationEnd<'_>, format: &LineFormat) -> Option<Self> {
        let operation = end.operation;
        let (tool, arguments) = (operation.tool.as_ref()?, operation.arguments.as_ref()?);
        Some(Self {
            time: operation.time,
            duration: end.duration,
            outcome: end.outcome,
            client: Arc::clone(&operation.client.identity),
            principal: operation.client.principal,
            user: operation.client.user.clone(),
            configured: operation.client.configured.clone(),
            run: operation.client.run.clone(),
            request: Request::new(tool, arguments, format),
            arguments_bytes: arguments.as_bytes().len(),
            trace_id: operation.trace.as_ref().map(|trace| trace.trace_id),
        })
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
        self.write_client(line);
        line.extend_from_slice(b"},");
        self.request.write_tool(line, format);
        if let Some(run) = &self.run {
            line.extend_from_slice(br#","run":"#);
            write_text(line, run);
        }
        line.extend_from_slice(br#","outcome":""#);
        line.extend_from_slice(self.outcome.word().as_bytes());
        if let Some(code) = self.outcome.code() {
            line.extend_from_slice(br#"","code":""#);
            line.extend_from_slice(code.as_bytes());
        }
        line.extend_from_slice(br#"","duration_ms":"#);
        let duration = self.duration.as_millis();
        write_json(line, &u64::try_from(duration).unwrap_or(u64::MAX));
        line.extend_from_slice(br#","arguments_bytes":"#);
        write_json(line, &self.arguments_bytes);
        if let Some(size) = self.outcome.size() {
            line.extend_from_slice(br#","result_bytes":"#);
            write_json(line, &size);
        }
        if let Some(trace_id) = self.trace_id {
            let text = format!(",\"trace_id\":\"{trace_id:032x}\"");
            line.extend_from_slice(text.as_bytes());
        }
        line.push(b',');
        self.request.write_arguments(line, format);
        line.extend_from_slice(b"}\n");
    }

    /// Appends the client. Of a token only its existence is recorded.
    fn write_client(&self, line: &mut Vec<u8>) {
        if let Some(client) = &self.configured {
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
            Principal::Local | Principal::Attached(_) => br#""principal":"local""#,
            Principal::Anybody => br#""principal":"anybody""#,
            Principal::Holder(_) => br#""principal":"token""#,
            Principal::User(_) => br#""principal":"user""#,
        });
        if let Some(user) = &self.user {
            line.extend_from_slice(br#","user":"#);
            write_text(line, user);
        }
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
    write_json(line, &calls);
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
