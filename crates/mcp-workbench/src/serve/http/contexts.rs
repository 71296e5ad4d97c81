//! The workbenches behind one address: one for everybody, and one for each client of the configuration that has a token.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ident::ClientName;
use indexmap::IndexMap;
use rawjson::RawJson;
use url::Url;

use super::{
    extension_contexts::ExtensionContexts, guard::Sender, refusal::Refusal,
    user_contexts::UserContexts,
};
use crate::{
    call::{ClientCapabilities, Principal},
    config::Limits,
    downstream::Phase,
    metrics::Gauge,
    serve::{ClientLocation, ServeContext},
    workbench::{OwnServer, Workbench, own_servers},
};

/// Returns the workbenches of clients that another part of the process serves.
pub(crate) type OtherWorkbenches = Arc<dyn Fn() -> Vec<Arc<Workbench>> + Send + Sync>;

/// The workbenches that are served at one address.
pub(crate) struct Workbenches {
    /// Serves everybody who is not a client of the configuration.
    pub(crate) everybody: Arc<Workbench>,
    /// Serve the clients of the configuration.
    pub(crate) clients: Vec<(ClientName, Arc<Workbench>)>,
    /// Only shown here: those of the clients of a host.
    pub(crate) others: Option<OtherWorkbenches>,
}

impl Workbenches {
    /// Returns all of them, the common one first.
    pub(crate) fn all(&self) -> Vec<Arc<Workbench>> {
        let clients = self.clients.iter().map(|(_, it)| it);
        std::iter::once(&self.everybody)
            .chain(clients)
            .map(Arc::clone)
            .collect()
    }
}

/// The contexts of all principals.
pub(super) struct Contexts {
    everybody: ServeContext,
    /// Those of the clients of the configuration.
    clients: IndexMap<ClientName, ServeContext>,
    others: Option<OtherWorkbenches>,
    /// Those of users with credentials of their own.
    users: UserContexts,
    /// Those of clients that declare extensions, beside all of these.
    extensions: ExtensionContexts,
}

impl Contexts {
    /// Creates the contexts. A token whose client has no workbench is refused before this.
    pub(super) fn new(
        workbenches: Workbenches,
        location: ClientLocation,
        address: Option<Url>,
        session_timeout: Duration,
    ) -> Self {
        let everybody = ServeContext::at(workbenches.everybody, location, address);
        let clients = workbenches
            .clients
            .into_iter()
            .map(|(name, workbench)| (name, everybody.beside(workbench)));
        Self {
            clients: clients.collect(),
            others: workbenches.others,
            everybody,
            users: UserContexts::new(session_timeout),
            extensions: ExtensionContexts::new(session_timeout),
        }
    }

    /// Returns the context of a sender. `is_busy` says whether a principal has something under way.
    pub(super) fn of(
        &self,
        sender: &Sender,
        is_busy: impl Fn(Principal) -> bool,
    ) -> Result<ServeContext, Refusal> {
        Ok(match sender {
            Sender::Anybody => self.everybody.clone(),
            Sender::Holder(holder) => self.of_client(holder.client.as_ref()).clone(),
            Sender::User(user, token) => {
                let base = self.of_client(user.client.as_ref());
                let context = if base.workbench.config().has_user_credentials() {
                    self.users.of(base, user, token.as_ref(), is_busy)?
                } else {
                    base.clone()
                };
                ServeContext {
                    user: Some(Arc::clone(&user.subject)),
                    ..context
                }
            }
        })
    }

    /// Returns the context of a client of `base` that declares these capabilities. `is_used` says whether somebody uses a workbench.
    pub(super) fn with_extensions(
        &self,
        base: ServeContext,
        declared: Option<RawJson>,
        principal: Principal,
        is_used: impl Fn(&Arc<Workbench>) -> bool,
    ) -> Result<ServeContext, Refusal> {
        match ClientCapabilities::of(declared).extension_set() {
            Some(set) => self.extensions.of(&base, set, principal, is_used),
            None => Ok(base),
        }
    }

    /// Returns the limits of a sender, as the configuration has them now.
    pub(super) fn limits(&self, sender: &Sender) -> Limits {
        self.of_client(sender.client()).workbench.limits()
    }

    /// Returns whether the client of a sender is known. That of a forwarded request may not be, while replicas have different
    /// configurations.
    pub(super) fn knows(&self, sender: &Sender) -> bool {
        self.base(sender.client()).is_some()
    }

    /// Returns the context with the configuration of a client, or of everybody.
    pub(super) fn base(&self, client: Option<&ClientName>) -> Option<&ServeContext> {
        match client {
            Some(name) => self.clients.get(name),
            None => Some(&self.everybody),
        }
    }

    /// Records a request of a sender.
    pub(super) fn touch(&self, sender: &Sender) {
        if let Sender::User(user, token) = sender {
            self.users.touch(user, token.as_ref());
        }
    }

    /// Ends the contexts of users and of sets of extensions that were idle for too long.
    pub(super) fn sweep(
        &self,
        is_busy: impl Fn(Principal) -> bool,
        is_used: impl Fn(&Arc<Workbench>) -> bool,
    ) {
        self.users.sweep(is_busy);
        self.extensions.sweep(is_used);
    }

    fn of_client(&self, client: Option<&ClientName>) -> &ServeContext {
        // Clients without a context were refused before: tokens at the start, forwarded requests by `knows`.
        client.map_or(&self.everybody, |name| &self.clients[name])
    }

    /// Returns whether a sender is not restricted to the part of a client.
    pub(super) fn sees_all(&self, sender: &Sender) -> bool {
        sender.client().is_none() && self.everybody.workbench.client_name().is_none()
    }

    /// Returns the context of everybody who is not a client of the configuration.
    pub(super) fn everybody(&self) -> &ServeContext {
        &self.everybody
    }

    /// Returns whether each server of the process runs, as metrics. Clients with different extensions have a server each,
    /// under the same labels.
    pub(super) fn gauges(&self) -> Vec<Gauge> {
        let mut running: BTreeMap<_, u64> = BTreeMap::new();
        for OwnServer { client, server } in own_servers(&self.shown()) {
            let client = client.map(|name| ("client", name.to_string()));
            let place = [
                ("toolbox", server.identifier().toolbox.to_string()),
                ("server", server.identifier().server.to_string()),
            ];
            let labels: Vec<_> = place.into_iter().chain(client).collect();
            let is_up = server.inspect(|status| matches!(status.phase, Phase::Up));
            *running.entry(labels).or_default() |= u64::from(is_up);
        }
        let gauges = running.into_iter().map(|(labels, value)| Gauge {
            name: "mcp_workbench_server_up",
            help: "Whether a server runs.",
            labels,
            value,
        });
        gauges.collect()
    }

    /// Returns all workbenches of the process, the common one first.
    fn shown(&self) -> Vec<Arc<Workbench>> {
        let others = self.others.as_ref().map(|others| others());
        let own = self.workbenches().into_iter();
        own.chain(others.into_iter().flatten()).collect()
    }

    /// Returns the workbenches that are served here, the common one first.
    pub(super) fn workbenches(&self) -> Vec<Arc<Workbench>> {
        let clients = self.clients.values();
        std::iter::once(&self.everybody)
            .chain(clients)
            .map(|it| Arc::clone(&it.workbench))
            .collect()
    }
}
