//! The page of a host, at an address of its own.

use std::{
    future::pending,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio_util::task::TaskTracker;

use super::{Api, WorkbenchPage};
use crate::{
    host::{HostView, PageAddress},
    serve::http::{HttpListener, HttpOptions, Offer, Workbenches, random_id},
};

/// Serves the page of a host at a free port, as long as the host runs.
pub(in crate::cli) async fn serve_host(view: HostView) -> io::Result<PageAddress> {
    let options = HttpOptions {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        hosts: Vec::new(),
        tokens: None,
        users: None,
        // There are no sessions.
        session_timeout: Duration::from_hours(1),
        drain_timeout: Duration::ZERO,
        offer: Offer::Page,
    };
    let listener = HttpListener::bind(options).await?;
    let address = listener.address();
    // Commands get the address and the key over the link. The file is of `serve --http`, which may run too.
    let key = random_id();
    let workbenches = Workbenches {
        everybody: view.workbench,
        clients: Vec::new(),
        others: Some(view.clients),
    };
    let api = Api::new(&workbenches, &view.environment);
    let page = Arc::new(WorkbenchPage::new(&key, api));
    TaskTracker::new().spawn(async move {
        listener.serve(workbenches, Some(page), pending()).await;
    });
    Ok(PageAddress { address, key })
}
