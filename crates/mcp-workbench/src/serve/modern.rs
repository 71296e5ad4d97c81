//! Requests of the modern era: each says by itself who sends it, and is answered without regard to any other.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    MAX_LISTENERS, ServeContext,
    exchange::{Attached, Exchange, ModernCaller},
    listen,
    log_level::LogLevel,
    methods::{self, Reply, Requester},
    native,
    output::ClientOutput,
    parked::{Handle, RunningCall},
    tasks,
};
use crate::{
    call::{ClientCapabilities, ClientIdentity, Principal, Retry},
    era::{
        self, CacheHints, CacheScope, INPUT_RESPONSES, LOG_LEVEL, MODERN_REVISION, ModernMeta,
        REQUEST_STATE, SERVER_INFO, TASKS_EXTENSION,
    },
    meta,
    native::Native,
    wire::{ObjectText, RawJson, Request},
    workbench::Workbench,
};

/// The method that only the modern era has, and that needs nothing to be recognised by.
const DISCOVER: &str = "server/discover";
/// The method of a request that is answered when it is over.
const LISTEN: &str = "subscriptions/listen";

/// How long what we say of ourselves may be kept: it changes with the configuration.
const OWN_HINTS: CacheHints = CacheHints {
    ttl_ms: 60_000,
    scope: CacheScope::Public,
};
/// How long what servers say of themselves may be kept: one that was not up may be, soon.
const NATIVE_HINTS: CacheHints = CacheHints {
    ttl_ms: 10_000,
    scope: CacheScope::Private,
};

/// Whether a request is of the modern era.
pub(super) fn is_modern(request: &Request) -> bool {
    request.method == DISCOVER || era::are_modern(request.params.as_ref())
}

/// What a modern request says of its client, and what it goes on with.
#[derive(Debug)]
pub(super) struct ModernRequest {
    capabilities: ClientCapabilities,
    log_level: Option<LogLevel>,
    progress_token: Option<RawJson>,
    identity: ClientIdentity,
    retry: Retry,
}

impl ModernRequest {
    /// Reads what a request says, or why it cannot be answered.
    pub(super) fn read(request: &Request) -> Result<Self, Reply> {
        let params = request.params.as_ref();
        let meta = params.and_then(|params| params.member("_meta"));
        let said = ModernMeta::read(meta.as_ref())
            .map_err(|problem| Reply::invalid_params(problem.to_string()))?;
        if said.version != MODERN_REVISION {
            return Err(unsupported_version(&said.version));
        }
        let log_level = match &said.log_level {
            Some(name) => {
                let unknown = || Reply::invalid_params(format!("_meta: {LOG_LEVEL} is unknown"));
                Some(LogLevel::named(name).ok_or_else(unknown)?)
            }
            None => None,
        };
        let member = |name: &str| params.and_then(|params| params.member(name));
        Ok(Self {
            capabilities: ClientCapabilities::of(Some(said.capabilities)),
            log_level,
            identity: ClientIdentity::of(said.client_info.as_ref()),
            progress_token: meta.and_then(|meta| meta.member("progressToken")),
            retry: Retry {
                responses: member(INPUT_RESPONSES),
                state: member(REQUEST_STATE),
            },
        })
    }
}

/// The refusal of a revision that we do not speak.
pub(super) fn unsupported_version(requested: &str) -> Reply {
    let error = ObjectText::new()
        .member("code", &era::UNSUPPORTED_VERSION)
        .member("message", "Unsupported protocol version")
        .raw(
            "data",
            &era::unsupported_version_data(requested, &[MODERN_REVISION]),
        );
    Reply::ErrorAsSent(error.finish())
}

/// Answers a request, or asks its client for what a server needs to answer it.
pub(super) async fn answer(
    context: &ServeContext,
    request: &Request,
    said: ModernRequest,
    output: ClientOutput,
    principal: Principal,
) -> Reply {
    // What servers say while they are made ready to be listened to must not come before the acknowledgement.
    let hears_calls = request.method != LISTEN;
    let attached = Attached {
        output,
        log_level: said.log_level.filter(|_| hears_calls),
        progress_token: said.progress_token.filter(|_| hears_calls),
        identity: said.identity,
    };
    let call = match context.parked.handle(said.retry.state.as_ref()) {
        Handle::Ours(handle) => match context.parked.take(handle, request, principal) {
            Ok(call) => {
                call.exchange().attach(attached, said.capabilities);
                call.exchange().take_answers(said.retry.responses.as_ref());
                call
            }
            Err(refusal) => return refusal,
        },
        Handle::NotOurs => {
            let asks = may_ask(&request.method);
            let from = (principal, context.whereabouts);
            let exchange = Exchange::new(from, attached, said.capabilities, asks);
            let retries = said.retry != Retry::default();
            let run = run(
                context.clone(),
                ModernCaller(Arc::clone(&exchange)),
                retries.then_some(said.retry),
                request.clone(),
            );
            RunningCall::new(exchange, run)
        }
    };
    context.parked.run(call, request, principal).await
}

