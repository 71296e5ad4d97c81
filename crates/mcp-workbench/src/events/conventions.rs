//! The names of the OpenTelemetry semantic conventions for MCP, in one place: metrics and traces use them, and so do
//! the metrics for Prometheus. Arguments and results are never attributes.

use std::{borrow::Cow, time::Duration};

use rawjson::{Kind, RawJson};

use super::{CallOutcome, Event, Hop, HopEnd, Operation, OperationEnd, RemoteAddress, Side};
use crate::{call::Carrier, wire::RequestId};

/// The bounds of the histograms, in seconds, as the conventions recommend them.
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
const SESSION: &str = "mcp.session.id";
const REQUEST_ID: &str = "jsonrpc.request.id";
const STATUS_CODE: &str = "rpc.response.status_code";
/// The class of a failure. A span that has it has the status ERROR.
pub(crate) const ERROR: &str = "error.type";
const TRANSPORT: &str = "network.transport";
const PROTOCOL: &str = "network.protocol.name";
const PROTOCOL_VERSION: &str = "network.protocol.version";
const ADDRESS: &str = "server.address";
/// The only attribute whose value is a number.
pub(crate) const PORT: &str = "server.port";
/// Attributes of our own: the place of a tool, and the code of a failure that the workbench reports in a result.
const TOOLBOX: &str = "mcp_workbench.toolbox";
const SERVER: &str = "mcp_workbench.server";
const CODE: &str = "mcp_workbench.error.code";
/// The run of a script that made the call.
const RUN: &str = "mcp_workbench.run";
/// The codes of calls whose toolbox, server or tool does not exist. The client may have invented the names.
const UNKNOWN: [&str; 3] = ["toolbox_unknown", "server_unknown", "tool_unknown"];
/// The JSON-RPC codes that blame the request. The receiver of the request does not count them as failures.
const CALLER_FAULTS: [&str; 5] = ["-32700", "-32600", "-32601", "-32602", "-32002"];
/// Both sides speak this version of HTTP.
const HTTP_VERSION: &str = "1.1";
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
                attributes: operation_attributes(end),
            },
            Event::HopEnded(end) => Self {
                instrument: Instrument::ClientOperation,
                duration: end.duration,
                attributes: hop_attributes(end),
            },
            Event::Session(ended) => {
                let mut attributes = network(ended.carrier);
                attributes.extend(ended.revision.as_deref().map(|it| (REVISION, cut(it))));
                if let Some(server) = &ended.server {
                    attributes.push((TOOLBOX, cut(server.toolbox.as_str())));
                    attributes.push((SERVER, cut(server.server.as_str())));
                }
                attributes.extend(ended.address.iter().flat_map(remote));
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

/// Returns the name of the span of a request. The URI of a resource is not part of it: there are too many.
pub(crate) fn span_name(method: &str, tool: Option<&str>, target: Option<&str>) -> String {
    let has_name = matches!(method, "tools/call" | "prompts/get");
    match tool.or(target.filter(|_| has_name)) {
        Some(target) => format!("{method} {}", cut(target)),
        None => method.to_owned(),
    }
}

fn operation_attributes(end: &OperationEnd<'_>) -> Vec<Attribute> {
    let OperationEnd {
        operation, outcome, ..
    } = end;
    let mut attributes = vec![(METHOD, operation.method.clone())];
    attributes.extend(network(operation.client.carrier));
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
        let name = operation.target.as_deref().filter(|_| is_known);
        attributes.extend(name.map(|it| (TOOL, cut(it))));
    }
    // The name of a prompt that does not exist is whatever a client has written, and would be a new series each time.
    if let (None, Some(prompt)) = (end.response_error, prompt(operation)) {
        attributes.push((PROMPT, prompt));
    }
    attributes.extend(operation_error(*outcome, end.response_error));
    attributes
}

/// Returns the attributes of a failed operation. The workbench reports its own failures in results, so that models read
/// them: such a result is a `tool_error`, and the code has an attribute of its own.
fn operation_error(outcome: CallOutcome, response_error: Option<&RawJson>) -> Vec<Attribute> {
    if let Some(code) = response_error.and_then(response_code) {
        let is_failure = !CALLER_FAULTS.contains(&&*code);
        let failure = is_failure.then(|| (ERROR, code.clone()));
        return [(STATUS_CODE, code)].into_iter().chain(failure).collect();
    }
    match outcome {
        CallOutcome::Ok(_) | CallOutcome::InputRequired(_) => Vec::new(),
        CallOutcome::ToolError(_) => vec![(ERROR, "tool_error".into())],
        CallOutcome::Error(code) | CallOutcome::Denied(code) => {
            vec![(ERROR, "tool_error".into()), (CODE, code.into())]
        }
        CallOutcome::Cancelled => vec![(ERROR, "cancelled".into())],
    }
}

