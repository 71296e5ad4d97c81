//! One exchange with a modern client: a request, and the requests with which the client continues it after a question.
//! A server's task sees it as a client like any other. A modern client can only be asked through an `input_required`
//! response. If a legacy server asks in the middle of a call, the exchange is parked, the call keeps running, and the
//! client's next request finds it by its handle.

use std::{
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::{Duration, SystemTime},
};

use rawjson::{Kind, ObjectText, RawJson};
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    ClientLocation,
    batch::ReplyPlace,
    connection::{Connection, ReplyFuture, next_client_id},
    in_flight::{RunningKey, Runs},
    log_level::LogLevel,
    methods::Reply,
    modern::{ModernClient, ModernRequest, to_modern},
    output::ClientOutput,
    parked::ParkedCalls,
    replica::HandleOwner,
    run_task::{RunState, RunTask},
};
use crate::{
    call::{
        AnswerFuture, Carrier, ClientHandle, ClientId, ClientIdentity, Declaration, Principal,
        Question, RoomFuture,
    },
    contain::{contain, contain_now},
    era::{Era, InputRequest, InputRequired, MODERN_REVISION, TASKS_EXTENSION},
    seal::SealPurpose,
    sync::lock,
    trace::CallSpan,
    wire::{self, Answer, Frame, Request, code},
    workbench::{ReadyCall, Settled},
};

/// How long to wait for more questions after one, so that related questions are sent together.
const QUESTION_DELAY: Duration = Duration::from_millis(5);
/// The time after which a run becomes a task, for a client that knows tasks.
const TASK_DELAY: Duration = Duration::from_secs(10);

pub(super) struct Exchange {
    /// Itself: a server that asks or remembers the client keeps the exchange.
    this: Weak<Self>,
    id: ClientId,
    pub(super) principal: Principal,
    /// The name that the authorization server has for the user.
    user: Option<Arc<str>>,
    location: ClientLocation,
    /// Set if its requests may be answered with questions.
    asks: bool,
    carrier: Carrier,
    /// The exchanges that wait for their clients.
    parked: Arc<ParkedCalls>,
    state: Mutex<ExchangeState>,
}

#[derive(Default)]
struct ExchangeState {
    /// The request that the client waits for; none while the exchange is parked, and at the end.
    attached: Option<Attached>,
    /// The client as it described itself last; none at the end.
    client: Option<Arc<ModernClient>>,
    open: Vec<OpenQuestion>,
    /// The number of questions so far, from which their keys are made.
    questions: u64,
    /// Set while the exchange waits for more questions.
    is_gathering: bool,
    /// The way in which the request runs.
    runs: Option<Runs>,
    is_cancelled: bool,
    /// The reply, if it arrived while the exchange was parked.
    reply: Option<Reply>,
    /// The operation of the request, if it is not a tool call and anybody listens.
    span: Option<Box<CallSpan>>,
    /// The moment at which the request was answered with a task.
    task_since: Option<SystemTime>,
}

/// A request that the client waits for.
pub(super) struct Attached {
    connection: Arc<Connection>,
    place: ReplyPlace,
    running: RunningKey,
    request: Request,
    progress_token: Option<RawJson>,
}

/// A question that is not answered yet.
struct OpenQuestion {
    key: String,
    question: Question,
    params: Option<RawJson>,
    answer: oneshot::Sender<Answer>,
}

impl Attached {
    /// Answers the request, unless the client has cancelled it.
    fn answer(self, reply: &Reply) {
        match self.connection.in_flight().end(self.running) {
            Some(id) => self.place.answer(reply.to(&id)),
            None => self.place.withhold(),
        }
    }
}

