//! One call in the history.

use rawjson::RawJson;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    audit::{redact_and_cut, write_redacted},
    call::{Carrier, Principal},
    config::{Invocation, Secrets, quoted},
    era::Era,
    events::{Hop, HopEnd, Operation, OperationEnd},
    moment::write_time,
};

/// The largest message that is stored.
const MAX_MESSAGE: usize = 64 * 1024;
/// The most hops of a call that are stored.
const MAX_HOPS: usize = 32;
/// The number of characters of a name that are stored.
const MAX_NAME: usize = 200;

/// A call of a client, with the requests to servers that it led to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CallRecord {
    pub(crate) id: u64,
    time: String,
    client: ClientRecord,
    method: String,
    /// The name of a meta-tool or a prompt, or the URI of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    toolbox: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// `running` until it ends.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    /// The size of the parameters as the client sent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_bytes: Option<usize>,
    /// The size of the result before it was cut to its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cut_bytes: Option<usize>,
    /// Estimates, only in a call with its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    hops: Vec<HopRecord>,
    /// The command that repeats a call of a tool, only in a call with its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The arguments of the tool, for the command that repeats the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    /// The parameters as the client sent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Box<RawValue>>,
    /// The result as the client got it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Serialize)]
struct ClientRecord {
    /// The name of the client in the configuration.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    configured: Option<String>,
    name: Option<String>,
    version: Option<String>,
    /// The number of a client of a host, as `ps` shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    principal: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    era: &'static str,
    revision: Option<&'static str>,
    transport: &'static str,
}

/// A request to a server.
#[derive(Debug, Clone, Serialize)]
struct HopRecord {
    toolbox: String,
    server: String,
    method: &'static str,
    era: &'static str,
    transport: &'static str,
    request_id: u64,
    /// The time from the beginning of the call.
    after_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    /// The size of the parameters as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

impl CallRecord {
    pub(super) fn begin(operation: &Operation, secrets: &Secrets) -> Self {
        let mut time = Vec::new();
        write_time(&mut time, operation.time);
        let client = &operation.client;
        let name = |text: &str| redact_and_cut(text.into(), secrets, MAX_NAME).into_owned();
        let tool = operation.tool.as_ref();
        let arguments = operation.arguments.as_ref();
        Self {
            id: operation.id,
            time: String::from_utf8_lossy(&time).into_owned(),
            client: ClientRecord {
                configured: client.configured.as_ref().map(|it| name(it.as_str())),
                name: client.identity.name.as_deref().map(name),
                version: client.identity.version.as_deref().map(name),
                number: match client.principal {
                    Principal::Attached(number) => Some(number),
                    _ => None,
                },
                principal: match client.principal {
                    Principal::Local | Principal::Attached(_) => "local",
                    Principal::Anybody => "anybody",
                    Principal::Holder(_) => "token",
                    Principal::User(_) => "user",
                },
                user: client.user.as_deref().map(name),
                era: era_word(client.era),
                revision: client.revision,
                transport: transport_word(client.carrier),
            },
            method: operation.method.to_string(),
            target: operation.target.as_deref().map(name),
            toolbox: tool.map(|it| name(it.toolbox.as_str())),
            server: tool.map(|it| name(it.server.as_str())),
            tool: tool.map(|it| name(it.tool.as_str())),
            outcome: "running",
            code: None,
            duration_us: None,
            request_bytes: operation.params.as_ref().map(|it| it.as_bytes().len()),
            arguments_bytes: arguments.map(|it| it.as_bytes().len()),
            result_bytes: None,
            cut_bytes: None,
            request_tokens: None,
            reply_tokens: None,
            trace_id: { operation.trace.as_ref() }.map(|it| format!("{:032x}", it.trace_id)),
            hops: Vec::new(),
            command: None,
            arguments: tool.and_then(|_| bounded(arguments, secrets)),
            request: bounded(operation.params.as_ref(), secrets),
            reply: None,
        }
    }

