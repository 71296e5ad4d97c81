//! The servers of all clients of this process. Each client has a [`Pool`](super::Pool) of its own, and the pools find
//! each other's servers here. A server lives as long as a client holds its handle; this table does not keep it alive.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{mpsc, watch};

use super::{
    pool::View,
    server::{About, Command, ServerHandle, Status},
    supervisor::adapt::Entry,
};
use crate::{
    config::{NotShared, Share, Transport, not_shared},
    sync::lock,
};

/// Names one client of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ViewId(u64);

impl ViewId {
    /// Returns an id that no other client of this process has.
    pub(super) fn next() -> Self {
        static VIEWS: AtomicU64 = AtomicU64::new(0);
        Self(VIEWS.fetch_add(1, Ordering::Relaxed))
    }
}

/// The clients that may use an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SharingScope {
    /// All clients with an equal entry.
    Everybody,
    /// The clients in one folder with an equal entry.
    Folder(PathBuf),
    /// One client, because the server cannot be shared or has asked back.
    Only(ViewId),
}

/// The servers of all clients of this process.
#[derive(Default)]
pub(crate) struct Instances {
    table: Mutex<Vec<Instance>>,
    /// Counts the servers that are reserved for one client since they asked back.
    reserved: watch::Sender<u64>,
}

struct Instance {
    server: WeakServer,
    scope: SharingScope,
    users: BTreeSet<ViewId>,
}

/// A server that this entry does not keep alive.
struct WeakServer {
    commands: mpsc::WeakUnboundedSender<Command>,
    status: watch::Receiver<Status>,
    about: Weak<About>,
}

/// A server and its clients.
pub(crate) struct InstanceUse {
    pub(crate) server: ServerHandle,
    pub(crate) users: BTreeSet<ViewId>,
    pub(crate) is_shareable: bool,
}

impl WeakServer {
    fn of(server: &ServerHandle) -> Self {
        Self {
            commands: server.commands.downgrade(),
            status: server.status.clone(),
            about: Arc::downgrade(&server.about),
        }
    }

    fn upgrade(&self) -> Option<ServerHandle> {
        Some(ServerHandle {
            commands: self.commands.upgrade()?,
            status: self.status.clone(),
            about: self.about.upgrade()?,
        })
    }

    fn number(&self) -> Option<u64> {
        Some(self.about.upgrade()?.number)
    }
}