impl Exchange {
    /// Creates an exchange for a request of a connection.
    pub(super) fn new(connection: &Connection, asks: bool) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            id: next_client_id(),
            principal: connection.principal(),
            user: connection.user(),
            location: connection.location(),
            asks,
            carrier: connection.carrier(),
            parked: Arc::clone(connection.parked()),
            state: Mutex::default(),
        })
    }

    /// Attaches a request that the client waits for. If the client has too many, refuses it and returns
    /// false.
    pub(super) fn attach(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        request: Request,
        place: ReplyPlace,
        said: &mut ModernRequest,
    ) -> bool {
        let runs = Runs::Exchange(Arc::clone(self));
        let running = match connection
            .in_flight()
            .begin(request.id.clone(), runs, said.size)
        {
            Ok(running) => running,
            Err(id) => {
                // A parked exchange has lost its handle by now, so nobody could continue it.
                self.cancel();
                place.answer(super::connection::too_many().to(&id));
                return false;
            }
        };
        let mut state = self.state();
        state.client = Some(Arc::clone(&said.client));
        state.attached = Some(Attached {
            connection: Arc::clone(connection),
            place,
            running,
            request,
            progress_token: said.progress_token.take(),
        });
        true
    }

    /// Sets the operation that the request belongs to.
    pub(super) fn set_span(&self, span: CallSpan) {
        self.state().span = Some(Box::new(span));
    }

    /// Continues a parked exchange with the client's answers. Questions without an answer, or with one that is not an
    /// object, stay open.
    pub(super) fn resume(self: &Arc<Self>, responses: Option<&RawJson>) {
        let mut state = self.state();
        for question in std::mem::take(&mut state.open) {
            let response = responses.and_then(|it| it.member(&question.key));
            match response.filter(|it| it.kind() == Kind::Object) {
                // The server may have withdrawn the question just now.
                Some(response) => drop(question.answer.send(Answer::Result(response))),
                None => state.open.push(question),
            }
        }
        let reply = state.reply.take();
        // The server answered while the exchange was parked, or it waits for questions that the client has left
        // unanswered, or the call simply continues.
        let is_asked = !state.open.is_empty();
        drop(state);
        match reply {
            Some(reply) => self.reply(reply),
            None if is_asked => self.gather(),
            None => {}
        }
    }

    /// Sends a call. The server's task answers the client.
    pub(super) fn send(self: &Arc<Self>, call: ReadyCall) {
        let server = Arc::clone(call.server());
        let ticket = server.ticket();
        // Before it is sent, so that a cancellation always finds it.
        self.state().runs = Some(Runs::AtServer(server, ticket));
        let this = Arc::clone(self);
        call.send(ticket, move |sent| match sent {
            Ok(Settled::Over(reply)) => {
                let reply = contain_now(|| Reply::from(reply));
                this.reply(reply.unwrap_or_else(Reply::panicked));
            }
            Ok(Settled::Waits(call)) => this.run(Box::pin(async move { call.run().await.into() })),
            Err(panicked) => this.reply(Reply::panicked(panicked)),
        });
    }

    /// Runs a request in its own task, unless it has been cancelled.
    pub(super) fn run(self: &Arc<Self>, answer: ReplyFuture) {
        let cancelled = CancellationToken::new();
        let mut state = self.state();
        // The client may have cancelled between two steps of a call.
        if state.is_cancelled {
            // `end` takes the lock again.
            drop(state);
            return self.end();
        }
        state.runs = Some(Runs::InTask(cancelled.clone()));
        drop(state);
        let this = Arc::clone(self);
        self.parked.tasks.spawn(async move {
            match cancelled.run_until_cancelled(contain(answer)).await {
                Some(Ok(reply)) => this.reply(reply),
                Some(Err(panicked)) => this.reply(Reply::panicked(panicked)),
                None => this.end(),
            }
        });
    }

    /// Returns a reply that takes long as a future that answers the request with a task meanwhile.
    pub(super) fn as_task(self: &Arc<Self>, answer: ReplyFuture) -> ReplyFuture {
        let this = Arc::clone(self);
        Box::pin(async move {
            tokio::pin!(answer);
            loop {
                tokio::select! {
                    reply = &mut answer => return reply,
                    () = sleep(TASK_DELAY) => this.become_task(),
                }
            }
        })
    }

    /// Answers the request with a task, by whose id the client finds this exchange. A client that is being asked has no
    /// request to answer; `as_task` tries again later.
    fn become_task(self: &Arc<Self>) {
        let mut state = self.state();
        if !state.open.is_empty() {
            return;
        }
        let Some(attached) = state.attached.take() else {
            return;
        };
        state.task_since = Some(SystemTime::now());
        drop(state);
        // Stored before the client learns the id, which it may use at once.
        let id = self.parked.keep_task(self);
        attached.answer(&Reply::Result(self.run_task(&id).created()));
    }

    /// Returns the exchange of a task of the workbench.
    pub(super) fn task(&self, id: &str) -> Option<Arc<Self>> {
        self.parked.task(id, self.principal)
    }

    /// Returns whether a task is one of another replica, or of an earlier process.
    pub(super) fn is_task_elsewhere(&self, id: &str) -> bool {
        let place = self.parked.replica().place(SealPurpose::Run, id);
        matches!(place, Some(HandleOwner::Elsewhere(_)))
    }

    /// Returns an exchange that became a task as its client sees it.
    pub(super) fn run_task<'a>(&self, id: &'a str) -> RunTask<'a> {
        let state = self.state();
        RunTask {
            id,
            created: state.task_since.unwrap_or_else(SystemTime::now),
            state: run_state(&state),
        }
    }

    /// Replies to the client: now if it waits, otherwise when it comes back.
    pub(super) fn reply(&self, reply: Reply) {
        let mut state = self.state();
        match state.attached.take() {
            Some(attached) => {
                // Drops what the exchange holds (questions, the client), since handles of it may live longer.
                *state = ExchangeState::default();
                drop(state);
                let method = attached.request.method.clone();
                attached.answer(&to_modern(reply, &method));
            }
            None => state.reply = Some(reply),
        }
    }

    fn end(&self) {
        let mut state = self.state();
        let ended = ExchangeState {
            is_cancelled: true,
            // A task that has ended can still be asked for.
            task_since: state.task_since,
            ..ExchangeState::default()
        };
        let before = std::mem::replace(&mut *state, ended);
        drop(state);
        if let Some(attached) = before.attached {
            attached.connection.in_flight().end(attached.running);
            attached.place.withhold();
        }
    }

    /// Cancels the request and its open questions.
    pub(super) fn cancel(&self) {
        let mut state = self.state();
        state.is_cancelled = true;
        // From here on servers cannot ask the client anything.
        state.client = None;
        let open = std::mem::take(&mut state.open);
        let runs = state.runs.take();
        drop(state);
        for question in open {
            // An error, because a question without any response may be sent to a different call.
            let error = ObjectText::new()
                .member("code", &code::INTERNAL_ERROR)
                .member("message", "the client did not respond");
            // The server may have withdrawn the question just now.
            let _ = question.answer.send(Answer::Error(error.finish()));
        }
        if let Some(runs) = runs {
            runs.cancel();
        }
    }

    /// Waits a moment for more questions, and asks the client all of them.
    fn gather(self: &Arc<Self>) {
        // Another question is already being gathered, and this one is sent with it.
        if std::mem::replace(&mut self.state().is_gathering, true) {
            return;
        }
        let this = Arc::clone(self);
        self.parked.tasks.spawn(async move {
            sleep(QUESTION_DELAY).await;
            this.park();
        });
    }

    /// Responds to the client with the open questions, if there are any, and parks the exchange until it comes back.
    fn park(self: &Arc<Self>) {
        let mut state = self.state();
        state.is_gathering = false;
        // The questions may have been withdrawn meanwhile.
        if state.open.is_empty() {
            return;
        }
        let Some(attached) = state.attached.take() else {
            return;
        };
        // From here on the request is answered, but the call continues at its server. Its messages now have no request
        // to go to: notifications are dropped, and a reply is stored for the client's next request.
        let requests = input_requests(&state.open);
        drop(state);
        // Parked before the response is sent: the next request may arrive in the same turn.
        let handle = self.parked.park(self, &attached.request);
        let asked = InputRequired {
            requests,
            state: Some(RawJson::of(&handle)),
        };
        attached.answer(&Reply::Result(asked.to_result()));
    }

    /// Returns the way to the client, if it waits for a request.
    pub(super) fn output(&self) -> Option<ClientOutput> {
        let state = self.state();
        state.attached.as_ref().map(|it| it.place.output().clone())
    }

    /// Returns whether the client declared the extension for tasks.
    pub(super) fn knows_tasks(&self) -> bool {
        self.capabilities().has_extension(TASKS_EXTENSION)
    }

    /// Returns a handle that keeps the exchange.
    fn handle(&self) -> Arc<Self> {
        self.this.upgrade().expect("called through a handle of it")
    }

    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        lock(&self.state)
    }
}

