//! Finding tools in all toolboxes by what they do. The index is made at the first search and brought up to date at
//! each: a server whose list is the one that was indexed costs nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Semaphore,
    task::{JoinSet, yield_now},
    time::Instant,
};

use super::Workbench;
use crate::{
    alarm::timeout_at,
    call::ClientHandle,
    config,
    downstream::{ConnectError, Phase, ServerHandle, ToolDefinition, ToolList, Urgency},
    ident::{ServerIdentifier, ToolIdentifier, ToolboxName},
    search::{Explanation, Index, Query, ServerText, ToolText},
    toolbox::ServerFailure,
};

/// How long a search waits for servers of which nothing is known.
pub(super) const SEARCH_WAIT: Duration = Duration::from_secs(20);

/// How many of them it starts at once: starting is hard work for a machine.
const AT_ONCE: usize = 8;

/// What is known for searching.
#[derive(Default)]
pub(super) struct Finder(Mutex<Known>);

#[derive(Default)]
struct Known {
    index: Index,
    /// What is in the index.
    servers: HashMap<ServerIdentifier, Indexed>,
    /// Servers that a search has waited for in vain: the next one does not, while they still start.
    late: HashSet<ServerIdentifier>,
}

/// A server as it was indexed.
struct Indexed {
    config: Arc<config::Toolbox>,
    tools: Arc<ToolList>,
}

/// What a search has found, and where it has looked.
pub struct Search {
    /// The best, best first.
    pub hits: Vec<FoundTool>,
    /// How many tools match in all.
    pub matches: usize,
    /// How many tools were looked at.
    pub tools: usize,
    /// How many servers have them.
    pub servers: usize,
    /// The toolboxes that were looked into.
    pub toolboxes: Vec<ToolboxName>,
    /// The servers whose tools are not known.
    pub failures: Vec<ServerFailure>,
}

/// A tool that was found.
pub struct FoundTool {
    /// Its names.
    pub tool: ToolIdentifier,
    /// As its server described it.
    pub definition: ToolDefinition,
    /// Tools that are nearly the same.
    pub alike: Vec<ToolIdentifier>,
    /// How well it matches.
    pub score: f32,
}

/// A server that is searched.
struct Place {
    identifier: ServerIdentifier,
    config: Arc<config::Toolbox>,
    server: Arc<ServerHandle>,
}

impl Place {
    fn failure(&self, error: Arc<ConnectError>) -> ServerFailure {
        ServerFailure {
            toolbox: self.identifier.toolbox.clone(),
            server: self.identifier.server.clone(),
            error,
        }
    }
}

/// Searches one toolbox or all, and waits for at most `wait` for servers that have to be started.
pub(super) async fn search(
    workbench: &Workbench,
    query: &Query<'_>,
    client: &Arc<dyn ClientHandle>,
    wait: Duration,
) -> Search {
    let deadline = Instant::now() + wait;
    let failures = workbench
        .finder
        .meet(&places(workbench, query.toolbox), client, deadline)
        .await;
    // The configuration may have changed meanwhile.
    let places = places(workbench, query.toolbox);
    forget_others(workbench, query.toolbox, &places);
    for place in &places {
        if workbench.finder.take_up(place) {
            // Others have their turn between two servers.
            yield_now().await;
        }
    }
    let search = workbench.finder.search(query, &places, failures);
    for hit in &search.hits {
        for tool in std::iter::once(&hit.tool).chain(&hit.alike) {
            if let Some(toolbox) = workbench.toolbox(tool.toolbox.as_str()) {
                toolbox.note_found();
            }
        }
    }
    search
}

/// Returns the servers of one toolbox or of all, in the order of the file.
fn places(workbench: &Workbench, chosen: Option<&ToolboxName>) -> Vec<Place> {
    let now = Arc::clone(&workbench.now.borrow());
    let mut places = Vec::new();
    for (name, toolbox) in &now.toolboxes {
        if chosen.is_some_and(|chosen| chosen != name) {
            continue;
        }
        let contents = toolbox.contents();
        for (server, handle) in contents.servers() {
            places.push(Place {
                identifier: ServerIdentifier {
                    toolbox: name.clone(),
                    server: server.clone(),
                },
                config: Arc::clone(&contents.config),
                server: Arc::clone(handle),
            });
        }
    }
    places
}

/// Takes servers out of the index that are not there any more.
fn forget_others(workbench: &Workbench, chosen: Option<&ToolboxName>, places: &[Place]) {
    let there: HashSet<&ServerIdentifier> = places.iter().map(|it| &it.identifier).collect();
    workbench.finder.forget(|known| {
        if chosen.is_some_and(|chosen| *chosen != known.toolbox) {
            return workbench.toolbox(known.toolbox.as_str()).is_none();
        }
        !there.contains(known)
    });
}

impl Finder {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why a tool is found by a query, from what was last searched.
    pub(super) fn explain(&self, query: &Query<'_>, tool: &ToolIdentifier) -> Option<Explanation> {
        self.known().index.explain(query, tool)
    }

