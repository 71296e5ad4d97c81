//! Native mode: the workbench is transparent for one toolbox. The client sees the tools, prompts and resources of its
//! servers under their own names, merged in the order of the file. A request goes to the one server that it concerns,
//! and the response comes back unchanged.
//!
//! In the other modes [`OpenLists`] does the same for the prompts and resources of all open toolboxes.

mod error;
mod list_cache;
mod merged;
mod nobody;
mod opened;
mod requests;
mod shown_tools;
mod shown_uris;
mod skills;
mod subscriptions;
mod ui_claims;
mod uri_template;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard};

use ident::{ServerIdentifier, ServerName};
use indexmap::IndexMap;
use rawjson::RawJson;
use serde_json::{Map, Value, json};

use crate::{
    call::{CallContext, ClientHandle, ClientId},
    downstream::{
        Change, DeclaredExtensions, Events, ServerEvent, ServerFamily, ServerHandle, ToolList,
    },
    era::{CacheHints, EXPERIMENTAL, EXTENSIONS, SKILLS_EXTENSION, TASKS_EXTENSION},
    sync::lock,
    toolbox::Toolbox,
};

pub(crate) use error::NativeError;
use list_cache::ListCache;
pub(crate) use merged::Route;
use merged::{Family, Merged, ServerItems};
pub(crate) use nobody::Nobody;
pub(crate) use opened::{OpenLists, OpenServer, ui_claims};
use shown_tools::ShownTools;
use skills::{ShownSkills, reads_directories};
use subscriptions::{Subscriber, Subscriptions, resource_of};
use ui_claims::original_ui;
pub(crate) use watch::{Changes, Watch};

/// The transparent view of one toolbox.
pub(crate) struct Native {
    toolbox: Arc<Toolbox>,
    /// The maximum length of a name that we create when two servers use the same one.
    name_limit: usize,
    /// The lists that were read from the servers and have not changed since.
    cache: Mutex<ListCache<ServerName>>,
    /// The tools that were last shown.
    shown_tools: Mutex<Option<ShownTools>>,
    subscriptions: Arc<Subscriptions>,
}

/// The introduction that a client gets when it starts.
pub(crate) struct Introduction {
    /// The capabilities of all servers together.
    pub capabilities: Value,
    /// The instructions of the servers.
    pub instructions: Option<String>,
}

impl Native {
    /// Creates the view of a toolbox whose servers announce their changes on `events`.
    pub(crate) fn new(toolbox: Arc<Toolbox>, name_limit: usize, events: Events) -> Self {
        let subscriptions = Subscriptions::new(Arc::clone(&toolbox));
        Self {
            toolbox,
            name_limit,
            cache: Mutex::new(ListCache::new(events)),
            shown_tools: Mutex::default(),
            subscriptions: Arc::new(subscriptions),
        }
    }

    pub(crate) fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    /// Returns the introduction for `server/discover`, which includes features that the legacy era lacks.
    pub(crate) fn discover(&self) -> Introduction {
        let mut introduced = self.introduce();
        if self.has_tasks() {
            introduced.capabilities[EXTENSIONS][TASKS_EXTENSION] = json!({});
        }
        introduced
    }

    /// Returns whether a server of the open toolbox may run calls as tasks.
    pub(crate) fn has_tasks(&self) -> bool {
        let catalogue = self.toolbox.catalogue();
        let mut lists = catalogue.lists().iter();
        lists.any(|(_, list)| list.introduction.tasks)
    }

    /// Returns the introduction for `initialize`.
    pub(crate) fn introduce(&self) -> Introduction {
        let catalogue = self.toolbox.catalogue();
        let lists = catalogue.lists();
        let mut capabilities = Map::new();
        // In any case: a server that comes up later announces its tools.
        capabilities.insert("tools".into(), json!({ "listChanged": true }));
        for family in ServerFamily::ALL {
            if lists.iter().any(|(_, list)| list.introduction.has(family)) {
                let value = capability(family, lists);
                capabilities.insert(family.capability().into(), value);
            }
        }
        let declared: Vec<&DeclaredExtensions> = lists
            .iter()
            .filter_map(|(_, list)| list.introduction.declared.as_deref())
            .collect();
        let extensions = declared.iter().map(|it| &it.extensions);
        let experimental = declared.iter().map(|it| &it.experimental);
        let mut extensions = merged_settings(extensions);
        // Of several settings the first counts, but one server that reads directories is enough.
        if lists.iter().any(|(_, list)| reads_directories(list)) {
            extensions.insert(SKILLS_EXTENSION.into(), json!({ "directoryRead": true }));
        }
        for (capability, merged) in [
            (EXTENSIONS, extensions),
            (EXPERIMENTAL, merged_settings(experimental)),
        ] {
            if !merged.is_empty() {
                capabilities.insert(capability.into(), Value::Object(merged));
            }
        }
        Introduction {
            capabilities: Value::Object(capabilities),
            instructions: instructions(lists),
        }
    }

