//! The methods of legacy clients, and our responses.

use std::sync::Arc;

use rawjson::{ObjectText, RawJson, Spliced};
use serde_json::{Value, json};

use super::{
    RESOURCE_NOT_FOUND, caller::Caller, calls::CallParams, connection::Agreed, exchange::Exchange,
    log_level::LogLevel, native, results, revision::Revision,
};
use crate::{
    budget,
    call::{
        Call, CallContext, CallReports, CallRequest, ClientCapabilities, ClientHandle,
        ClientIdentity, Declaration, Retry,
    },
    contain::Panicked,
    downstream::CallError,
    era::RequestMeta,
    list_page::page,
    meta,
    visible::visible_lines,
    wire::{self, CallOutline, Outgoing, Request, RequestId, code},
    workbench::Workbench,
};

pub(super) enum Requester {
    /// A client that we have agreed on something with.
    Legacy(Caller),
    /// A client that describes itself in every request.
    Modern {
        client: Arc<Exchange>,
        /// Its responses to the questions of an `input_required` result.
        retry: Option<Box<Retry>>,
    },
}

impl Requester {
    /// Returns the client as servers see it.
    pub(super) fn into_client(self) -> Arc<dyn ClientHandle> {
        match self {
            Self::Legacy(caller) => Arc::new(caller),
            Self::Modern { client, .. } => client,
        }
    }

    /// Returns the context of a tool call. The pipeline begins its operation.
    pub(super) fn into_context(self, meta: Option<RequestMeta>) -> CallContext {
        let (progress_token, relayed) = match meta {
            Some(meta) => (meta.progress_token, meta.relayed),
            None => (None, None),
        };
        let (client, retry): (Arc<dyn ClientHandle>, _) = match self {
            Self::Legacy(caller) => {
                let caller = caller.with_progress_token(progress_token);
                (Arc::new(caller), None)
            }
            Self::Modern { client, retry } => (client, retry),
        };
        CallContext {
            client,
            meta: relayed,
            retry,
            reports: CallReports::default(),
        }
    }

    /// Returns the context of another request, which belongs to its operation.
    pub(super) fn context_of(self, params: &RawJson) -> CallContext {
        let meta = params.member("_meta").map(|meta| RequestMeta::read(&meta));
        let context = self.into_context(meta);
        CallContext {
            reports: CallReports::of(context.client.span()),
            ..context
        }
    }
}

/// The answer to a request.
pub(super) enum Reply {
    /// A result that a server gave, or that has the form of its client's era already.
    Result(RawJson),
    /// A result that the workbench made itself.
    Own(RawJson),
    /// The result of a call, which has the form of its client's era already.
    Called(Spliced),
    Error {
        code: i64,
        message: String,
    },
    /// The refusal of a server, as it sent it.
    ErrorAsSent(RawJson),
}

impl Reply {
    /// Returns the response on the wire.
    pub(super) fn to<'a>(&'a self, id: &'a RequestId) -> Outgoing<'a> {
        match self {
            Self::Result(result) | Self::Own(result) => Outgoing::result(id, result),
            Self::Called(result) => Outgoing::spliced(id, result),
            Self::Error { code, message } => {
                wire::error(Some(id), *code, &visible_lines(message)).into()
            }
            Self::ErrorAsSent(error) => wire::error_as_sent(id, error).into(),
        }
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        Self::Error {
            code: code::METHOD_NOT_FOUND,
            message: format!("Method not found: {method}"),
        }
    }

    /// Returns the refusal of a request whose handler panicked.
    pub(super) fn panicked(panicked: Panicked) -> Self {
        Self::internal_error(panicked.to_string())
    }

    /// Returns the refusal for a failure of the workbench.
    pub(super) fn internal_error(message: impl Into<String>) -> Self {
        Self::Error {
            code: code::INTERNAL_ERROR,
            message: message.into(),
        }
    }

    /// Returns the refusal of an unknown resource in the form of the legacy era.
    pub(super) fn resource_not_found(uri: &str) -> Self {
        let error = json!({
            "code": RESOURCE_NOT_FOUND,
            "message": format!("Resource not found: {uri}"),
            "data": { "uri": uri },
        });
        Self::ErrorAsSent(RawJson::of(&error))
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::Error {
            code: code::INVALID_PARAMS,
            message: message.into(),
        }
    }
}

/// The level of log messages that servers are asked for if the client has not set one.
const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Info;

/// Negotiates with a client that sends `initialize`.
pub(super) fn agree(params: Option<&RawJson>) -> Result<Agreed, Reply> {
    let wanted = params.and_then(|params| params.member("protocolVersion"));
    let wanted = wanted.as_ref().and_then(RawJson::as_text);
    let Some(wanted) = wanted else {
        return Err(Reply::invalid_params("protocolVersion: Required"));
    };
    let declared = params.and_then(|params| params.member("capabilities"));
    Ok(Agreed {
        revision: Revision::negotiate(&wanted),
        declaration: Arc::new(Declaration {
            capabilities: ClientCapabilities::of(declared),
            log_level: Some(DEFAULT_LOG_LEVEL.name()),
        }),
        identity: Arc::new(ClientIdentity::of(
            params.and_then(|it| it.member("clientInfo")).as_ref(),
        )),
    })
}

