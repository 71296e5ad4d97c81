//! Accepts connections, runs each in its own task, and shuts them down in order.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{
    Method, Request,
    body::{Body, Incoming},
    header::CONNECTION,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{
    HttpOptions, METRICS_PATH, Offer, READY_PATH,
    browser_pages::{BrowserPage, BrowserPages},
    connections::{ConnectionSlot, Connections},
    contexts::{Contexts, Workbenches},
    endpoint::{Endpoint, Waits},
    guard::{AllowedHost, Guard},
    is_probe,
    limits::{MAX_BODIES_MIB, MAX_HEADER_BYTES},
    page::{Page, PageRequest, is_page},
    refusal::{CLOSE, Refusal},
    request_body,
    response::{self, Response},
    sessions::Sessions,
    stateless::Stateless,
    timed_stream::TimedStream,
    unread::{self, UnreadBudget},
};
use crate::{
    alarm::Alarm,
    config::Config,
    metrics::Metrics,
    oauth::ResourceServer,
    rare::Rare,
    serve::{ClientLocation, DRAIN_TIMEOUT, FLUSH_TIMEOUT},
    workbench::stop_scripts,
};

/// How long a balancer may take to notice that we are no longer ready.
const DRAIN_NOTICE: Duration = Duration::from_secs(3);
/// The size up to which a body arrives with its head, so that the connection can be used again.
const SMALL_BODY_BYTES: u64 = 16 * 1024;
/// The pause after a connection could not be accepted because the system had no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The workbench at its address, ready to serve.
pub(crate) struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
}

impl HttpListener {
    pub(crate) async fn bind(options: HttpOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.address).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            options,
        })
    }

    /// Returns the address, with its port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns where the clients are. A proxy may forward requests from other machines.
    fn location(&self) -> ClientLocation {
        let options = &self.options;
        if self.address.ip().is_loopback() && options.hosts.is_empty() && options.users.is_none() {
            ClientLocation::Local
        } else {
            ClientLocation::Unknown
        }
    }

    /// Serves until `stop` is done; then ends all servers.
    pub(crate) async fn serve(
        self,
        workbenches: Workbenches,
        page: Option<Arc<dyn Page>>,
        stop: impl Future<Output = ()>,
    ) {
        let location = self.location();
        let unread = Arc::<UnreadBudget>::default();
        let session_timeout = self.options.session_timeout;
        let replica_address = replica_address(&workbenches.everybody.config(), self.address);
        let mut hosts = self.options.hosts;
        // Other replicas send requests to this name.
        hosts.extend(replica_address.as_ref().and_then(AllowedHost::of));
        let contexts = Contexts::new(workbenches, location, replica_address, session_timeout);
        let parked = Arc::clone(&contexts.everybody().parked);
        let replica = Arc::clone(parked.replica());
        let (resource_server, task) = match self.options.users {
            Some(users) => {
                // Clients use the address that their tokens are issued for, which may be that of a proxy.
                hosts.extend(AllowedHost::of(&users.auth.resource));
                let (server, task) = ResourceServer::new(users.auth, users.clients);
                (Some(server), Some(task))
            }
            None => (None, None),
        };
        let check_tokens = async {
            match task {
                Some(task) => task.run().await,
                None => std::future::pending().await,
            }
        };
        let server = Arc::new(Server {
            guard: Guard {
                address: self.address,
                hosts,
                tokens: self.options.tokens,
                resource_server,
                sealer: replica.has_others().then(|| replica.sealer().clone()),
            },
            endpoint: Arc::new(Endpoint {
                contexts,
                sessions: Sessions::new(session_timeout),
                stateless: Stateless::new(&unread),
                body_room: Arc::new(Semaphore::new(MAX_BODIES_MIB)),
                unread,
                quotas: Arc::default(),
                metrics: Metrics::default(),
                replica,
            }),
            page,
            offer: self.options.offer,
            connections: Connections::new(),
            tasks: TaskTracker::new(),
            drain_timeout: self.options.drain_timeout,
            is_draining: AtomicBool::new(false),
            ending: CancellationToken::new(),
        });
        let stop = async {
            stop.await;
            server.drain().await;
        };
        tokio::select! {
            () = server.accept(self.listener, stop) => {}
            // It never ends; it runs here, so that it stops with the listener.
            () = parked.expire() => {}
            () = check_tokens => {}
        }
        server.end().await;
    }
}

/// Returns true if most of a body may still be on its way. If the request is refused, hyper closes the connection, and a client that
/// is still sending would see that instead of the response.
fn has_large_body(body: &Incoming) -> bool {
    !body.is_end_stream()
        && body
            .size_hint()
            .upper()
            .is_none_or(|bytes| bytes > SMALL_BODY_BYTES)
}

