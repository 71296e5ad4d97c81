//! Follows the lists of servers of open toolboxes, so that clients learn that `tools/list` changed.

use std::sync::Arc;

use tokio::sync::watch;

use super::Workbench;
use crate::{
    downstream::{Status, ToolList},
    sync::lock,
    toolbox::Toolbox,
};

/// Watches the servers of a toolbox for changes of their lists.
pub(super) fn follow(workbench: &Workbench, toolbox: &Toolbox) {
    for server in toolbox.contents().servers().values() {
        // A toolbox is opened many times, and each of its servers is followed once.
        if lock(&workbench.followed).insert(server.number()) {
            let shows_all = workbench.native.is_some() || workbench.is_dynamic();
            let counters = Counters {
                tools: shows_all.then(|| workbench.tools_changed.clone()),
                apps: workbench.apps_changed.clone(),
            };
            let known = server.status().tools;
            let following = follow_list(server.updates(), known, counters);
            let end = workbench.announcing_end.clone();
            workbench.pool.spawn(async move {
                // The shutdown waits for all tasks, and a server that is up would keep this one waiting.
                end.run_until_cancelled(following).await;
            });
        }
    }
}

/// The counters that tell listeners which lists have changed.
struct Counters {
    /// Counts all changes, if all tools are in `tools/list`.
    tools: Option<watch::Sender<u64>>,
    /// Counts the changes that concern user interfaces.
    apps: watch::Sender<u64>,
}

/// Counts a change each time the server's list changes, until the server's task ends.
async fn follow_list(
    mut server: watch::Receiver<Status>,
    mut known: Option<Arc<ToolList>>,
    counters: Counters,
) {
    while server.changed().await.is_ok() {
        let Some(tools) = server.borrow_and_update().tools.clone() else {
            // The list from an earlier run is valid until the server sends its own.
            continue;
        };
        let same = known
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &tools));
        if !same {
            if let Some(counter) = &counters.tools {
                counter.send_modify(|changes| *changes += 1);
            }
            if tools.has_ui() || known.is_some_and(|known| known.has_ui()) {
                counters.apps.send_modify(|changes| *changes += 1);
            }
            known = Some(tools);
        }
    }
}
