//! The prompts and resources of all open toolboxes, for proxy and dynamic mode. They have their own names and URIs where no
//! other server uses them, and names of ours otherwise: toolboxes are opened in any order, so no server may take over
//! the name of another.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard},
};

use ident::ServerIdentifier;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rawjson::RawJson;

use super::{
    error::NativeError,
    list_cache::ListCache,
    merged::{Family, Merged, Route, ServerItems},
    requests::{Answered, ended, read_list, required},
};
use crate::{
    call::{Call, CallContext, CallRequest, ClientHandle},
    downstream::{Events, ServerFamily, ServerHandle},
    era::CacheHints,
    list_page::page,
    sync::lock,
    toolbox::unique_name,
};

/// The prefix of URIs of ours for resources that several servers have.
const SHARED_PREFIX: &str = "mcp-workbench://resource/";
/// The scheme of user interfaces, which clients recognize by it, and our prefix for them.
const UI_SCHEME: &str = "ui://";
const UI_PREFIX: &str = "ui://mcp-workbench/";

/// A server of an open toolbox.
pub(crate) struct OpenServer {
    pub identifier: ServerIdentifier,
    pub handle: Arc<ServerHandle>,
}

impl OpenServer {
    /// Returns true if the server has declared a family.
    pub(crate) fn has(&self, family: ServerFamily) -> bool {
        let tools = self.handle.status().tools;
        tools.is_some_and(|list| list.introduction.has(family))
    }
}

/// The merged lists of open toolboxes.
pub(crate) struct OpenLists {
    name_limit: usize,
    state: Mutex<State>,
}

struct State {
    cache: ListCache<ServerIdentifier>,
    /// The servers that the cached lists were made of.
    servers: Vec<ServerIdentifier>,
    /// The servers whose lists were announced to clients.
    announced: HashSet<ServerIdentifier>,
}

type OpenRoute = Route<ServerIdentifier>;

impl OpenLists {
    pub(crate) fn new(name_limit: usize, events: Events) -> Self {
        Self {
            name_limit,
            state: Mutex::new(State {
                cache: ListCache::new(events),
                servers: Vec::new(),
                announced: HashSet::new(),
            }),
        }
    }

    /// Returns one of the servers with a family that clients have not heard of, and counts all of them as announced.
    pub(crate) fn announce(&self, servers: &[OpenServer]) -> Vec<(ServerFamily, ServerIdentifier)> {
        let mut state = self.state();
        let is_new = |it: &&OpenServer| !state.announced.contains(&it.identifier);
        let new: Vec<&OpenServer> = servers.iter().filter(is_new).collect();
        let families = [ServerFamily::Prompts, ServerFamily::Resources].into_iter();
        let found = families.filter_map(|family| {
            let server = new.iter().find(|server| server.has(family))?;
            Some((family, server.identifier.clone()))
        });
        let found = found.collect();
        let new: Vec<ServerIdentifier> = new.iter().map(|it| it.identifier.clone()).collect();
        state.announced.extend(new);
        found
    }

    /// Handles a request of a client about the prompts and resources of these servers.
    pub(crate) async fn answer(
        &self,
        servers: &[OpenServer],
        method: &str,
        params: &RawJson,
        context: CallContext,
    ) -> Answered {
        match method {
            "prompts/list" => self.list(Family::Prompts, servers, params, &context).await,
            "resources/list" => {
                self.list(Family::Resources, servers, params, &context)
                    .await
            }
            "resources/templates/list" => {
                self.list(Family::Templates, servers, params, &context)
                    .await
            }
            "prompts/get" => {
                let name = required(params, "name")?;
                let route = self.prompt_route(&name, servers, &context.client).await?;
                let params = params.with_member("name", &RawJson::of(&route.original));
                relay(servers, "prompts/get", &params, &route, context).await
            }
            "completion/complete" => self.complete(servers, params, context).await,
            _ => Err(NativeError::NotOffered),
        }
    }

    /// Reads a resource that a server lists, or that its templates match.
    pub(crate) async fn read(
        &self,
        servers: &[OpenServer],
        uri: &str,
        params: &RawJson,
        context: CallContext,
    ) -> Answered {
        let route = self.resource_route(uri, servers, &context.client).await?;
        let params = params.with_member("uri", &RawJson::of(&route.original));
        relay(servers, "resources/read", &params, &route, context).await
    }

    /// Returns true if a URI is one that this client was shown: one of ours, or one in the list that was read last.
    pub(crate) fn has_shown(&self, servers: &[OpenServer], uri: &str) -> bool {
        if renamed_route(servers, uri).is_some() {
            return true;
        }
        let mut state = self.state();
        state.refresh(servers);
        let resources = state.cache.get(Family::Resources);
        resources.is_some_and(|resources| resources.route(uri).is_some())
    }

    async fn list(
        &self,
        family: Family,
        servers: &[OpenServer],
        params: &RawJson,
        context: &CallContext,
    ) -> Answered {
        let merged = self.merged(family, servers, &context.client).await;
        Ok(page(Some(params), family.items(), &merged.shown)?)
    }

    async fn complete(
        &self,
        servers: &[OpenServer],
        params: &RawJson,
        context: CallContext,
    ) -> Answered {
        let reference = params.member("ref");
        let reference = reference.ok_or_else(|| NativeError::invalid("ref: Required"))?;
        let (key, route) = if let Ok(uri) = required(&reference, "uri") {
            // A completion names the template itself, not a URI that matches it.
            let templates = self
                .merged(Family::Templates, servers, &context.client)
                .await;
            let route = match templates.route(&uri) {
                Some(route) => route.clone(),
                None => self.resource_route(&uri, servers, &context.client).await?,
            };
            ("uri", route)
        } else {
            let name = required(&reference, "name")?;
            let route = self.prompt_route(&name, servers, &context.client).await?;
            ("name", route)
        };
        let reference = reference.with_member(key, &RawJson::of(&route.original));
        let params = params.with_member("ref", &reference);
        relay(servers, "completion/complete", &params, &route, context).await
    }