/// Returns the response to `initialize`.
async fn initialize(workbench: &Workbench, caller: Caller, revision: Revision) -> Reply {
    let (capabilities, instructions) = match workbench.native() {
        Some(native) => native::introduce(workbench, native, Arc::new(caller)).await,
        None => {
            let instructions = meta::instructions(&workbench.config());
            (own_capabilities(), Some(instructions))
        }
    };
    let mut result = json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities,
        "serverInfo": identity(),
    });
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    Reply::Result(RawJson::of(&result))
}

pub(super) fn identity() -> Value {
    json!({
        "name": "mcp-workbench",
        "title": "MCP Workbench",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Returns our capabilities for a legacy client. The list of tools changes with the configuration, and in dynamic mode
/// when a toolbox is opened; so do prompts and resources in every mode.
fn own_capabilities() -> Value {
    json!({
        "completions": {},
        "logging": {},
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true },
        "tools": { "listChanged": true },
    })
}

/// Returns the response to a request of a client with this negotiated revision.
pub(super) async fn answer(
    workbench: &Arc<Workbench>,
    caller: Caller,
    revision: Revision,
    request: &Request,
) -> Reply {
    let params = request.params.as_ref();
    match (&*request.method, workbench.native()) {
        ("initialize", _) => initialize(workbench, caller, revision).await,
        ("ping", _) => Reply::Result(ObjectText::new().finish()),
        // The pipeline has taken every valid call.
        ("tools/call", _) => unreadable_call(params),
        (method, Some(native)) => {
            if method == "logging/setLevel" {
                native::record_log_level(&caller, params);
            }
            let requester = Requester::Legacy(caller);
            native::answer(workbench, native, requester, request).await
        }
        ("tools/list", None) => {
            let mut definitions = meta::definitions(workbench, &caller.identity());
            definitions.extend(workbench.registered_definitions(&caller).await);
            own_page(params, "tools", &definitions)
        }
        ("resources/read", None) => read_linked(workbench, Requester::Legacy(caller), params).await,
        (
            "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/templates/list"
            | "completion/complete",
            None,
        ) => answer_opened(workbench, Requester::Legacy(caller), request).await,
        ("logging/setLevel", None) => set_log_level(&caller, params),
        (method, None) => Reply::method_not_found(method),
    }
}

/// Returns a page of one of our lists.
pub(super) fn own_page(params: Option<&RawJson>, items: &str, list: &[RawJson]) -> Reply {
    match page(params, items, list) {
        Ok(page) => Reply::Own(page),
        Err(error) => Reply::invalid_params(error.to_string()),
    }
}

/// Returns the response to a request about the prompts and resources of open toolboxes.
pub(super) async fn answer_opened(
    workbench: &Workbench,
    requester: Requester,
    request: &Request,
) -> Reply {
    let nothing = ObjectText::new().finish();
    let params = request.params.as_ref().unwrap_or(&nothing);
    let context = requester.context_of(params);
    let servers = workbench.open_servers();
    let lists = workbench.open_lists();
    let answered = lists.answer(&servers, &request.method, params, context);
    native::reply(&request.method, answered.await)
}

/// Reads a page of a large result, a resource of an open toolbox, or one that a result of a server links to. A URI belongs to the
/// server that the client heard it from first, by a link or by a list.
pub(super) async fn read_linked(
    workbench: &Workbench,
    requester: Requester,
    params: Option<&RawJson>,
) -> Reply {
    let uri = params.and_then(|params| params.member("uri"));
    let uri = uri.as_ref().and_then(RawJson::as_text);
    let (Some(uri), Some(params)) = (uri, params) else {
        return Reply::invalid_params("uri: Expected string");
    };
    let members = params.members().unwrap_or_default();
    if members.iter().filter(|member| member.key == "uri").count() > 1 {
        // The server may read a different one than we have checked.
        return Reply::invalid_params("uri: duplicate key");
    }
    // First, because no server can own one of our addresses.
    if budget::is_address(&uri) {
        return results::read(workbench, requester, &uri).await;
    }
    let context = requester.context_of(params);
    let client = context.client.recipient().owner;
    let (servers, lists) = (workbench.open_servers(), workbench.open_lists());
    let place = workbench
        .links()
        .server(client, &uri)
        .filter(|_| !lists.is_reserved(&servers, &uri));
    let server = place.as_ref().and_then(|place| workbench.server(place));
    let (Some(place), Some(server)) = (&place, server) else {
        let answered = lists.read(&servers, &uri, params, context).await;
        return native::reply("resources/read", answered);
    };
    let call = Call {
        request: CallRequest::Relayed {
            method: "resources/read",
            params: params.clone(),
        },
        context,
    };
    match server.call(call).await {
        Ok(result) => Reply::Result(result),
        Err(CallError::Refused { error, .. }) => Reply::ErrorAsSent(error),
        Err(error) => Reply::Error {
            code: code::INTERNAL_ERROR,
            message: meta::failed_request_text("resources/read", &uri, place, &error),
        },
    }
}

/// Returns the refusal of an invalid `tools/call`.
pub(super) fn unreadable_call(params: Option<&RawJson>) -> Reply {
    let problem = CallParams::read(params, &CallOutline::default(), None).err();
    Reply::invalid_params(problem.unwrap_or("params: Expected object"))
}

fn set_log_level(caller: &Caller, params: Option<&RawJson>) -> Reply {
    let level = params.and_then(|params| params.member("level"));
    let level = level.as_ref().and_then(RawJson::as_text);
    match level.and_then(|level| LogLevel::named(&level)) {
        Some(level) => {
            caller.connection.set_log_level(level);
            Reply::Result(ObjectText::new().finish())
        }
        None => Reply::invalid_params("level: Expected a log level"),
    }
}
