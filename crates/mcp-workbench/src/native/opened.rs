//! The prompts and resources of all open toolboxes, for proxy and dynamic mode. They have their own names and URIs where no
//! other server uses them, and generated names otherwise: toolboxes are opened in any order, so no server may take over
//! the name of another.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard},
};

use ident::ServerIdentifier;
use rawjson::RawJson;

use super::{
    error::NativeError,
    list_cache::ListCache,
    merged::{Family, Merged, Route, ServerItems},
    requests::{Answered, ended, read_list, required},
    shown_uris::ShownUris,
    skills::withheld_error,
    ui_claims::{UiClaims, original_ui, renamed_ui},
};
use crate::{
    call::{Call, CallContext, CallRequest, ClientHandle, Owner},
    downstream::{Events, ServerFamily, ServerHandle, is_within},
    era::CacheHints,
    list_page::page,
    sync::lock,
    toolbox::{original_uri, shared_uri, unique_name},
};

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
    state: Mutex<OpenedState>,
}

struct OpenedState {
    cache: ListCache<ServerIdentifier>,
    /// The servers that the cached lists were made of.
    servers: Vec<ServerIdentifier>,
    /// The user interfaces that the tools of these servers name.
    ui_claims: UiClaims,
    /// The servers whose lists were announced to clients.
    announced: HashSet<ServerIdentifier>,
    /// The resources that each client was shown.
    shown: ShownUris,
}

/// The lists that opening a toolbox adds.
pub(crate) struct NewLists {
    /// The families that have new items, each with one of the servers that have them.
    pub lists: Vec<(ServerFamily, ServerIdentifier)>,
    /// True if there are new tools with user interfaces.
    pub has_ui: bool,
}

type OpenRoute = Route<ServerIdentifier>;

impl OpenLists {
    pub(crate) fn new(name_limit: usize, events: Events) -> Self {
        Self {
            name_limit,
            state: Mutex::new(OpenedState {
                cache: ListCache::new(events),
                servers: Vec::new(),
                ui_claims: UiClaims::default(),
                announced: HashSet::new(),
                shown: ShownUris::default(),
            }),
        }
    }

    /// Returns the lists that clients do not know yet, and counts all servers as announced.
    pub(crate) fn announce(&self, servers: &[OpenServer]) -> NewLists {
        let mut state = self.state();
        let is_new = |it: &&OpenServer| !state.announced.contains(&it.identifier);
        let new: Vec<&OpenServer> = servers.iter().filter(is_new).collect();
        let families = [ServerFamily::Prompts, ServerFamily::Resources].into_iter();
        let found = families.filter_map(|family| {
            let server = new.iter().find(|server| server.has(family))?;
            Some((family, server.identifier.clone()))
        });
        let has_ui = |it: &&OpenServer| it.handle.status().tools.is_some_and(|it| it.has_ui());
        let found = NewLists {
            lists: found.collect(),
            has_ui: new.iter().any(has_ui),
        };
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
                let params = params.with_member("name", &RawJson::of(&&*route.original));
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
        let server = servers.iter().find(|it| it.identifier == route.server);
        let list = server.and_then(|it| it.handle.status().tools);
        if let Some(withheld) = list
            .as_ref()
            .and_then(|it| it.withheld_skill(&route.original))
        {
            return Err(withheld_error(uri, &withheld.reason));
        }
        let params = params.with_member("uri", &RawJson::of(&&*route.original));
        relay(servers, "resources/read", &params, &route, context).await
    }

    /// Returns true if a URI belongs to a server whatever results link to: a generated URI, or that of a tool's user
    /// interface.
    pub(crate) fn is_reserved(&self, servers: &[OpenServer], uri: &str) -> bool {
        if renamed_route(servers, uri).is_some() {
            return true;
        }
        let mut state = self.state();
        state.refresh(servers);
        state.ui_claims.first(uri).is_some()
    }

    /// Returns true if the last list of resources that a client was shown has a URI.
    pub(crate) fn was_shown(&self, client: Owner, uri: &str) -> bool {
        self.state().shown.contains(client, uri)
    }

    /// Forgets a client that has gone.
    pub(crate) fn forget_client(&self, client: Owner) {
        self.state().shown.forget(client);
    }

    async fn list(
        &self,
        family: Family,
        servers: &[OpenServer],
        params: &RawJson,
        context: &CallContext,
    ) -> Answered {
        let merged = self.merged(family, servers, &context.client).await;
        if family == Family::Resources {
            let client = context.client.recipient().owner;
            self.state().shown.show(client, &merged);
        }
        Ok(page(Some(params), family.items(), &merged.shown)?)
    }