    /// Returns the tools under the names that clients see.
    fn tools(&self) -> Arc<Merged> {
        self.shown_tools(|tools| Arc::clone(tools.merged()))
    }

    /// Returns the server that a user interface belongs to.
    fn ui_owner(&self, uri: &str) -> Option<ServerName> {
        self.shown_tools(|tools| Some(tools.ui_claims().first(uri)?.server.clone()))
    }

    fn shown_tools<T>(&self, read: impl FnOnce(&ShownTools) -> T) -> T {
        // Every call comes here, so lists are merged again only if one of them has changed.
        let mut shown = lock(&self.shown_tools);
        match &*shown {
            Some(tools) if tools.is_current() => read(tools),
            old => {
                let tools = ShownTools::merge(&self.toolbox, old.as_ref(), self.name_limit);
                read(shown.insert(tools))
            }
        }
    }

    /// Returns the definition of a tool as a client sees it.
    pub(crate) fn shown_tool(&self, name: &str) -> Option<RawJson> {
        self.tools().item(name).cloned()
    }

    /// Returns the server of the tool that clients see under a name, with the server's own name for it.
    pub(crate) fn route(&self, name: &str) -> Option<Route> {
        self.tools().route(name).cloned()
    }

    /// Returns the server with a tool of this name that is denied or withheld, and so has no name that clients see.
    pub(crate) fn missing(&self, name: &str) -> Option<(ServerName, Arc<ToolList>)> {
        let catalogue = self.toolbox.catalogue();
        let mut lists = catalogue.lists().iter();
        let hidden =
            |list: &ToolList| list.denied(name).is_some() || list.withheld_as(name).is_some();
        lists.find(|(_, list)| hidden(list)).cloned()
    }

    /// Handles a request of a client.
    pub(crate) async fn answer(
        &self,
        method: &str,
        params: &RawJson,
        context: CallContext,
    ) -> Result<RawJson, NativeError> {
        requests::answer(self, method, params, context).await
    }

    /// Returns the merged list of all servers. Reads it from them if it is not cached.
    async fn merged(&self, family: Family, client: &Arc<dyn ClientHandle>) -> Arc<Merged> {
        let generation = {
            let mut cache = self.cache();
            cache.take_events();
            if let Some(merged) = cache.get(family) {
                return merged;
            }
            // If a list changes while it is read, `put` notices by this number.
            cache.generation()
        };
        let mut lists = Vec::new();
        let mut complete = true;
        for (name, server) in self.servers_with(family.declared_by()) {
            let list = requests::read_list(&server, family, client).await;
            // A server that fails now is asked again by the next request.
            complete &= list.is_some();
            let (items, hints) = list.unwrap_or((Vec::new(), CacheHints::NONE));
            lists.push(ServerItems {
                server: name,
                items,
                hints,
            });
        }
        let merged = Arc::new(match family {
            Family::Prompts => Merged::by_name(lists, self.name_limit),
            Family::Resources => {
                let skills = ShownSkills::of(self);
                let owner =
                    |uri: &str| Some(self.ui_route(uri).or_else(|| skills.route(uri))?.server);
                Merged::by_key(lists, "uri", owner)
            }
            Family::Templates => Merged::by_key(lists, "uriTemplate", |_| None),
        });
        let mut cache = self.cache();
        cache.take_events();
        // A list that changed while it was read, or that could not be read completely, is read again the next time.
        if complete {
            cache.put(family, Arc::clone(&merged), generation);
        }
        drop(cache);
        merged
    }

