//! Consents in the store of the replicas, so that a user who has permitted a tool on one replica is not asked on the next. They
//! belong to the session, or to the principal of stateless requests, as in [`super::consent`]. While the store is away, the
//! user is asked again.

use std::{sync::Arc, time::Duration};

use rawjson::RawJson;

use super::consent::{AskedTool, Consent};
use crate::{
    call::{CallContext, ClientHandle, Fingerprint, Owner, ToolRequest},
    downstream::ServerHandle,
    era::Era,
    sha256::hexadecimal,
    store::{Store, StoredAt, StoredKind},
    workbench::Workbench,
};

/// The maximum age of a consent in the store.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The consents of a client that other replicas know.
pub(super) struct SharedConsents {
    store: Store,
    owner: String,
    /// The name of the session, which is the same on all replicas; empty without one.
    session: String,
}

impl SharedConsents {
    /// Returns the consents of a client; `None` if there is no store, or if other replicas do not know the client.
    pub(super) fn of(workbench: &Workbench, client: &dyn ClientHandle) -> Option<Self> {
        let store = workbench.pool.store()?.clone();
        let owner = Owner::Principal(client.principal()).shared()?;
        let session = match client.own_era() {
            Era::Legacy => client.session()?.to_string(),
            Era::Modern => String::new(),
        };
        Some(Self {
            store,
            owner,
            session,
        })
    }

    /// Returns the consent that the user has given on another replica.
    pub(super) async fn find(
        &self,
        server: &ServerHandle,
        asked: &AskedTool,
        request: &ToolRequest,
        context: &CallContext,
    ) -> Option<Consent> {
        // First, so that a permission that counts only once is not used up for nothing.
        if self.has(server, asked).await {
            return Some(Consent::lasting(asked));
        }
        let (consent, round) = Consent::repeated(server, asked, request, context)?;
        self.take_round(round).await.then_some(consent)
    }

    /// Returns whether a tool is permitted with the definition that it has now.
    async fn has(&self, server: &ServerHandle, asked: &AskedTool) -> bool {
        let name = self.tool(server, asked.name.as_str());
        match self.store.get(self.at(&name)).await {
            Ok(granted) => granted.is_some_and(|it| it == asked.definition),
            Err(error) => {
                tracing::warn!("failed to look for a consent of another replica: {error}");
                false
            }
        }
    }

    /// Records that a tool is permitted.
    pub(super) async fn grant(&self, server: &ServerHandle, asked: &AskedTool) {
        let name = self.tool(server, asked.name.as_str());
        let granted = self.store.set(self.at(&name), &asked.definition, MAX_AGE);
        if let Err(error) = granted.await {
            tracing::warn!("failed to share a consent with the other replicas: {error}");
        }
    }

    /// Takes the permission for a call that its client repeats. It counts once.
    async fn take_round(&self, round: Fingerprint) -> bool {
        let name = hexadecimal(&round);
        let taken = self.store.remove(self.at(&name)).await;
        taken.unwrap_or_else(|error| {
            tracing::warn!("failed to look for a consent of another replica: {error}");
            false
        })
    }

    /// Records that a call may be repeated. Returns false if the store is away.
    pub(super) async fn add_round(&self, round: Fingerprint) -> bool {
        let name = hexadecimal(&round);
        let added = self.store.set(self.at(&name), b"", MAX_AGE).await;
        if let Err(error) = &added {
            tracing::warn!("failed to share a consent with the other replicas: {error}");
        }
        added.is_ok()
    }

    fn at<'a>(&'a self, name: &'a str) -> StoredAt<'a> {
        StoredAt {
            kind: StoredKind::Consent,
            owner: &self.owner,
            name,
        }
    }

    /// Returns the name of a consent. The names of toolboxes and servers contain no line ends.
    fn tool(&self, server: &ServerHandle, tool: &str) -> String {
        let place = server.identifier();
        format!(
            "{}\n{}\n{}\n{tool}",
            self.session, place.toolbox, place.server
        )
    }
}

/// Permits that a client repeats a call whose server has asked a question, if the user has permitted the call. The permission
/// counts once, so it is in one place: with a store, there.
pub(super) fn record_round(
    workbench: &Arc<Workbench>,
    client: &dyn ClientHandle,
    consent: &Consent,
    result: &RawJson,
) {
    let Some(round) = consent.round(result) else {
        return;
    };
    let Some(shared) = SharedConsents::of(workbench, client) else {
        workbench.consents.add_round(round);
        return;
    };
    // In a task, because this step of the pipeline does not wait. If the client is faster than the store, the user is
    // asked once more.
    let this = Arc::clone(workbench);
    workbench.spawn(async move {
        if !shared.add_round(round).await {
            this.consents.add_round(round);
        }
    });
}
