//! What all tasks of one connection share: how the server is reached, what was agreed on with it, and the
//! way back to the server's task. Plain data behind watches; whoever needs something that is not there yet
//! waits for it.

use reqwest::{
    Client, Method, RequestBuilder, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use tokio::sync::{Semaphore, mpsc, watch};

use super::{
    body::{Backlog, MessageBody},
    fault::Setback,
};
use crate::{
    call::Outcome,
    config::{Secrets, ServerTimes},
    downstream::{
        error::HttpFault,
        link::{LinkEvent, Origin},
    },
    wire::Message,
};

/// How many notifications and answers of ours are on their way at once.
const SENDERS: usize = 8;

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
    /// The session was made anew.
    Renewed,
}

/// Where messages go.
#[derive(Debug, Clone)]
pub(super) enum Route {
    /// Streamable HTTP: the answer to a POST holds the answer to its message. A modern server is reached the
    /// same way, but without session and handshake.
    Streamable(Url),
    /// HTTP+SSE, and the server has not said yet where messages go.
    SseWaiting,
    /// HTTP+SSE: messages go here, answers come on the one stream.
    Sse(Url),
}

/// Where the handshake stands.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It is under way; the server may have given a session already.
    Opening(Option<HeaderValue>),
    /// It is complete.
    Open(Agreed),
    /// It was lost and could not be made anew.
    Broken {
        /// The generation that was lost.
        lost: u64,
        fault: HttpFault,
    },
}

/// What was agreed on in a handshake.
#[derive(Debug, Clone, Default)]
pub(super) struct Agreed {
    /// Which handshake of this connection it was.
    pub(super) generation: u64,
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
}

/// What all tasks of one connection share.
pub(super) struct Peer {
    pub(super) client: Client,
    /// The address of the entry.
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) secrets: Secrets,
    pub(super) times: ServerTimes,
    pub(super) route: watch::Sender<Route>,
    pub(super) stage: watch::Sender<Stage>,
    pub(super) backlog: Backlog,
    pub(super) senders: Semaphore,
    events: mpsc::Sender<Event>,
}

impl Peer {
    /// The shared part of a connection that has not begun.
    pub(super) fn new(
        (client, url, headers): (Client, Url, HeaderMap),
        secrets: Secrets,
        times: ServerTimes,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            client,
            headers,
            secrets,
            times,
            route: watch::Sender::new(Route::Streamable(url.clone())),
            url,
            stage: watch::Sender::new(Stage::Opening(None)),
            backlog: Backlog::default(),
            senders: Semaphore::new(SENDERS),
            events,
        }
    }

    /// Tells the link something. Waits while the link does not keep up.
    pub(super) async fn tell(&self, event: Event) {
        // Without a link nobody wants to know.
        let _ = self.events.send(event).await;
    }

    /// Passes on a message of the server.
    pub(super) async fn pass_on(&self, message: Message, origin: Origin) {
        self.tell(Event::Tell(LinkEvent::Message { message, origin }))
            .await;
    }

    /// Where messages go, once that is known. Cancel-safe.
    pub(super) async fn route(&self) -> Route {
        let mut route = self.route.subscribe();
        let known = route.wait_for(|route| !matches!(route, Route::SseWaiting));
        // The sender lives as long as we do.
        known.await.map_or(Route::SseWaiting, |route| route.clone())
    }

    /// What was agreed on, once that is known and newer than a generation that was lost. Cancel-safe.
    pub(super) async fn agreed(&self, lost: Option<u64>) -> Result<Agreed, HttpFault> {
        let is_new = |agreed: &Agreed| lost.is_none_or(|lost| agreed.generation > lost);
        let mut stage = self.stage.subscribe();
        let known = stage
            .wait_for(|stage| match stage {
                Stage::Opening(_) => false,
                Stage::Open(agreed) => is_new(agreed),
                Stage::Broken { .. } => true,
            })
            .await;
        match known.as_deref() {
            Ok(Stage::Open(agreed)) => Ok(agreed.clone()),
            Ok(Stage::Broken { fault, .. }) => Err(fault.clone()),
            Ok(Stage::Opening(_)) | Err(_) => Err(HttpFault::Internal),
        }
    }

    /// What is agreed on at this moment, complete or not.
    pub(super) fn agreed_so_far(&self) -> Agreed {
        match &*self.stage.borrow() {
            Stage::Opening(session) => Agreed {
                session: session.clone(),
                ..Agreed::default()
            },
            Stage::Open(agreed) => agreed.clone(),
            Stage::Broken { .. } => Agreed::default(),
        }
    }

    /// A POST of a message.
    pub(super) fn post(&self, url: Url, agreed: &Agreed, body: MessageBody) -> RequestBuilder {
        const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
        const JSON: HeaderValue = HeaderValue::from_static("application/json");
        let mut headers = self.headers_with(agreed);
        headers.insert(ACCEPT, BOTH);
        headers.insert(CONTENT_TYPE, JSON);
        self.client
            .request(Method::POST, url)
            .headers(headers)
            .body(reqwest::Body::wrap(body))
    }

    /// A GET of a stream of events, from the event after `last_id` on if there is one.
    pub(super) fn get(&self, url: Url, agreed: &Agreed, last_id: Option<&str>) -> RequestBuilder {
        const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
        let mut headers = self.headers_with(agreed);
        headers.insert(ACCEPT, EVENTS);
        if let Some(last_id) = last_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            headers.insert("last-event-id", last_id);
        }
        self.client.request(Method::GET, url).headers(headers)
    }

    /// The DELETE of a session.
    pub(super) fn delete(&self, url: Url, agreed: &Agreed) -> RequestBuilder {
        self.client
            .request(Method::DELETE, url)
            .headers(self.headers_with(agreed))
    }

    fn headers_with(&self, agreed: &Agreed) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(session) = &agreed.session {
            headers.insert("mcp-session-id", session.clone());
        }
        if let Some(version) = &agreed.version {
            headers.insert("mcp-protocol-version", version.clone());
        }
        headers
    }

    /// The failure of a request that was never begun.
    pub(super) fn not_sent(fault: HttpFault) -> Setback {
        Setback {
            fault,
            outcome: Outcome::NotSent,
        }
    }
}