    /// Has the servers started of which nothing is known, and returns those that are not up in time.
    async fn meet(
        &self,
        places: &[Place],
        client: &Arc<dyn ClientHandle>,
        deadline: Instant,
    ) -> Vec<ServerFailure> {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let mut meeting = JoinSet::new();
        let mut answers = HashMap::new();
        for (number, place) in places.iter().enumerate() {
            if place.server.recall().is_some() {
                continue;
            }
            match place.server.status().phase {
                Phase::Failed(error) => {
                    // It is tried again, and not waited for a second time.
                    drop(place.server.connect(Urgency::ForCall, Arc::clone(client)));
                    answers.insert(number, Err(error));
                }
                Phase::Starting if self.is_late(&place.identifier) => {
                    answers.insert(number, Err(Arc::new(ConnectError::StillStarting)));
                }
                _ => {
                    let (server, client) = (Arc::clone(&place.server), Arc::clone(client));
                    let turns = Arc::clone(&turns);
                    meeting.spawn(async move {
                        let _turn = turns.acquire().await;
                        (number, server.connect(Urgency::AskedFor, client).await)
                    });
                    // Until it answers.
                    answers.insert(number, Err(Arc::new(ConnectError::StillStarting)));
                }
            }
        }
        while let Ok(Some(met)) = timeout_at(deadline, meeting.join_next()).await {
            answers.extend(met);
        }
        let failures = places.iter().enumerate().filter_map(|(number, place)| {
            let error = answers.remove(&number)?.err()?;
            let is_late = matches!(*error, ConnectError::StillStarting);
            self.note_late(&place.identifier, is_late);
            Some(place.failure(error))
        });
        failures.collect()
    }

    fn is_late(&self, server: &ServerIdentifier) -> bool {
        self.known().late.contains(server)
    }

    fn note_late(&self, server: &ServerIdentifier, is_late: bool) {
        let mut known = self.known();
        if is_late {
            known.late.insert(server.clone());
        } else {
            known.late.remove(server);
        }
    }

    /// Takes servers out of the index.
    fn forget(&self, is_gone: impl Fn(&ServerIdentifier) -> bool) {
        let mut known = self.known();
        let known = &mut *known;
        known.late.retain(|server| !is_gone(server));
        known.servers.retain(|server, _| {
            let is_gone = is_gone(server);
            if is_gone {
                known.index.remove(server);
            }
            !is_gone
        });
    }

    /// Indexes what is known of a server, if it is not what is indexed. Returns whether that took some work.
    fn take_up(&self, place: &Place) -> bool {
        let mut known = self.known();
        let known = &mut *known;
        let Some(tools) = place.server.recall() else {
            let was_known = known.servers.remove(&place.identifier).is_some();
            if was_known {
                known.index.remove(&place.identifier);
            }
            return was_known;
        };
        known.late.remove(&place.identifier);
        if let Some(indexed) = known.servers.get(&place.identifier)
            && Arc::ptr_eq(&indexed.tools, &tools)
            && Arc::ptr_eq(&indexed.config, &place.config)
        {
            return false;
        }
        let introduction = &tools.introduction;
        let said = [&introduction.product, &introduction.instructions];
        let said = said.into_iter().filter_map(|it| it.as_deref());
        let server = ServerText {
            toolbox: &place.identifier.toolbox,
            server: &place.identifier.server,
            about: std::iter::once(place.config.description.as_str())
                .chain(said)
                .collect(),
        };
        let texts = tools.tools().iter().map(|tool| ToolText {
            name: &tool.name,
            definition: &tool.definition,
        });
        known.index.put(&server, texts);
        let config = Arc::clone(&place.config);
        let indexed = Indexed { config, tools };
        known.servers.insert(place.identifier.clone(), indexed);
        true
    }

    /// Asks the index.
    fn search(&self, query: &Query<'_>, places: &[Place], failures: Vec<ServerFailure>) -> Search {
        let known = self.known();
        let found = known.index.search(query);
        let hits = found.hits.into_iter().filter_map(|hit| {
            let indexed = known.servers.get(&hit.tool.server_identifier())?;
            Some(FoundTool {
                definition: indexed.tools.get(hit.tool.tool.as_str())?.clone(),
                tool: hit.tool,
                alike: hit.alike,
                score: hit.score,
            })
        });
        let hits = hits.collect();
        let searched = places
            .iter()
            .filter_map(|place| known.servers.get(&place.identifier));
        let mut toolboxes: Vec<ToolboxName> = Vec::new();
        for place in places {
            if toolboxes.last() != Some(&place.identifier.toolbox) {
                toolboxes.push(place.identifier.toolbox.clone());
            }
        }
        Search {
            hits,
            matches: found.matches,
            tools: searched.clone().map(|it| it.tools.tools().len()).sum(),
            servers: searched.count(),
            toolboxes,
            failures,
        }
    }
}

#[cfg(test)]
mod tests;
