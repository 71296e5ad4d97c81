//! One exchange with a modern client: a request, and the requests by which the client goes on with it after it
//! was asked something. To a server's task it is a client like any other: what is asked of it waits here until
//! the client has been told, and until it has answered with its next request.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{Notify, oneshot};

use super::{Whereabouts, connection::next_client_id, log_level::LogLevel, output::ClientOutput};
use crate::{
    call::{
        AnswerFuture, ClientCapabilities, ClientHandle, ClientId, ClientIdentity, Principal,
        Question, RoomFuture,
    },
    era::{Era, InputRequest},
    wire::{self, Answer, Frame, Kind, RawJson},
};

/// One exchange.
pub(super) struct Exchange {
    id: ClientId,
    principal: Principal,
    whereabouts: Whereabouts,
    /// Whether its requests may be answered with questions.
    asks: bool,
    state: Mutex<State>,
    /// Something was asked.
    asked: Notify,
    questions: AtomicU64,
}

/// What is known at this moment.
#[derive(Default)]
struct State {
    /// The request that the client waits for; none while the client was asked something, and at the end.
    attached: Option<Attached>,
    /// What the client said that it can do, the last time; nothing at the end.
    capabilities: ClientCapabilities,
    open: Vec<OpenQuestion>,
}

/// A request that the client waits for.
pub(super) struct Attached {
    /// Where it is answered.
    pub(super) output: ClientOutput,
    /// The least urgent log messages that it wants for it.
    pub(super) log_level: Option<LogLevel>,
    /// Its token for the progress of it.
    pub(super) progress_token: Option<RawJson>,
    /// What the client says that it is.
    pub(super) identity: ClientIdentity,
}

/// A question that is not answered yet.
struct OpenQuestion {
    key: String,
    question: Question,
    params: Option<RawJson>,
    answer: oneshot::Sender<Answer>,
}

impl Exchange {
    /// An exchange that begins with a request.
    pub(super) fn new(
        (principal, whereabouts): (Principal, Whereabouts),
        request: Attached,
        capabilities: ClientCapabilities,
        asks: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: next_client_id(),
            principal,
            whereabouts,
            asks,
            state: Mutex::new(State {
                attached: Some(request),
                capabilities,
                open: Vec::new(),
            }),
            asked: Notify::new(),
            questions: AtomicU64::new(0),
        })
    }

    /// Goes on with another request of the client.
    pub(super) fn attach(&self, request: Attached, capabilities: ClientCapabilities) {
        let mut state = self.state();
        state.attached = Some(request);
        state.capabilities = capabilities;
    }

    /// The client waits for nothing: it was asked something, or it got its answer.
    pub(super) fn detach(&self) {
        self.state().attached = None;
    }

    /// Nobody will answer what was asked, nor what will be.
    pub(super) fn end(&self) {
        let mut state = self.state();
        *state = State::default();
    }

    /// Waits until something is asked that the client was not answered with yet. Cancel-safe.
    pub(super) async fn is_asked(&self) {
        while self.state().open.is_empty() {
            self.asked.notified().await;
        }
    }

    /// What is asked, as a modern client is told.
    pub(super) fn open_questions(&self) -> Vec<InputRequest> {
        let state = self.state();
        let open = state.open.iter().map(|open| InputRequest {
            key: open.key.clone(),
            method: open.question.method().into(),
            params: open.params.clone(),
        });
        open.collect()
    }

    /// Takes the client's answers. What it does not answer, or not with an object, stays open.
    pub(super) fn take_answers(&self, responses: Option<&RawJson>) {
        let Some(responses) = responses else { return };
        let mut state = self.state();
        let open = std::mem::take(&mut state.open);
        for question in open {
            let response = responses.member(&question.key);
            match response.filter(|it| it.kind() == Kind::Object) {
                // Whoever asked may have lost interest just now.
                Some(response) => drop(question.answer.send(Answer::Result(response))),
                None => state.open.push(question),
            }
        }
    }

    fn output(&self) -> Option<ClientOutput> {
        let state = self.state();
        state.attached.as_ref().map(|it| it.output.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An exchange as servers see it.
pub(super) struct ModernCaller(pub(super) Arc<Exchange>);

impl ModernCaller {
    /// Where the request is answered that the client waits for.
    pub(super) fn output(&self) -> Option<ClientOutput> {
        self.0.output()
    }
}

impl ClientHandle for ModernCaller {
    fn id(&self) -> ClientId {
        self.0.id
    }

    fn principal(&self) -> Principal {
        self.0.principal
    }

    fn is_here(&self) -> bool {
        self.0.whereabouts == Whereabouts::Here
    }

    fn identity(&self) -> ClientIdentity {
        let state = self.0.state();
        let attached = state.attached.as_ref();
        attached.map_or_else(ClientIdentity::default, |it| it.identity.clone())
    }

    fn era(&self) -> Era {
        Era::Modern
    }

    fn capabilities(&self) -> ClientCapabilities {
        self.0.state().capabilities.clone()
    }

    fn log_level(&self) -> Option<&'static str> {
        let state = self.0.state();
        state.attached.as_ref()?.log_level.map(LogLevel::name)
    }

    fn progress_token(&self) -> Option<RawJson> {
        self.0.state().attached.as_ref()?.progress_token.clone()
    }

    fn notify(&self, frame: Frame) {
        // Said while nobody can answer the request, so that nothing follows the answer.
        if let Some(attached) = &self.0.state().attached {
            attached.output.notify(frame);
        }
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    fn is_full(&self) -> bool {
        self.0.output().is_some_and(|output| output.holds_up())
    }

    fn room(&self) -> RoomFuture {
        let output = self.0.output();
        Box::pin(async move {
            if let Some(output) = output {
                output.has_room().await;
            }
        })
    }

    fn log(&self, params: &RawJson) {
        let state = self.0.state();
        let Some(attached) = &state.attached else {
            return;
        };
        let level = LogLevel::of_message(params);
        if attached
            .log_level
            .is_some_and(|wanted| level >= Some(wanted))
        {
            let message = wire::notification("notifications/message", Some(params));
            attached.output.notify(message);
        }
    }

    fn can_answer(&self, question: Question) -> bool {
        self.0.asks && self.capabilities().get(question).is_some()
    }

    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture {
        let exchange = Arc::clone(&self.0);
        let number = exchange.questions.fetch_add(1, Ordering::Relaxed);
        let key = format!("{}-{number}", question.capability());
        let (answer, answered) = oneshot::channel();
        exchange.state().open.push(OpenQuestion {
            key: key.clone(),
            question,
            params: params.cloned(),
            answer,
        });
        exchange.asked.notify_one();
        let withdraw = Withdraw { exchange, key };
        Box::pin(async move {
            let answer = answered.await.ok();
            drop(withdraw);
            answer
        })
    }
}

/// Takes a question back whose answer nobody waits for.
struct Withdraw {
    exchange: Arc<Exchange>,
    key: String,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let mut state = self.exchange.state();
        state.open.retain(|question| question.key != self.key);
    }
}
