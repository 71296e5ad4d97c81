//! Requests of the modern era: each describes its client, and is handled independently of all others.

use std::sync::Arc;

use rawjson::{Kind, ObjectText, RawJson};
use serde_json::{Value, json};

use super::{
    MAX_LISTENERS, ServeContext,
    batch::ReplyPlace,
    calls::{self, Begun, CallParams},
    connection::Connection,
    exchange::Exchange,
    listen,
    log_level::LogLevel,
    methods::{self, Reply, Requester},
    native, operations,
    parked::Handle,
    tasks,
};
use crate::{
    call::{ClientCapabilities, Declaration, Retry},
    contain::contain_now,
    era::{
        self, CacheHints, CacheScope, Era, INPUT_RESPONSES, LOG_LEVEL, MODERN_REVISION,
        REQUEST_STATE, RequestMeta, SERVER_INFO, TASKS_EXTENSION, UI_EXTENSION,
    },
    events::OperationGuard,
    meta::{self, MetaTool},
    native::Native,
    wire::{CallOutline, Request},
    workbench::{CallStart, Workbench},
};

/// The method that only the modern era has. It needs no `_meta` to be recognized.
const DISCOVER: &str = "server/discover";
/// The method of a subscription, which is answered when it ends.
const LISTEN: &str = "subscriptions/listen";

/// Cache hints for our own lists, which change with the configuration.
const OWN_HINTS: CacheHints = CacheHints {
    ttl_ms: 60_000,
    scope: CacheScope::Public,
};
/// Cache hints for our list of tools with those of user interfaces, which changes when a toolbox is opened.
const APPS_HINTS: CacheHints = CacheHints {
    ttl_ms: 0,
    scope: CacheScope::Private,
};
/// Cache hints for the servers' lists: a server that is down may come up soon.
const NATIVE_HINTS: CacheHints = CacheHints {
    ttl_ms: 10_000,
    scope: CacheScope::Private,
};

/// Returns true if a request is of the modern era.
pub(super) fn is_modern(request: &Request, outline: &CallOutline) -> bool {
    request.method == DISCOVER || RequestMeta::makes_modern(request.params.as_ref(), outline)
}

/// A modern client, as the `_meta` of its requests describes it.
#[derive(Debug)]
pub(super) struct ModernClient {
    pub(super) declaration: Arc<Declaration>,
    pub(super) log_level: Option<LogLevel>,
    /// Its name and version, as it wrote them.
    pub(super) info: Option<RawJson>,
}

/// The part of a modern request that is about its client, and the call that it continues.
#[derive(Debug)]
pub(super) struct ModernRequest {
    pub(super) client: Arc<ModernClient>,
    pub(super) progress_token: Option<RawJson>,
    /// The client's responses to the questions of an `input_required` result.
    pub(super) retry: Option<Box<Retry>>,
    /// The bytes of the request, which count while it is in flight.
    pub(super) size: usize,
}

impl ModernRequest {
    /// Parses the `_meta` of a request, or returns the refusal.
    pub(super) fn read(request: &Request) -> Result<Self, Reply> {
        let params = request.params.as_ref();
        let member = |name: &str| params.and_then(|params| params.member(name));
        let meta = member("_meta").map(|meta| RequestMeta::read(&meta));
        let retry = Retry {
            responses: member(INPUT_RESPONSES),
            state: member(REQUEST_STATE),
        };
        let retry = (retry != Retry::default()).then(|| Box::new(retry));
        let mut meta = meta.unwrap_or_default();
        let mut client = ModernClient::read(&mut meta)?;
        if request.method == LISTEN {
            // Log messages of servers that start for a subscription must not come before the acknowledgement.
            client = client.without_logs();
            meta.progress_token = None;
        }
        Ok(Self::of(Arc::new(client), meta.progress_token, retry))
    }

    /// Takes the members that only the requester needs out of a parsed `_meta`.
    pub(super) fn new(meta: &mut RequestMeta, retry: Option<Box<Retry>>) -> Result<Self, Reply> {
        let client = ModernClient::read(meta)?;
        Ok(Self::of(
            Arc::new(client),
            meta.progress_token.take(),
            retry,
        ))
    }

    pub(super) fn of(
        client: Arc<ModernClient>,
        progress_token: Option<RawJson>,
        retry: Option<Box<Retry>>,
    ) -> Self {
        Self {
            client,
            progress_token,
            retry,
            size: 0,
        }
    }
}

