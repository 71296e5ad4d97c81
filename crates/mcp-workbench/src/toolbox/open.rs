//! Opens a toolbox: from its servers, or from the stored result as long as nothing has changed.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ident::{ServerName, ToolboxName};
use tokio::sync::watch;

use super::{
    catalogue::Catalogue,
    connecting::{ConnectOutcome, connect_all},
    contents::{ChangedFiles, Contents, ToolboxChanges},
    opened::{Opened, ServerFailure},
};
use crate::{
    call::ClientHandle,
    config::{self, Connect},
    downstream::{Phase, Pool, ServerHandle, ToolList},
    sync::lock,
};

/// A toolbox of the configuration with its current state.
pub(crate) struct Toolbox {
    name: ToolboxName,
    pool: Arc<Pool>,
    /// Replaced as a whole when the configuration changes.
    contents: watch::Sender<Arc<Contents>>,
    opened: Mutex<Option<Arc<Opened>>>,
    /// Set once its tools can be used: it was opened, or a search has found some of them. Every call asks for that, and must
    /// not take a lock.
    is_usable: AtomicBool,
    /// The number of callers that are opening it right now.
    opening: watch::Sender<usize>,
}

/// The reason why a toolbox could not be opened: all of its servers have failed or are still starting.
#[derive(Debug)]
pub(crate) struct OpenError {
    /// Each server with its reason.
    pub failures: Vec<ServerFailure>,
}

impl Toolbox {
    /// Creates a toolbox that is not open.
    pub(crate) fn new(config: Arc<config::Toolbox>, pool: Arc<Pool>) -> Self {
        Self {
            name: config.name.clone(),
            contents: watch::channel(Arc::new(Contents::new(config, Arc::clone(&pool)))).0,
            pool,
            opened: Mutex::new(None),
            is_usable: AtomicBool::new(false),
            opening: watch::channel(0).0,
        }
    }

    pub(crate) fn name(&self) -> &ToolboxName {
        &self.name
    }

    pub(crate) fn contents(&self) -> Arc<Contents> {
        Arc::clone(&self.contents.borrow())
    }

    pub(crate) fn server(&self, name: &ServerName) -> Option<Arc<ServerHandle>> {
        self.contents.borrow().servers().get(name).cloned()
    }

    /// Applies a new configuration. An open toolbox stays open, and running calls stay with their servers.
    pub(crate) fn reload(
        &self,
        config: &Arc<config::Toolbox>,
        files: &ChangedFiles,
    ) -> ToolboxChanges {
        let contents = self.contents();
        let changes = ToolboxChanges::between(&contents.config, config, files);
        // Settings of all servers may have changed even if this toolbox has not.
        let renewed = Arc::new(contents.renewed(config, files));
        if !changes.is_empty() {
            self.contents.send_replace(renewed);
        }
        changes
    }

    /// Replaces the servers that are reserved for another client.
    pub(crate) fn separate(&self) {
        if let Some(separated) = self.contents().separated() {
            self.contents.send_replace(Arc::new(separated));
        }
    }

    /// Lets go of its servers, because its client has ended.
    pub(crate) fn close(&self) {
        let config = Arc::clone(&self.contents().config);
        // New contents have servers that were never started; dropping the old ones stops theirs.
        let closed = Contents::new(config, Arc::clone(&self.pool));
        self.contents.send_replace(Arc::new(closed));
        *self.last_opened() = None;
        self.is_usable.store(false, Ordering::Relaxed);
    }

    /// Returns whether the configuration has changed since the last open.
    pub(crate) fn is_outdated(&self) -> bool {
        let contents = self.contents();
        let opened = self.opened();
        opened.is_some_and(|opened| !Arc::ptr_eq(&opened.config, &contents.config))
    }

    /// Returns whether a caller is opening it.
    pub(crate) fn is_being_opened(&self) -> bool {
        *self.opening.borrow() > 0
    }