/// Returns the attributes of the span of an operation that are not attributes of its metric too: they have too many
/// values.
pub(crate) fn operation_details(operation: &Operation) -> Vec<Attribute> {
    let id = operation.request_id.as_ref().map(id_text);
    let session = operation.client.session.as_deref();
    let run = operation.client.run.as_deref();
    let details = [
        id.map(|it| (REQUEST_ID, it)),
        session.map(|it| (SESSION, cut(it))),
        prompt(operation).map(|it| (PROMPT, it)),
        resource(&operation.method, operation.target.as_deref()),
        run.map(|it| (RUN, Cow::Owned(it.to_owned()))),
    ];
    details.into_iter().flatten().collect()
}

/// Returns the name of the prompt that an operation is about.
fn prompt(operation: &Operation) -> Option<Cow<'static, str>> {
    let target = operation.target.as_deref();
    target
        .filter(|_| operation.method == "prompts/get")
        .map(cut)
}

fn resource(method: &str, target: Option<&str>) -> Option<Attribute> {
    let has_uri = matches!(
        method,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe"
    );
    target.filter(|_| has_uri).map(|it| (RESOURCE, cut(it)))
}

/// Returns the attributes of a request to a server.
fn hop_attributes(end: &HopEnd<'_>) -> Vec<Attribute> {
    let hop = end.hop;
    let mut attributes = vec![
        (METHOD, hop.method.into()),
        (TOOLBOX, cut(hop.peer.server.toolbox.as_str())),
        (SERVER, cut(hop.peer.server.server.as_str())),
    ];
    attributes.extend(network(hop.peer.carrier));
    attributes.extend(hop.peer.address.iter().flat_map(remote));
    attributes.extend(hop.peer.revision.as_deref().map(|it| (REVISION, cut(it))));
    if let Some(tool) = &hop.tool {
        attributes.push((OPERATION, EXECUTE_TOOL.into()));
        attributes.push((TOOL, cut(tool.as_str())));
    }
    if hop.method == "prompts/get" && end.error.is_none() {
        attributes.extend(hop.target.as_deref().map(|it| (PROMPT, cut(it))));
    }
    match end.response_error.and_then(response_code) {
        // For the sender of a request every refusal is a failure, whoever caused it.
        Some(code) => attributes.extend([(STATUS_CODE, code.clone()), (ERROR, code)]),
        None => attributes.extend(end.error.map(|it| (ERROR, it.into()))),
    }
    attributes
}

/// Returns the attributes of the span of a request to a server that are not attributes of its metric too.
pub(crate) fn hop_details(hop: &Hop) -> Vec<Attribute> {
    let target = hop.target.as_deref();
    let prompt = target.filter(|_| hop.method == "prompts/get");
    let details = [
        Some((REQUEST_ID, hop.request_id.to_string().into())),
        hop.peer.session.as_deref().map(|it| (SESSION, cut(it))),
        prompt.map(|it| (PROMPT, cut(it))),
        resource(hop.method, target),
    ];
    details.into_iter().flatten().collect()
}

/// Returns the code of a JSON-RPC error.
fn response_code(error: &RawJson) -> Option<Cow<'static, str>> {
    let code = error.member("code")?;
    // A server may send any text as its code, and each would be a series of its own.
    (code.kind() == Kind::Number).then(|| cut(code.as_str()))
}

/// Returns the attributes of a transport.
fn network(carrier: Carrier) -> Vec<Attribute> {
    match carrier {
        Carrier::Pipe => vec![(TRANSPORT, "pipe".into())],
        Carrier::Tcp => vec![
            (TRANSPORT, "tcp".into()),
            (PROTOCOL, "http".into()),
            (PROTOCOL_VERSION, HTTP_VERSION.into()),
        ],
    }
}

fn remote(address: &RemoteAddress) -> [Attribute; 2] {
    [
        (ADDRESS, cut(&address.host)),
        (PORT, address.port.to_string().into()),
    ]
}

