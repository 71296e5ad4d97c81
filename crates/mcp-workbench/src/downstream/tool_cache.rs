//! The tool cache: the tools of servers in the [server cache](crate::server_cache), filtered by the current rules of
//! their entries, so that they can be shown without starting a server.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ident::ToolName;

use super::{
    listing::{ListRules, ToolList, listed_names},
    oauth::stored_grant,
    snapshot::ServerSnapshot,
};
use crate::{
    config::{Config, Secrets, Server, Transport},
    lock::ServerPins,
    server_cache::{
        CacheKey, CacheSize, CachedProtocol, CachedServer, NotCached, ServerCache, Subject,
    },
    shapes::Shapes,
};

/// The tools of all servers that were started in earlier runs.
pub(crate) struct ToolCache {
    cache: Arc<ServerCache>,
    /// The state directory, where sign-ins are stored: the tools may depend on the account.
    state: Option<PathBuf>,
}

/// The result of a start, for the cache.
pub(crate) struct CacheUpdate {
    pub(crate) snapshot: ServerSnapshot,
    /// The protocol, if it was detected.
    pub(crate) protocol: Option<CachedProtocol>,
}

impl ToolCache {
    pub(crate) fn new(cache: Arc<ServerCache>, state: Option<&Path>) -> Self {
        Self {
            cache,
            state: state.map(Into::into),
        }
    }

    /// Returns the tool cache of a configuration, for commands that start no server.
    pub(crate) fn of(config: &Config) -> Self {
        let cache = Arc::new(ServerCache::new(config.cache.as_deref()));
        Self::new(cache, config.state.as_deref())
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.cache.folder()
    }

    pub(crate) fn size(&self) -> CacheSize {
        self.cache.size()
    }

    /// Reads the record of a server. Files are read.
    pub(crate) fn read(&self, server: &Server) -> CachedServer {
        let record = self.key(server).map(|key| self.cache.read(&key));
        record.unwrap_or_default()
    }

    /// Reads the record of a server without its tools, with its key if it can have one. Files are read.
    pub(crate) fn read_head(&self, server: &Server) -> (Option<CacheKey>, CachedServer) {
        let key = self.key(server);
        let record = key.as_ref().map(|key| self.cache.read_head(key));
        (key, record.unwrap_or_default())
    }

    fn key(&self, server: &Server) -> Option<CacheKey> {
        // The tools of a user are not written to a file that others use too.
        if server.is_per_user() {
            return None;
        }
        let grant = match &server.transport {
            Transport::Remote(endpoint) => stored_grant(endpoint, self.state.as_deref()),
            Transport::Stdio(_) | Transport::Unset(_) => None,
        };
        let grant = grant.as_deref();
        self.cache.key(&Subject::Launch { server, grant })
    }

    /// Reads the snapshot of a server and its age. Files are read.
    pub(crate) fn snapshot(&self, server: &Server) -> Option<(ServerSnapshot, Duration)> {
        let record = self.read(server);
        let (tools, age) = record.tools()?;
        Some((ServerSnapshot::from_json(tools)?, age))
    }

    /// Returns the list of a server by the rules of its entry, without those of pins, and the time since a start confirmed it,
    /// to the day. Files are read.
    pub(crate) fn list(&self, server: &Server) -> Option<(ToolList, Duration)> {
        let (snapshot, age) = self.snapshot(server)?;
        let list = ToolList::of(&snapshot, &ListRules::of(server, snapshot.era));
        Some((list, age))
    }

    /// Returns whether a server has asked its client something in an earlier run. Files are read.
    pub(crate) fn asks_back(&self, server: &Server) -> bool {
        self.read_head(server).1.asks_back()
    }

    /// Returns the names of the tools that a server listed and its filters let through, denied and withheld ones
    /// included; none where the cache does not have the server.
    pub(crate) fn tool_names(&self, server: &Server) -> Vec<ToolName> {
        let cached = self.snapshot(server);
        cached.map_or_else(Vec::new, |(snapshot, _)| {
            listed_names(&snapshot, &server.filters)
        })
    }

    /// Stores the result of a start under a sign-in. Reads and writes files.
    pub(crate) fn store(
        &self,
        server: &Server,
        grant: Option<&str>,
        learned: &CacheUpdate,
        secrets: &Secrets,
    ) -> Result<(), NotCached> {
        if server.is_per_user() {
            return Ok(());
        }
        // A server may repeat a credential of its entry in a description, and the cache is a file.
        let mut secrets = secrets.clone();
        secrets.merge(&server.literal_credentials());
        let subject = Subject::Launch { server, grant };
        self.cache.update(&subject, &secrets, |record| {
            record.set_tools(learned.snapshot.to_json());
            record.set_protocol(learned.protocol.clone());
        })
    }

    /// Records that a server asks its client something. Reads and writes files.
    pub(crate) fn store_asks_back(&self, server: &Server, grant: Option<&str>) {
        if server.is_per_user() {
            return;
        }
        let subject = Subject::Launch { server, grant };
        let stored = self.cache.update(&subject, &Secrets::default(), |record| {
            record.set_asks_back();
        });
        if let Err(error) = stored {
            tracing::debug!("failed to record in the cache that a server asks back: {error}");
        }
    }

    /// Stores the shapes of a server's results. Reads and writes files.
    pub(crate) fn store_shapes(&self, server: &Server, grant: Option<&str>, shapes: &Shapes) {
        if server.is_per_user() {
            return;
        }
        let subject = Subject::Launch { server, grant };
        let secrets = server.literal_credentials();
        let stored = self.cache.update(&subject, &secrets, |record| {
            shapes.load(record.shapes());
            let learned = shapes.to_json(record.shapes());
            // Names of members come from a server; the tools must not be lost because of them.
            let learned = learned.filter(|it| !secrets.occur_in_json(it.as_str()));
            record.set_shapes(learned);
        });
        if let Err(error) = stored {
            tracing::debug!("failed to store the shapes of results in the cache: {error}");
        }
    }

    /// Removes the protocol of a server because it was wrong. Reads and writes files.
    pub(crate) fn forget_protocol(&self, server: &Server, grant: Option<&str>) {
        let subject = Subject::Launch { server, grant };
        let stored = self.cache.update(&subject, &Secrets::default(), |record| {
            record.set_protocol(None);
        });
        if let Err(error) = stored {
            tracing::debug!("failed to remove the protocol of a server from the cache: {error}");
        }
    }
}

/// Returns the list of a snapshot, by the rules of the entry and by what is pinned.
pub(crate) fn pinned_list(
    snapshot: &ServerSnapshot,
    server: &Server,
    pins: &ServerPins,
    shapes: &Shapes,
) -> ToolList {
    let rules = ListRules::of(server, snapshot.era).with_pins(pins, server.pin);
    ToolList::of(snapshot, &rules.with_shapes(server, shapes))
}

#[cfg(test)]
mod tests;
