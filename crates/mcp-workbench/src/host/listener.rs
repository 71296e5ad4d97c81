//! The host: accepts connections on its socket, serves clients and commands, and ends some time after its last client.

use std::{
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use serde::Serialize;
use tokio::{
    io::Interest,
    net::{UnixListener, UnixStream},
    sync::{OnceCell, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    build::Build,
    clients::{self, ClientProcess, Clients, Passed},
    launch::{InheritedHost, mark_ready},
    link::{
        self, Attach, Demand, Greeting, HostAnswer, Inbox, LINK_VERSION, LinkError, PageAddress,
        Received, Selection,
    },
    page::{self, ServePage},
    place::HostFolder,
    status::{HostStatus, Memory, ServerStatus},
};
use crate::{
    config::{Config, Fingerprint, Loaded, NotShared},
    downstream::{ClientKind, InstanceUse, Phase, Pool, Urgency, ViewId, difference},
    native::Nobody,
    oauth::CredentialOwner,
    offload::run_blocking,
    sync::lock,
    workbench::{Observation, Workbench},
};

/// How long a host without clients stays, so that the next client finds its servers running.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// How long a connection may take to send its first line.
const DEMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long clients may take to finish their requests when the host stops. Then the servers are stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the tasks of the host may take to end after that.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The parts of a host that belong to the program around it.
pub(crate) struct HostOptions {
    pub(crate) place: HostFolder,
    /// The configuration file, as an absolute path.
    pub(crate) config: PathBuf,
    /// Loads the configuration for a client. Reads files.
    pub(crate) load: LoadConfig,
    /// Applies changes of the configuration to the workbench of a client from now on.
    pub(crate) follow: FollowConfig,
    /// Stops applying them, because the client has ended.
    pub(crate) forget: Box<dyn Fn(ViewId) + Send + Sync>,
    /// The event stream of all clients.
    pub(crate) observation: Observation,
    /// Serves the page in the browser.
    pub(crate) serve_page: ServePage,
}

/// Loads the configuration for a client.
type LoadConfig = Box<dyn Fn(&Attach) -> Result<Loaded, String> + Send + Sync>;
/// Begins to apply changes of the configuration to a workbench.
type FollowConfig = Box<dyn Fn(&Arc<Workbench>, Followed) + Send + Sync>;

/// A client whose workbench follows the configuration.
pub(crate) struct Followed {
    pub(crate) attach: Attach,
    /// The fingerprint of the file that was loaded for it.
    pub(crate) fingerprint: Fingerprint,
    /// Asks its process for the context again; absent if the process does not wait.
    pub(crate) process: Option<ClientProcess>,
}

pub(super) struct Host {
    pub(super) options: HostOptions,
    pub(super) place: HostFolder,
    pub(super) clients: Clients,
    pub(super) tasks: TaskTracker,
    /// Cancelled when the host stops.
    pub(super) stop: CancellationToken,
    /// Cancelled when the host takes no more clients.
    drain: CancellationToken,
    /// The lock file. It is closed when the host takes no more clients, which releases the lock.
    owner: Mutex<Option<fs::File>>,
    build: Build,
    since: Instant,
    /// The pool of the first client, which those of all others are made from.
    pool: OnceLock<FirstPool>,
    /// The page, once somebody has asked for it.
    pub(super) page: OnceCell<PageAddress>,
}

/// The pool of the first client, with the folders that all clients must have in common.
struct FirstPool {
    pool: Pool,
    folders: [Option<PathBuf>; 3],
}

/// Runs a host until it is stopped, a signal arrives, or it has had no client for some time.
pub(crate) async fn run(
    options: HostOptions,
    inherited: InheritedHost,
    signal: impl Future<Output = ()>,
) -> io::Result<()> {
    inherited.listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(inherited.listener)?;
    mark_ready(&inherited.lock)?;
    let host = Arc::new(Host {
        place: options.place.clone(),
        options,
        clients: Clients::default(),
        tasks: TaskTracker::new(),
        stop: CancellationToken::new(),
        drain: CancellationToken::new(),
        owner: Mutex::new(Some(inherited.lock)),
        build: Build::of_process(),
        since: Instant::now(),
        pool: OnceLock::new(),
        page: OnceCell::new(),
    });
    tracing::info!("serving clients of {}", host.options.config.display());
    let accepting = host.accept(&listener);
    tokio::select! {
        () = accepting => {}
        () = unused(host.clients.count(), &host.drain) => tracing::info!("stopping because no client is left"),
        () = host.stop.cancelled() => tracing::info!("stopping: requested by a command"),
        () = signal => tracing::info!("stopping: received a signal"),
    }
    host.end().await;
    Ok(())
}

impl Host {
    async fn accept(self: &Arc<Self>, listener: &UnixListener) {
        loop {
            match listener.accept().await {
                Ok((socket, _)) => {
                    let host = Arc::clone(self);
                    self.tasks
                        .spawn(async move { host.take_connection(socket).await });
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    // The system has no descriptors left. Without a pause this loop would use a whole CPU.
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn take_connection(self: Arc<Self>, socket: UnixStream) {
        let user = socket.peer_cred().map(|peer| peer.uid());
        // The folder is private, but its permissions may have been changed.
        if user.ok() != Some(rustix::process::getuid().as_raw()) {
            tracing::warn!("refused a connection from another user");
            return;
        }
        let greeting = Greeting {
            link: LINK_VERSION,
            build: self.build.clone(),
            pid: std::process::id(),
            draining: self.drain.is_cancelled(),
        };
        // The host speaks first, so that every version can tell whether it understands the other.
        say(&socket, &greeting).await;
        match timeout(DEMAND_TIMEOUT, receive(&socket)).await {
            Ok(Ok(received)) => self.take_demand(socket, received).await,
            // A client that only checked for a host, or a stranger.
            Ok(Err(error)) => tracing::debug!("a connection ended: {error}"),
            Err(_) => tracing::debug!("timed out waiting for the first line of a connection"),
        }
    }

    async fn take_demand(self: &Arc<Self>, socket: UnixStream, received: Received) {
        let answer = match received.parse() {
            Ok(Demand::Attach(attach)) => {
                match self.attach(socket, *attach, received).await {
                    Ok(()) => return,
                    Err((socket, reason)) => {
                        say(&socket, &HostAnswer::Refused { reason }).await;
                    }
                }
                return;
            }
            Ok(Demand::Page(attach)) => match page::open(self, &attach).await {
                Ok(page) => HostAnswer::Page(page),
                Err(reason) => HostAnswer::Refused { reason },
            },
            Ok(Demand::Status) => HostAnswer::Status(Box::new(self.status().await)),
            Ok(Demand::Stop(selection)) if selection == Selection::default() => {
                self.stop_all(&socket).await;
                return;
            }
            // The processes that wait for its clients start a new host when they need one.
            Ok(Demand::Restart(selection)) if selection == Selection::default() => {
                self.stop_all(&socket).await;
                return;
            }
            Ok(Demand::Stop(selection)) => HostAnswer::Done {
                servers: self.stop_servers(&selection).len(),
            },
            Ok(Demand::Restart(selection)) => HostAnswer::Done {
                servers: self.restart_servers(&selection),
            },
            Ok(Demand::Drain) => {
                self.release();
                HostAnswer::Done { servers: 0 }
            }
            Ok(Demand::Context(_)) | Err(_) => HostAnswer::Refused {
                reason: "this version of the host does not know the request".into(),
            },
        };
        say(&socket, &answer).await;
    }

    async fn attach(
        self: &Arc<Self>,
        socket: UnixStream,
        attach: Attach,
        received: Received,
    ) -> Result<(), (UnixStream, String)> {
        if self.drain.is_cancelled() {
            return Err((socket, "it takes no more clients".into()));
        }
        if let Err(reason) = self.check_config(&attach) {
            return Err((socket, reason));
        }
        let Some(passed) = Passed::of(received.descriptors) else {
            return Err((socket, "no descriptors were passed".into()));
        };
        clients::serve(self, socket, attach, passed).await
    }

    /// Checks that a process uses the configuration of this host.
    pub(super) fn check_config(&self, attach: &Attach) -> Result<(), String> {
        if Path::new(&attach.config) == self.options.config {
            Ok(())
        } else {
            Err("it has a different configuration file".into())
        }
    }

    /// Creates the workbench of a client.
    pub(super) fn open(
        &self,
        config: Config,
        kind: ClientKind,
    ) -> Result<Arc<Workbench>, &'static str> {
        let folders = [
            config.cache.clone(),
            config.state.clone(),
            config.lock.clone(),
        ];
        let first = self.pool.get_or_init(|| FirstPool {
            pool: Pool::new(
                &config,
                CredentialOwner::Machine,
                self.options.observation.events(),
            ),
            folders: folders.clone(),
        });
        // The caches and the pins are those of the first client.
        if first.folders != folders {
            return Err("its cache or state directory is a different one");
        }
        let observation = &self.options.observation;
        Ok(Workbench::for_client(
            Arc::new(config),
            &first.pool,
            kind,
            observation,
        ))
    }

    /// Takes no more clients: gives up the socket and the lock, so that another host can take them.
    fn release(&self) {
        if self.drain.is_cancelled() {
            return;
        }
        let pid = std::process::id();
        // Renamed, not removed, because commands still have to find this host.
        if let Err(error) = fs::rename(self.place.socket(), self.place.draining_socket(pid)) {
            tracing::warn!("failed to rename the socket: {error}");
        }
        // Closing the file releases the lock, and the next client can start a new host.
        lock(&self.owner).take();
        self.drain.cancel();
        tracing::info!("draining: new clients are refused");
    }

    /// Stops the host. The connection stays open until the process ends, so that a command can wait for that.
    async fn stop_all(&self, socket: &UnixStream) {
        let servers = self.instances().len();
        say(socket, &HostAnswer::Done { servers }).await;
        self.stop.cancel();
        std::future::pending::<()>().await;
    }

    /// Ends the clients and then the servers.
    async fn end(&self) {
        let since = Instant::now();
        // First, so that the next client starts a new host and does not wait for this one to end.
        self.release();
        self.stop.cancel();
        let mut count = self.clients.count();
        // After that the servers end, which answers the requests that still run.
        let _ = timeout(DRAIN_TIMEOUT, count.wait_for(|count| *count == 0)).await;
        if let Some(first) = self.pool.get() {
            first.pool.shut_down(since).await;
        }
        let _ = timeout(END_TIMEOUT, count.wait_for(|count| *count == 0)).await;
        self.options.observation.close().await;
        // One that stays is removed before a later host starts.
        let _ = fs::remove_file(self.place.draining_socket(std::process::id()));
    }

    fn instances(&self) -> Vec<InstanceUse> {
        let first = self.pool.get();
        first.map_or_else(Vec::new, |first| first.pool.all_instances())
    }

    fn stop_servers(&self, selection: &Selection) -> Vec<InstanceUse> {
        let mut instances = self.instances();
        instances.retain(|it| is_selected(it, selection) && is_running(it));
        for instance in &instances {
            instance.server.stop();
        }
        instances
    }

    fn restart_servers(&self, selection: &Selection) -> usize {
        let stopped = self.stop_servers(selection);
        for instance in &stopped {
            // Only the start matters; nobody waits for it.
            drop(instance.server.connect(Urgency::AskedFor, Arc::new(Nobody)));
        }
        stopped.len()
    }

    async fn status(&self) -> HostStatus {
        if let Some(first) = self.pool.get() {
            // Commands read the tools of servers that are up from the cache.
            first.pool.flush().await;
        }
        let instances = self.instances();
        let mut servers: Vec<ServerStatus> = instances
            .iter()
            .map(|instance| self.server_status(instance, &instances))
            .collect();
        servers.sort_by_key(|it| (it.toolbox.clone(), it.server.clone(), it.clients.clone()));
        let status = HostStatus {
            pid: std::process::id(),
            build: self.build.clone(),
            config: self.options.config.to_string_lossy().into_owned(),
            draining: self.drain.is_cancelled(),
            uptime_seconds: self.since.elapsed().as_secs(),
            memory_bytes: None,
            clients: self.clients.status(),
            servers,
        };
        let unmeasured = status.clone();
        let measured = run_blocking(move || with_memory(status)).await;
        measured.unwrap_or(unmeasured)
    }

    fn server_status(&self, instance: &InstanceUse, all: &[InstanceUse]) -> ServerStatus {
        let server = &instance.server;
        let (status, activity) = (server.status(), server.activity());
        let is_up = matches!(status.phase, Phase::Up);
        let process = server.process().filter(|_| is_up);
        let users = instance.users.iter();
        ServerStatus {
            toolbox: server.identifier().toolbox.as_str().to_owned(),
            server: server.identifier().server.as_str().to_owned(),
            state: state_word(&status.phase).to_owned(),
            pid: process.map(|process| process.pid),
            memory_bytes: None,
            calls: server.calls(),
            uptime_seconds: activity.up_since.map(|since| since.elapsed().as_secs()),
            restarts: activity.starts.saturating_sub(1),
            clients: users
                .filter_map(|view| self.clients.number_of(*view))
                .collect(),
            apart: apart(instance, all),
        }
    }
}

/// Waits until there has been no client for some time, or until there is none and no more are taken.
async fn unused(mut count: watch::Receiver<usize>, drain: &CancellationToken) {
    loop {
        // Cannot fail: the sender lives as long as the host.
        let _ = count.wait_for(|count| *count == 0).await;
        tokio::select! {
            _ = count.wait_for(|count| *count > 0) => {}
            () = sleep(IDLE_TIMEOUT) => return,
            () = drain.cancelled() => return,
        }
    }
}

/// Sends a message. Returns false if the process has gone.
pub(super) async fn say(socket: &UnixStream, message: &impl Serialize) -> bool {
    let line = link::line(message);
    let mut rest = &line[..];
    while !rest.is_empty() {
        let sent = socket
            .async_io(Interest::WRITABLE, || link::send(socket.as_fd(), rest, &[]))
            .await;
        match sent {
            Ok(count) => rest = &rest[count..],
            Err(_) => return false,
        }
    }
    true
}

/// Receives the first line of a connection.
async fn receive(socket: &UnixStream) -> Result<Received, LinkError> {
    let mut inbox = Inbox::default();
    loop {
        if let Some(received) = inbox.take() {
            return Ok(received);
        }
        let received = socket.async_io(Interest::READABLE, || inbox.receive(socket.as_fd()));
        received.await.map_err(link::closed_or)?;
    }
}

fn is_selected(instance: &InstanceUse, selection: &Selection) -> bool {
    let place = instance.server.identifier();
    let toolbox = selection.toolbox.as_deref();
    let server = selection.server.as_deref();
    toolbox.is_none_or(|it| it == place.toolbox.as_str())
        && server.is_none_or(|it| it == place.server.as_str())
}

fn is_running(instance: &InstanceUse) -> bool {
    matches!(instance.server.status().phase, Phase::Up | Phase::Starting)
}

fn state_word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Untried | Phase::Resting => "resting",
        Phase::Starting => "starting",
        Phase::Up => "up",
        Phase::Failed(_) => "failed",
    }
}

/// Returns the reason why a server is not the same as the first other one of its name.
fn apart(instance: &InstanceUse, all: &[InstanceUse]) -> Option<String> {
    let server = &instance.server;
    let other = all.iter().find(|other| {
        other.server.identifier() == server.identifier()
            && other.server.number() != server.number()
            && !other.users.is_empty()
    })?;
    let reason = match difference(&server.entry(), &other.server.entry()) {
        Some(NotShared::Configured) => "`\"share\": \"client\"`".into(),
        Some(NotShared::Entry) => "the configuration changed between them".into(),
        Some(NotShared::Arguments) => "a value in `command` or `args` differs".into(),
        Some(NotShared::Folder) => "the working directory differs".into(),
        Some(NotShared::Variables(names)) => format!("variables differ: {}", names.join(", ")),
        Some(NotShared::Endpoint) => "the URL, a header or the account differs".into(),
        Some(NotShared::Capabilities) => "the clients declare different capabilities".into(),
        None if server.asks_back() => "the server asks its client back".into(),
        None if !instance.is_shareable || !other.is_shareable => {
            "native mode, or the server asks its client back".into()
        }
        None => "the folder of the project differs".into(),
    };
    Some(reason)
}

/// Adds the memory of the processes. Reads files.
fn with_memory(mut status: HostStatus) -> HostStatus {
    let memory = Memory::look();
    status.memory_bytes = Memory::of(status.pid);
    for server in &mut status.servers {
        server.memory_bytes = server.pid.and_then(|pid| memory.of_tree(pid));
    }
    status
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_host_ends_some_minutes_after_its_last_client() {
        let (count, clients) = watch::channel(1);
        let drain = CancellationToken::new();
        let began = Instant::now();
        let waiting = unused(clients, &drain);
        let using = async {
            sleep(IDLE_TIMEOUT * 3).await;
            count.send_replace(0);
            sleep(IDLE_TIMEOUT / 2).await;
            // A client that comes in time keeps the host.
            count.send_replace(1);
            yield_now().await;
            sleep(IDLE_TIMEOUT).await;
            count.send_replace(0);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = waiting => {}
            () = using => {}
        }
        let busy = IDLE_TIMEOUT * 3 + IDLE_TIMEOUT / 2 + IDLE_TIMEOUT;
        assert_eq!(began.elapsed(), busy + IDLE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_takes_no_more_clients_ends_with_the_last_one() {
        let (count, clients) = watch::channel(1);
        let drain = CancellationToken::new();
        drain.cancel();
        let began = Instant::now();
        let using = async {
            sleep(Duration::from_secs(7)).await;
            count.send_replace(0);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = unused(clients, &drain) => {}
            () = using => {}
        }
        assert_eq!(began.elapsed(), Duration::from_secs(7));
    }
}
