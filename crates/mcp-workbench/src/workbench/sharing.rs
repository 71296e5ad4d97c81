//! Clients that share servers in one process.

use std::sync::Weak;

use tokio::sync::watch;

use super::Workbench;

/// Replaces the servers that are kept for another client, as long as the workbench exists.
pub(super) async fn separate_kept(workbench: Weak<Workbench>, mut kept: watch::Receiver<u64>) {
    let Some(end) = workbench.upgrade().map(|it| it.announcing_end.clone()) else {
        return;
    };
    let separating = async {
        while kept.changed().await.is_ok() {
            let Some(workbench) = workbench.upgrade() else {
                return;
            };
            workbench.separate();
        }
    };
    end.run_until_cancelled(separating).await;
}