impl ModernClient {
    pub(super) fn read(meta: &mut RequestMeta) -> Result<Self, Reply> {
        let said = meta
            .take_modern()
            .map_err(|problem| Reply::invalid_params(problem.to_string()))?;
        if !said.is_current() {
            let version = said.version.as_text();
            return Err(unsupported_version(&version.unwrap_or_default()));
        }
        let log_level = match &said.log_level {
            Some(name) => {
                let unknown = || Reply::invalid_params(format!("_meta: {LOG_LEVEL} is unknown"));
                Some(LogLevel::named(name).ok_or_else(unknown)?)
            }
            None => None,
        };
        Ok(Self {
            declaration: Arc::new(Declaration {
                capabilities: ClientCapabilities::of(Some(said.capabilities)),
                log_level: log_level.map(LogLevel::name),
            }),
            log_level,
            info: said.client_info,
        })
    }

    /// Returns the client as one that wants no log messages.
    fn without_logs(self) -> Self {
        let capabilities = self.declaration.capabilities.clone();
        Self {
            declaration: Arc::new(Declaration {
                capabilities,
                log_level: None,
            }),
            log_level: None,
            info: self.info,
        }
    }
}

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

/// Returns the answer to a request that another replica has parked and that cannot be reached there.
pub(super) fn replica_gone(method: &str) -> Reply {
    if method == "tools/call" {
        return Reply::Result(era::to_modern_result(method, &meta::replica_gone()));
    }
    Reply::internal_error(meta::REPLICA_GONE)
}

/// Handles a request: starts an exchange, or continues the one that its state names.
pub(super) fn take(
    connection: &Arc<Connection>,
    request: &Request,
    place: ReplyPlace,
    mut said: ModernRequest,
    call: Option<CallParams<'_>>,
) {
    connection.declare(&said.client.declaration.capabilities, Era::Modern);
    let parked = connection.parked();
    let state = said.retry.as_ref().and_then(|retry| retry.state.as_ref());
    // A state that we have issued continues its exchange, whose call still runs. Any other one is the server's: the
    // request is a call of its own, and the server gets the state with it.
    let resumed = match parked.handle(state) {
        Handle::Ours(handle) => Some(parked.take(handle, request, connection.principal())),
        Handle::OfReplica => Some(Err(replica_gone(&request.method))),
        Handle::NotOurs => None,
    };
    if let Some(resumed) = resumed {
        let exchange = match resumed {
            Ok(exchange) => exchange,
            Err(refusal) => return place.answer(refusal.to(&request.id)),
        };
        if exchange.attach(connection, request.clone(), place, &mut said) {
            let retry = said.retry.as_ref();
            exchange.resume(retry.and_then(|retry| retry.responses.as_ref()));
        }
        return;
    }
    let exchange = Exchange::new(connection, may_ask(&request.method));
    // Before anything runs, so that a cancellation on the next line finds it.
    if !exchange.attach(connection, request.clone(), place, &mut said) {
        return;
    }
    let requester = Requester::Modern {
        client: Arc::clone(&exchange),
        retry: said.retry,
    };
    match call {
        Some(params) => {
            let workbench = connection.workbench();
            let begun = contain_now(|| calls::begin(workbench, &request.id, params, requester));
            match begun {
                Ok(begun) => take_begun(&exchange, workbench, begun),
                Err(panicked) => exchange.reply(Reply::internal_error(panicked.to_string())),
            }
        }
        None => {
            let context = connection.context().clone();
            let mut observed = observe(&context, &exchange, request);
            let request = request.clone();
            exchange.run(Box::pin(async move {
                let reply = run(context, requester, request, &mut observed).await;
                operations::end(observed, &reply);
                reply
            }));
        }
    }
}

/// Begins the operation of a request.
fn observe(
    context: &ServeContext,
    exchange: &Arc<Exchange>,
    request: &Request,
) -> Option<OperationGuard> {
    let observed = operations::begin(&context.workbench, request, &**exchange)?;
    exchange.set_span(observed.span());
    Some(observed)
}

/// Takes a `tools/call` that was read.
fn take_begun(exchange: &Arc<Exchange>, workbench: &Arc<Workbench>, begun: Begun) {
    match begun {
        Begun::Over(reply) => exchange.reply(reply),
        Begun::Call(CallStart::Over(reply)) => exchange.reply(reply.into()),
        Begun::Call(CallStart::Ready(call)) => exchange.send(call),
        Begun::Call(CallStart::Waits(call)) => {
            exchange.run(Box::pin(async move { call.run().await.into() }));
        }
        Begun::Meta(run) => {
            let is_long = run.may_take_long();
            let answer = run.into_reply(Arc::clone(workbench));
            if is_long && exchange.knows_tasks() {
                exchange.run(exchange.as_task(answer));
            } else {
                exchange.run(answer);
            }
        }
    }
}