    /// Spawns a task that ends when the servers do.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.pool.spawn(task);
    }

    /// Returns the result of the last open.
    pub(crate) fn opened(&self) -> Option<Arc<Opened>> {
        self.last_opened().clone()
    }

    fn last_opened(&self) -> MutexGuard<'_, Option<Arc<Opened>>> {
        lock(&self.opened)
    }

    /// Returns the known tools of its servers; an empty catalogue while it is not open.
    pub(crate) fn catalogue(&self) -> Catalogue {
        match self.opened() {
            Some(_) => Catalogue::read(self.contents.subscribe()),
            None => Catalogue::empty(),
        }
    }

    /// Records that a search has found tools in it, so that they can be used.
    pub(crate) fn mark_found(&self) {
        self.is_usable.store(true, Ordering::Relaxed);
    }

    /// Returns whether its tools can be used: it was opened, or a search has found some of them.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_usable.load(Ordering::Relaxed)
    }

    /// Returns whether its tools can be used, after waiting for an open that is in progress.
    pub(crate) async fn is_open(&self) -> bool {
        if !self.is_usable() {
            let mut opening = self.opening.subscribe();
            // Cannot fail: the sender lives as long as the toolbox.
            let _ = opening.wait_for(|count| *count == 0).await;
        }
        self.is_usable()
    }

    /// Connects to the servers that are not connected, and returns those that are up in time. It waits at most
    /// `open_wait` once a server is up. Two callers at the same time connect once, because each server's task does.
    pub(crate) async fn open(
        &self,
        client: &Arc<dyn ClientHandle>,
        open_wait: Duration,
    ) -> Result<Arc<Opened>, OpenError> {
        // A call that arrives during an open waits for it instead of failing with "not open".
        let _counted = OpeningGuard::begin(&self.opening);
        let mut newest = self.contents.subscribe();
        loop {
            let contents = Arc::clone(&newest.borrow_and_update());
            if let Some(opened) = self.opened()
                && is_current(&opened, &contents)
            {
                return Ok(opened);
            }
            tokio::select! {
                // Checked first, so that a result for an outdated configuration is not returned.
                biased;
                // A reload replaces servers, so the open begins again with the new ones.
                Ok(()) = newest.changed() => {}
                found = connect_all(&contents, client, open_wait) => {
                    return self.store_outcome(&contents, found);
                }
            }
        }
    }

    fn store_outcome(
        &self,
        contents: &Contents,
        found: ConnectOutcome,
    ) -> Result<Arc<Opened>, OpenError> {
        let ConnectOutcome {
            catalogue,
            failures,
        } = found;
        // An open toolbox without any tool would mislead a model.
        if catalogue.is_empty() && !failures.is_empty() {
            // A toolbox that was open stays open: its next call tries to start the server again.
            return Err(OpenError { failures });
        }
        let config = &contents.config;
        let connected = connected(contents, &catalogue);
        let opened = match self.opened() {
            // Another caller has just found the same, so its result is reused.
            Some(opened)
                if same(&opened, config, &catalogue)
                    && opened.connected == connected
                    && failures.is_empty()
                    && opened.failures.is_empty() =>
            {
                opened
            }
            _ => {
                let config = Arc::clone(config);
                Arc::new(Opened::new(config, catalogue, connected, failures))
            }
        };
        self.set_opened(&opened);
        Ok(opened)
    }

    fn set_opened(&self, opened: &Arc<Opened>) {
        *self.last_opened() = Some(Arc::clone(opened));
        self.is_usable.store(true, Ordering::Relaxed);
    }
}

/// Returns whether nothing has changed since an open.
fn is_current(opened: &Opened, contents: &Contents) -> bool {
    let servers = contents.servers().values();
    Arc::ptr_eq(&opened.config, &contents.config)
        && opened.failures.is_empty()
        && opened.connected == connected(contents, &opened.catalogue)
        && servers.zip(&opened.catalogue).all(|(server, (_, tools))| {
            let status = server.status();
            // A list that the server said has changed must be read again, even if the new one turns out equal.
            !status.stale
                && !matches!(status.phase, Phase::Failed(_))
                && status
                    .tools
                    .is_some_and(|current| Arc::ptr_eq(&current, tools))
        })
}

/// Returns the number of connected servers. If `connect` starts all of them at once, a server that has ended since
/// still counts, because it is started again when it is needed. Otherwise only running servers count.
fn connected(contents: &Contents, catalogue: &[(ServerName, Arc<ToolList>)]) -> usize {
    match contents.config.connect {
        Connect::OnOpen => catalogue.len(),
        Connect::OnUse => {
            let servers = catalogue
                .iter()
                .filter_map(|(name, _)| contents.servers().get(name));
            let running = servers.filter(|server| matches!(server.status().phase, Phase::Up));
            running.count()
        }
    }
}

fn same(
    opened: &Opened,
    config: &Arc<config::Toolbox>,
    catalogue: &[(ServerName, Arc<ToolList>)],
) -> bool {
    Arc::ptr_eq(&opened.config, config)
        && opened.catalogue.len() == catalogue.len()
        && opened
            .catalogue
            .iter()
            .zip(catalogue)
            .all(|(one, other)| Arc::ptr_eq(&one.1, &other.1))
}

/// Counts a caller that is opening a toolbox, until it is dropped.
struct OpeningGuard<'a>(&'a watch::Sender<usize>);

impl<'a> OpeningGuard<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pretty_assertions::assert_eq;
    use tokio::{net::TcpListener, time::Instant};

    use super::*;
    use crate::{
        config::{Environment, parse},
        downstream::test_client::TestClient,
        era::Era,
        oauth::CredentialOwner,
    };

    /// Creates a toolbox with one remote server.
    fn toolbox(url: &str) -> Toolbox {
        let text = format!(
            r#"{{"toolboxes": {{"dev": {{"description": "d", "mcpServers": {{
                "slow": {{"url": "{url}", "connectTimeoutMs": 600000}}}}}}}}}}"#
        );
        let environment = Environment::new([], "/start".into(), None);
        let loaded = parse(&text, Path::new("c.json"), &environment).unwrap();
        let pool = Arc::new(Pool::new(
            &loaded.config,
            CredentialOwner::Machine,
            &Arc::default(),
        ));
        Toolbox::new(Arc::clone(&loaded.config.toolboxes["dev"]), pool)
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_waits_45_seconds_for_the_first_server_and_2_seconds_the_next_time() {
        // It takes connections and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let toolbox = toolbox(&format!("http://{}/", silent.local_addr().unwrap()));
        let client = TestClient::new(Era::Legacy, "{}").handle();
        for seconds in [45, 2, 2] {
            let began = Instant::now();
            let opened = toolbox.open(&client, Duration::from_secs(15)).await;
            assert_eq!(began.elapsed().as_secs(), seconds);
            let failures = opened.err().expect("no server is up").failures;
            let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
            assert_eq!(
                failures,
                ["Failed to connect to server 'slow' in toolbox 'dev': still starting"]
            );
            assert!(!toolbox.is_usable());
        }
    }
}