    async fn prompt_route(
        &self,
        name: &str,
        servers: &[OpenServer],
        client: &Arc<dyn ClientHandle>,
    ) -> Result<OpenRoute, NativeError> {
        let prompts = self.merged(Family::Prompts, servers, client).await;
        let unknown = || NativeError::invalid(format!("Unknown prompt: {name}"));
        prompts.route(name).cloned().ok_or_else(unknown)
    }

    /// Returns the server that a resource belongs to: the only one that lists it, or the only one with templates that
    /// it matches.
    async fn resource_route(
        &self,
        uri: &str,
        servers: &[OpenServer],
        client: &Arc<dyn ClientHandle>,
    ) -> Result<OpenRoute, NativeError> {
        if let Some(route) = renamed_route(servers, uri) {
            return Ok(route);
        }
        let missing = || NativeError::ResourceNotFound(uri.to_owned());
        let resources = self.merged(Family::Resources, servers, client).await;
        if let Some(route) = resources.route(uri) {
            return Ok(route.clone());
        }
        if resources.is_shared(uri) {
            return Err(missing());
        }
        let templates = self.merged(Family::Templates, servers, client).await;
        let server = templates.only_match(uri).ok_or_else(missing)?;
        Ok(Route::unchanged(uri, server.clone()))
    }

    /// Returns a merged list. Reads it from the servers if it is not cached.
    async fn merged(
        &self,
        family: Family,
        servers: &[OpenServer],
        client: &Arc<dyn ClientHandle>,
    ) -> Arc<Merged<ServerIdentifier>> {
        let generation = {
            let mut state = self.state();
            state.refresh(servers);
            if let Some(merged) = state.cache.get(family) {
                return merged;
            }
            state.cache.generation()
        };
        let mut lists = Vec::new();
        let mut complete = true;
        for server in servers.iter().filter(|it| it.has(family.declared_by())) {
            let list = read_list(&server.handle, family, client).await;
            complete &= list.is_some();
            let (items, hints) = list.unwrap_or((Vec::new(), CacheHints::NONE));
            lists.push(ServerItems {
                server: server.identifier.clone(),
                items,
                hints,
            });
        }
        let merged = Arc::new(match family {
            Family::Prompts => Merged::distinct(lists, "name", |server, name| {
                prompt_name(server, name, self.name_limit)
            }),
            Family::Resources => Merged::distinct(lists, "uri", renamed_uri),
            Family::Templates => Merged::distinct(lists, "uriTemplate", renamed_uri),
        });
        if complete {
            let mut state = self.state();
            state.refresh(servers);
            state.cache.put(family, Arc::clone(&merged), generation);
        }
        merged
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Drops the lists that have changed, and all of them if the set of servers has.
    fn refresh(&mut self, servers: &[OpenServer]) {
        self.cache.take_events();
        let is_same = self
            .servers
            .iter()
            .eq(servers.iter().map(|it| &it.identifier));
        if !is_same {
            self.servers = servers.iter().map(|it| it.identifier.clone()).collect();
            self.cache.clear();
        }
    }
}

/// Sends a request to the server that it concerns.
async fn relay(
    servers: &[OpenServer],
    method: &'static str,
    params: &RawJson,
    route: &OpenRoute,
    context: CallContext,
) -> Answered {
    let server = servers.iter().find(|it| it.identifier == route.server);
    let server = server.ok_or(NativeError::NotOffered)?;
    let call = Call {
        request: CallRequest::Relayed {
            method,
            params: params.clone(),
        },
        context,
    };
    let result = server.handle.call(call).await;
    ended(route.server.clone(), &route.original, result)
}

/// Returns the name of a prompt that several servers have.
fn prompt_name(server: &ServerIdentifier, name: &str, limit: usize) -> String {
    let (toolbox, server) = (server.toolbox.as_str(), server.server.as_str());
    let plain = format!("{toolbox}__{server}__{name}");
    unique_name(&plain, &[toolbox, server, name], limit, |_| true)
}

/// Returns the URI, or the template, of a resource that several servers have. It is never taken apart: see
/// [`renamed_route`].
pub(crate) fn renamed_uri(server: &ServerIdentifier, uri: &str) -> String {
    match uri.strip_prefix(UI_SCHEME) {
        Some(rest) => format!("{}{rest}", prefix(UI_PREFIX, server)),
        None => format!("{}{uri}", prefix(SHARED_PREFIX, server)),
    }
}

/// Returns the route of a URI of ours: its beginning is compared with that of each server.
fn renamed_route(servers: &[OpenServer], uri: &str) -> Option<OpenRoute> {
    if !uri.starts_with(SHARED_PREFIX) && !uri.starts_with(UI_PREFIX) {
        return None;
    }
    servers.iter().find_map(|server| {
        let identifier = &server.identifier;
        let of_ui = uri.strip_prefix(&prefix(UI_PREFIX, identifier));
        let of_ui = of_ui.map(|rest| format!("{UI_SCHEME}{rest}"));
        let other = || uri.strip_prefix(&prefix(SHARED_PREFIX, identifier));
        Some(Route {
            shown: uri.to_owned(),
            original: of_ui.or_else(|| other().map(str::to_owned))?,
            server: identifier.clone(),
        })
    })
}

fn prefix(begin: &str, server: &ServerIdentifier) -> String {
    let encode = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let toolbox = encode(server.toolbox.as_str());
    format!("{begin}{toolbox}/{}/", encode(server.server.as_str()))
}
