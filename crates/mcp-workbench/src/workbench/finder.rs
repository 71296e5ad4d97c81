//! Searches for tools in all toolboxes. The index is built at the first search and updated at each one. A server
//! whose list has not changed since costs nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ident::{ServerIdentifier, ToolIdentifier, ToolboxName};
use search::{Explanation, Index, Query, ServerText, ToolText};
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore},
    task::JoinSet,
    time::Instant,
};

use super::Workbench;
use crate::{
    alarm::timeout_at,
    call::ClientHandle,
    config,
    downstream::{
        ConnectError, Phase, ServerHandle, ToolDefinition, ToolList, Urgency, load_cached_lists,
    },
    offload::offload,
    sync::lock,
    toolbox::ServerFailure,
};

/// The timeout for servers whose tools are unknown.
pub(super) const SEARCH_WAIT: Duration = Duration::from_secs(20);

/// The number of servers that a search starts in parallel, since starting takes a lot of CPU.
const MAX_PARALLEL_STARTS: usize = 8;

/// The number of tools that are shown if there is no good match.
const MAX_NEAREST: usize = 3;

#[derive(Default)]
pub(super) struct Finder {
    /// Locked while servers are indexed, which may take a second on another thread.
    state: Arc<AsyncMutex<SearchState>>,
    /// Servers that were not up when a search stopped waiting for them. The next search does not wait for them while
    /// they are still starting.
    late: Mutex<HashSet<ServerIdentifier>>,
}

#[derive(Default)]
struct SearchState {
    index: Index,
    /// The servers in the index.
    servers: HashMap<ServerIdentifier, Indexed>,
    /// The size of all indexed definitions.
    bytes: usize,
}

/// The state in which a server was indexed.
struct Indexed {
    config: Arc<config::Toolbox>,
    tools: Arc<ToolList>,
}

/// The hits of a search, and the servers that it covered.
pub(crate) struct Search {
    /// The best tools, best first.
    pub hits: Vec<FoundTool>,
    /// The total number of matching tools.
    pub matches: usize,
    /// True if one of the hits is about the subject of the query.
    pub is_good: bool,
    /// The number of tools that were searched.
    pub tools: usize,
    /// The number of servers that were searched.
    pub servers: usize,
    /// The toolboxes that were searched.
    pub toolboxes: Vec<ToolboxName>,
    /// The servers whose tools are unknown.
    pub failures: Vec<ServerFailure>,
}

impl Search {
    /// Returns the hits to show: without a good match only the nearest ones.
    pub(crate) fn shown(&self) -> &[FoundTool] {
        if self.is_good {
            &self.hits
        } else {
            &self.hits[..self.hits.len().min(MAX_NEAREST)]
        }
    }
}

pub(crate) struct FoundTool {
    pub tool: ToolIdentifier,
    /// The definition, as the server sent it.
    pub definition: ToolDefinition,
    /// Tools with nearly the same texts.
    pub alike: Vec<ToolIdentifier>,
    pub score: f32,
}

/// A server that is searched.
struct SearchTarget {
    identifier: ServerIdentifier,
    config: Arc<config::Toolbox>,
    server: Arc<ServerHandle>,
}

impl SearchTarget {
    fn failure(&self, error: Arc<ConnectError>) -> ServerFailure {
        ServerFailure {
            toolbox: self.identifier.toolbox.clone(),
            server: self.identifier.server.clone(),
            error,
        }
    }
}

/// A server to search, with its tools as they are known now.
struct TargetSnapshot {
    identifier: ServerIdentifier,
    config: Arc<config::Toolbox>,
    tools: Option<Arc<ToolList>>,
}

/// A query that can outlive its caller.
struct OwnedQuery {
    text: String,
    toolbox: Option<ToolboxName>,
    limit: usize,
}

impl OwnedQuery {
    fn of(query: &Query<'_>) -> Self {
        Self {
            text: query.text.to_owned(),
            toolbox: query.toolbox.cloned(),
            limit: query.limit,
        }
    }

    fn query(&self) -> Query<'_> {
        Query {
            text: &self.text,
            toolbox: self.toolbox.as_ref(),
            limit: self.limit,
        }
    }
}

/// Searches one toolbox or all, and waits at most `wait` for servers that have to be started.
pub(super) async fn search(
    workbench: &Workbench,
    query: &Query<'_>,
    client: &Arc<dyn ClientHandle>,
    wait: Duration,
) -> Search {
    let deadline = Instant::now() + wait;
    let failures = workbench
        .finder
        .start_unknown(&targets(workbench, query.toolbox), client, deadline)
        .await;
    // The configuration may have changed in the meantime.
    let targets = targets(workbench, query.toolbox);
    let search = workbench
        .finder
        .search(query, &targets, workbench.toolbox_names(), failures)
        .await;
    for hit in search.shown() {
        for tool in std::iter::once(&hit.tool).chain(&hit.alike) {
            // A model calls what it has found, without opening the toolbox first.
            if let Some(toolbox) = workbench.toolbox(tool.toolbox.as_str()) {
                toolbox.mark_found();
            }
        }
    }
    search
}