    async fn complete(
        &self,
        servers: &[OpenServer],
        params: &RawJson,
        context: CallContext,
    ) -> Answered {
        let reference = params
            .member("ref")
            .ok_or_else(|| NativeError::invalid("ref: Required"))?;
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
        let reference = reference.with_member(key, &RawJson::of(&&*route.original));
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

    /// Returns the server that a resource belongs to: for a user interface the only one whose tools name it, otherwise the
    /// only one that lists it, or the only one with templates that it matches.
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
        {
            let mut state = self.state();
            state.refresh(servers);
            if let Some(server) = state.ui_claims.only(uri) {
                return Ok(Route::unchanged(uri, server.clone()));
            }
            // A guess would show the interface of one server for the tool of another.
            if state.ui_claims.is_shared(uri) {
                return Err(missing());
            }
        }
        let skill = skill_owner(servers, uri)?;
        let resources = self.merged(Family::Resources, servers, client).await;
        if let Some(route) = resources.route(uri) {
            // The list of one server must not take over a file in a skill of another.
            let is_same = skill.is_none_or(|owner| owner == route.server);
            return is_same.then(|| route.clone()).ok_or_else(missing);
        }
        if let Some(owner) = skill {
            return Ok(Route::unchanged(uri, owner));
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
            // If a list changes while it is read, `put` notices by this number and drops it.
            state.cache.generation()
        };
        let mut lists = Vec::new();
        let mut complete = true;
        for server in servers.iter().filter(|it| it.has(family.declared_by())) {
            let list = read_list(&server.handle, family, client).await;
            // A server that fails now is asked again by the next request.
            complete &= list.is_some();
            let (items, hints) = list.unwrap_or((Vec::new(), CacheHints::NONE));
            lists.push(ServerItems {
                server: server.identifier.clone(),
                items,
                hints,
            });
        }
        let merged = Arc::new(match family {
            Family::Prompts => Merged::distinct(lists, "name", None, |server, name| {
                prompt_name(server, name, self.name_limit)
            }),
            Family::Resources => {
                let claims = ui_claims(servers);
                Merged::distinct(lists, "uri", Some(&claims), renamed_uri)
            }
            Family::Templates => Merged::distinct(lists, "uriTemplate", None, renamed_uri),
        });
        if complete {
            let mut state = self.state();
            state.refresh(servers);
            // `refresh` has applied the changes that arrived meanwhile, and each of them has raised the generation.
            state.cache.put(family, Arc::clone(&merged), generation);
        }
        merged
    }

    fn state(&self) -> MutexGuard<'_, OpenedState> {
        lock(&self.state)
    }
}

impl OpenedState {
    /// Drops the lists that have changed, and all of them if the set of servers has.
    fn refresh(&mut self, servers: &[OpenServer]) {
        self.cache.take_events();
        let is_same = self
            .servers
            .iter()
            .eq(servers.iter().map(|it| &it.identifier));
        let ui_claims = ui_claims(servers);
        if !is_same || self.ui_claims != ui_claims {
            self.servers = servers.iter().map(|it| it.identifier.clone()).collect();
            self.ui_claims = ui_claims;
            self.cache.clear();
        }
    }
}

/// Returns the user interfaces that the tools of servers name.
pub(crate) fn ui_claims(servers: &[OpenServer]) -> UiClaims {
    let lists: Vec<_> = servers
        .iter()
        .filter_map(|server| Some((server.identifier.clone(), server.handle.status().tools?)))
        .collect();
    UiClaims::of(lists.iter().map(|(server, list)| (server.clone(), &**list)))
}

/// Returns the only server with a skill that a resource belongs to. A skill that several servers have belongs to none
/// of them.
fn skill_owner(servers: &[OpenServer], uri: &str) -> Result<Option<ServerIdentifier>, NativeError> {
    let has_it = |server: &&OpenServer| {
        let list = server.handle.status().tools;
        list.is_some_and(|list| list.skills.iter().any(|it| is_within(uri, it.root())))
    };
    let owners: Vec<&OpenServer> = servers.iter().filter(has_it).collect();
    match owners.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.identifier.clone())),
        // Several servers claim the directory, so none gets the reads of the others.
        several => {
            let uris = several.iter().map(|it| shared_uri(&it.identifier, uri));
            let uris = uris.collect::<Vec<_>>().join(" or ");
            Err(NativeError::invalid(format!(
                "Ambiguous resource: several servers have a skill with {uri}; read {uris}"
            )))
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
    let server = servers
        .iter()
        .find(|it| it.identifier == route.server)
        .ok_or(NativeError::NotOffered)?;
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
    renamed_ui(server, uri).unwrap_or_else(|| shared_uri(server, uri))
}

/// Returns the route of a generated URI: its beginning is compared with that of each server.
fn renamed_route(servers: &[OpenServer], uri: &str) -> Option<OpenRoute> {
    servers.iter().find_map(|server| {
        let identifier = &server.identifier;
        let other = || original_uri(identifier, uri);
        let original = original_ui(identifier, uri);
        Some(Route {
            shown: uri.into(),
            original: original.or_else(|| other().map(str::to_owned))?.into(),
            server: identifier.clone(),
        })
    })
}
