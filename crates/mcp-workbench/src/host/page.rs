//! The page of a host in the browser. It begins when somebody asks for it, and shows all clients.

use std::{io, pin::Pin, sync::Arc};

use super::{
    clients,
    link::{Attach, PageAddress},
    listener::{Followed, Host},
};
use crate::{
    config::Environment, downstream::ClientKind, serve::http::OtherWorkbenches,
    workbench::Workbench,
};

/// The parts of a host that the page shows.
pub(crate) struct HostView {
    /// The workbench of the page itself, for the user who asked for it first.
    pub(crate) workbench: Arc<Workbench>,
    /// The workbenches of the clients.
    pub(crate) clients: OtherWorkbenches,
    /// The environment of the user.
    pub(crate) environment: Environment,
}

/// Serves the page of a host as long as the host runs.
pub(crate) type ServePage = Box<dyn Fn(HostView) -> PageOpening + Send + Sync>;
/// The page that is being opened.
type PageOpening = Pin<Box<dyn Future<Output = io::Result<PageAddress>> + Send>>;

/// Opens the page, unless it is open already. Returns the reason if that is impossible.
pub(super) async fn open(host: &Arc<Host>, attach: &Attach) -> Result<PageAddress, String> {
    host.check_config(attach)?;
    let page = host.page.get_or_try_init(|| open_first(host, attach)).await;
    page.cloned()
}

async fn open_first(host: &Arc<Host>, attach: &Attach) -> Result<PageAddress, String> {
    let loaded = clients::load(host, attach).await?;
    let workbench = host.open(loaded.config, ClientKind::Command)?;
    let followed = Followed {
        attach: attach.clone(),
        fingerprint: loaded.fingerprint,
        process: None,
    };
    (host.options.follow)(&workbench, followed);
    // Weak, or the page would keep the host alive.
    let this = Arc::downgrade(host);
    let clients = move || {
        let host = this.upgrade();
        host.map_or_else(Vec::new, |host| host.clients.workbenches())
    };
    let view = HostView {
        workbench,
        clients: Arc::new(clients),
        environment: attach.environment(),
    };
    let opening = (host.options.serve_page)(view).await;
    opening.map_err(|error| format!("the page cannot be served: {error}"))
}
