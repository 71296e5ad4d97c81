//! Requests without a session. Each has its own connection state and stream. Nothing is stored and nothing can be
//! resumed; a client that closes its connection before the response cancels the request.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    HeaderMap, StatusCode,
    body::{Body, Frame as BodyFrame},
};
use rawjson::RawJson;
use tokio::time::Instant;

use super::{
    agreement::{self, Disagreement, PostedRequest},
    bodies::{EventBody, Opening, event_response},
    limits::MAX_STATELESS,
    quotas::InFlight,
    refusal::Refusal,
    response::{Answered, Response, ResponseBody, empty},
    streams::{Attachment, EventStream, FirstMessage, Streams},
    unread::UnreadBudget,
    wait_timer::WaitTimer,
};
use crate::{
    call::Principal,
    config::MetaTool,
    era::{HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION},
    serve::{ServeContext, batch::ReplyPlace, connection::Connection, output::ClientOutput},
    sync::lock,
    wire::{CallOutline, Frame, Message, Request, code},
    workbench::Workbench,
};

/// A request without a session, and the size of its body.
pub(super) struct StatelessRequest {
    pub(super) request: Request,
    pub(super) outline: Box<CallOutline<'static>>,
    pub(super) size: usize,
    pub(super) in_flight: Option<InFlight>,
}

/// All requests without a session that run.
pub(super) struct Stateless {
    running: Mutex<HashMap<u64, Arc<Connection>>>,
    /// How many there have been.
    begun: AtomicU64,
    budget: Arc<UnreadBudget>,
}

impl Stateless {
    pub(super) fn new(budget: &Arc<UnreadBudget>) -> Arc<Self> {
        Arc::new(Self {
            running: Mutex::default(),
            begun: AtomicU64::new(0),
            budget: Arc::clone(budget),
        })
    }

    /// Starts a request of `size` bytes.
    pub(super) fn begin_request(
        self: &Arc<Self>,
        context: &ServeContext,
        principal: Principal,
        headers: &HeaderMap,
        posted: StatelessRequest,
    ) -> Result<Exchange, Refusal> {
        let StatelessRequest {
            request,
            outline,
            size,
            in_flight,
        } = posted;
        let checked = PostedRequest {
            request: &request,
            outline: &outline,
        };
        // Before it counts as running: a refused request must not take the place of another.
        if let Err(problem) = check(&context.workbench, headers, &checked) {
            return Err(Refusal::Disagrees(Box::new(problem.frame(&request.id))));
        }
        let exchange = self.begin(context, principal, in_flight)?;
        let place = ReplyPlace::Line(ClientOutput::Stream(exchange.stream.clone()));
        let message = Message::Request(request);
        exchange
            .connection
            .take_message(message, &outline, place, size);
        Ok(exchange)
    }

    /// Returns whether a principal has a running request.
    pub(super) fn has(&self, principal: Principal) -> bool {
        let running = self.running();
        running.values().any(|it| it.principal() == principal)
    }

    /// Returns the clients of the running requests.
    pub(super) fn all(&self) -> Vec<Arc<Connection>> {
        self.running().values().cloned().collect()
    }

    /// Returns the streams of the running requests.
    pub(super) fn streams(&self) -> Vec<Arc<Streams>> {
        let outputs = self.all().into_iter().map(|connection| connection.output());
        let streams = outputs.filter_map(|output| match output {
            ClientOutput::Stream(stream) => Some(Arc::clone(stream.streams())),
            ClientOutput::Pipe(_) => None,
        });
        streams.collect()
    }

    fn begin(
        self: &Arc<Self>,
        context: &ServeContext,
        principal: Principal,
        in_flight: Option<InFlight>,
    ) -> Result<Exchange, Refusal> {
        let mut running = self.running();
        if running.len() >= MAX_STATELESS {
            return Err(Refusal::TooManyRequests);
        }
        let streams = Streams::for_one_request(&self.budget);
        let stream = streams.begin(in_flight);
        let output = ClientOutput::Stream(stream.clone());
        let connection = Connection::new(context.clone(), output, principal);
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        running.insert(number, Arc::clone(&connection));
        Ok(Exchange {
            all: Arc::clone(self),
            number,
            connection,
            streams,
            stream,
        })
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        lock(&self.running)
    }
}

