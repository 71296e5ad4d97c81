//! The state that all tasks of one connection share: the address of the server, the result of the handshake, and the
//! channel to the server's task. It is plain data behind watches; a task that needs a value that is not there yet
//! waits for it.

use std::{borrow::Cow, sync::Arc, time::Duration};

use hyper::{
    HeaderMap, Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use rawjson::RawJson;
use tokio::sync::{
    Semaphore,
    mpsc::{self, error::TrySendError},
    watch,
};
use url::Url;

use super::{
    body::{Backlog, MessageBody},
    client::{Client, Response, SendError, Target},
    exchange::discard,
    fault::Setback,
    oauth::{NoResponse, RequestToken, TokenVerdict},
};
use crate::{
    call::Outcome,
    config::{Secrets, ServerTimes},
    downstream::{
        error::HttpFault,
        link::{LinkEvent, Origin},
        oauth::OAuthClient,
    },
    era::headers as names,
    wire::Message,
};

/// Upper bound on the notifications and responses that are being sent at once.
const MAX_SENDERS: usize = 8;
/// The session header in requests and in the response to `initialize`.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(names::PROTOCOL_VERSION);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The headers of most requests besides those of the entry.
const MAX_FURTHER_HEADERS: usize = 8;
/// How long calls wait until the GET stream is open.
const LISTENING_TIMEOUT: Duration = Duration::from_millis(500);

/// An event of a connection, for the link that owns it.
pub(super) enum PeerEvent {
    /// An event for the server's task.
    Tell(LinkEvent),
    /// The server lost the session of this generation.
    SessionLost(u64),
    /// The server refused Streamable HTTP with this fault: try HTTP+SSE.
    FallBack(HttpFault),
    /// The handshake is complete: the server may send messages outside of requests.
    Open(Handshake),
    /// The token now belongs to a different account.
    AccountChanged,
    /// A new session is open, with the server's description of itself.
    Renewed(RawJson),
}

#[derive(Debug, Clone)]
pub(super) enum Route {
    /// Streamable HTTP: the response to a POST contains the response to its message. A modern server is reached the
    /// same way, but without session and handshake.
    Streamable(Target),
    /// HTTP+SSE, before the server has named the address for messages.
    SseWaiting,
    /// HTTP+SSE: messages go to this address, responses arrive on the single stream.
    Sse(Target),
}

#[derive(Debug, Clone)]
pub(super) enum HandshakeStage {
    /// It is in progress; the server may have issued a session already.
    Opening(Option<HeaderValue>),
    Open(Handshake),
}

/// The result of a handshake. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    /// The number of this handshake on its connection.
    pub(super) generation: u64,
    /// The session, if the server issued one.
    pub(super) session: Option<HeaderValue>,
    /// The headers of every request since then.
    headers: Arc<HeaderMap>,
    /// The headers of every POST since then.
    posted: Arc<HeaderMap>,
}

impl Handshake {
    /// Returns the headers of a POST.
    pub(super) fn posted(&self) -> &HeaderMap {
        &self.posted
    }
}

/// The state that all tasks of one connection share.
pub(super) struct Peer {
    client: Arc<Client>,
    /// The address of the entry.
    pub(super) target: Target,
    /// The headers of every request, before and after the handshake.
    headers: Arc<HeaderMap>,
    /// The headers of every POST before the handshake.
    posted: Arc<HeaderMap>,
    /// The OAuth client, if the server may need a sign-in.
    oauth: Option<OAuthClient>,
    pub(super) secrets: Secrets,
    pub(super) times: ServerTimes,
    pub(super) route: watch::Sender<Route>,
    pub(super) stage: watch::Sender<HandshakeStage>,
    /// Set if the server can send messages outside of requests: the GET stream is open, or the server has none.
    pub(super) listening: watch::Sender<bool>,
    pub(super) backlog: Backlog,
    pub(super) senders: Semaphore,
    events: mpsc::Sender<PeerEvent>,
}

/// The address of a server, and the client and the headers to reach it.
pub(super) struct Remote {
    pub(super) client: Arc<Client>,
    pub(super) target: Target,
    pub(super) headers: HeaderMap,
}