    pub(super) fn end(&mut self, end: &OperationEnd<'_>, secrets: &Secrets) {
        self.outcome = end.outcome.word();
        self.code = end.outcome.code();
        self.duration_us = Some(micros(end.duration));
        self.result_bytes = end.outcome.size();
        self.reply = bounded(end.reply, secrets);
    }

    pub(super) fn begin_hop(&mut self, hop: &Hop) {
        if self.hops.len() < MAX_HOPS {
            self.hops.push(HopRecord {
                toolbox: hop.peer.server.toolbox.to_string(),
                server: hop.peer.server.server.to_string(),
                method: hop.method,
                era: era_word(hop.peer.era),
                transport: transport_word(hop.peer.carrier),
                request_id: hop.request_id,
                after_us: micros(hop.after),
                duration_us: None,
                error: None,
                request_bytes: None,
                result_bytes: None,
                request_tokens: None,
                result_tokens: None,
                request: None,
                result: None,
            });
        }
    }

    pub(super) fn end_hop(&mut self, end: &HopEnd<'_>, secrets: &Secrets) {
        let mut hops = self.hops.iter_mut().rev();
        // The latest open one, since the ids of a server start again with each connection.
        let open = hops.find(|it| it.request_id == end.hop.request_id && it.duration_us.is_none());
        if let Some(hop) = open {
            hop.duration_us = Some(micros(end.duration));
            hop.error = end.error;
            hop.request_bytes = end.params.map(|it| it.as_bytes().len());
            hop.result_bytes = end.result_bytes;
            hop.request = bounded(end.params, secrets);
            hop.result = bounded(end.result, secrets);
        }
    }

    /// Returns the call without its messages.
    pub(super) fn summary(&self) -> Self {
        let hops = self.hops.iter().map(|hop| HopRecord {
            request: None,
            result: None,
            ..hop.clone()
        });
        Self {
            hops: hops.collect(),
            arguments: None,
            request: None,
            reply: None,
            ..self.clone()
        }
    }

    /// Returns the call with the number of tokens of each message, as `count` estimates it.
    pub(crate) fn with_tokens(mut self, count: impl Fn(&str) -> usize) -> Self {
        let count = |message: &Option<Box<RawValue>>| message.as_ref().map(|it| count(it.get()));
        self.request_tokens = count(&self.request);
        self.reply_tokens = count(&self.reply);
        for hop in &mut self.hops {
            hop.request_tokens = count(&hop.request);
            hop.result_tokens = count(&hop.result);
        }
        self
    }

    /// Returns the call with the command that repeats it, if it is one of a tool and its arguments are stored.
    pub(crate) fn with_command(mut self, program: &Invocation) -> Self {
        let names = [&self.toolbox, &self.server, &self.tool];
        if let ([Some(toolbox), Some(server), Some(tool)], Some(arguments)) =
            (names, &self.arguments)
        {
            let words = [toolbox, server, tool, arguments.get()].map(quoted);
            self.command = Some(program.command(&format!("call {}", words.join(" "))));
        }
        self
    }

    /// Returns the number of bytes of the messages.
    pub(crate) fn bytes(&self) -> usize {
        let length =
            |message: &Option<Box<RawValue>>| message.as_ref().map_or(0, |it| it.get().len());
        let hops = self
            .hops
            .iter()
            .map(|it| length(&it.request) + length(&it.result));
        length(&self.arguments) + length(&self.request) + length(&self.reply) + hops.sum::<usize>()
    }
}

/// Returns a message without secrets; `None` if it is too large.
fn bounded(message: Option<&RawJson>, secrets: &Secrets) -> Option<Box<RawValue>> {
    let message = message.filter(|it| it.as_bytes().len() <= MAX_MESSAGE)?;
    let mut text = Vec::with_capacity(message.as_bytes().len());
    // A message that cannot be read cannot be redacted.
    if !write_redacted(&mut text, message, secrets) {
        return None;
    }
    RawValue::from_string(String::from_utf8(text).ok()?).ok()
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn era_word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn transport_word(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Pipe => "stdio",
        Carrier::Tcp => "http",
    }
}