    /// Returns the server that a resource belongs to: for a user interface the first server whose tools name it, for
    /// the files of a skill the server of the skill, then the first server that lists it, then the first with a
    /// template that it matches, then the only one that has resources at all.
    async fn resource_route(
        &self,
        uri: &str,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Route, NativeError> {
        let route = self.found_route(uri, client).await?;
        skills::refuse_withheld(self, &route)?;
        Ok(route)
    }

    async fn found_route(
        &self,
        uri: &str,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Route, NativeError> {
        let skills = ShownSkills::of(self);
        if let Some(route) = self.ui_route(uri).or_else(|| skills.route(uri)) {
            return Ok(route);
        }
        // From the surest to the weakest: the definition of a tool names the URI, a skill contains it, a list has it,
        // a template matches it.
        if let Some(route) = self.merged(Family::Resources, client).await.route(uri) {
            return Ok(route.clone());
        }
        if let Some(route) = self.merged(Family::Templates, client).await.matching(uri) {
            return Ok(route.clone());
        }
        match &self.servers_with(ServerFamily::Resources)[..] {
            [(server, _)] => Ok(Route::unchanged(uri, server.clone())),
            _ => Err(NativeError::ResourceNotFound(uri.to_owned())),
        }
    }

    /// Returns the route of a user interface that a tool names, by its own URI or by ours.
    fn ui_route(&self, uri: &str) -> Option<Route> {
        if let Some(server) = self.ui_owner(uri) {
            return Some(Route::unchanged(uri, server));
        }
        let contents = self.toolbox.contents();
        contents.servers().keys().find_map(|server| {
            let identifier = ServerIdentifier {
                toolbox: self.toolbox.name().clone(),
                server: server.clone(),
            };
            Some(Route {
                shown: uri.into(),
                original: original_ui(&identifier, uri)?.into(),
                server: server.clone(),
            })
        })
    }

    /// Returns the servers that have declared a family, in the order of the file.
    fn servers_with(&self, family: ServerFamily) -> Vec<(ServerName, Arc<ServerHandle>)> {
        let contents = self.toolbox.contents();
        let servers = contents.servers().iter().filter(|(_, server)| {
            let tools = server.status().tools;
            tools.is_some_and(|list| list.introduction.has(family))
        });
        servers
            .map(|(name, server)| (name.clone(), server.clone()))
            .collect()
    }

    /// Refuses requests of a family that no server has declared.
    fn require(&self, family: ServerFamily) -> Result<(), NativeError> {
        if self.servers_with(family).is_empty() {
            return Err(NativeError::NotOffered);
        }
        Ok(())
    }

    /// Returns whether a client is notified of a change. Drops the cached lists that the change makes stale.
    pub(crate) fn concerns(&self, event: &ServerEvent, client: &dyn ClientHandle) -> bool {
        if event.server.toolbox != *self.toolbox.name() {
            return false;
        }
        self.cache().take_events();
        match &event.change {
            Change::Prompts | Change::Resources => true,
            Change::Resource(params) => {
                let client = Subscriber::Client(client.id());
                let resource = resource_of(&event.server.server, params);
                resource.is_some_and(|it| self.subscriptions.has(client, &it))
            }
        }
    }

    /// Ends the subscriptions of a client that has gone.
    pub(crate) fn forget_client(&self, client: ClientId) {
        self.subscriptions.release(Subscriber::Client(client));
    }

    fn cache(&self) -> MutexGuard<'_, ListCache<ServerName>> {
        lock(&self.cache)
    }
}

/// Returns the declaration for a family that at least one server supports.
fn capability(family: ServerFamily, catalogue: &[(ServerName, Arc<ToolList>)]) -> Value {
    match family {
        ServerFamily::Prompts => json!({ "listChanged": true }),
        ServerFamily::Resources => {
            let subscribe = catalogue
                .iter()
                .any(|(_, list)| list.introduction.subscriptions);
            json!({ "subscribe": subscribe, "listChanged": true })
        }
        ServerFamily::Completions | ServerFamily::Logging => json!({}),
    }
}

/// Merges what servers declare by names. Of several settings for one name, those of the first server count.
fn merged_settings<'a>(
    declared: impl Iterator<Item = &'a IndexMap<String, String>>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for (name, settings) in declared.flatten() {
        if !merged.contains_key(name) {
            let settings = serde_json::from_str(settings).unwrap_or_else(|_| json!({}));
            merged.insert(name.clone(), settings);
        }
    }
    merged
}

/// Returns the instructions of the servers: unchanged if there is one server, otherwise with the servers' names.
fn instructions(catalogue: &[(ServerName, Arc<ToolList>)]) -> Option<String> {
    let said = catalogue
        .iter()
        .filter_map(|(server, list)| Some((server, list.introduction.instructions.as_deref()?)));
    let said: Vec<_> = said.collect();
    match &said[..] {
        [] => None,
        [(_, only)] => Some((*only).to_owned()),
        several => {
            let each = several
                .iter()
                .map(|(server, words)| format!("## {server}\n\n{words}"));
            Some(each.collect::<Vec<_>>().join("\n\n"))
        }
    }
}