fn cut(text: &str) -> Cow<'static, str> {
    // Servers and clients choose these texts.
    Cow::Owned(text.chars().take(MAX_VALUE).collect())
}

/// Returns an id without the quotes of JSON.
fn id_text(id: &RequestId) -> Cow<'static, str> {
    let json = id.to_json();
    cut(&json.as_text().unwrap_or_else(|| json.as_str().into()))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ident::{ServerIdentifier, ToolIdentifier};
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::{
        era::Era,
        events::{
            EventClient, EventDetail, Events, HopResult, HopStart, OperationReply, OperationStart,
            Peer, Reader,
        },
        sync::lock,
        trace::CallSpan,
        wire::RequestId,
    };

    /// A reader that writes down the attributes of metrics, and those that only spans have.
    #[derive(Default)]
    struct Attributes(Mutex<Vec<[String; 2]>>);

    impl Attributes {
        fn listen() -> (Arc<Events>, Arc<Self>) {
            let (events, read) = (Arc::<Events>::default(), Arc::<Self>::default());
            events.subscribe(Arc::clone(&read) as Arc<dyn Reader>);
            (events, read)
        }

        fn last(&self) -> [String; 2] {
            lock(&self.0).pop().expect("a measurement")
        }
    }

    impl Reader for Attributes {
        fn detail(&self) -> EventDetail {
            EventDetail::Hops
        }

        fn take(&self, event: &Event<'_>) {
            let details = match event {
                Event::OperationEnded(end) => operation_details(end.operation),
                Event::HopEnded(end) => hop_details(end.hop),
                _ => return,
            };
            let metric = Measurement::of(event).map(|it| it.attributes);
            lock(&self.0).push([metric.unwrap_or_default(), details].map(text));
        }
    }

    fn text(mut attributes: Vec<Attribute>) -> String {
        attributes.sort_unstable();
        let pairs = attributes
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    }

    fn client() -> EventClient {
        EventClient {
            carrier: Carrier::Tcp,
            revision: Some("2025-11-25"),
            session: Some("s1".into()),
            ..EventClient::unknown()
        }
    }

    const IN_SESSION: &str = "jsonrpc.request.id=7 mcp.session.id=s1";
    const CLIENT: &str = "mcp.protocol.version=2025-11-25";
    const HTTP: &str =
        "network.protocol.name=http network.protocol.version=1.1 network.transport=tcp";

    /// Ends a request of a client; returns the attributes of its metric, and those that only its span has. Without a target
    /// it is a call of the tool `read`.
    fn ended(
        method: &'static str,
        target: Option<&str>,
        outcome: CallOutcome,
        code: Option<i64>,
    ) -> [String; 2] {
        let (events, read) = Attributes::listen();
        let tool = ToolIdentifier {
            toolbox: "dev".into(),
            server: "fs".into(),
            tool: "read".into(),
        };
        let id = RequestId::from_json(RawJson::of(&"7")).unwrap();
        let guard = events.begin(OperationStart {
            request_id: Some(&id),
            method: method.into(),
            target: target.map(str::to_owned),
            tool: target.is_none().then_some(&tool),
            arguments: None,
            params: None,
            meta: None,
            client: client(),
        });
        let error = code.map(|code| RawJson::of(&json!({"code": code, "message": "m"})));
        guard.end(outcome, error.as_ref().map(OperationReply::Error));
        read.last()
    }

    #[test]
    fn calls_of_clients_have_the_attributes_of_the_conventions() {
        let place = "gen_ai.operation.name=execute_tool gen_ai.tool.name=read mcp.method.name=tools/call \
                     mcp.protocol.version=2025-11-25";
        let server = "mcp_workbench.server=fs mcp_workbench.toolbox=dev";
        let called = [
            (CallOutcome::Ok(1), None, String::new()),
            (
                CallOutcome::ToolError(1),
                None,
                "error.type=tool_error ".to_owned(),
            ),
            (
                CallOutcome::Error("refused"),
                Some(-32000),
                "error.type=-32000 ".to_owned(),
            ),
            (CallOutcome::Error("refused"), Some(-32602), String::new()),
            (
                CallOutcome::Cancelled,
                None,
                "error.type=cancelled ".to_owned(),
            ),
        ];
        for (outcome, code, error) in called {
            let status = code.map(|it| format!(" rpc.response.status_code={it}"));
            let status = status.unwrap_or_default();
            let expected = format!("{error}{place} {server} {HTTP}{status}");
            let [metric, details] = ended("tools/call", None, outcome, code);
            assert_eq!(metric, expected);
            assert_eq!(details, IN_SESSION);
        }
        let denied = CallOutcome::Denied("permission_denied");
        let [metric, _] = ended("tools/call", None, denied, None);
        let code = "mcp_workbench.error.code=permission_denied";
        assert_eq!(
            metric,
            format!("error.type=tool_error {place} {code} {server} {HTTP}")
        );
        let [metric, _] = ended("tools/call", None, CallOutcome::Error("tool_unknown"), None);
        assert!(!metric.contains("read"), "{metric}");
    }

    #[test]
    fn prompts_are_attributes_if_they_exist_and_resources_only_of_spans() {
        let [metric, details] = ended("prompts/get", Some("greet"), CallOutcome::Ok(1), None);
        let greet = "gen_ai.prompt.name=greet";
        assert_eq!(
            metric,
            format!("{greet} mcp.method.name=prompts/get {CLIENT} {HTTP}")
        );
        assert_eq!(details, format!("{greet} {IN_SESSION}"));
        let refused = CallOutcome::Error("refused");
        let [metric, _] = ended("prompts/get", Some("made up"), refused, Some(-32602));
        assert!(!metric.contains("made up"), "{metric}");
        let [metric, details] = ended(
            "resources/read",
            Some("file:///x"),
            CallOutcome::Ok(1),
            None,
        );
        assert_eq!(
            metric,
            format!("mcp.method.name=resources/read {CLIENT} {HTTP}")
        );
        assert_eq!(
            details,
            "jsonrpc.request.id=7 mcp.resource.uri=file:///x mcp.session.id=s1"
        );
    }

    #[test]
    fn requests_to_servers_have_the_attributes_of_the_conventions() {
        let (events, read) = Attributes::listen();
        let span = CallSpan {
            operation: 1,
            began: Instant::now(),
            trace: None,
        };
        let peer = Peer {
            server: ServerIdentifier {
                toolbox: "dev".into(),
                server: "web".into(),
            },
            era: Era::Legacy,
            carrier: Carrier::Tcp,
            revision: Some("2025-06-18".to_owned()),
            address: Some(RemoteAddress {
                host: "mcp.example".to_owned(),
                port: 443,
            }),
            session: Some("s2".to_owned()),
        };
        let error = RawJson::of(&json!({"code": -32602, "message": "m"}));
        let cases = [
            (None, None, "", ""),
            (Some("tool_error"), None, "error.type=tool_error ", ""),
            (
                Some("server_error"),
                Some(&error),
                "error.type=-32602 ",
                " rpc.response.status_code=-32602",
            ),
            (Some("timed_out"), None, "error.type=timed_out ", ""),
        ];
        for (failure, response_error, before, after) in cases {
            let hop = events.begin_hop(HopStart {
                span: &span,
                peer: peer.clone(),
                method: "tools/call",
                tool: Some(&"read".into()),
                target: None,
                request_id: 3,
            });
            hop.end(&HopResult {
                error: failure,
                response_error,
                result: None,
            });
            let [metric, details] = read.last();
            let expected = format!(
                "{before}gen_ai.operation.name=execute_tool gen_ai.tool.name=read mcp.method.name=tools/call \
                 mcp.protocol.version=2025-06-18 mcp_workbench.server=web mcp_workbench.toolbox=dev \
                 {HTTP}{after} server.address=mcp.example server.port=443"
            );
            assert_eq!(metric, expected);
            assert_eq!(details, "jsonrpc.request.id=3 mcp.session.id=s2");
        }
    }

    #[test]
    fn spans_are_named_after_tools_and_prompts_but_not_after_resources() {
        let names = [
            ("tools/call", Some("read"), None, "tools/call read"),
            (
                "tools/call",
                None,
                Some("open_toolbox"),
                "tools/call open_toolbox",
            ),
            ("prompts/get", None, Some("greet"), "prompts/get greet"),
            ("resources/read", None, Some("file:///x"), "resources/read"),
            ("tools/list", None, None, "tools/list"),
        ];
        for (method, tool, target, expected) in names {
            assert_eq!(span_name(method, tool, target), expected);
        }
    }
}
