//! A remote server: Streamable HTTP of both eras, and HTTP+SSE for older servers. Each request is a task of the link.
//! All messages come back through one channel, which preserves the order within a stream. Dropping the link ends all
//! tasks.
//!
//! `request.rs` decides about retries, `fault.rs` interprets failures. A request to a modern server is
//! self-contained: it has headers of its own (`modern.rs`), and there is neither a handshake nor a session nor a
//! separate stream.

mod address;
mod body;
mod client;
mod connection;
mod exchange;
mod fault;
mod handshake;
mod listen;
mod modern;
mod oauth;
mod peer;
mod request;
mod running;
mod stream;
#[cfg(test)]
mod tests;
mod watched_stream;

use std::{borrow::Cow, sync::Arc, time::Duration};

use hyper::header::HeaderValue;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use self::{
    body::{BacklogShare, SendState},
    exchange::{Outgoing, discard, post},
    peer::{HandshakeStage, Peer, PeerEvent, Remote, Route},
    request::{RequestKind, RequestTask},
    running::RunningRequests,
};
use super::{
    error::{ConnectError, HttpFault},
    link::LinkEvent,
    oauth::OAuthClient,
};
use crate::{
    alarm::timeout,
    call::Outcome,
    config::{RemoteEndpoint, RemoteProtocol, Secrets, ServerTimes},
    contain::contain,
    era::Era,
    events::RemoteAddress,
    wire::{self, Frame, FrameTicket, Message, Params, RequestId},
};

/// Upper bound on the messages that wait for the server's task; beyond it, nothing more is read. All calls that a server
/// has at once may be answered together.
const EVENT_CAPACITY: usize = 64;
/// The generation of the first session.
const FIRST_GENERATION: u64 = 1;
/// The timeout for ending a session after the link was dropped.
const END_SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// The connection to a remote server.
pub(super) struct HttpLink {
    peer: Arc<Peer>,
    events: mpsc::Receiver<PeerEvent>,
    /// The era of the next request.
    era: Era,
    /// Tasks besides the requests.
    tasks: JoinSet<()>,
    requests: TaskTracker,
    running: RunningRequests,
    /// The task that reads messages outside of requests.
    listening: Option<AbortHandle>,
    /// The `initialize` request, to be repeated if the session is lost.
    initialize: Option<Frame>,
    /// Runs tasks that may outlive the link.
    background: TaskTracker,
    /// The session that requests are made for. A call is never sent to a later one, whose tools were not compared.
    generation: u64,
    /// The start of the shutdown, if there is one.
    closing_since: Option<Instant>,
}

impl HttpLink {
    /// Prepares the connection; nothing is sent before the first request.
    pub(super) async fn open(
        endpoint: &RemoteEndpoint,
        oauth: Option<OAuthClient>,
        times: ServerTimes,
        background: &TaskTracker,
    ) -> Result<Self, ConnectError> {
        let url = address::url(endpoint)?;
        let mut headers = address::headers(endpoint)?;
        let client = address::client(&url).await?;
        address::add_usual(&mut headers, &url, &client);
        let target = client.target(url).ok_or_else(address::unusable)?;
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let remote = Remote {
            client,
            target,
            headers,
        };
        let mut link = Self {
            peer: Arc::new(Peer::new(
                remote,
                oauth,
                endpoint.secrets.clone(),
                times,
                sender,
            )),
            events,
            era: Era::Legacy,
            tasks: JoinSet::new(),
            requests: TaskTracker::new(),
            running: RunningRequests::default(),
            listening: None,
            initialize: None,
            background: background.clone(),
            generation: FIRST_GENERATION,
            closing_since: None,
        };
        let end_idle = link.peer.end_idle();
        link.spawn(end_idle);
        // The entry says so, so Streamable HTTP is not tried first.
        if endpoint.protocol == RemoteProtocol::Sse {
            link.peer.route.send_replace(Route::SseWaiting);
            link.spawn(listen::listen_old(Arc::clone(&link.peer), None));
        }
        Ok(link)
    }

    /// Returns the era of a server whose transport determines it: HTTP+SSE is always legacy.
    pub(super) fn fixed_era(&self) -> Option<Era> {
        let streamable = matches!(*self.peer.route.borrow(), Route::Streamable(_));
        (!streamable).then_some(Era::Legacy)
    }

