//! What a client may ask for, and our answers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    caller::Caller, code, connection::Agreed, log_level::LogLevel, native, revision::Revision,
};
use crate::{
    call::{Call, CallContext, CallRequest, ClientCapabilities},
    downstream::CallError,
    era::has_modern_keys,
    meta::{self, MetaTool},
    wire::{self, Frame, Kind, ObjectText, RawJson, Request, RequestId},
    workbench::Workbench,
};

/// The answer to a request.
pub(super) enum Reply {
    /// A result.
    Result(RawJson),
    /// A refusal.
    Error {
        /// The JSON-RPC code.
        code: i64,
        /// Why, in words.
        message: String,
    },
    /// The refusal of a server, as it sent it.
    ErrorAsSent(RawJson),
}

impl Reply {
    /// The answer on the wire.
    pub(super) fn into_frame(self, id: &RequestId) -> Frame {
        match self {
            Self::Result(result) => wire::result(id, &result),
            Self::Error { code, message } => wire::error(Some(id), code, &message),
            Self::ErrorAsSent(error) => wire::error_as_sent(id, &error),
        }
    }

    /// The refusal of a method that is not offered.
    pub(super) fn method_not_found(method: &str) -> Self {
        Self::Error {
            code: code::METHOD_NOT_FOUND,
            message: format!("Method not found: {method}"),
        }
    }

    /// The refusal of parameters.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::Error {
            code: code::INVALID_PARAMS,
            message: message.into(),
        }
    }
}

/// What is agreed on with a client that sends `initialize`.
pub(super) fn agree(params: Option<&RawJson>) -> Result<Agreed, Reply> {
    let wanted = params.and_then(|params| params.member("protocolVersion"));
    let wanted = wanted.as_ref().and_then(RawJson::as_text);
    let Some(wanted) = wanted else {
        return Err(Reply::invalid_params("protocolVersion: Required"));
    };
    let declared = params.and_then(|params| params.member("capabilities"));
    Ok(Agreed {
        revision: Revision::negotiate(&wanted),
        capabilities: ClientCapabilities::of(declared),
    })
}

/// Whether a request needs no `initialize` before it.
pub(super) fn stands_alone(request: &Request) -> bool {
    let meta = || request.params.as_ref()?.member("_meta");
    request.method == "ping" || has_modern_keys(meta().as_ref())
}