/// Returns the servers of one toolbox or of all, in the order of the file.
fn targets(workbench: &Workbench, chosen: Option<&ToolboxName>) -> Vec<SearchTarget> {
    let now = Arc::clone(&workbench.now.borrow());
    let mut targets = Vec::new();
    for (name, toolbox) in &now.toolboxes {
        if chosen.is_some_and(|chosen| chosen != name) {
            continue;
        }
        let contents = toolbox.contents();
        for (server, handle) in contents.servers() {
            targets.push(SearchTarget {
                identifier: ServerIdentifier {
                    toolbox: name.clone(),
                    server: server.clone(),
                },
                config: Arc::clone(&contents.config),
                server: Arc::clone(handle),
            });
        }
    }
    targets
}

impl Finder {
    /// Explains why a query finds tools, based on the last search.
    pub(super) async fn explain(
        &self,
        query: &Query<'_>,
        tools: Vec<ToolIdentifier>,
    ) -> Vec<(ToolIdentifier, Option<Explanation>)> {
        let query = OwnedQuery::of(query);
        self.with_state(0, move |state| {
            let tools = tools.into_iter().map(|tool| {
                let explanation = state.index.explain(&query.query(), &tool);
                (tool, explanation)
            });
            tools.collect()
        })
        .await
    }

    /// Runs work on the index; `more` is the size of the definitions that it may add.
    async fn with_state<T: Send + 'static>(
        &self,
        more: usize,
        work: impl FnOnce(&mut SearchState) -> T + Send + 'static,
    ) -> T {
        // A small index is searched at once. A large one takes milliseconds, which would hold up all clients, and
        // goes to a thread; whoever searches meanwhile waits for the lock.
        let mut state = Arc::clone(&self.state).lock_owned().await;
        offload(state.bytes + more, move || work(&mut state)).await
    }

    /// Starts the servers whose tools are unknown, and returns those that are not up in time.
    async fn start_unknown(
        &self,
        targets: &[SearchTarget],
        client: &Arc<dyn ClientHandle>,
        deadline: Instant,
    ) -> Vec<ServerFailure> {
        // A server whose tools are cached need not be started for a search.
        load_cached_lists(targets.iter().map(|target| &*target.server)).await;
        let turns = Arc::new(Semaphore::new(MAX_PARALLEL_STARTS));
        let mut starts = JoinSet::new();
        let mut answers = HashMap::new();
        for (number, target) in targets.iter().enumerate() {
            if target.server.status().tools.is_some() {
                continue;
            }
            match target.server.status().phase {
                Phase::Failed(error) => {
                    // It is retried in the background, but this search does not wait for it.
                    drop(target.server.connect(Urgency::ForCall, Arc::clone(client)));
                    answers.insert(number, Err(error));
                }
                // An earlier search has waited for it in full.
                Phase::Starting if self.is_late(&target.identifier) => {
                    answers.insert(number, Err(Arc::new(ConnectError::StillStarting)));
                }
                _ => {
                    let (server, client) = (Arc::clone(&target.server), Arc::clone(client));
                    let turns = Arc::clone(&turns);
                    starts.spawn(async move {
                        let _turn = turns.acquire().await;
                        (number, server.connect(Urgency::AskedFor, client).await)
                    });
                    // Replaced when it answers.
                    answers.insert(number, Err(Arc::new(ConnectError::StillStarting)));
                }
            }
        }
        while let Ok(Some(ended)) = timeout_at(deadline, starts.join_next()).await {
            answers.extend(ended);
        }
        // Dropping `starts` ends only the waiting. The servers continue to start, and the next search finds them.
        let failures = targets.iter().enumerate().filter_map(|(number, target)| {
            let error = answers.remove(&number)?.err()?;
            let is_late = matches!(*error, ConnectError::StillStarting);
            self.set_late(&target.identifier, is_late);
            Some(target.failure(error))
        });
        failures.collect()
    }

    fn is_late(&self, server: &ServerIdentifier) -> bool {
        self.late().contains(server)
    }

    fn set_late(&self, server: &ServerIdentifier, is_late: bool) {
        let mut late = self.late();
        if is_late {
            late.insert(server.clone());
        } else {
            late.remove(server);
        }
    }

    fn late(&self) -> MutexGuard<'_, HashSet<ServerIdentifier>> {
        lock(&self.late)
    }

    /// Updates the index and searches it. `configured` are all toolboxes.
    async fn search(
        &self,
        query: &Query<'_>,
        targets: &[SearchTarget],
        configured: Vec<ToolboxName>,
        failures: Vec<ServerFailure>,
    ) -> Search {
        load_cached_lists(targets.iter().map(|target| &*target.server)).await;
        let searched = targets.iter().map(|target| TargetSnapshot {
            identifier: target.identifier.clone(),
            config: Arc::clone(&target.config),
            tools: target.server.status().tools,
        });
        let searched: Vec<TargetSnapshot> = searched.collect();
        {
            let listed: HashSet<&ServerIdentifier> = searched
                .iter()
                .filter(|it| it.tools.is_some())
                .map(|it| &it.identifier)
                .collect();
            let mut late = self.late();
            // A server that has listed its tools is no longer late, and one that is gone will never answer.
            late.retain(|server| configured.contains(&server.toolbox) && !listed.contains(server));
        }
        let lists = searched.iter().filter_map(|it| it.tools.as_ref());
        let bytes = lists.map(|list| list.bytes()).sum();
        let query = OwnedQuery::of(query);
        self.with_state(bytes, move |state| {
            state.forget_others(query.toolbox.as_ref(), &searched, &configured);
            for server in &searched {
                state.index_server(server);
            }
            state.search(&query.query(), &searched, failures)
        })
        .await
    }
}

