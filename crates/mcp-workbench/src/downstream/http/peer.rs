//! What all tasks of one connection share: how the server is reached, what was agreed on with it, and the
//! way back to the server's task. Plain data behind watches; whoever needs something that is not there yet
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
    oauth::{Judged, NoResponse, RequestToken},
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

/// How many notifications and answers of ours are on their way at once.
const SENDERS: usize = 8;
/// Names the session in requests and in the answer to `initialize`.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(names::PROTOCOL_VERSION);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long calls wait until we listen to what the server says without being asked.
const LISTENING_PATIENCE: Duration = Duration::from_millis(500);

/// What was said of a connection, for the link that owns it.
pub(super) enum Event {
    /// Something for the server's task.
    Tell(LinkEvent),
    /// The server no longer knows the session of this generation.
    SessionLost(u64),
    /// The server has no Streamable HTTP and refused with this: the older transport is to be tried.
    FallBack(HttpFault),
    /// The handshake is complete: the server may have something to say without being asked.
    Open(Agreed),
    /// The token belongs to another account now.
    AccountChanged,
    /// There is a new session, and this is what the server said of itself.
    Renewed(RawJson),
}

#[derive(Debug, Clone)]
pub(super) enum Route {
    /// Streamable HTTP: the answer to a POST holds the answer to its message. A modern server is reached the
    /// same way, but without session and handshake.
    Streamable(Target),
    /// HTTP+SSE, and the server has not said yet where messages go.
    SseWaiting,
    /// HTTP+SSE: messages go here, answers come on the one stream.
    Sse(Target),
}

#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It is under way; the server may have given a session already.
    Opening(Option<HeaderValue>),
    Open(Agreed),
}

/// What was agreed on in a handshake. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    /// Which handshake of this connection it was.
    pub(super) generation: u64,
    /// Whether the server has given a session.
    pub(super) session: Option<HeaderValue>,
    /// What every request carries since then.
    headers: Arc<HeaderMap>,
}

impl Agreed {
    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

/// What all tasks of one connection share.
pub(super) struct Peer {
    client: Arc<Client>,
    /// The address of the entry.
    pub(super) target: Target,
    /// What every request carries, agreed or not.
    headers: Arc<HeaderMap>,
    /// What every message carries beside them.
    posted: HeaderMap,
    /// How it is signed in to, if anybody does.
    oauth: Option<OAuthClient>,
    pub(super) secrets: Secrets,
    pub(super) times: ServerTimes,
    pub(super) route: watch::Sender<Route>,
    pub(super) stage: watch::Sender<Stage>,
    /// Whether the server can say what belongs to no request: we listen, or it has said that we need not.
    pub(super) listening: watch::Sender<bool>,
    pub(super) backlog: Backlog,
    pub(super) senders: Semaphore,
    events: mpsc::Sender<Event>,
}

impl Peer {
    /// The shared part of a connection that has not begun.
    pub(super) fn new(
        (client, target, headers): (Arc<Client>, Target, HeaderMap),
        oauth: Option<OAuthClient>,
        secrets: Secrets,
        times: ServerTimes,
        events: mpsc::Sender<Event>,
    ) -> Self {
        const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
        const JSON: HeaderValue = HeaderValue::from_static("application/json");
        Self {
            client,
            headers: Arc::new(headers),
            posted: HeaderMap::from_iter([(ACCEPT, BOTH), (CONTENT_TYPE, JSON)]),
            oauth,
            secrets,
            times,
            route: watch::Sender::new(Route::Streamable(target.clone())),
            target,
            stage: watch::Sender::new(Stage::Opening(None)),
            listening: watch::Sender::new(false),
            backlog: Backlog::default(),
            senders: Semaphore::new(SENDERS),
            events,
        }
    }

    /// How the server is signed in to, if anybody does.
    pub(super) fn oauth(&self) -> Option<&OAuthClient> {
        self.oauth.as_ref()
    }

    /// The key of the account whose answers the server gives, if somebody signs in to it.
    pub(super) fn grant(&self) -> Option<String> {
        self.oauth.as_ref()?.grant()
    }

    /// The values that must not appear in messages about the server, its token included.
    pub(super) fn all_secrets(&self) -> Cow<'_, Secrets> {
        let Some(oauth) = &self.oauth else {
            return Cow::Borrowed(&self.secrets);
        };
        let mut secrets = self.secrets.clone();
        secrets.merge(&oauth.secrets());
        Cow::Owned(secrets)
    }