impl Instances {
    /// Returns a server of this scope whose entry fits, and records the client as its user.
    pub(super) fn join(
        &self,
        scope: &SharingScope,
        view: ViewId,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<ServerHandle> {
        let mut table = self.table();
        let mut instances = table.iter_mut();
        instances.find_map(|instance| {
            if instance.scope != *scope {
                return None;
            }
            let server = instance.server.upgrade()?;
            fits(&server.entry()).then(|| {
                instance.users.insert(view);
                server
            })
        })
    }

    /// Adds a new server with its first user.
    pub(super) fn add(&self, server: &ServerHandle, scope: SharingScope, view: ViewId) {
        let mut table = self.table();
        table.retain(|it| it.server.upgrade().is_some());
        // A server that ends does not remove itself, so the ended ones were removed above.
        table.push(Instance {
            server: WeakServer::of(server),
            scope,
            users: BTreeSet::from([view]),
        });
    }

    /// Returns whether a client is the only one that uses a server.
    pub(super) fn is_only_user(&self, number: u64, view: ViewId) -> bool {
        let table = self.table();
        let mut others = table.iter().filter(|it| it.server.number() == Some(number));
        others.all(|it| it.users.iter().all(|user| *user == view))
    }

    /// Returns whether a client uses a server.
    pub(super) fn is_user(&self, number: u64, view: ViewId) -> bool {
        let table = self.table();
        let mut instances = table.iter();
        instances.any(|it| it.server.number() == Some(number) && it.users.contains(&view))
    }

    /// Removes a client from the users of a server.
    pub(super) fn leave(&self, number: u64, view: ViewId) {
        for instance in self.table().iter_mut() {
            if instance.server.number() == Some(number) {
                instance.users.remove(&view);
            }
        }
    }

    /// Removes a client that has gone.
    pub(super) fn forget(&self, view: ViewId) {
        let mut table = self.table();
        for instance in table.iter_mut() {
            instance.users.remove(&view);
        }
        table.retain(|it| it.server.upgrade().is_some());
    }

    /// Records that a server asks its client something. A program cannot say whom it asks, so that it is reserved for one
    /// client, unless its entry says otherwise. Returns true the first time.
    pub(crate) fn mark_asks_back(&self, about: &About) -> bool {
        let is_new = !about.asks_back.swap(true, Ordering::Relaxed);
        if is_new && runs_per_client(&about.entry(), true) {
            self.keep_for_one(about.number);
        }
        is_new
    }

    /// Keeps a server for the first of its users. The others replace it.
    fn keep_for_one(&self, number: u64) {
        let mut table = self.table();
        let mut instances = table.iter_mut();
        let found = instances.find(|it| it.server.number() == Some(number));
        if let Some(instance) = found
            && let Some(first) = instance.users.first()
        {
            // Ids only grow, so this is the client that connected first.
            instance.scope = SharingScope::Only(*first);
        }
        // Readers of the counter look at the table.
        drop(table);
        self.reserved.send_modify(|count| *count += 1);
    }

    /// Returns a counter of the servers that are reserved for one client since they asked back.
    pub(super) fn reserved(&self) -> watch::Receiver<u64> {
        self.reserved.subscribe()
    }

    /// Returns whether a server is reserved for another client.
    pub(super) fn is_reserved_for_another(&self, number: u64, view: ViewId) -> bool {
        let table = self.table();
        let mut instances = table.iter();
        instances.any(|it| {
            it.server.number() == Some(number)
                && matches!(&it.scope, SharingScope::Only(only) if *only != view)
        })
    }

    /// Returns all servers with their clients.
    pub(crate) fn all(&self) -> Vec<InstanceUse> {
        let table = self.table();
        let instances = table.iter().filter_map(|it| {
            Some(InstanceUse {
                server: it.server.upgrade()?,
                users: it.users.clone(),
                is_shareable: !matches!(it.scope, SharingScope::Only(_)),
            })
        });
        instances.collect()
    }

    fn table(&self) -> MutexGuard<'_, Vec<Instance>> {
        lock(&self.table)
    }
}

/// Returns the reason why one server cannot be both of two entries.
pub(crate) fn difference(one: &Entry, other: &Entry) -> Option<NotShared> {
    let same = one.toolbox == other.toolbox
        && one.roots == other.roots
        && one.names_asker == other.names_asker;
    if !same {
        return Some(NotShared::Entry);
    }
    // The answers of a server belong to the account that it was asked with.
    if one.owner != other.owner {
        return Some(NotShared::Endpoint);
    }
    let difference = not_shared(&one.server, &other.server);
    let declares_same = one.declared == other.declared && one.extensions == other.extensions;
    let is_same = declares_same || one.server.share != Share::Auto;
    difference.or((!is_same).then_some(NotShared::Capabilities))
}

/// Returns the scope of a client's server.
pub(super) fn scope_of(entry: &Entry, view: &View, asks_back: bool) -> SharingScope {
    if !view.shares || runs_per_client(entry, asks_back) {
        return SharingScope::Only(view.id);
    }
    match entry.server.share {
        Share::Project => SharingScope::Folder(view.folder.clone()),
        Share::Auto | Share::Machine | Share::Client => SharingScope::Everybody,
    }
}

fn runs_per_client(entry: &Entry, asks_back: bool) -> bool {
    let is_program = matches!(entry.server.transport, Transport::Stdio(_));
    match entry.server.share {
        Share::Client => true,
        Share::Auto => asks_back && is_program,
        Share::Machine | Share::Project => false,
    }
}