/// Returns the state of a run whose client follows it as a task.
fn run_state(state: &ExchangeState) -> RunState {
    if state.is_cancelled {
        return RunState::Cancelled;
    }
    match &state.reply {
        Some(Reply::Result(result) | Reply::Own(result)) => RunState::Completed(result.clone()),
        Some(Reply::Called(result)) => RunState::Completed(result.to_json()),
        Some(Reply::Error { code, message }) => {
            let error = ObjectText::new()
                .member("code", code)
                .member("message", message);
            RunState::Failed(error.finish())
        }
        Some(Reply::ErrorAsSent(error)) => RunState::Failed(error.clone()),
        None if state.open.is_empty() => RunState::Working,
        None => RunState::InputRequired(input_requests(&state.open)),
    }
}

/// Returns open questions as a modern client gets them.
fn input_requests(open: &[OpenQuestion]) -> Vec<InputRequest> {
    let requests = open.iter().map(|open| InputRequest {
        key: open.key.clone(),
        method: open.question.method().into(),
        params: open.params.clone(),
    });
    requests.collect()
}

impl ClientHandle for Exchange {
    fn id(&self) -> ClientId {
        self.id
    }

    fn principal(&self) -> Principal {
        self.principal
    }

    fn user(&self) -> Option<Arc<str>> {
        self.user.clone()
    }