    /// Tells the link something. Waits while the link does not keep up.
    pub(super) fn tell(&self, event: Event) -> impl Future<Output = ()> {
        let waiting = match self.events.try_send(event) {
            // On the heap: it is large and rare.
            Err(TrySendError::Full(event)) => Some(Box::pin(self.events.send(event))),
            // Without a link nobody wants to know.
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
        self.tell(Event::Tell(LinkEvent::Message { message, origin }))
    }

    /// Where messages go, once that is known. Cancel-safe.
    pub(super) async fn route(&self) -> Route {
        let route = self.route.borrow().clone();
        if !matches!(route, Route::SseWaiting) {
            return route;
        }
        let mut route = self.route.subscribe();
        let known = route.wait_for(|route| !matches!(route, Route::SseWaiting));
        // The sender lives as long as we do.
        known.await.map_or(Route::SseWaiting, |route| route.clone())
    }

    /// What was agreed on, once that is known and newer than a generation that was lost. Cancel-safe.
    pub(super) async fn agreed(&self, lost: Option<u64>) -> Result<Agreed, HttpFault> {
        let is_new = |agreed: &Agreed| lost.is_none_or(|lost| agreed.generation > lost);
        if let Stage::Open(agreed) = &*self.stage.borrow()
            && is_new(agreed)
        {
            return Ok(agreed.clone());
        }
        let mut stage = self.stage.subscribe();
        let known = stage
            .wait_for(|stage| match stage {
                Stage::Opening(_) => false,
                Stage::Open(agreed) => is_new(agreed),
            })
            .await;
        match known.as_deref() {
            Ok(Stage::Open(agreed)) => Ok(agreed.clone()),
            Ok(Stage::Opening(_)) | Err(_) => Err(HttpFault::Internal),
        }
    }

    /// Waits until we listen: a server may ask there what belongs to a call, and would ask nobody. A server
    /// that leaves it open whether it has such a stream is waited for once.
    pub(super) async fn listens(&self) {
        if *self.listening.borrow() {
            return;
        }
        let mut listening = self.listening.subscribe();
        let listens = listening.wait_for(|listening| *listening);
        let waited = tokio::time::timeout(LISTENING_PATIENCE, listens).await;
        if waited.is_err() {
            self.listening.send_replace(true);
        }
    }

    /// What is agreed on at this moment, complete or not.
    pub(super) fn agreed_so_far(&self) -> Agreed {
        match &*self.stage.borrow() {
            Stage::Opening(session) => self.agree(0, session.clone(), None),
            Stage::Open(agreed) => agreed.clone(),
        }
    }

    /// Nothing, as before the first handshake.
    pub(super) fn agreed_on_nothing(&self) -> Agreed {
        Agreed {
            generation: 0,
            session: None,
            headers: Arc::clone(&self.headers),
        }
    }

    /// What a handshake has agreed on.
    pub(super) fn agree(
        &self,
        generation: u64,
        session: Option<HeaderValue>,
        version: Option<HeaderValue>,
    ) -> Agreed {
        let mut headers = HeaderMap::clone(&self.headers);
        if let Some(session) = &session {
            headers.insert(SESSION_ID, session.clone());
        }
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        Agreed {
            generation,
            session,
            headers: Arc::new(headers),
        }
    }

    /// Posts a message with these headers besides those of every message.
    pub(super) async fn post(
        &self,
        target: Target,
        [agreed, own, token]: [&HeaderMap; 3],
        body: MessageBody<'_>,
    ) -> Result<Response, SendError> {
        let headers = [agreed, &self.posted, own, token];
        self.client.send(target, Method::POST, &headers, body).await
    }

    /// Asks for a stream of events, from the event after `last_id` on if there is one.
    pub(super) async fn get(
        &self,
        target: Target,
        agreed: &Agreed,
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
            let sent = self.client.send(target.clone(), Method::GET, &all, body);
            let sent = sent.await;
            let response = sent.map_err(NoResponse::Send)?;
            match token.judge(&response).await {
                Judged::Other => return Ok(response),
                Judged::Again => discard(response).await,
                Judged::Lacks(needed) => return Err(NoResponse::SignIn(needed)),
            }
        }
    }

    pub(super) async fn delete(
        self: Arc<Self>,
        target: Target,
        agreed: Agreed,
    ) -> Result<Response, SendError> {
        let token = RequestToken::begin(&self).await.headers();
        let headers = [&*agreed.headers, &token];
        let body = MessageBody::empty();
        self.client
            .send(target, Method::DELETE, &headers, body)
            .await
    }

    /// The form of another address of this server; none if it cannot stand in a request.
    pub(super) fn target(&self, url: Url) -> Option<Target> {
        self.client.target(url)
    }

    /// Ends connections that nobody needs any more, for as long as it runs.
    pub(super) fn end_idle(&self) -> impl Future<Output = ()> + use<> {
        Arc::clone(&self.client).end_idle()
    }

    /// The failure of a request that was never begun.
    pub(super) fn not_sent(fault: HttpFault) -> Setback {
        Setback {
            fault,
            outcome: Outcome::NotSent,
        }
    }
}
