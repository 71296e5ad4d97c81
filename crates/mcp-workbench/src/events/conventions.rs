//! The names of the OpenTelemetry semantic conventions for MCP, in one place: metrics and traces use them, and so do
//! the metrics for Prometheus. Arguments and results are never attributes.

use std::{borrow::Cow, time::Duration};

use super::{CallOutcome, Event, Hop, Operation, Side};
use crate::{
    call::Carrier,
    era::{Era, MODERN_REVISION},
};

/// The bounds of the histograms, in seconds, that the conventions advise.
pub(crate) const BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

const METHOD: &str = "mcp.method.name";
const OPERATION: &str = "gen_ai.operation.name";
const EXECUTE_TOOL: &str = "execute_tool";
/// The name of the tool. It is the only attribute of a metric that servers and clients can choose freely.
pub(crate) const TOOL: &str = "gen_ai.tool.name";
const PROMPT: &str = "gen_ai.prompt.name";
const RESOURCE: &str = "mcp.resource.uri";
const REVISION: &str = "mcp.protocol.version";
const REQUEST_ID: &str = "jsonrpc.request.id";
const STATUS_CODE: &str = "rpc.response.status_code";
const ERROR: &str = "error.type";
const TRANSPORT: &str = "network.transport";
/// Attributes of our own: the place of a tool.
const TOOLBOX: &str = "mcp_workbench.toolbox";
const SERVER: &str = "mcp_workbench.server";
/// The codes of calls that name nothing that is configured. Their names are what a client made up.
const UNKNOWN: [&str; 3] = ["toolbox_unknown", "server_unknown", "tool_unknown"];
/// The longest value of an attribute.
const MAX_VALUE: usize = 200;

/// A name with its value.
pub(crate) type Attribute = (&'static str, Cow<'static, str>);

/// A histogram of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Instrument {
    ServerOperation,
    ClientOperation,
    ServerSession,
    ClientSession,
}

impl Instrument {
    pub(crate) const ALL: [Self; 4] = [
        Self::ServerOperation,
        Self::ClientOperation,
        Self::ServerSession,
        Self::ClientSession,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ServerOperation => "mcp.server.operation.duration",
            Self::ClientOperation => "mcp.client.operation.duration",
            Self::ServerSession => "mcp.server.session.duration",
            Self::ClientSession => "mcp.client.session.duration",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::ServerOperation => "Duration of requests of clients to the workbench.",
            Self::ClientOperation => "Duration of requests of the workbench to servers.",
            Self::ServerSession => "Duration of sessions of clients.",
            Self::ClientSession => "Duration of sessions with servers.",
        }
    }
}

/// A value for a histogram.
pub(crate) struct Measurement {
    pub instrument: Instrument,
    pub duration: Duration,
    pub attributes: Vec<Attribute>,
}

impl Measurement {
    /// Returns the value that an event has, if it has one.
    pub(crate) fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event {
            Event::OperationEnded(end) => Self {
                instrument: Instrument::ServerOperation,
                duration: end.duration,
                attributes: operation_attributes(end.operation, end.outcome),
            },
            Event::HopEnded(end) => {
                let mut attributes = hop_attributes(end.hop);
                attributes.extend(end.error.map(|it| (ERROR, it.into())));
                Self {
                    instrument: Instrument::ClientOperation,
                    duration: end.duration,
                    attributes,
                }
            }
            Event::Session(ended) => {
                let mut attributes = vec![(TRANSPORT, transport(ended.carrier))];
                if let Some(server) = &ended.server {
                    attributes.push((TOOLBOX, cut(server.toolbox.as_str())));
                    attributes.push((SERVER, cut(server.server.as_str())));
                }
                attributes.extend(ended.error.map(|it| (ERROR, it.into())));
                Self {
                    instrument: match ended.side {
                        Side::Client => Instrument::ServerSession,
                        Side::Server => Instrument::ClientSession,
                    },
                    duration: ended.duration,
                    attributes,
                }
            }
            _ => return None,
        })
    }
}

/// Returns the name of the span of an operation or a hop.
pub(crate) fn span_name(method: &str, target: Option<&str>) -> String {
    match target {
        Some(target) => format!("{method} {}", cut(target)),
        None => method.to_owned(),
    }
}

/// Returns the attributes of an operation that ended.
fn operation_attributes(operation: &Operation, outcome: CallOutcome) -> Vec<Attribute> {
    let mut attributes = vec![
        (METHOD, operation.method.clone()),
        (TRANSPORT, transport(operation.client.carrier)),
    ];
    attributes.extend(operation.client.revision.map(|it| (REVISION, it.into())));
    let is_known = outcome.code().is_none_or(|code| !UNKNOWN.contains(&code));
    if let Some(tool) = &operation.tool {
        attributes.push((OPERATION, EXECUTE_TOOL.into()));
        if is_known {
            attributes.push((TOOL, cut(tool.tool.as_str())));
            attributes.push((TOOLBOX, cut(tool.toolbox.as_str())));
            attributes.push((SERVER, cut(tool.server.as_str())));
        }
    } else if operation.method == "tools/call" {
        attributes.push((OPERATION, EXECUTE_TOOL.into()));
        let name = operation.target.as_deref();
        attributes.extend(name.map(|it| (TOOL, cut(it))));
    }
    attributes.extend(outcome.error_type().map(|it| (ERROR, it.into())));
    attributes
}

/// Returns the attributes of the span of an operation that are not attributes of its metric too: a client chooses
/// their values.
pub(crate) fn operation_details(operation: &Operation) -> Vec<Attribute> {
    let target = operation.target.as_deref();
    let name = match &*operation.method {
        "prompts/get" => PROMPT,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => RESOURCE,
        _ => return Vec::new(),
    };
    target.map(|it| (name, cut(it))).into_iter().collect()
}

/// Returns the attributes of a request to a server.
fn hop_attributes(hop: &Hop) -> Vec<Attribute> {
    let mut attributes = vec![
        (METHOD, hop.method.into()),
        (TRANSPORT, transport(hop.carrier)),
        (TOOLBOX, cut(hop.server.toolbox.as_str())),
        (SERVER, cut(hop.server.server.as_str())),
    ];
    if hop.era == Era::Modern {
        attributes.push((REVISION, MODERN_REVISION.into()));
    }
    if let Some(tool) = &hop.tool {
        attributes.push((OPERATION, EXECUTE_TOOL.into()));
        attributes.push((TOOL, cut(tool.as_str())));
    }
    attributes
}

/// Returns the attributes of the span of a request to a server that are not attributes of its metric too.
pub(crate) fn hop_details(hop: &Hop, response_code: Option<&str>) -> Vec<Attribute> {
    let id = (REQUEST_ID, Cow::Owned(hop.request_id.to_string()));
    let code = response_code.map(|it| (STATUS_CODE, cut(it)));
    [id].into_iter().chain(code).collect()
}

fn transport(carrier: Carrier) -> Cow<'static, str> {
    match carrier {
        Carrier::Pipe => "pipe".into(),
        Carrier::Tcp => "tcp".into(),
    }
}

fn cut(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.chars().take(MAX_VALUE).collect())
}