    fn is_local(&self) -> bool {
        self.location == ClientLocation::Local
    }

    fn identity(&self) -> Arc<ClientIdentity> {
        let state = self.state();
        let attached = state.attached.as_ref();
        let known = attached.and_then(|it| {
            let info = state.client.as_ref()?.info.as_ref()?;
            Some(it.connection.context().known_client.identity(info))
        });
        known.unwrap_or_default()
    }

    fn era(&self) -> Era {
        Era::Modern
    }

    fn carrier(&self) -> Carrier {
        self.carrier
    }

    fn revision(&self) -> Option<&'static str> {
        Some(MODERN_REVISION)
    }

    fn span(&self) -> Option<CallSpan> {
        self.state().span.as_deref().cloned()
    }

    fn declaration(&self) -> Arc<Declaration> {
        let state = self.state();
        let client = state.client.as_ref();
        client.map_or_else(Arc::default, |client| Arc::clone(&client.declaration))
    }

    fn progress_token(&self) -> Option<RawJson> {
        self.state().attached.as_ref()?.progress_token.clone()
    }

    fn notify(&self, frame: Frame) {
        // Sent while the state is locked, so that nothing follows the response.
        if let Some(attached) = &self.state().attached {
            attached.place.output().notify(frame);
        }
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        self.handle()
    }

    fn is_full(&self) -> bool {
        self.output().is_some_and(|output| output.holds_up())
    }

    fn room(&self) -> RoomFuture {
        let output = self.output();
        Box::pin(async move {
            if let Some(output) = output {
                output.has_room().await;
            }
        })
    }

    fn log(&self, params: &RawJson) {
        let state = self.state();
        let Some(attached) = &state.attached else {
            return;
        };
        // The modern era has no level for a session: a request that names none wants no messages.
        let level = LogLevel::of_message(params);
        let wanted = state.client.as_ref().and_then(|client| client.log_level);
        if wanted.is_some_and(|wanted| level >= Some(wanted)) {
            let message = wire::notification("notifications/message", Some(params));
            attached.place.output().notify(message);
        }
    }

    fn can_answer(&self, question: Question) -> bool {
        self.asks && self.capabilities().get(question).is_some()
    }

    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture {
        let exchange = self.handle();
        let (answer, answered) = oneshot::channel();
        let mut state = exchange.state();
        let key = format!("{}-{}", question.capability(), state.questions);
        // Counted over all rounds, so that no answer of an earlier round fits a later question.
        state.questions += 1;
        state.open.push(OpenQuestion {
            key: key.clone(),
            question,
            params: params.cloned(),
            answer,
        });
        drop(state);
        exchange.gather();
        let withdraw = Withdraw { exchange, key };
        Box::pin(async move {
            let answer = answered.await.ok();
            // Named here so that the future owns it: dropped before the answer, it withdraws the question.
            drop(withdraw);
            answer
        })
    }
}

/// Withdraws a question when the server stops waiting for the answer.
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
