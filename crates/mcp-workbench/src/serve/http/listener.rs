//! Accepts connections, runs each in its own task, and shuts them down in order.

use std::{convert::Infallible, future::poll_fn, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{
    Request, body::Incoming, header::CONNECTION, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    HEALTH_PATH, HttpOptions,
    connections::{ConnectionSlot, Connections},
    endpoint::{Endpoint, Waits},
    guard::Guard,
    limits::{MAX_BODIES_MIB, MAX_HEADER_BYTES},
    page::{Page, PageRequest, is_page},
    refusal::Refusal,
    request_body,
    response::Response,
    sessions::Sessions,
    stateless::Stateless,
    timed_stream::TimedStream,
    unread::{self, UnreadBudget},
};
use crate::{
    alarm::Alarm,
    metrics::Metrics,
    serve::{ClientLocation, DRAIN_TIMEOUT, FLUSH_TIMEOUT, ServeContext},
    workbench::Workbench,
};

/// The pause after the system had no room for a connection.
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

    /// Serves until `stop` is done; then ends all servers.
    pub(crate) async fn serve(
        self,
        workbench: Arc<Workbench>,
        page: Option<Arc<dyn Page>>,
        stop: impl Future<Output = ()>,
    ) {
        // A proxy may forward requests from other machines, so the location of the client is unknown.
        let location = if self.address.ip().is_loopback() && self.options.hosts.is_empty() {
            ClientLocation::Local
        } else {
            ClientLocation::Unknown
        };
        let unread = Arc::<UnreadBudget>::default();
        let server = Arc::new(Server {
            guard: Guard {
                address: self.address,
                hosts: self.options.hosts,
                tokens: self.options.tokens,
            },
            endpoint: Arc::new(Endpoint {
                context: ServeContext::new(workbench, location),
                sessions: Sessions::new(self.options.session_timeout),
                stateless: Stateless::new(&unread),
                body_room: Arc::new(Semaphore::new(MAX_BODIES_MIB)),
                unread,
                metrics: Metrics::default(),
            }),
            page,
            connections: Connections::new(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        });
        tokio::select! {
            () = server.accept(self.listener, stop) => {}
            () = server.endpoint.context.parked.expire() => {}
        }
        server.end().await;
    }
}

struct Server {
    guard: Guard,
    endpoint: Arc<Endpoint>,
    page: Option<Arc<dyn Page>>,
    connections: Arc<Connections>,
    /// The tasks of the connections.
    tasks: TaskTracker,
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
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = self.endpoint.unread.exceeded() => {
                    let streams = self.endpoint.all_streams();
                    unread::drop_excess(&self.endpoint.unread, streams, &self.connections);
                }
                () = alarm.wait(Some(sweep_at)) => {
                    sessions.sweep();
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
        // Without it an answer may wait for an acknowledgement of the one before.
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
                let mut response = self.respond(request, &peer).await;
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
        let turns = peer.slot.turns();
        let watched = poll_fn(|context| {
            let served = connection.as_mut().poll(context);
            // hyper has read before its response ended. It has to read again to start the client's timeout.
            if served.is_pending() && turns.is_unwatched() {
                return connection.as_mut().poll(context);
            }
            served
        });
        let served = tokio::select! {
            // First, so that a request that was read is answered.
            biased;
            served = watched => served,
            () = self.ending.cancelled() => {
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
            let response = self.respond_with(page, request, peer).await;
            return response.unwrap_or_else(Refusal::into_response);
        }
        let principal = match self.guard.check(&request, peer.local) {
            Ok(principal) => principal,
            Err(refusal) => return refusal.into_response(),
        };
        if self.ending.is_cancelled() {
            return Refusal::ShuttingDown.into_response();
        }
        // Health checks need no token, so their connections stay guests.
        if request.uri().path() != HEALTH_PATH && !peer.slot.admit() {
            return Refusal::TooManyConnections.into_response();
        }
        let response = self.endpoint.take(request, principal, &peer.waits).await;
        response.unwrap_or_else(Refusal::into_response)
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

    /// Lets the requests that were read finish, then ends the servers, which fails the rest.
    async fn end(&self) {
        let since = Instant::now();
        self.ending.cancel();
        self.endpoint.context.workbench.stop_announcing();
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
        let servers = self.endpoint.context.workbench.shut_down(since);
        let answers = timeout_at(since + DRAIN_TIMEOUT + FLUSH_TIMEOUT, async {
            all_answered().await;
            self.tasks.close();
            self.tasks.wait().await;
        });
        let _ = tokio::join!(servers, answers);
    }
}
