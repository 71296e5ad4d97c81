//! The requests of native mode. Lists are merged. Every other request goes to the one server that it concerns, under
//! the server's own name for the item and otherwise unchanged.

use std::sync::Arc;

use ident::ServerIdentifier;
use rawjson::{ObjectText, RawJson};

use super::{
    Native,
    error::NativeError,
    merged::{Family, Route},
    skills,
    subscriptions::{Resource, SUBSCRIBE, Subscriber, UNSUBSCRIBE},
};
use crate::{
    call::{Call, CallContext, CallReports, CallRequest, ClientHandle},
    downstream::{CallError, ListWalk, ServerFamily, ServerHandle, Step},
    era::{CacheHints, Era},
    list_page::page,
    offload::offload,
};

pub(super) type Answered = Result<RawJson, NativeError>;

/// Handles a request of a client.
pub(super) async fn answer(
    native: &Native,
    method: &str,
    params: &RawJson,
    context: CallContext,
) -> Answered {
    let era = context.client.era();
    match method {
        "tools/list" => list_tools(native, params, era),
        "prompts/list" => list(native, Family::Prompts, params, &context).await,
        "prompts/get" => get_prompt(native, params, context).await,
        "resources/list" => list(native, Family::Resources, params, &context).await,
        "resources/templates/list" => list(native, Family::Templates, params, &context).await,
        "resources/read" => read_resource(native, params, context).await,
        "completion/complete" => complete(native, params, context).await,
        "skills/list" => skills::list(native, params, era),
        "skills/get" => skills::get(native, params, context).await,
        "resources/directory/read" => skills::read_directory(native, params, context).await,
        _ if era == Era::Legacy => answer_legacy(native, method, params, context).await,
        _ => Err(NativeError::NotOffered),
    }
}

/// Handles a request that only the legacy era has.
async fn answer_legacy(
    native: &Native,
    method: &str,
    params: &RawJson,
    context: CallContext,
) -> Answered {
    match method {
        SUBSCRIBE => subscribe(native, params, context).await,
        UNSUBSCRIBE => unsubscribe(native, params, context).await,
        "logging/setLevel" => set_level(native, params, &context).await,
        _ => Err(NativeError::NotOffered),
    }
}

fn list_tools(native: &Native, params: &RawJson, era: Era) -> Answered {
    let tools = native.tools();
    // A server that is not up will change the list when it is.
    let all_known =
        native.toolbox.catalogue().lists().len() == native.toolbox.contents().servers().len();
    let hints = if all_known {
        tools.hints
    } else {
        CacheHints::NONE
    };
    let tools = page(Some(params), "tools", &tools.shown)?;
    Ok(with_hints(tools, hints, era))
}

async fn get_prompt(native: &Native, params: &RawJson, context: CallContext) -> Answered {
    native.require(ServerFamily::Prompts)?;
    let name = required(params, "name")?;
    let prompts = native.merged(Family::Prompts, &context.client).await;
    let Some(route) = prompts.route(&name) else {
        return Err(NativeError::invalid(format!("Unknown prompt: {name}")));
    };
    let params = params.with_member("name", &RawJson::of(&&*route.original));
    relay(native, "prompts/get", &params, route, context).await
}

async fn read_resource(native: &Native, params: &RawJson, context: CallContext) -> Answered {
    native.require(ServerFamily::Resources)?;
    let uri = required(params, "uri")?;
    let route = native.resource_route(&uri, &context.client).await?;
    let params = with_original_uri(params, &route);
    relay(native, "resources/read", &params, &route, context).await
}

async fn subscribe(native: &Native, params: &RawJson, context: CallContext) -> Answered {
    native.require(ServerFamily::Resources)?;
    let uri = required(params, "uri")?;
    let client = Subscriber::Client(context.client.id());
    let route = native.resource_route(&uri, &context.client).await?;
    let resource = resource(&route);
    let params = with_original_uri(params, &route);
    // Added first, because the server may notify of a change before its response arrives.
    native.subscriptions.add(client, &resource);
    let answer = relay(native, SUBSCRIBE, &params, &route, context).await;
    if answer.is_err() {
        native.subscriptions.remove(client, &resource);
    }
    answer
}

async fn unsubscribe(native: &Native, params: &RawJson, context: CallContext) -> Answered {
    native.require(ServerFamily::Resources)?;
    let uri = required(params, "uri")?;
    let client = Arc::clone(&context.client);
    let subscriber = Subscriber::Client(client.id());
    let route = match native.subscriptions.of(subscriber, &uri) {
        // A subscription is ended at the server where it was made, even if another server lists the resource now.
        Some(subscribed) => Route::unchanged(&uri, subscribed.server),
        None => native.resource_route(&uri, &client).await?,
    };
    let resource = resource(&route);
    let params = with_original_uri(params, &route);
    // Other subscribers still need the server's notifications.
    if !native.subscriptions.remove(subscriber, &resource) {
        return Ok(ObjectText::new().finish());
    }
    let answer = relay(native, UNSUBSCRIBE, &params, &route, context).await;
    native
        .subscriptions
        .renew_if_wanted(&resource, &client)
        .await;
    answer
}

