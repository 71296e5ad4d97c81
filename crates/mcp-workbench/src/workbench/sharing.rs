//! Clients that share servers in one process.

use std::{
    collections::HashSet,
    sync::{Arc, Weak, atomic::Ordering},
};

use ident::ClientName;
use tokio::sync::watch;

use super::{Workbench, following::follow};
use crate::{
    config::Config,
    downstream::{Pool, ServerHandle},
    offload::run_blocking,
    sync::lock,
};

/// A server, and the client of the configuration that has it for itself.
pub(crate) struct OwnServer {
    pub(crate) client: Option<ClientName>,
    pub(crate) server: Arc<ServerHandle>,
}

/// Returns the servers of several workbenches, and of those beside them, that were used, each once.
pub(crate) fn own_servers(workbenches: &[Arc<Workbench>]) -> Vec<OwnServer> {
    let mut seen = HashSet::new();
    let all = workbenches.iter().flat_map(with_users);
    let servers = all.flat_map(|workbench| {
        let client = workbench.client_name();
        let servers = workbench.servers().into_iter();
        servers.map(move |server| OwnServer {
            client: client.clone(),
            server,
        })
    });
    servers
        // A shared server is in several workbenches.
        .filter(|own| seen.insert(own.server.number()))
        .collect()
}

/// Returns a workbench with those of users and of clients with extensions beside it.
fn with_users(workbench: &Arc<Workbench>) -> Vec<Arc<Workbench>> {
    let beside = users(workbench);
    std::iter::once(Arc::clone(workbench))
        .chain(beside.iter().flat_map(with_users))
        .collect()
}

/// Creates a workbench that gets the changes of the configuration and of the lock file together with `workbench`.
pub(super) fn beside(workbench: &Workbench, config: Arc<Config>, pool: Pool) -> Arc<Workbench> {
    let observation = workbench.observation.beside();
    let results = Arc::clone(&workbench.results);
    let user = Workbench::sharing(config, pool, observation, results);
    let mut users = lock(&workbench.users);
    users.retain(|it| it.strong_count() > 0);
    users.push(Arc::downgrade(&user));
    drop(users);
    user
}

/// Compares the tools of all servers with the lock file if it may have changed.
pub(super) async fn apply_lock_file(workbench: &Workbench) {
    let pins = Arc::clone(workbench.pool.pins());
    let Ok(changes) = run_blocking(move || pins.changes()).await else {
        return;
    };
    if workbench.lock_changes.swap(changes, Ordering::Relaxed) != changes {
        tracing::info!("the lock file changed; comparing the tools with it again");
        recheck(workbench);
    }
}

/// Compares the tools of all servers with the lock file again.
fn recheck(workbench: &Workbench) {
    let now = Arc::clone(&workbench.now.borrow());
    for toolbox in now.toolboxes.values() {
        toolbox.contents().recheck();
    }
    for user in users(workbench) {
        recheck(&user);
    }
}

/// Returns the workbenches of the users with the configuration of this one.
pub(super) fn users(workbench: &Workbench) -> Vec<Arc<Workbench>> {
    let users = lock(&workbench.users);
    users.iter().filter_map(Weak::upgrade).collect()
}

/// Stops announcing changes to the listeners of a workbench, and of those beside it.
pub(super) fn stop_announcing(workbench: &Workbench) {
    workbench.announcing_end.cancel();
    for user in users(workbench) {
        stop_announcing(&user);
    }
}

/// Ends the scripts of a workbench, and of those beside it.
pub(crate) fn stop_scripts(workbench: &Workbench) {
    workbench.scripts.shut_down();
    for user in users(workbench) {
        stop_scripts(&user);
    }
}

/// Closes everything that is open for the clients of a workbench.
pub(super) fn close(workbench: &Workbench) {
    workbench.stop_announcing();
    let now = Arc::clone(&workbench.now.borrow());
    for toolbox in now.toolboxes.values() {
        // A server keeps the clients that it may ask, and they keep this workbench.
        toolbox.close();
    }
}

/// Replaces the servers that are reserved for another client, because they ask back.
fn separate(workbench: &Workbench) {
    let now = Arc::clone(&workbench.now.borrow());
    for toolbox in now.toolboxes.values() {
        toolbox.separate();
        if workbench.native.is_none() && toolbox.opened().is_some() {
            follow(workbench, toolbox);
        }
    }
}

/// Replaces the servers that are reserved for another client, as long as the workbench exists.
pub(super) async fn separate_reserved(
    workbench: Weak<Workbench>,
    mut reserved: watch::Receiver<u64>,
) {
    // Taken once, so that the task does not hold the workbench while it waits.
    let Some(end) = workbench.upgrade().map(|it| it.announcing_end.clone()) else {
        return;
    };
    let separating = async {
        while reserved.changed().await.is_ok() {
            let Some(workbench) = workbench.upgrade() else {
                return;
            };
            separate(&workbench);
        }
    };
    end.run_until_cancelled(separating).await;
}
