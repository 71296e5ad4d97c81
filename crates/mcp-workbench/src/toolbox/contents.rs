//! The contents of a toolbox for one version of the configuration: immutable, and replaced as a whole when the
//! configuration changes.

use std::{
    collections::HashSet,
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use ident::ServerName;
use indexmap::IndexMap;

use crate::{
    config,
    downstream::{Pool, Renewal, ServerHandle},
    visible::visible,
};

/// The servers of a toolbox, by name, in the order of the file.
pub(crate) type Servers = IndexMap<ServerName, Arc<ServerHandle>>;

/// A toolbox with its configuration and servers.
pub(crate) struct Contents {
    pub config: Arc<config::Toolbox>,
    pool: Arc<Pool>,
    /// Created when the toolbox is first opened, so that unused toolboxes cost nothing.
    servers: OnceLock<Servers>,
}

impl Contents {
    /// Creates the contents for a configuration, without servers.
    pub(super) fn new(config: Arc<config::Toolbox>, pool: Arc<Pool>) -> Self {
        Self {
            config,
            pool,
            servers: OnceLock::new(),
        }
    }

    pub(crate) fn servers(&self) -> &Servers {
        self.servers.get_or_init(|| {
            let servers = self.config.servers.iter();
            let added = servers.map(|(name, server)| {
                let handle = self.pool.add(&self.config.name, server);
                (name.clone(), Arc::new(handle))
            });
            added.collect()
        })
    }

    /// Returns the servers, if the toolbox was used.
    pub(crate) fn known_servers(&self) -> Vec<Arc<ServerHandle>> {
        let known = self.servers.get().into_iter();
        known.flat_map(IndexMap::values).cloned().collect()
    }

    /// Compares the tools of existing servers with the lock file again.
    pub(crate) fn recheck(&self) {
        for server in self.servers.get().into_iter().flat_map(IndexMap::values) {
            server.recheck();
        }
    }

    /// Returns the contents for a new configuration. Servers whose entries did not change are kept running.
    pub(super) fn renewed(&self, config: &Arc<config::Toolbox>, files: &ChangedFiles) -> Self {
        let renewed = Self::new(Arc::clone(config), Arc::clone(&self.pool));
        // A toolbox that was never used has no servers to renew.
        if let Some(known) = self.servers.get() {
            let servers = config.servers.iter().map(|(name, server)| {
                let handle = match known.get(name) {
                    Some(handle) => self.renewed_server(handle, server, files.renewal(server)),
                    None => Arc::new(self.pool.add(&config.name, server)),
                };
                (name.clone(), handle)
            });
            // Cannot fail: they were created above without servers.
            let _ = renewed.servers.set(servers.collect());
        }
        renewed
    }

    /// Returns the contents without the servers that are reserved for another client; `None` if there are none.
    pub(super) fn separated(&self) -> Option<Self> {
        let known = self.servers.get()?;
        let mut is_changed = false;
        let servers = known.iter().map(|(name, handle)| {
            let own = self.pool.separate(handle);
            is_changed |= own.is_some();
            let handle = own.map_or_else(|| Arc::clone(handle), Arc::new);
            (name.clone(), handle)
        });
        let servers: Servers = servers.collect();
        let separated = Self::new(Arc::clone(&self.config), Arc::clone(&self.pool));
        // Cannot fail: they were created above without servers.
        let _ = separated.servers.set(servers);
        is_changed.then_some(separated)
    }

    fn renewed_server(
        &self,
        handle: &Arc<ServerHandle>,
        server: &Arc<config::Server>,
        renewal: Renewal,
    ) -> Arc<ServerHandle> {
        let renewed = self.pool.renew(&self.config.name, handle, server, renewal);
        renewed.map_or_else(|| Arc::clone(handle), Arc::new)
    }
}

/// Files that the configuration refers to, and that have changed.
#[derive(Debug, Default)]
pub(crate) struct ChangedFiles(HashSet<PathBuf>);

impl ChangedFiles {
    pub(crate) fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(files.into_iter().collect())
    }

    fn renewal(&self, server: &config::Server) -> Renewal {
        match server.env_file() {
            // The server reads its `envFile` when it starts, so a change counts like one of the entry.
            Some(file) if self.0.contains(file) => Renewal::Always,
            _ => Renewal::IfNeeded,
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolboxChanges {
    pub added: Vec<ServerName>,
    pub changed: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    /// True if the description or the order of the servers changed.
    pub is_redescribed: bool,
    pub has_new_connect: bool,
}

impl ToolboxChanges {
    pub(super) fn between(
        old: &config::Toolbox,
        new: &config::Toolbox,
        files: &ChangedFiles,
    ) -> Self {
        let mut changes = Self::default();
        for (name, server) in &new.servers {
            match old.servers.get(name) {
                None => changes.added.push(name.clone()),
                Some(before) if before != server || files.renewal(server) == Renewal::Always => {
                    changes.changed.push(name.clone());
                }
                Some(_) => {}
            }
        }
        let gone = |name: &&ServerName| !new.servers.contains_key(*name);
        changes.removed = old.servers.keys().filter(gone).cloned().collect();
        let kept = |toolbox: &config::Toolbox, other: &config::Toolbox| -> Vec<ServerName> {
            let names = toolbox.servers.keys();
            let kept = names.filter(|name| other.servers.contains_key(*name));
            kept.cloned().collect()
        };
        // The names that both have, in the order of each: these differ only if servers have changed places.
        changes.is_redescribed =
            old.description != new.description || kept(old, new) != kept(new, old);
        changes.has_new_connect = old.connect != new.connect;
        changes
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the servers that changed.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &ServerName> {
        let servers = self.added.iter().chain(&self.changed);
        servers.chain(&self.removed)
    }
}

/// The text for the log, after the name of the toolbox.
impl fmt::Display for ToolboxChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("added", &self.added),
            ("changed", &self.changed),
            ("removed", &self.removed),
        ];
        let mut separator = "";
        for (what, servers) in parts {
            if !servers.is_empty() {
                let names: Vec<_> = servers
                    .iter()
                    .map(|it| format!("'{}'", visible(it.as_str())))
                    .collect();
                write!(f, "{separator}{what} {}", names.join(", "))?;
                separator = "; ";
            }
        }
        if self.is_redescribed {
            write!(f, "{separator}description or server order changed")?;
            separator = "; ";
        }
        if self.has_new_connect {
            write!(f, "{separator}`connect` changed")?;
        }
        Ok(())
    }
}