/// The answer to `initialize`.
async fn initialize(workbench: &Workbench, caller: Caller, revision: Revision) -> Reply {
    let (capabilities, instructions) = match workbench.native() {
        Some(native) => native::introduce(workbench, native, caller).await,
        None => {
            let instructions = meta::instructions(workbench.config());
            (own_capabilities(workbench), Some(instructions))
        }
    };
    let mut result = json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities,
        "serverInfo": {
            "name": "mcp-workbench",
            "title": "MCP Workbench",
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    Reply::Result(RawJson::of(&result))
}

fn own_capabilities(workbench: &Workbench) -> Value {
    // In proxy mode the list never changes while we run.
    let tools = if workbench.is_dynamic() {
        json!({ "listChanged": true })
    } else {
        json!({})
    };
    json!({ "logging": {}, "resources": {}, "tools": tools })
}

/// The answer to a request of a client with which `revision` was agreed on.
pub(super) async fn answer(
    workbench: &Workbench,
    caller: Caller,
    revision: Revision,
    request: &Request,
) -> Reply {
    match (request.method.as_str(), workbench.native()) {
        ("initialize", _) => initialize(workbench, caller, revision).await,
        ("ping", _) => Reply::Result(ObjectText::new().finish()),
        (_, Some(native)) => native::answer(workbench, native, caller, request).await,
        ("tools/list", None) => list_tools(workbench, request.params.as_ref()),
        ("tools/call", None) => call_tool(workbench, caller, request.params.as_ref()).await,
        ("resources/read", None) => read_linked(workbench, caller, request.params.as_ref()).await,
        ("resources/list", None) => Reply::Result(empty_list("resources")),
        ("resources/templates/list", None) => Reply::Result(empty_list("resourceTemplates")),
        ("logging/setLevel", None) => set_log_level(&caller, request.params.as_ref()),
        (method, None) => Reply::method_not_found(method),
    }
}

fn list_tools(workbench: &Workbench, params: Option<&RawJson>) -> Reply {
    let cursor = params.and_then(|params| params.member("cursor"));
    if cursor.is_some_and(|cursor| cursor.kind() != Kind::Null) {
        return Reply::invalid_params("cursor: unknown, the list has one page");
    }
    let mut definitions = meta::definitions(workbench);
    definitions.extend(workbench.registered_definitions());
    let list = RawJson::array(&definitions);
    Reply::Result(ObjectText::new().raw("tools", &list).finish())
}

fn empty_list(items: &str) -> RawJson {
    ObjectText::new().raw(items, &RawJson::array(&[])).finish()
}

/// Reads a resource that a server has linked to in a result. Nothing is listed: what servers have is
/// found through their tools.
async fn read_linked(workbench: &Workbench, caller: Caller, params: Option<&RawJson>) -> Reply {
    let uri = params.and_then(|params| params.member("uri"));
    let uri = uri.as_ref().and_then(RawJson::as_text);
    let (Some(uri), Some(params)) = (uri, params) else {
        return Reply::invalid_params("uri: Expected string");
    };
    let owner = workbench.links().owner(&uri);
    let server = owner.as_ref().and_then(|owner| workbench.server(owner));
    let (Some(owner), Some(server)) = (&owner, server) else {
        return Reply::Error {
            code: code::RESOURCE_NOT_FOUND,
            message: format!("Resource not found: {uri}"),
        };
    };
    let call = Call {
        request: CallRequest::Relayed {
            method: "resources/read",
            params: params.clone(),
        },
        context: call_context(caller, params.member("_meta")),
    };
    match server.call(call).await {
        Ok(result) => Reply::Result(result),
        Err(CallError::Refused { error, .. }) => Reply::ErrorAsSent(error),
        Err(error) => Reply::Error {
            code: code::INTERNAL_ERROR,
            message: format!("[{}/{}] Error: {error}", owner.toolbox, owner.server),
        },
    }
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

async fn call_tool(workbench: &Workbench, caller: Caller, params: Option<&RawJson>) -> Reply {
    let CallParams {
        name,
        arguments,
        meta,
    } = match CallParams::read(params) {
        Ok(params) => params,
        Err(message) => return Reply::invalid_params(message),
    };
    let context = call_context(caller, meta);
    let result = match MetaTool::named(&name) {
        Some(tool) => tool.run(workbench, &arguments, context).await,
        None if workbench.is_dynamic() => {
            meta::call_registered(workbench, &name, arguments, context).await
        }
        None => return Reply::invalid_params(format!("Unknown tool: {name}")),
    };
    Reply::Result(result)
}

/// What a call carries besides its arguments.
pub(super) fn call_context(caller: Caller, meta: Option<RawJson>) -> CallContext {
    let meta = meta.filter(|meta| meta.kind() == Kind::Object);
    let progress_token = meta.as_ref().and_then(|meta| meta.member("progressToken"));
    CallContext {
        client: Arc::new(caller.with_progress_token(progress_token)),
        meta,
        retry: None,
    }
}

/// The parameters of `tools/call`.
struct CallParams {
    name: String,
    arguments: RawJson,
    meta: Option<RawJson>,
}

impl CallParams {
    fn read(params: Option<&RawJson>) -> Result<Self, &'static str> {
        let members = params
            .and_then(RawJson::members)
            .ok_or("params: Expected object")?;
        let (mut name, mut arguments, mut meta) = (None, None, None);
        for member in members {
            let slot = match member.key.as_ref() {
                "name" => &mut name,
                "arguments" => &mut arguments,
                "_meta" => &mut meta,
                _ => continue,
            };
            if slot.replace(member.value).is_some() {
                return Err("params: a key stands twice");
            }
        }
        let name = name.ok_or("name: Required")?;
        Ok(Self {
            name: name.as_text().ok_or("name: Expected string")?.into_owned(),
            arguments: arguments.unwrap_or_else(|| ObjectText::new().finish()),
            meta,
        })
    }
}