/// Whether a request may be answered with questions.
fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

async fn run(
    context: ServeContext,
    client: ModernCaller,
    retry: Option<Retry>,
    request: Request,
) -> Reply {
    let workbench = &context.workbench;
    let reply = match &*request.method {
        LISTEN => match context.listeners.try_acquire() {
            Ok(_permit) => listen::listen(workbench, client, &request).await,
            Err(_) => Reply::internal_error(format!("more than {MAX_LISTENERS} requests listen")),
        },
        method if method.starts_with("tasks/") && has_tasks(workbench) => {
            tasks::answer(workbench, client, &request).await
        }
        _ => dispatch(workbench, Requester::Modern { client, retry }, &request).await,
    };
    to_modern(reply, &request.method)
}

async fn dispatch(workbench: &Arc<Workbench>, requester: Requester, request: &Request) -> Reply {
    let params = request.params.as_ref();
    match (&*request.method, workbench.native()) {
        (DISCOVER, _) => discover(workbench, requester).await,
        (method, _) if is_legacy_only(method) => Reply::method_not_found(method),
        ("tools/call", _) => methods::call_tool(workbench, requester, params).await,
        (_, Some(native)) => native::answer(workbench, native, requester, request).await,
        ("tools/list", None) => own_list(params, "tools", &meta::definitions(workbench)),
        ("resources/read", None) => methods::read_linked(workbench, requester, params).await,
        ("resources/list", None) => own_list(params, "resources", &[]),
        ("resources/templates/list", None) => own_list(params, "resourceTemplates", &[]),
        (method, None) => Reply::method_not_found(method),
    }
}

/// Whether a server may run calls as tasks. In native mode that is announced only if one does.
fn has_tasks(workbench: &Workbench) -> bool {
    workbench.native().is_none_or(Native::has_tasks)
}

/// Whether only the legacy era has a method.
fn is_legacy_only(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
    )
}

/// A list of ours, which changes only with the configuration.
fn own_list(params: Option<&RawJson>, items: &str, list: &[RawJson]) -> Reply {
    match methods::only_page(params, items, list) {
        Reply::Result(list) => Reply::Result(OWN_HINTS.put_on(&list)),
        reply => reply,
    }
}

/// The answer to `server/discover`.
async fn discover(workbench: &Workbench, requester: Requester) -> Reply {
    let (capabilities, instructions, hints) = match workbench.native() {
        Some(native) => {
            let (capabilities, instructions) =
                native::introduce(workbench, native, requester.into_client()).await;
            (capabilities, instructions, NATIVE_HINTS)
        }
        None => {
            let instructions = meta::instructions(&workbench.config());
            (own_capabilities(), Some(instructions), OWN_HINTS)
        }
    };
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN_REVISION],
        "capabilities": capabilities,
    });
    if let Some(instructions) = instructions {
        result["instructions"] = instructions.into();
    }
    result["_meta"] = json!({ SERVER_INFO: methods::identity() });
    Reply::Result(hints.put_on(&RawJson::of(&result)))
}

/// What a modern client may make use of. The list of tools does not change because of another request, but it does with
/// the configuration.
fn own_capabilities() -> Value {
    json!({
        "logging": {},
        "resources": {},
        "tools": { "listChanged": true },
        "extensions": { TASKS_EXTENSION: {} },
    })
}

/// An answer as a modern client gets it.
fn to_modern(reply: Reply, method: &str) -> Reply {
    match reply {
        Reply::Result(result) => Reply::Result(era::to_modern_result(method, &result)),
        Reply::ErrorAsSent(error) => Reply::ErrorAsSent(era::to_modern_error(&error)),
        error @ Reply::Error { .. } => error,
    }
}