impl SearchState {
    /// Removes servers from the index that are no longer configured.
    fn forget_others(
        &mut self,
        chosen: Option<&ToolboxName>,
        searched: &[TargetSnapshot],
        configured: &[ToolboxName],
    ) {
        let there: HashSet<&ServerIdentifier> = searched.iter().map(|it| &it.identifier).collect();
        let is_gone = |indexed: &ServerIdentifier| match chosen {
            // A search in one toolbox says nothing about servers of the others, unless their toolbox is gone.
            Some(chosen) if *chosen != indexed.toolbox => !configured.contains(&indexed.toolbox),
            _ => !there.contains(indexed),
        };
        let gone = self
            .servers
            .keys()
            .filter(|indexed| is_gone(indexed))
            .cloned();
        for server in gone.collect::<Vec<_>>() {
            self.remove(&server);
        }
    }

    fn remove(&mut self, server: &ServerIdentifier) {
        if let Some(indexed) = self.servers.remove(server) {
            self.bytes -= indexed.tools.bytes();
            self.index.remove(server);
        }
    }

    /// Indexes the tools of a server, if they have changed.
    fn index_server(&mut self, target: &TargetSnapshot) {
        let Some(tools) = &target.tools else {
            return self.remove(&target.identifier);
        };
        if let Some(indexed) = self.servers.get(&target.identifier)
            // A list and a configuration are replaced whole, so equal pointers mean that nothing has changed.
            && Arc::ptr_eq(&indexed.tools, tools)
            && Arc::ptr_eq(&indexed.config, &target.config)
        {
            return;
        }
        self.remove(&target.identifier);
        let introduction = &tools.introduction;
        let said = [&introduction.product, &introduction.instructions];
        let said = said.into_iter().filter_map(|it| it.as_deref());
        let server = ServerText {
            toolbox: &target.identifier.toolbox,
            server: &target.identifier.server,
            about: std::iter::once(target.config.description.as_str())
                .chain(said)
                .collect(),
        };
        let texts = tools.tools().iter().map(|tool| ToolText {
            name: &tool.name,
            definition: &tool.definition,
        });
        self.index.put(&server, texts);
        self.bytes += tools.bytes();
        let indexed = Indexed {
            config: Arc::clone(&target.config),
            tools: Arc::clone(tools),
        };
        self.servers.insert(target.identifier.clone(), indexed);
    }

    fn search(
        &self,
        query: &Query<'_>,
        targets: &[TargetSnapshot],
        failures: Vec<ServerFailure>,
    ) -> Search {
        let found = self.index.search(query);
        let hits = found.hits.into_iter().filter_map(|hit| {
            let indexed = self.servers.get(&hit.tool.server_identifier())?;
            Some(FoundTool {
                definition: indexed.tools.get(hit.tool.tool.as_str())?.clone(),
                tool: hit.tool,
                alike: hit.alike,
                score: hit.score,
            })
        });
        let hits = hits.collect();
        let searched = targets
            .iter()
            .filter_map(|target| self.servers.get(&target.identifier));
        let mut toolboxes: Vec<ToolboxName> = Vec::new();
        for target in targets {
            // Targets are in the order of the file, so servers of one toolbox are neighbours.
            if toolboxes.last() != Some(&target.identifier.toolbox) {
                toolboxes.push(target.identifier.toolbox.clone());
            }
        }
        Search {
            hits,
            matches: found.matches,
            is_good: found.is_good,
            tools: searched.clone().map(|it| it.tools.tools().len()).sum(),
            servers: searched.count(),
            toolboxes,
            failures,
        }
    }
}

#[cfg(test)]
mod tests;
