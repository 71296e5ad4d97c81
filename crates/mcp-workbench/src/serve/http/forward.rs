//! Forwards a request to the replica that has what the request is about: a parked call, a task, a stream or a question. The
//! sender travels in a sealed header, so the client's token does not. A forwarded request is never forwarded again.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use hyper::{
    HeaderMap, Method, Request, Uri,
    body::{Body, Frame as BodyFrame, Incoming},
    client::conn::http1,
    header::{self, HeaderName, HeaderValue},
    http::response::Parts,
};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use url::{Position, Url};

use super::{
    ENDPOINT_PATH,
    bodies::{WholeBody, event_response, lone_event},
    guard::Sender,
    headers::{EVENT_STREAM, LAST_EVENT_ID},
    refusal::Refusal,
    response::{Response, ResponseBody},
    tokens::TokenHolder,
};
use crate::{
    alarm::timeout,
    dial::{ConnectFault, Connector, Proxies},
    oauth::User,
    seal::{SealPurpose, Sealer},
    serve::replica::Replica,
    sha256::Sha256,
    wire::{Frame, MAX_FRAME_BYTES, RequestId},
};

/// The header with the sealed sender of a forwarded request.
pub(super) const FORWARDED: HeaderName = HeaderName::from_static("mcp-workbench-forwarded");
/// How long a replica may take to accept a connection. One that was killed refuses at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a replica may take for the head of its response. A slow response becomes a stream after a second.
const HEAD_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the sealed sender is valid, in seconds. The clock of the receiver may be ahead by almost as much.
const VALID_SECONDS: u64 = 60;
/// Upper bound on a response that is not a stream: a message, and what escaping adds.
const MAX_RESPONSE_BYTES: usize = 2 * MAX_FRAME_BYTES;

/// The content of the sealed header.
#[derive(Serialize, Deserialize)]
struct Envelope {
    sender: SealedSender,
    /// The end of its validity, in seconds since 1970.
    until: u64,
    /// The digest of the body, so that nobody can send another one with it.
    body: [u8; 32],
}

#[derive(Serialize, Deserialize)]
enum SealedSender {
    Anybody,
    Holder {
        digest: u128,
        client: Option<String>,
    },
    User {
        subject: String,
        client: Option<String>,
        digest: [u8; 16],
    },
}

/// A request that is to be forwarded.
pub(super) struct Forwarded<'a> {
    pub(super) method: Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
    pub(super) sender: &'a Sender,
    /// The request of the client, and the answer to it if the replica ends before it has answered.
    pub(super) lost: Option<(RequestId, Frame)>,
}

/// The reason why a replica gives no response.
type Unreachable = Box<dyn std::error::Error + Send + Sync>;

/// Returns whether a replica has forwarded a request. The guard has checked its sender.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}

/// Returns the sender of a forwarded request.
pub(super) fn sender(sealer: &Sealer, headers: &HeaderMap) -> Result<Sender, Refusal> {
    // A copied header is useless after a minute.
    let envelope = open(sealer, headers).filter(|it| it.until >= now());
    Ok(match envelope.ok_or(Refusal::WrongToken)?.sender {
        SealedSender::Anybody => Sender::Anybody,
        SealedSender::Holder { digest, client } => Sender::Holder(TokenHolder {
            digest,
            client: client.map(|it| it.as_str().into()),
        }),
        SealedSender::User {
            subject,
            client,
            digest,
        } => {
            let user = User {
                subject: subject.into(),
                client: client.map(|it| it.as_str().into()),
                digest,
            };
            // The token stays at the replica that has checked it.
            Sender::User(user, None)
        }
    })
}

/// Refuses a forwarded request with a body that its replica has not sent.
pub(super) fn check_body(sealer: &Sealer, headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    let envelope = open(sealer, headers);
    let is_same = envelope.is_some_and(|it| it.body == digest(body));
    is_same.then_some(()).ok_or(Refusal::WrongToken)
}

/// Forwards a request. Returns `None` if the replica cannot be reached.
pub(super) async fn send(
    replica: &Arc<Replica>,
    address: &Url,
    forwarded: Forwarded<'_>,
) -> Option<Response> {
    match exchange(replica.sealer(), address, forwarded).await {
        Ok(response) => Some(response),
        Err(error) => {
            tracing::warn!("failed to reach the replica at {address}: {error}");
            None
        }
    }
}

