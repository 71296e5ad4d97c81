//! The tool list of a server in the cache: read once, when a toolbox is opened or searched without starting the
//! server, and written after the server listed its tools.

use std::sync::{Arc, Mutex, MutexGuard};

use rawjson::RawJson;

use crate::{
    budget::SelectableResult,
    config::{Secrets, Server},
    downstream::{
        deferred_writes::DeferredWrites,
        instances::Instances,
        listing::{PinRules, ToolList},
        server::{About, ServerHandle},
        snapshot::ServerSnapshot,
        supervisor::SupervisorContext,
        tool_cache::{CacheUpdate, ToolCache, pinned_list},
    },
    lock::ServerPins,
    offload::run_blocking,
    server_cache::{CachedProtocol, NotCached},
    shapes::Shapes,
    sync::lock,
};

/// The cached list of one server.
pub(crate) struct CachedList {
    cache: Arc<ToolCache>,
    /// The pins of the server, as far as they are known without starting it.
    pins: ServerPins,
    state: Mutex<CachedListState>,
    /// The shapes of the server's results.
    shapes: Arc<Shapes>,
}

#[derive(Default)]
struct CachedListState {
    list: LoadState,
    /// The reason why the last snapshot was not stored.
    not_cached: Option<Arc<NotCached>>,
}

#[derive(Default)]
enum LoadState {
    #[default]
    Unread,
    Absent,
    /// The snapshot is stored too, so that a change of the rules reads no file. It shares its text with the list.
    List(Box<ServerSnapshot>, Arc<ToolList>),
}

impl CachedList {
    pub(crate) fn new(cache: Arc<ToolCache>, pins: ServerPins) -> Self {
        Self {
            cache,
            pins,
            state: Mutex::default(),
            shapes: Arc::default(),
        }
    }

    /// Returns the shapes of the server's results.
    pub(crate) fn shapes(&self) -> &Arc<Shapes> {
        &self.shapes
    }

    /// Returns the list, if it was loaded.
    pub(crate) fn get(&self) -> Option<Arc<ToolList>> {
        match &self.state().list {
            LoadState::Unread | LoadState::Absent => None,
            LoadState::List(_, tools) => Some(Arc::clone(tools)),
        }
    }

    fn is_unread(&self) -> bool {
        matches!(self.state().list, LoadState::Unread)
    }

    /// Reads the list and applies the rules of the entry, unless that was done before. Reads files.
    pub(crate) fn load(&self, server: &Server) {
        if !self.is_unread() {
            return;
        }
        let record = self.cache.read(server);
        self.shapes.load(record.shapes());
        let snapshot = record
            .tools()
            .and_then(|(it, _)| ServerSnapshot::from_json(it));
        let loaded = snapshot.map_or(LoadState::Absent, |snapshot| {
            let tools = Arc::new(pinned_list(&snapshot, server, &self.pins, &self.shapes));
            LoadState::List(Box::new(snapshot), tools)
        });
        let mut state = self.state();
        // Another caller may have loaded the list meanwhile, and its readers have seen that one.
        if matches!(state.list, LoadState::Unread) {
            state.list = loaded;
        }
    }

    /// Returns a list without the tools that may no longer be offered. The server is not started for that; its own
    /// approval is checked when it is.
    pub(crate) fn ruled(&self, server: &Server, tools: &Arc<ToolList>) -> Arc<ToolList> {
        tools.ruled(&PinRules {
            pins: &self.pins,
            mode: server.pin,
        })
    }

    /// Applies the rules of a changed entry or lock file.
    pub(crate) fn renew(&self, server: &Server) {
        let mut state = self.state();
        if let LoadState::List(snapshot, tools) = &mut state.list {
            *tools = Arc::new(pinned_list(snapshot, server, &self.pins, &self.shapes));
        }
    }

