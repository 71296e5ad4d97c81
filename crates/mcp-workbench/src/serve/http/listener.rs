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
    limits::{MAX_BODIES_MIB, MAX_HEADER_BYTES, MAX_HEADERS},
    refusal::Refusal,
    response::Response,
    sessions::Sessions,
    stateless::Stateless,
    timed_stream::TimedStream,
    tokens::Tokens,
    unread::{self, UnreadBudget},
};
use crate::{
    alarm::Alarm,
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

    /// Serves until `stop` is done; then ends all servers. The first workbench is for every client, the others are for
    /// the clients of the configuration that have tokens, in the order of [`Tokens::clients`].
    pub(crate) async fn serve(
        self,
        workbenches: Vec<Arc<Workbench>>,
        stop: impl Future<Output = ()>,
    ) {
        // A proxy may forward requests from other machines, so the location of the client is unknown.
        let location = if self.address.ip().is_loopback() && self.options.hosts.is_empty() {
            ClientLocation::Local
        } else {
            ClientLocation::Unknown
        };
        let unread = Arc::<UnreadBudget>::default();
        let tokens = self.options.tokens.as_ref();
        let context_of_token = tokens.map(Tokens::client_positions).unwrap_or_default();
        let contexts = ServeContext::all(workbenches, location);
        let parked = Arc::clone(&contexts[0].parked);
        let server = Arc::new(Server {
            guard: Guard {
                address: self.address,
                hosts: self.options.hosts,
                tokens: self.options.tokens,
            },
            endpoint: Arc::new(Endpoint {
                contexts,
                context_of_token,
                sessions: Sessions::new(self.options.session_timeout),
                stateless: Stateless::new(&unread),
                body_room: Arc::new(Semaphore::new(MAX_BODIES_MIB)),
                unread,
            }),
            connections: Connections::new(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
        });
        tokio::select! {
            () = server.accept(self.listener, stop) => {}
            () = parked.expire() => {}
        }
        server.end().await;
    }
}

struct Server {
    guard: Guard,
    endpoint: Arc<Endpoint>,
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
            .max_headers(MAX_HEADERS)
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

    /// Lets the requests that were read finish, then ends the servers, which fails the rest.
    async fn end(&self) {
        let since = Instant::now();
        self.ending.cancel();
        let contexts = &self.endpoint.contexts;
        for context in contexts {
            context.workbench.stop_announcing();
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
        let ending = TaskTracker::new();
        for context in contexts {
            let workbench = Arc::clone(&context.workbench);
            ending.spawn(async move { workbench.shut_down(since).await });
        }
        ending.close();
        let answers = timeout_at(since + DRAIN_TIMEOUT + FLUSH_TIMEOUT, async {
            all_answered().await;
            self.tasks.close();
            self.tasks.wait().await;
        });
        let _ = tokio::join!(ending.wait(), answers);
    }
}