/// Checks the headers of a request against its body, including those of a tool's arguments.
fn check(
    workbench: &Workbench,
    headers: &HeaderMap,
    posted: &PostedRequest<'_>,
) -> Result<(), Disagreement> {
    agreement::check(headers, posted)?;
    if posted.request.method != "tools/call" {
        return Ok(());
    }
    let name = posted.name();
    let schema = name.and_then(|name| input_schema(workbench, &name));
    match schema {
        Some(schema) => {
            agreement::check_parameters(headers, &schema, posted.request.params.as_ref())
        }
        None => Ok(()),
    }
}

/// Returns the input schema of a server's tool, as a client sees it. Our own tools mark no arguments.
fn input_schema(workbench: &Workbench, name: &str) -> Option<RawJson> {
    let definition = match workbench.native() {
        Some(native) => native.shown_tool(name),
        // Most calls are of meta-tools, and no server's tool is registered under their names. Without this each would
        // go through all open servers.
        None if MetaTool::named(name).is_some_and(|it| workbench.has(it)) => None,
        None => workbench.registered_tool(name),
    };
    definition?.member("inputSchema")
}

/// One request and its response. Dropping it before the response cancels the request, because the client has
/// disconnected.
pub(super) struct Exchange {
    all: Arc<Stateless>,
    number: u64,
    connection: Arc<Connection>,
    streams: Arc<Streams>,
    stream: EventStream,
}

impl Exchange {
    /// Returns the response: JSON if the response is the first message and comes in time, otherwise events.
    pub(super) async fn answer(self, timer: &WaitTimer, time: Duration) -> Answered {
        let first = self.streams.first_message(self.stream.id());
        let end = Instant::now() + time;
        match timer.until(end, first).await {
            Some(FirstMessage::Answer(frame)) => Answered::Message(status(&frame), frame),
            // There is no response to wait for.
            Some(FirstMessage::Nothing) => Answered::Response(empty(StatusCode::ACCEPTED)),
            Some(FirstMessage::Events) | None => Answered::Response(self.events()),
        }
    }

    fn events(self) -> Response {
        match self.streams.attach(self.stream.id(), None) {
            Attachment::Reader(reader) => event_response(ResponseBody::events(ExchangeBody {
                events: EventBody::new(reader, Opening::Passing, None),
                _exchange: self,
            })),
            Attachment::Over | Attachment::Unknown => empty(StatusCode::ACCEPTED),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.all.running().remove(&self.number);
        if !self.stream.has_ended() {
            self.connection.abandon();
            self.stream.end();
        }
    }
}

/// The events of an exchange. The request is cancelled when the body is dropped.
struct ExchangeBody {
    events: EventBody,
    _exchange: Exchange,
}

impl Body for ExchangeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Infallible>>> {
        Pin::new(&mut self.events).poll_frame(context)
    }
}

/// Returns the status of a response.
fn status(answer: &Frame) -> StatusCode {
    match answer.error_code() {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use rawjson::ObjectText;

    use super::*;
    use crate::wire::{self, RequestId};

    #[test]
    fn the_status_follows_from_the_error() {
        let id = RequestId::from_json(RawJson::of(&r#"","error":"#)).unwrap();
        for (code, expected) in [
            (-32601, 404),
            (-32020, 400),
            (-32021, 400),
            (-32022, 400),
            (-32602, 200),
            (-32603, 200),
            (7, 200),
        ] {
            let answer = wire::error(Some(&id), code, "no");
            assert_eq!(status(&answer).as_u16(), expected, "{code}");
        }
        let error = ObjectText::new().member("code", &-32601);
        let large = error.member("data", &"x".repeat(100_000)).finish();
        assert_eq!(status(&wire::error_as_sent(&id, &large)).as_u16(), 404);
        for size in [0, 100_000] {
            let error = ObjectText::new().member("code", &-32601).finish();
            let text = ObjectText::new().raw("error", &error);
            let result = text.member("text", &"x".repeat(size)).finish();
            assert_eq!(status(&wire::result(&id, &result)).as_u16(), 200);
        }
    }
}
