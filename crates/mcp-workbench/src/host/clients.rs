//! The clients of a host. Each has its own workbench and journal, and a task that serves it.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use tokio::{
    net::UnixStream,
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    link::{self, Attach, Demand, HostAnswer, Inbox},
    listener::{Followed, Host, say},
    status::ClientStatus,
};
use crate::{
    config::Loaded,
    downstream::{ClientKind, ViewId},
    offload::run_blocking,
    serve::{
        attached::{AttachedClient, ClientStreams, EndSignals},
        journal::{Journal, JournalFiles, PassOn, Replay, replay},
        standard_streams::PassedStreams,
        stdio::ServeEnd,
    },
    sync::lock,
    workbench::Workbench,
};

/// Upper bound on the clients of one host.
pub(super) const MAX_CLIENTS: usize = 1024;
/// How long the process of a client may take to send its context again. It reads one file.
const CONTEXT_TIMEOUT: Duration = Duration::from_secs(1);
/// The exit code of a client's process if the client did not read its output.
const EXIT_UNREAD: u8 = 4;

/// The clients of a host.
pub(super) struct Clients {
    table: Mutex<ClientTable>,
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct ClientTable {
    clients: BTreeMap<u64, Arc<Client>>,
    /// The number of clients so far, which numbers the next one.
    numbers: u64,
}

struct Client {
    attach: Attach,
    /// Not kept alive: the client has ended when its last output is dropped.
    attached: Weak<AttachedClient>,
    workbench: Weak<Workbench>,
    view: ViewId,
    since: Instant,
}

/// Keeps a client in the table until everything about it is done.
struct ClientRegistration<'a> {
    clients: &'a Clients,
    number: u64,
}

impl Drop for ClientRegistration<'_> {
    fn drop(&mut self) {
        let mut table = self.clients.table();
        table.clients.remove(&self.number);
        self.clients.count.send_replace(table.clients.len());
    }
}

/// The descriptors that come with `attach`.
pub(super) struct Passed {
    stdin: OwnedFd,
    stdout: OwnedFd,
    journal: Option<JournalFiles>,
}

impl Passed {
    /// Takes the descriptors in the order in which they were sent.
    pub(super) fn of(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        Some(Self {
            stdin: descriptors.next()?,
            stdout: descriptors.next()?,
            journal: JournalFiles::of(descriptors),
        })
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            count: watch::channel(0).0,
        }
    }
}

impl Clients {
    /// Returns the number of clients, and its changes.
    pub(super) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn next_number(&self) -> u64 {
        let mut table = self.table();
        table.numbers += 1;
        table.numbers
    }

    /// Adds a client until the value is dropped.
    fn add(
        &self,
        number: u64,
        attach: &Attach,
        attached: &Arc<AttachedClient>,
        workbench: &Arc<Workbench>,
    ) -> ClientRegistration<'_> {
        let client = Client {
            attach: attach.clone(),
            attached: Arc::downgrade(attached),
            workbench: Arc::downgrade(workbench),
            view: workbench.view(),
            since: Instant::now(),
        };
        let mut table = self.table();
        table.clients.insert(number, Arc::new(client));
        self.count.send_replace(table.clients.len());
        ClientRegistration {
            clients: self,
            number,
        }
    }

    pub(super) fn status(&self) -> Vec<ClientStatus> {
        let table = self.table();
        let clients = table.clients.iter().map(|(number, it)| {
            let attached = it.attached.upgrade();
            let name = attached.as_ref().and_then(|it| it.identity().name.clone());
            ClientStatus {
                number: *number,
                // The client names itself in `initialize`, which may still be to come.
                program: name.or_else(|| it.attach.program.clone()),
                pid: it.attach.pid,
                folder: it.attach.folder.clone(),
                running: attached.map_or(0, |it| it.running()),
                uptime_seconds: it.since.elapsed().as_secs(),
            }
        });
        clients.collect()
    }

    /// Returns the workbenches of all clients.
    pub(super) fn workbenches(&self) -> Vec<Arc<Workbench>> {
        let table = self.table();
        let clients = table.clients.values();
        clients.filter_map(|it| it.workbench.upgrade()).collect()
    }

    /// Returns the number of the client with a pool.
    pub(super) fn number_of(&self, view: ViewId) -> Option<u64> {
        let table = self.table();
        let mut clients = table.clients.iter();
        clients
            .find(|(_, it)| it.view == view)
            .map(|(number, _)| *number)
    }

    fn table(&self) -> MutexGuard<'_, ClientTable> {
        lock(&self.table)
    }
}