impl Peer {
    /// Creates the state of a connection before its first request.
    pub(super) fn new(
        remote: Remote,
        oauth: Option<OAuthClient>,
        secrets: Secrets,
        times: ServerTimes,
        events: mpsc::Sender<PeerEvent>,
    ) -> Self {
        let Remote {
            client,
            target,
            headers,
        } = remote;
        let posted = for_post(&headers);
        Self {
            client,
            headers: Arc::new(headers),
            posted: Arc::new(posted),
            oauth,
            secrets,
            times,
            route: watch::Sender::new(Route::Streamable(target.clone())),
            target,
            stage: watch::Sender::new(HandshakeStage::Opening(None)),
            listening: watch::Sender::new(false),
            backlog: Backlog::default(),
            senders: Semaphore::new(MAX_SENDERS),
            events,
        }
    }

    pub(super) fn oauth(&self) -> Option<&OAuthClient> {
        self.oauth.as_ref()
    }

    /// Returns the key of the signed-in account, if there is one.
    pub(super) fn grant(&self) -> Option<String> {
        self.oauth.as_ref()?.grant()
    }

    /// Returns the values to redact in messages about the server, including its token.
    pub(super) fn all_secrets(&self) -> Cow<'_, Secrets> {
        let Some(oauth) = &self.oauth else {
            return Cow::Borrowed(&self.secrets);
        };
        let mut secrets = self.secrets.clone();
        secrets.merge(&oauth.secrets());
        Cow::Owned(secrets)
    }

    /// Sends an event to the link. Waits while the channel is full.
    pub(super) fn tell(&self, event: PeerEvent) -> impl Future<Output = ()> {
        // The channel is rarely full, and this spares every message a future of its own.
        let waiting = match self.events.try_send(event) {
            // On the heap because it is large and rare.
            Err(TrySendError::Full(event)) => Some(Box::pin(self.events.send(event))),
            // Without a link the event is dropped.
            Ok(()) | Err(TrySendError::Closed(_)) => None,
        };
        async {
            if let Some(waiting) = waiting {
                let _ = waiting.await;
            }
        }
    }

    /// Passes on a message of the server.
    pub(super) fn pass_on(&self, message: Message, origin: Origin) -> impl Future<Output = ()> {
        self.tell(PeerEvent::Tell(LinkEvent::Message { message, origin }))
    }

    /// Returns the route of messages; waits until it is known. Cancel-safe.
    pub(super) async fn route(&self) -> Route {
        let route = self.route.borrow().clone();
        if !matches!(route, Route::SseWaiting) {
            return route;
        }
        let mut route = self.route.subscribe();
        let known = route.wait_for(|route| !matches!(route, Route::SseWaiting));
        // The sender lives as long as `self`.
        known.await.map_or(Route::SseWaiting, |route| route.clone())
    }

    /// Returns the result of the handshake; waits until it is known and newer than a lost generation. Cancel-safe.
    pub(super) async fn agreed(&self, lost: Option<u64>) -> Result<Handshake, HttpFault> {
        let is_new = |agreed: &Handshake| lost.is_none_or(|lost| agreed.generation > lost);
        if let HandshakeStage::Open(agreed) = &*self.stage.borrow()
            && is_new(agreed)
        {
            return Ok(agreed.clone());
        }
        let mut stage = self.stage.subscribe();
        let known = stage
            .wait_for(|stage| match stage {
                HandshakeStage::Opening(_) => false,
                HandshakeStage::Open(agreed) => is_new(agreed),
            })
            .await;
        match known.as_deref() {
            Ok(HandshakeStage::Open(agreed)) => Ok(agreed.clone()),
            Ok(HandshakeStage::Opening(_)) | Err(_) => Err(HttpFault::Internal),
        }
    }

    /// Waits until the GET stream is open: a server may send questions of a call there. If the server leaves it open
    /// whether it has such a stream, only the first call waits.
    pub(super) async fn listens(&self) {
        if *self.listening.borrow() {
            return;
        }
        let mut listening = self.listening.subscribe();
        let listens = listening.wait_for(|listening| *listening);
        let waited = tokio::time::timeout(LISTENING_TIMEOUT, listens).await;
        // The server does not say whether it has such a stream. No further call waits for it.
        if waited.is_err() {
            self.listening.send_replace(true);
        }
    }

    /// Returns the current result of the handshake, complete or not.
    pub(super) fn agreed_so_far(&self) -> Handshake {
        match &*self.stage.borrow() {
            HandshakeStage::Opening(session) => self.agree(0, session.clone(), None),
            HandshakeStage::Open(agreed) => agreed.clone(),
        }
    }

    /// Returns the headers of a POST outside of a session.
    pub(super) fn posted(&self) -> &HeaderMap {
        &self.posted
    }

    /// Returns the state before the first handshake.
    pub(super) fn agreed_on_nothing(&self) -> Handshake {
        Handshake {
            generation: 0,
            session: None,
            headers: Arc::clone(&self.headers),
            posted: Arc::clone(&self.posted),
        }
    }

    /// Creates the result of a handshake.
    pub(super) fn agree(
        &self,
        generation: u64,
        session: Option<HeaderValue>,
        version: Option<HeaderValue>,
    ) -> Handshake {
        let mut headers = HeaderMap::clone(&self.headers);
        if let Some(session) = &session {
            headers.insert(SESSION_ID, session.clone());
        }
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        Handshake {
            generation,
            session,
            posted: Arc::new(for_post(&headers)),
            headers: Arc::new(headers),
        }
    }

    /// Posts a message with these headers.
    pub(super) async fn post(
        &self,
        target: Target,
        headers: [&HeaderMap; 2],
        body: MessageBody<'_>,
    ) -> Result<Response, SendError> {
        self.client.send(target, Method::POST, &headers, body).await
    }

    /// Requests an event stream, after the event `last_id` if there is one.
    pub(super) async fn get(
        &self,
        target: Target,
        agreed: &Handshake,
        last_id: Option<&str>,
    ) -> Result<Response, NoResponse> {
        const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
        let mut headers = HeaderMap::from_iter([(ACCEPT, EVENTS)]);
        if let Some(last_id) = last_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            headers.insert(LAST_EVENT_ID, last_id);
        }
        let mut token = RequestToken::begin(self).await;
        loop {
            let all = [&*agreed.headers, &headers, &token.headers()];
            let body = MessageBody::empty();
            let sent = self
                .client
                .send(target.clone(), Method::GET, &all, body)
                .await;
            let response = sent.map_err(NoResponse::Send)?;
            match token.judge(&response).await {
                TokenVerdict::Other => return Ok(response),
                // The token was replaced. Reading the refusal to its end lets the connection be used again.
                TokenVerdict::Again => discard(response).await,
                TokenVerdict::Lacks(needed) => return Err(NoResponse::SignIn(needed)),
            }
        }
    }

    pub(super) async fn delete(
        self: Arc<Self>,
        target: Target,
        agreed: Handshake,
    ) -> Result<Response, SendError> {
        let token = RequestToken::begin(&self).await.headers();
        let headers = [&*agreed.headers, &token];
        let body = MessageBody::empty();
        self.client
            .send(target, Method::DELETE, &headers, body)
            .await
    }

    /// Returns the form of another address of this server in requests; `None` if it has none.
    pub(super) fn target(&self, url: Url) -> Option<Target> {
        self.client.target(url)
    }

    /// Closes connections that stay idle for too long, as long as the future runs.
    pub(super) fn end_idle(&self) -> impl Future<Output = ()> + use<> {
        Arc::clone(&self.client).end_idle()
    }

    /// Creates the failure of a request that was never begun.
    pub(super) fn not_sent(fault: HttpFault) -> Setback {
        Setback {
            fault,
            outcome: Outcome::NotSent,
        }
    }
}

/// Returns these headers with those that every POST has, and with room for those of a modern request: every request gets
/// a clone, which has the same room and would otherwise grow each time.
fn for_post(headers: &HeaderMap) -> HeaderMap {
    const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let mut posted = headers.clone();
    posted.reserve(MAX_FURTHER_HEADERS);
    posted.append(ACCEPT, BOTH);
    posted.append(CONTENT_TYPE, JSON);
    posted
}