async fn exchange(
    sealer: &Sealer,
    address: &Url,
    forwarded: Forwarded<'_>,
) -> Result<Response, Unreachable> {
    let origin: Uri = address.as_str().parse()?;
    let connect = async {
        let connector = Connector::new(origin, Proxies::None).await?;
        connector.connect().await
    };
    let timed_out = || ConnectFault::from("timed out");
    let stream = timeout(CONNECT_TIMEOUT, connect)
        .await
        .map_err(|_| timed_out())??;
    let request = request(sealer, address, &forwarded)?;
    let lost = forwarded.lost;
    let responded = timeout(HEAD_TIMEOUT, async move {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut connection: RunningConnection = Box::pin(async move {
            // An error of the connection is also one of the body.
            let _ = connection.await;
        });
        let mut response = pin!(sender.send_request(request));
        let response = tokio::select! {
            biased;
            // The connection has to be driven for the response to arrive. It may end first, and then the response is
            // there.
            response = &mut response => response?,
            () = &mut connection => response.await?,
        };
        Ok::<_, hyper::Error>((response, connection))
    });
    let (response, connection) = responded.await.map_err(|_| timed_out())??;
    let (head, body) = response.into_parts();
    let body = RelayedBody {
        connection: Some(connection),
        body: Some(body),
        lost: lost.map(|(id, answer)| LostAnswer::new(&id, answer)),
    };
    if is_event_stream(&head) {
        let mut response = event_response(ResponseBody::events(body));
        *response.status_mut() = head.status;
        return Ok(response);
    }
    let bytes = read(body).await?;
    let mut response = Response::new(ResponseBody::whole(WholeBody::text(bytes)));
    *response.status_mut() = head.status;
    for name in [
        header::CONTENT_TYPE,
        header::CACHE_CONTROL,
        header::RETRY_AFTER,
    ] {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

type RunningConnection = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns the request for the replica: with the headers of MCP and of content, and without the client's token.
fn request(
    sealer: &Sealer,
    address: &Url,
    forwarded: &Forwarded<'_>,
) -> Result<Request<WholeBody>, Unreachable> {
    let envelope = Envelope {
        sender: seal_sender(forwarded.sender),
        until: now() + VALID_SECONDS,
        body: digest(&forwarded.body),
    };
    let envelope = serde_json::to_string(&envelope)?;
    let envelope = sealer.hide(SealPurpose::Forwarded, &envelope);
    let mut request = Request::new(WholeBody::text(forwarded.body.clone()));
    *request.method_mut() = forwarded.method.clone();
    *request.uri_mut() = Uri::from_static(ENDPOINT_PATH);
    let headers = request.headers_mut();
    for (name, value) in forwarded.headers {
        // All other headers are about the client's connection, or are its token.
        let is_passed = name.as_str().starts_with("mcp-")
            || [header::ACCEPT, header::CONTENT_TYPE, LAST_EVENT_ID].contains(name);
        if is_passed && name != FORWARDED {
            headers.append(name, value.clone());
        }
    }
    let host = &address[Position::BeforeHost..Position::AfterPort];
    headers.insert(header::HOST, HeaderValue::try_from(host)?);
    headers.insert(FORWARDED, HeaderValue::try_from(envelope)?);
    Ok(request)
}

fn seal_sender(sender: &Sender) -> SealedSender {
    let text = |client: &Option<ident::ClientName>| client.as_ref().map(ToString::to_string);
    match sender {
        Sender::Anybody => SealedSender::Anybody,
        Sender::Holder(holder) => SealedSender::Holder {
            digest: holder.digest,
            client: text(&holder.client),
        },
        Sender::User(user, _) => SealedSender::User {
            subject: user.subject.to_string(),
            client: text(&user.client),
            digest: user.digest,
        },
    }
}

fn open(sealer: &Sealer, headers: &HeaderMap) -> Option<Envelope> {
    let text = headers.get(FORWARDED)?.to_str().ok()?;
    let content = sealer.reveal(SealPurpose::Forwarded, text)?;
    serde_json::from_str(&content).ok()
}

fn digest(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn is_event_stream(head: &Parts) -> bool {
    let content_type = head.headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|it| it.as_bytes() == EVENT_STREAM.as_bytes())
}

/// Reads the whole body of a response.
async fn read(mut body: RelayedBody) -> Result<Bytes, Unreachable> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = poll_fn(|context| body.poll_chunk(context)).await {
        bytes.extend_from_slice(&chunk?);
        if bytes.len() > MAX_RESPONSE_BYTES {
            return Err("the response is too large".into());
        }
    }
    Ok(bytes.freeze())
}

/// The answer to a request whose replica ends before it has answered.
struct LostAnswer {
    event: Bytes,
    /// The text by which the answer of the replica is recognized.
    answered: Vec<u8>,
}

impl LostAnswer {
    fn new(id: &RequestId, answer: Frame) -> Self {
        Self {
            event: lone_event(answer),
            // In our messages another member follows the id, so that 7 does not match 71.
            answered: [br#""id":"#, id.as_bytes(), br#",""#].concat(),
        }
    }
}

/// The body of a replica's response. Dropping it closes the connection, so that the replica notices.
struct RelayedBody {
    connection: Option<RunningConnection>,
    /// `None` when it has ended.
    body: Option<Incoming>,
    /// `None` if the replica has answered.
    lost: Option<LostAnswer>,
}

impl RelayedBody {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(context).is_ready()
        {
            self.connection = None;
        }
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        loop {
            match Pin::new(&mut *body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    self.body = None;
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => {
                    self.body = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
            }
        }
    }
}

impl Body for RelayedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Infallible>>> {
        let chunk = match self.poll_chunk(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(chunk) => chunk,
        };
        let data = match chunk {
            Some(Ok(data)) => {
                // Once the answer was relayed, a broken connection must not add a second one.
                let is_answer = |lost: &LostAnswer| memmem::find(&data, &lost.answered).is_some();
                if self.lost.as_ref().is_some_and(is_answer) {
                    self.lost = None;
                }
                Some(data)
            }
            // The replica died in the middle of a stream. Its client still gets an answer.
            Some(Err(_)) => self.lost.take().map(|lost| lost.event),
            None => None,
        };
        Poll::Ready(data.map(|data| Ok(BodyFrame::data(data))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::SealKeys;

    fn sealer(key: &str) -> Sealer {
        Sealer::new(Some(&SealKeys::new(&key.repeat(32), None).unwrap()))
    }

    fn senders() -> [Sender; 3] {
        let client = Some("reviewer".into());
        [
            Sender::Anybody,
            Sender::Holder(TokenHolder {
                digest: u128::MAX,
                client: client.clone(),
            }),
            Sender::User(
                User {
                    subject: "alice".into(),
                    client,
                    digest: [7; 16],
                },
                None,
            ),
        ]
    }

    #[test]
    fn the_sender_travels_sealed_and_bound_to_the_body_and_the_token_does_not() {
        let address = Url::parse("http://10.0.0.1:8700").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        headers.insert("mcp-session-id", HeaderValue::from_static("s"));
        headers.insert(FORWARDED, HeaderValue::from_static("forged"));
        for expected in senders() {
            let forwarded = Forwarded {
                method: Method::POST,
                headers: &headers,
                body: Bytes::from_static(b"{}"),
                sender: &expected,
                lost: None,
            };
            let request = request(&sealer("a"), &address, &forwarded).unwrap();
            let passed = request.headers();
            assert_eq!(passed.get(header::AUTHORIZATION), None);
            assert_eq!(passed["mcp-session-id"], "s");
            assert_eq!(passed[header::HOST], "10.0.0.1:8700");
            assert_eq!(sender(&sealer("a"), passed).unwrap(), expected);
            assert!(check_body(&sealer("a"), passed, b"{}").is_ok());
            assert!(check_body(&sealer("a"), passed, b"[]").is_err());
            assert!(sender(&sealer("b"), passed).is_err());
            assert!(sender(&sealer("a"), &headers).is_err());
        }
    }
}