/// Returns the address at which the other replicas reach this one. Port 0 stands for the port that we listen on.
fn replica_address(config: &Config, listening: SocketAddr) -> Option<Url> {
    let mut address = config.replica_address.clone()?;
    if address.port() == Some(0) {
        // It fails only for addresses without a host.
        let _ = address.set_port(Some(listening.port()));
    }
    Some(address)
}

struct Server {
    guard: Guard,
    endpoint: Arc<Endpoint>,
    page: Option<Arc<dyn Page>>,
    offer: Offer,
    connections: Arc<Connections>,
    /// The tasks of the connections.
    tasks: TaskTracker,
    /// How long requests are served after the signal to end.
    drain_timeout: Duration,
    is_draining: AtomicBool,
    ending: CancellationToken,
}

/// One connection, as its requests need it.
struct Peer {
    /// The local address of the connection.
    local: SocketAddr,
    waits: Waits,
    slot: ConnectionSlot,
}

impl Server {
    async fn accept(self: &Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let sessions = &self.endpoint.sessions;
        let period = sessions.sweep_period();
        let mut sweep_at = Instant::now() + period;
        let mut alarm = Alarm::default();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.take_connection(stream),
                    Err(error) => {
                        tracing::warn!("failed to accept a connection: {error}");
                        // The system has no descriptors left; without a pause this loop would use a whole CPU.
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = self.endpoint.unread.exceeded() => {
                    let streams = self.endpoint.all_streams();
                    unread::drop_excess(&self.endpoint.unread, streams, &self.connections);
                }
                () = alarm.wait(Some(sweep_at)) => {
                    self.endpoint.sweep();
                    sweep_at = Instant::now() + period;
                }
                () = &mut stop => return,
            }
        }
    }

    fn take_connection(self: &Arc<Self>, stream: TcpStream) {
        let Ok(local) = stream.local_addr() else {
            return;
        };
        // Without it a response may wait until the client has acknowledged the one before.
        let _ = stream.set_nodelay(true);
        let peer = Peer {
            local,
            waits: Waits::default(),
            slot: self.connections.add(),
        };
        let number = peer.slot.number();
        let server = Arc::clone(self);
        let task = self
            .tasks
            .spawn(async move { server.serve_connection(stream, peer).await });
        self.connections.set_task(number, task.abort_handle());
    }

    async fn serve_connection(&self, stream: TcpStream, peer: Peer) {
        let unread = Arc::clone(&self.endpoint.unread);
        let stream = TimedStream::new(stream, peer.slot.turns().clone(), unread);
        let service = service_fn(|request: Request<Incoming>| {
            let turn = peer.slot.turns().take();
            async {
                let has_large_body = has_large_body(request.body());
                let mut response = self.respond(request, &peer).await;
                if has_large_body && !response.status().is_success() {
                    response.headers_mut().insert(CONNECTION, CLOSE);
                }
                if response.headers().contains_key(CONNECTION) {
                    peer.slot.turns().refuse_body();
                }
                response.body_mut().set_turn(turn);
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            // The stream has its own timer, which serves all of its requests.
            .header_read_timeout(None)
            .max_header_size(MAX_HEADER_BYTES)
            .max_buf_size(2 * MAX_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ending = Rare::new(Box::pin(self.ending.cancelled()));
        let served = tokio::select! {
            // First, so that a request that was read is answered.
            biased;
            served = connection.as_mut() => served,
            () = ending => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!("connection failed: {error}");
        }
    }

    /// Checks a request, and passes it on.
    async fn respond(&self, request: Request<Incoming>, peer: &Peer) -> Response {
        if let Some(page) = self.page.as_ref().filter(|_| is_page(request.uri().path())) {
            let response = Box::pin(self.respond_with(page, request, peer)).await;
            return response.unwrap_or_else(Refusal::into_response);
        }
        if self.offer == Offer::Page || self.is_metrics_of_viewer(&request) {
            let response = self.respond_with_metrics(&request, peer);
            return response.unwrap_or_else(Refusal::into_response);
        }
        let sender = match self.guard.check(&request, peer.local) {
            Ok(credentials) => self.guard.sender(credentials).await,
            Err(refusal) => Err(refusal),
        };
        let sender = match sender {
            Ok(sender) => sender,
            Err(refusal) => return self.guard.refuse(refusal),
        };
        if let Some(metadata) = self.guard.metadata(&request) {
            return response::typed("application/json", metadata);
        }
        if self.ending.is_cancelled() {
            return Refusal::ShuttingDown.into_response();
        }
        if let Some(page) = self.guard.browser_page(&request) {
            return self.respond_to_browser(page, &request).await;
        }
        // Probes need no token, so their connections stay guests.
        if is_probe(request.uri().path()) {
            let probed = self.probe(&request);
            return probed.unwrap_or_else(Refusal::into_response);
        }
        // After the token check: the places are for clients, and strangers have a few of their own.
        if !peer.slot.admit() {
            return Refusal::TooManyConnections.into_response();
        }
        let response = self.endpoint.take(request, &sender, &peer.waits).await;
        response.unwrap_or_else(Refusal::into_response)
    }

    /// Answers the probe of a balancer or an orchestrator.
    fn probe<B>(&self, request: &Request<B>) -> Result<Response, Refusal> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Refusal::OnlyRead);
        }
        if request.uri().path() == READY_PATH && self.is_draining.load(Ordering::Relaxed) {
            return Err(Refusal::ShuttingDown);
        }
        Ok(response::text("ok"))
    }

    /// Continues to serve until the balancer has noticed that we are about to end and no request runs, or the drain
    /// timeout ends.
    async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        let drained = async {
            // Balancers ask for `/ready` every few seconds and send requests until they have noticed.
            sleep(DRAIN_NOTICE).await;
            while let Some(running) = self.endpoint.running() {
                running.in_flight().all_ended().await;
            }
        };
        let _ = timeout(self.drain_timeout, drained).await;
    }

    /// Takes a step of a user who signs in to a server.
    async fn respond_to_browser<B>(&self, page: BrowserPage, request: &Request<B>) -> Response {
        let contexts = &self.endpoint.contexts;
        let users = contexts.everybody().workbench.pool().user_sign_ins();
        match (users, &self.guard.resource_server) {
            (Some(users), Some(resource_server)) => {
                let pages = BrowserPages {
                    users,
                    contexts,
                    resource_server,
                };
                // On the heap because it is large and rare.
                Box::pin(pages.respond(page, request)).await
            }
            _ => Refusal::NotFound.into_response(),
        }
    }

    /// Checks a request for the page, and passes it on.
    async fn respond_with(
        &self,
        page: &Arc<dyn Page>,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Result<Response, Refusal> {
        self.guard.check_page(&request, peer.local)?;
        if self.ending.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        if page.admits(request.headers()) && !peer.slot.admit() {
            return Err(Refusal::TooManyConnections);
        }
        let (head, body) = request.into_parts();
        let room = &self.endpoint.body_room;
        let body = request_body::read(&head.headers, body, room, &peer.waits.body).await?;
        let response = page.respond(PageRequest {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body: body.bytes.clone(),
        });
        Ok(response.await.into_response())
    }

    /// Returns whether the request is for the metrics and its sender may see the page.
    fn is_metrics_of_viewer(&self, request: &Request<Incoming>) -> bool {
        let page = self.page.as_ref();
        request.uri().path() == METRICS_PATH && page.is_some_and(|it| it.admits(request.headers()))
    }

    /// Returns the metrics to whoever may see the page. At the address of a host there is nothing else beside the page.
    fn respond_with_metrics(
        &self,
        request: &Request<Incoming>,
        peer: &Peer,
    ) -> Result<Response, Refusal> {
        self.guard.check_page(request, peer.local)?;
        let page = self.page.as_ref();
        if !page.is_some_and(|it| it.admits(request.headers())) {
            return Err(Refusal::WrongToken);
        }
        match (request.uri().path(), request.method()) {
            (METRICS_PATH, &Method::GET) => Ok(self.endpoint.metrics()),
            (METRICS_PATH, _) => Err(Refusal::OnlyRead),
            _ => Err(Refusal::NotFound),
        }
    }

    /// Lets the requests that were read finish, then ends the servers, which fails the rest.
    async fn end(&self) {
        let since = Instant::now();
        self.ending.cancel();
        let workbenches = self.endpoint.contexts.workbenches();
        for workbench in &workbenches {
            workbench.stop_announcing();
        }
        let sessions = self.endpoint.sessions.all();
        for session in &sessions {
            session.stop_announcing();
        }
        let stateless = self.endpoint.stateless.all();
        for connection in &stateless {
            connection.questions().give_up();
        }
        let all_answered = async || {
            let with_session = sessions.iter().map(|session| &session.connection);
            for connection in with_session.chain(&stateless) {
                connection.all_answered().await;
            }
        };
        let _ = timeout_at(since + DRAIN_TIMEOUT, all_answered()).await;
        // The shutdown of the first workbench ends the servers of all, but only its own scripts.
        for client in &workbenches[1..] {
            stop_scripts(client);
        }
        let answers = timeout_at(since + DRAIN_TIMEOUT + FLUSH_TIMEOUT, async {
            all_answered().await;
            self.tasks.close();
            self.tasks.wait().await;
        });
        let _ = tokio::join!(workbenches[0].shut_down(since), answers);
    }
}