    /// Returns the era of the requests that are sent.
    pub(super) fn era(&self) -> Era {
        self.era
    }

    /// Sets the era of the next requests.
    pub(super) fn set_era(&mut self, era: Era) {
        self.era = era;
    }

    /// Sends a request. `headers` are those for arguments of its tool, which modern servers get.
    pub(super) fn request(
        &mut self,
        id: u64,
        method: &str,
        params: Params<'_>,
        headers: &[(String, String)],
    ) -> FrameTicket {
        let modern = match self.era {
            Era::Modern => Some(modern::headers(
                self.peer.posted(),
                method,
                &params,
                headers,
            )),
            Era::Legacy => None,
        };
        let frame = wire::request(id, method, params);
        let kind = RequestKind::of(method);
        if kind == RequestKind::Initialize {
            self.initialize = Some(frame.clone());
        }
        let sending = Arc::new(SendState::default());
        let task = RequestTask {
            peer: Arc::clone(&self.peer),
            id,
            kind,
            generation: self.generation,
            grant: self.peer.grant(),
            modern,
            share: Some(self.peer.backlog.share(frame.len())),
            frame,
            sending: Arc::clone(&sending),
        };
        let task = self.requests.spawn(run_contained(task));
        let limit = kind.limit(self.peer.times);
        self.running.begin(id, sending, task.abort_handle(), limit)
    }

    /// Sends a notification or a response, without waiting for its delivery. A modern server gets requests only: it
    /// sends no requests, and a closed stream means a cancellation.
    pub(super) fn send(&mut self, frame: Frame) {
        if self.era == Era::Modern {
            tracing::debug!("not sending a notification or response to a modern server");
            return;
        }
        let share = self.peer.backlog.share(frame.len());
        self.spawn(send(Arc::clone(&self.peer), frame, share));
    }

    /// Completes the handshake: requests are sent after the server got `notifications/initialized`.
    pub(super) fn initialized(&mut self, version: &str) {
        let version = HeaderValue::try_from(version).ok();
        self.spawn(handshake::complete(Arc::clone(&self.peer), version));
    }

    /// Withdraws a request. Its response is ignored in any case, and its stream is closed.
    pub(super) fn withdraw(&mut self, request: FrameTicket) -> Outcome {
        self.running.withdraw(request)
    }

    /// Returns the known effects of an unanswered request.
    pub(super) fn outcome(&self, request: FrameTicket) -> Outcome {
        self.running.outcome(request)
    }

    /// Returns how many bytes wait to be sent.
    pub(super) fn backlog(&self) -> usize {
        self.peer.backlog.bytes()
    }