    fn store(
        &self,
        server: &Server,
        grant: Option<&str>,
        learned: &CacheUpdate,
        secrets: &Secrets,
    ) {
        let stored = self.cache.store(server, grant, learned, secrets);
        if let Err(reason) = &stored {
            tracing::debug!("not caching the tool list: {reason}");
        }
        self.state().not_cached = stored.err().map(Arc::new);
    }

    /// Returns the reason why the last snapshot was not stored.
    pub(crate) fn not_cached(&self) -> Option<Arc<NotCached>> {
        self.state().not_cached.clone()
    }

    fn state(&self) -> MutexGuard<'_, CachedListState> {
        lock(&self.state)
    }
}

/// Loads the cached lists of servers whose tools are unknown, off the event loop and on one thread for all.
pub(crate) async fn load_cached_lists(servers: impl Iterator<Item = &ServerHandle>) {
    let unread = servers.filter(|server| {
        server.about.cached_list.is_unread() && server.inspect(|status| status.tools.is_none())
    });
    let unread: Vec<Arc<About>> = unread.map(|server| Arc::clone(&server.about)).collect();
    if unread.is_empty() {
        return;
    }
    let load = move || {
        for about in unread {
            about.cached_list.load(&about.entry().server);
        }
    };
    if let Err(error) = run_blocking(load).await {
        tracing::warn!("failed to read the server cache: {error}");
    }
}

/// Writes the snapshots of a server to the cache.
pub(crate) struct CacheWriter {
    about: Arc<About>,
    cache: Arc<ToolCache>,
    instances: Arc<Instances>,
    deferred_writes: Arc<DeferredWrites>,
    /// The protocol of the server, if it was detected.
    protocol: Option<CachedProtocol>,
}

impl CacheWriter {
    pub(crate) fn new(
        about: &Arc<About>,
        context: &SupervisorContext,
        protocol: Option<CachedProtocol>,
    ) -> Self {
        Self {
            about: Arc::clone(about),
            cache: Arc::clone(&context.tool_cache),
            instances: Arc::clone(&context.instances),
            deferred_writes: Arc::clone(&context.deferred_writes),
            protocol,
        }
    }

    /// Records that the server has asked its client something, the first time.
    pub(crate) fn write_asks_back(&self) {
        if !self.instances.mark_asks_back(&self.about) {
            return;
        }
        let (about, cache) = (Arc::clone(&self.about), Arc::clone(&self.cache));
        self.deferred_writes.add(move || {
            cache.store_asks_back(&about.entry().server, about.oauth.grant().as_deref());
        });
    }

    /// Returns the shapes of the server's results.
    pub(crate) fn shapes(&self) -> &Arc<Shapes> {
        self.about.cached_list.shapes()
    }

    /// Reads the results that wait for that in the background, and stores what was learned.
    pub(crate) fn learn_shapes(&self) {
        if !self.shapes().take_samples() {
            return;
        }
        let (about, cache) = (Arc::clone(&self.about), Arc::clone(&self.cache));
        self.deferred_writes.add(move || {
            let shapes = about.cached_list.shapes();
            let json = |result: &RawJson| Some(SelectableResult::of(result).ok()?.input().clone());
            if shapes.read_samples(json) {
                let grant = about.oauth.grant();
                cache.store_shapes(&about.entry().server, grant.as_deref(), shapes);
            }
        });
    }

    /// Writes a snapshot of the server in the background, after those who wait for its tools have them.
    pub(crate) fn write(&self, server: &Arc<Server>, snapshot: &ServerSnapshot, secrets: &Secrets) {
        let about = Arc::clone(&self.about);
        let (server, secrets) = (Arc::clone(server), secrets.clone());
        let learned = CacheUpdate {
            snapshot: snapshot.clone(),
            protocol: self.protocol.clone(),
        };
        // Captured now: a sign-in before the write may show different tools.
        let grant = self.about.oauth.grant();
        self.deferred_writes.add(move || {
            let list = &about.cached_list;
            list.store(&server, grant.as_deref(), &learned, &secrets);
        });
    }
}