async fn complete(native: &Native, params: &RawJson, context: CallContext) -> Answered {
    native.require(ServerFamily::Completions)?;
    let reference = params
        .member("ref")
        .ok_or_else(|| NativeError::invalid("ref: Required"))?;
    if let Ok(uri) = required(&reference, "uri") {
        // A completion names the template itself, not a URI that matches it.
        let templates = native.merged(Family::Templates, &context.client).await;
        let route = match templates.route(&uri) {
            Some(route) => route.clone(),
            None => native.resource_route(&uri, &context.client).await?,
        };
        return relay(native, "completion/complete", params, &route, context).await;
    }
    let name = required(&reference, "name")?;
    let prompts = native.merged(Family::Prompts, &context.client).await;
    let Some(route) = prompts.route(&name) else {
        return Err(NativeError::invalid(format!("Unknown prompt: {name}")));
    };
    let reference = reference.with_member("name", &RawJson::of(&&*route.original));
    let params = params.with_member("ref", &reference);
    relay(native, "completion/complete", &params, route, context).await
}

/// Sets the log level of every server that logs. A refusal does not matter, because messages are filtered here too.
async fn set_level(native: &Native, params: &RawJson, context: &CallContext) -> Answered {
    native.require(ServerFamily::Logging)?;
    for (_, server) in native.servers_with(ServerFamily::Logging) {
        let _ = server
            .call(relayed("logging/setLevel", params, &context.client))
            .await;
    }
    Ok(ObjectText::new().finish())
}

async fn list(
    native: &Native,
    family: Family,
    params: &RawJson,
    context: &CallContext,
) -> Answered {
    native.require(family.declared_by())?;
    let client = &context.client;
    let merged = native.merged(family, client).await;
    let list = page(Some(params), family.items(), &merged.shown)?;
    Ok(with_hints(list, merged.hints, client.era()))
}

/// Sends a request to the server that it concerns.
pub(super) async fn relay(
    native: &Native,
    method: &'static str,
    params: &RawJson,
    route: &Route,
    context: CallContext,
) -> Answered {
    let Some(server) = native.toolbox.server(&route.server) else {
        // A reload has removed the server since its lists were read.
        return Err(NativeError::NotOffered);
    };
    let call = Call {
        request: CallRequest::Relayed {
            method,
            params: params.clone(),
        },
        context,
    };
    let identifier = ServerIdentifier {
        toolbox: native.toolbox.name().clone(),
        server: route.server.clone(),
    };
    ended(identifier, &route.original, server.call(call).await)
}

/// Converts the outcome of a relayed request.
pub(super) fn ended(
    server: ServerIdentifier,
    what: &str,
    result: Result<RawJson, CallError>,
) -> Answered {
    result.map_err(|error| match error {
        CallError::Refused { error, .. } => NativeError::Refused(error),
        error => NativeError::Failed {
            server: Box::new(server),
            what: what.to_owned(),
            error,
        },
    })
}

/// Returns all items of a server's list and its cache hints; `None` if it cannot be read.
pub(super) async fn read_list(
    server: &ServerHandle,
    family: Family,
    client: &Arc<dyn ClientHandle>,
) -> Option<(Vec<RawJson>, CacheHints)> {
    let mut walk = ListWalk::new(family.items(), server.list_bounds());
    loop {
        let page = server
            .call(relayed(family.method(), &walk.params(), client))
            .await;
        let step;
        (walk, step) = match page {
            Ok(page) => {
                // A page can be megabytes of JSON. Large ones are read on a thread, and the walk goes there and back.
                let bytes = page.as_bytes().len();
                let accept = move || {
                    let step = walk.accept(&page);
                    (walk, step)
                };
                offload(bytes, accept).await
            }
            Err(_) => (walk, None),
        };
        match step {
            Some(Step::Next) => {}
            Some(Step::Done) => {
                if let Some(incomplete) = walk.incomplete() {
                    tracing::warn!("incomplete response to {}: {incomplete}", family.method());
                }
                let hints = walk.hints();
                return Some((walk.into_items(), hints));
            }
            None => {
                tracing::warn!("cannot parse a server's response to {}", family.method());
                return None;
            }
        }
    }
}

/// Creates a request of our own on behalf of a client.
pub(super) fn relayed(
    method: &'static str,
    params: &RawJson,
    client: &Arc<dyn ClientHandle>,
) -> Call {
    Call {
        request: CallRequest::Relayed {
            method,
            params: params.clone(),
        },
        context: CallContext {
            client: Arc::clone(client),
            meta: None,
            retry: None,
            reports: CallReports::of(client.span()),
        },
    }
}

/// Returns a list as a client of an era gets it. Only modern ones get cache hints.
fn with_hints(list: RawJson, hints: CacheHints, era: Era) -> RawJson {
    match era {
        Era::Legacy => list,
        Era::Modern => hints.put_on(&list),
    }
}

fn resource(route: &Route) -> Resource {
    Resource {
        server: route.server.clone(),
        uri: route.original.to_string(),
    }
}

/// Returns parameters with the server's own URI.
fn with_original_uri(params: &RawJson, route: &Route) -> RawJson {
    if route.shown == route.original {
        params.clone()
    } else {
        params.with_member("uri", &RawJson::of(&&*route.original))
    }
}

pub(super) fn required(params: &RawJson, key: &str) -> Result<String, NativeError> {
    let value = params.member(key);
    let text = value.as_ref().and_then(RawJson::as_text);
    match text {
        Some(text) => Ok(text.into_owned()),
        None => Err(NativeError::invalid(format!("{key}: Expected string"))),
    }
}