/// Returns true if the response to a request may contain questions.
fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// Handles a request. A subscription ends its operation itself.
async fn run(
    context: ServeContext,
    requester: Requester,
    request: Request,
    observed: &mut Option<OperationGuard>,
) -> Reply {
    let workbench = &context.workbench;
    match (&*request.method, requester) {
        // Refused and not queued, because a subscription may never end.
        (LISTEN, Requester::Modern { client, .. }) => match context.listeners.try_acquire() {
            Ok(_permit) => listen::listen(workbench, client, &request, observed).await,
            Err(_) => {
                Reply::internal_error(format!("more than {MAX_LISTENERS} subscriptions at once"))
            }
        },
        (method, Requester::Modern { client, .. })
            if method.starts_with("tasks/") && has_tasks(workbench) =>
        {
            tasks::answer(workbench, client, &request).await
        }
        (_, requester) => dispatch(workbench, requester, &request).await,
    }
}

async fn dispatch(workbench: &Arc<Workbench>, requester: Requester, request: &Request) -> Reply {
    let params = request.params.as_ref();
    match (&*request.method, workbench.native()) {
        (DISCOVER, _) => discover(workbench, requester).await,
        (method, _) if is_legacy_only(method) => Reply::method_not_found(method),
        // The pipeline has taken every valid call.
        ("tools/call", _) => methods::unreadable_call(params),
        (_, Some(native)) => native::answer(workbench, native, requester, request).await,
        ("tools/list", None) => own_tools(workbench, requester, params).await,
        ("resources/read", None) => methods::read_linked(workbench, requester, params).await,
        // The lists must not change because of other requests, so what is open is not in them.
        ("prompts/list", None) => own_list(params, "prompts", &[]),
        ("prompts/get" | "completion/complete", None) => {
            methods::answer_opened(workbench, requester, request).await
        }
        ("resources/list", None) => own_list(params, "resources", &[]),
        ("resources/templates/list", None) => own_list(params, "resourceTemplates", &[]),
        (method, None) => Reply::method_not_found(method),
    }
}

/// Returns true if servers may run calls as tasks. In native mode the extension is announced only if one does.
fn has_tasks(workbench: &Workbench) -> bool {
    workbench.native().is_none_or(Native::has_tasks)
}

/// Returns true for methods that only the legacy era has.
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

/// Returns our tools, and for clients with MCP Apps the tools with user interfaces. With either these or `run_code` the list
/// depends on the client, so that it must not be shared.
async fn own_tools(workbench: &Workbench, requester: Requester, params: Option<&RawJson>) -> Reply {
    let client = requester.into_client();
    let mut definitions = meta::definitions(workbench, &client.identity());
    let hints = if client.capabilities().has_extension(UI_EXTENSION) {
        definitions.extend(workbench.registered_definitions(&*client).await);
        APPS_HINTS
    } else if workbench.has(MetaTool::RunCode) {
        CacheHints {
            scope: CacheScope::Private,
            ..OWN_HINTS
        }
    } else {
        OWN_HINTS
    };
    hinted_list(params, "tools", &definitions, hints)
}

/// Returns one of our lists, which change only with the configuration.
fn own_list(params: Option<&RawJson>, items: &str, list: &[RawJson]) -> Reply {
    hinted_list(params, items, list, OWN_HINTS)
}

fn hinted_list(
    params: Option<&RawJson>,
    items: &str,
    list: &[RawJson],
    hints: CacheHints,
) -> Reply {
    match methods::own_page(params, items, list) {
        Reply::Own(list) => Reply::Own(hints.put_on(&list)),
        reply => reply,
    }
}

/// Returns the response to `server/discover`.
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
    Reply::Own(hints.put_on(&RawJson::of(&result)))
}

/// Returns our capabilities for a modern client. The list of tools changes with the configuration, but not because of
/// other requests.
fn own_capabilities() -> Value {
    json!({
        "completions": {},
        "logging": {},
        "prompts": {},
        "resources": {},
        "tools": { "listChanged": true },
        "extensions": { TASKS_EXTENSION: {} },
    })
}

/// Returns a result with the identity of the workbench, which the modern era wants in every result. A server's result is
/// left as it is.
fn identified(result: &RawJson) -> RawJson {
    let meta = result.member("_meta");
    let meta = meta
        .filter(|meta| meta.kind() == Kind::Object)
        .unwrap_or_else(|| ObjectText::new().finish());
    let identity = RawJson::of(&methods::identity());
    result.with_member("_meta", &meta.with_member(SERVER_INFO, &identity))
}

/// Returns a reply as a modern client gets it.
pub(super) fn to_modern(reply: Reply, method: &str) -> Reply {
    match reply {
        Reply::Result(result) => Reply::Result(era::to_modern_result(method, &result)),
        Reply::Own(result) => Reply::Result(identified(&era::to_modern_result(method, &result))),
        Reply::ErrorAsSent(error) => Reply::ErrorAsSent(era::to_modern_error(&error)),
        reply @ (Reply::Called(_) | Reply::Error { .. }) => reply,
    }
}