/// Attaches a client and serves it until it ends. Returns the refusal if that is impossible.
pub(super) async fn serve(
    host: &Arc<Host>,
    socket: UnixStream,
    attach: Attach,
    passed: Passed,
) -> Result<(), (UnixStream, String)> {
    let refuse = |socket, reason: &str| Err((socket, reason.to_owned()));
    if *host.clients.count().borrow() >= MAX_CLIENTS {
        return refuse(socket, "it has too many clients");
    }
    let Some(streams) = PassedStreams::new(&passed.stdin, &passed.stdout) else {
        return refuse(socket, "stdin and stdout are neither pipes nor sockets");
    };
    let replay = match passed.journal.map(|it| replay(&it)) {
        Some(Err(error)) => return refuse(socket, &format!("cannot read the journal: {error}")),
        Some(Ok(replay)) => replay.resume(),
        None => Replay::default(),
    };
    let loaded = match load(host, &attach).await {
        Ok(loaded) => loaded,
        Err(reason) => return refuse(socket, &reason),
    };
    let fingerprint = loaded.fingerprint;
    let kind = match attach.only {
        Some(_) => ClientKind::Command,
        None => ClientKind::Client,
    };
    let workbench = match host.open(loaded.config, kind) {
        Ok(workbench) => workbench,
        Err(reason) => return refuse(socket, reason),
    };
    let place = host.place.clone();
    let journal = match Journal::new(Box::new(move || place.nameless_file()), &replay) {
        Ok(journal) => journal,
        Err(error) => return refuse(socket, &format!("cannot create a journal: {error}")),
    };
    if !say(&socket, &HostAnswer::Attached).await {
        // The process waits no more, and may serve its client alone.
        return Ok(());
    }
    let socket = Arc::new(socket);
    // Passed to the waiting process before anything of the client is read, so that a kill from here on loses nothing.
    let Some(journal) = journal.passed_by(pass_on(&socket)).map(Arc::new) else {
        tracing::warn!("failed to pass on the journal of a client");
        return Ok(());
    };
    let number = host.clients.next_number();
    let (client, mut client_streams) = AttachedClient::new(&workbench, number, streams, journal);
    client_streams.replay = replay;
    let client = Arc::new(client);
    // The host must not end before the process of the client knows how.
    let _listed = host.clients.add(number, &attach, &client, &workbench);
    let (process, contexts) = ClientProcess::new(&socket);
    let followed = Followed {
        attach,
        fingerprint,
        process: Some(process),
    };
    (host.options.follow)(&workbench, followed);
    let process = watch_process(Arc::clone(&socket), contexts);
    let end = serve_until_end(host, client, client_streams, process).await;
    workbench.leave();
    (host.options.forget)(workbench.view());
    say(&socket, &end).await;
    Ok(())
}

async fn serve_until_end(
    host: &Arc<Host>,
    client: Arc<AttachedClient>,
    streams: ClientStreams,
    process: impl Future<Output = ()>,
) -> HostAnswer {
    let gone = CancellationToken::new();
    let ends = EndSignals {
        stop: host.stop.clone(),
        gone: gone.clone(),
    };
    // Only passes the news on. The client still ends in order, and then the other branch is done.
    let watching = async {
        process.await;
        gone.cancel();
        std::future::pending::<std::convert::Infallible>().await
    };
    let served = host.tasks.spawn(client.serve(streams, ends));
    let served = tokio::select! {
        served = served => served,
        never = watching => match never {},
    };
    match served {
        _ if host.stop.is_cancelled() => HostAnswer::Stopped,
        Ok(ServeEnd::Unread) => HostAnswer::Ended { code: EXIT_UNREAD },
        Ok(ServeEnd::Closed) | Err(_) => HostAnswer::Ended { code: 0 },
    }
}

/// Loads the configuration for a client, off the event loop.
pub(super) async fn load(host: &Arc<Host>, attach: &Attach) -> Result<Loaded, String> {
    let (host, attach) = (Arc::clone(host), attach.clone());
    let loaded = run_blocking(move || {
        host.place.bound_log();
        (host.options.load)(&attach)
    });
    loaded.await.map_err(|error| error.to_string())?
}

/// Passes the files of a journal to the waiting process.
fn pass_on(socket: &Arc<UnixStream>) -> PassOn {
    let socket = Arc::clone(socket);
    Box::new(move |files| {
        let line = link::line(&HostAnswer::Journal);
        // The line is short: it is sent whole or not at all.
        let sent = link::send(socket.as_fd(), &line, &files.descriptors());
        sent.is_ok_and(|count| count == line.len())
    })
}

/// The process that waits for a client.
pub(crate) struct ClientProcess {
    /// Not kept open: the client has ended then.
    socket: Weak<UnixStream>,
    contexts: watch::Receiver<Option<Attach>>,
}

impl ClientProcess {
    /// Creates the process behind a socket, with the sender of the contexts that are received from it.
    fn new(socket: &Arc<UnixStream>) -> (Self, watch::Sender<Option<Attach>>) {
        let (sender, contexts) = watch::channel(None);
        let process = Self {
            socket: Arc::downgrade(socket),
            contexts,
        };
        (process, sender)
    }

    /// Asks for the context of the client again. Returns `None` if the process does not send it in time; those of earlier
    /// versions never do.
    pub(crate) async fn context(&mut self) -> Option<Attach> {
        let socket = self.socket.upgrade()?;
        // Only a context that comes from here on is an answer.
        self.contexts.mark_unchanged();
        say(&socket, &HostAnswer::Changed).await;
        let answered = timeout(CONTEXT_TIMEOUT, self.contexts.changed()).await;
        answered.ok()?.ok()?;
        self.contexts.borrow().clone()
    }
}

/// Receives from the process that waits for a client until it ends.
async fn watch_process(socket: Arc<UnixStream>, contexts: watch::Sender<Option<Attach>>) {
    let mut inbox = Inbox::default();
    loop {
        let received = socket
            .async_io(tokio::io::Interest::READABLE, || {
                inbox.receive(socket.as_fd())
            })
            .await;
        while let Some(line) = inbox.take() {
            // A newer process may send more.
            if let Ok(Demand::Context(attach)) = line.parse() {
                contexts.send_replace(Some(*attach));
            }
        }
        if received.is_err() {
            return;
        }
    }
}