    /// Returns the values to redact in messages about this server.
    pub(super) fn secrets(&self) -> Cow<'_, Secrets> {
        self.peer.all_secrets()
    }

    /// Returns the address of the server.
    pub(super) fn address(&self) -> Option<RemoteAddress> {
        let url = self.peer.target.url();
        Some(RemoteAddress {
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }

    /// Returns the session that the server gave out.
    pub(super) fn session(&self) -> Option<String> {
        let session = self.peer.agreed_so_far().session?;
        Some(session.to_str().ok()?.to_owned())
    }

    /// Makes the deadline for ending the session count from `since`.
    pub(super) fn closing_since(&mut self, since: Instant) {
        self.closing_since = Some(since);
    }

    /// Returns the next event. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> LinkEvent {
        loop {
            let event = tokio::select! {
                biased;
                // A response that has arrived counts, even if its deadline has passed meanwhile.
                event = self.events.recv() => event,
                overdue = self.running.overdue() => return overdue,
            };
            let Some(event) = event else {
                return LinkEvent::Lost(HttpFault::Internal);
            };
            if let Some(event) = self.take(event) {
                return event;
            }
        }
    }

    /// Returns an event that arrived together with the last one, without waiting. While these are taken no task runs, so
    /// there are at most as many as the channel holds.
    pub(super) fn ready_event(&mut self) -> Option<LinkEvent> {
        loop {
            let event = self.events.try_recv().ok()?;
            if let Some(event) = self.take(event) {
                return Some(event);
            }
        }
    }

    /// Handles an event of a task. Returns the part of it that is for the server's task.
    fn take(&mut self, event: PeerEvent) -> Option<LinkEvent> {
        match event {
            PeerEvent::Tell(event) => {
                // Its deadline must not fail a request that is answered.
                self.forget_answered(&event);
                Some(event)
            }
            PeerEvent::SessionLost(lost) => self.renew(lost).then_some(LinkEvent::SessionLost),
            PeerEvent::FallBack(refused) => {
                let peer = Arc::clone(&self.peer);
                self.spawn(listen::listen_old(peer, Some(refused)));
                None
            }
            PeerEvent::Open(agreed) => {
                let listening = listen::listen(Arc::clone(&self.peer), agreed);
                let listening = self.spawn(listening);
                // The stream of the lost session would only fail.
                if let Some(before) = self.listening.replace(listening) {
                    before.abort();
                }
                None
            }
            PeerEvent::AccountChanged => Some(LinkEvent::AccountChanged),
            PeerEvent::Renewed(said) => Some(LinkEvent::Renewed(said)),
        }
    }

    fn forget_answered(&mut self, event: &LinkEvent) {
        let id = match event {
            LinkEvent::Message {
                message: Message::Response(response),
                ..
            } => response.id.as_ref().and_then(RequestId::as_u64),
            LinkEvent::Failed { id, .. } => Some(*id),
            _ => None,
        };
        if let Some(id) = id {
            self.running.end(FrameTicket::from(id));
        }
    }

    /// Opens a new session to replace a lost one. Returns false if an earlier report of the same loss already did.
    fn renew(&mut self, lost: u64) -> bool {
        let is_current = matches!(
            &*self.peer.stage.borrow(),
            HandshakeStage::Open(agreed) if agreed.generation == lost
        );
        let Some(initialize) = self.initialize.clone().filter(|_| is_current) else {
            return false;
        };
        self.generation = lost + 1;
        // From here on requests wait for the new session.
        self.peer.stage.send_replace(HandshakeStage::Opening(None));
        let renewal = handshake::renew(Arc::clone(&self.peer), initialize, self.generation);
        self.spawn(renewal);
        true
    }

    /// Starts a task, and forgets those that have ended.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(task)
    }
}

impl Drop for HttpLink {
    /// Dropping the link ends all of its tasks and deletes the session at the server.
    fn drop(&mut self) {
        // `requests` is a tracker, and does not end its tasks when it is dropped.
        self.running.abort_all();
        let agreed = self.peer.agreed_so_far();
        let Route::Streamable(target) = self.peer.route.borrow().clone() else {
            return;
        };
        if agreed.session.is_none() {
            return;
        }
        let until = self.closing_since.unwrap_or_else(Instant::now) + END_SESSION_TIMEOUT;
        let delete = Arc::clone(&self.peer).delete(target, agreed);
        self.background.spawn(async move {
            // 405 means that the server ends sessions itself; other errors cannot be handled.
            let _ = tokio::time::timeout_at(until, delete).await;
        });
    }
}

/// Runs a request; a panic fails only that request.
async fn run_contained(task: RequestTask) {
    let (peer, id) = (Arc::clone(&task.peer), task.id);
    // On the heap: it is large, and would be copied when it starts and when it ends.
    if contain(Box::pin(task.run())).await.is_err() {
        let failed = LinkEvent::Failed {
            id,
            fault: HttpFault::Internal,
            outcome: Outcome::Unknown,
        };
        peer.tell(PeerEvent::Tell(failed)).await;
    }
}

async fn send(peer: Arc<Peer>, frame: Frame, share: BacklogShare) {
    // The semaphore is never closed.
    let Ok(_permit) = peer.senders.acquire().await else {
        return;
    };
    let (Route::Streamable(target) | Route::Sse(target)) = peer.route().await else {
        return;
    };
    let outgoing = Outgoing {
        frame: &frame,
        sending: &Arc::new(SendState::default()),
        agreed: &peer.agreed_so_far(),
        modern: None,
        grant: None,
    };
    let sent = post(&peer, target, &outgoing, Some(share));
    match timeout(peer.times.connect, sent).await {
        Ok(Ok(response)) => discard(response).await,
        Ok(Err(error)) => {
            tracing::debug!("failed to send a message: {}", error.into_setback().fault);
        }
        Err(_) => tracing::debug!("timed out sending a message"),
    }
}
