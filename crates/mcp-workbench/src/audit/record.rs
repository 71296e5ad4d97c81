//! The log line of a call. The event loop formats it, because that takes less than handing over what is in it.

use std::{sync::Arc, time::SystemTime};

use ident::{ClientName, ToolIdentifier};
use rawjson::{RawJson, write_json};

use super::{
    line::{redact_and_cut, write_redacted, write_text},
    shape::write_shape,
};
use crate::{
    call::Principal,
    config::{AuditArguments, Secrets},
    events::{EventClient, OperationEnd},
    moment::write_time,
};

/// The number of characters of a name that are recorded: callers can send names of any length.
const NAME: usize = 200;
/// The largest arguments whose values are recorded.
const MAX_VALUES: usize = 16 * 1024;

#[derive(PartialEq, Eq)]
pub(super) struct LineFormat {
    /// Values that must not be in the log.
    pub(super) secrets: Arc<Secrets>,
    pub(super) arguments: AuditArguments,
}

/// A call of a server's tool that ended.
pub(super) struct Record<'a> {
    end: &'a OperationEnd<'a>,
    tool: &'a ToolIdentifier,
    arguments: &'a RawJson,
}

impl<'a> Record<'a> {
    /// Returns the record of an operation that ended; `None` if it is not a call of a server's tool.
    pub(super) fn of(end: &'a OperationEnd<'a>) -> Option<Self> {
        Some(Self {
            end,
            tool: end.operation.tool.as_ref()?,
            arguments: end.operation.arguments.as_ref()?,
        })
    }

    pub(super) fn write_line(&self, line: &mut Vec<u8>, format: &LineFormat) {
        let (operation, outcome) = (self.end.operation, self.end.outcome);
        line.extend_from_slice(br#"{"time":""#);
        write_time(line, operation.time);
        line.extend_from_slice(br#"","client":{"#);
        write_client(line, &operation.client);
        line.extend_from_slice(b"},");
        write_tool(line, self.tool, format);
        if let Some(run) = &operation.client.run {
            line.extend_from_slice(br#","run":"#);
            write_text(line, run);
        }
        line.extend_from_slice(br#","outcome":""#);
        line.extend_from_slice(outcome.word().as_bytes());
        if let Some(code) = outcome.code() {
            line.extend_from_slice(br#"","code":""#);
            line.extend_from_slice(code.as_bytes());
        }
        line.extend_from_slice(br#"","duration_ms":"#);
        let duration = self.end.duration.as_millis();
        write_json(line, &u64::try_from(duration).unwrap_or(u64::MAX));
        line.extend_from_slice(br#","arguments_bytes":"#);
        write_json(line, &self.arguments.as_bytes().len());
        if let Some(size) = outcome.size() {
            line.extend_from_slice(br#","result_bytes":"#);
            write_json(line, &size);
        }
        if let Some(trace) = &operation.trace {
            let text = format!(",\"trace_id\":\"{:032x}\"", trace.trace_id);
            line.extend_from_slice(text.as_bytes());
        }
        line.push(b',');
        write_arguments(line, self.arguments, format);
        line.extend_from_slice(b"}\n");
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

/// Appends the client. Of a token only its existence is recorded.
fn write_client(line: &mut Vec<u8>, client: &EventClient) {
    let mut write_member = |key: &[u8], value: Option<&str>| {
        if let Some(value) = value {
            line.extend_from_slice(key);
            write_text(line, value);
            line.push(b',');
        }
    };
    write_member(
        br#""as":"#,
        client.configured.as_ref().map(ClientName::as_str),
    );
    write_member(br#""name":"#, client.identity.name.as_deref());
    write_member(br#""version":"#, client.identity.version.as_deref());
    line.extend_from_slice(match client.principal {
        Principal::Local | Principal::Attached(_) => br#""principal":"local""#,
        Principal::Anybody => br#""principal":"anybody""#,
        Principal::Holder(_) => br#""principal":"token""#,
        Principal::User(_) => br#""principal":"user""#,
    });
    if let Some(user) = &client.user {
        line.extend_from_slice(br#","user":"#);
        write_text(line, user);
    }
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
