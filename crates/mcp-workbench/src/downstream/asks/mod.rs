//! Questions of servers to clients during a call: elicitation, sampling, roots. A question goes to the client whose
//! call it belongs to, or to another call of the same principal, and its answer comes back under the server's own id.
//! A question that could belong to several principals is refused, never given to the wrong one.
//!
//! A legacy server learns the client's capabilities once, from the client that it is started for. If that client is
//! modern, its next request may declare more, so roots are added, and forms where it declares no elicitation. With
//! `roots` in the configuration, `roots/list` of a legacy server is answered from there.

pub(crate) mod asking_server;
pub(crate) mod attribution;
pub(crate) mod cancelled_calls;
pub(crate) mod questions;
pub(crate) mod unattributed;
pub(crate) mod users;

use std::{collections::HashMap, sync::Arc};

use rawjson::{ObjectText, RawJson};
use tokio::task::{AbortHandle, JoinSet};

use crate::{
    call::{ClientHandle, ClientId, Question},
    config::Share,
    downstream::{
        asks::{
            asking_server::AskingServer,
            attribution::{Addressee, Asker},
            questions::can_answer,
        },
        supervisor::adapt::Entry,
    },
    era::{EXPERIMENTAL, EXTENSIONS, Era},
    events::QuestionState,
    wire::{self, Answer, Frame, Request, RequestId, code},
};

/// Upper bound on the open questions of one server.
const MAX_QUESTIONS: usize = 100;

/// The open questions of one server. Dropping it withdraws them.
pub(crate) struct Asks {
    /// The answer to `roots/list`, if the configuration gives it.
    roots: Option<RawJson>,
    /// The capabilities that all clients of a shared server have declared.
    declared: Option<RawJson>,
    /// Set if the user decides who shares the server. It learns no extensions then: they could mean something to one client alone.
    hides_extensions: bool,
    server: AskingServer,
    running: JoinSet<(RequestId, Option<Answer>)>,
    by_id: HashMap<RequestId, OpenQuestion>,
    /// Set once the server has asked something that only a client can answer.
    has_asked: bool,
}

/// A question that waits for the answer of a client.
struct OpenQuestion {
    request: Request,
    client: ClientId,
    asker: Asker,
    question: Question,
    running: AbortHandle,
}

/// A question that was answered or ended.
pub(crate) struct ClosedQuestion {
    /// The answer for the server.
    pub(crate) answer: Frame,
    /// The calls that may have asked.
    pub(crate) asker: Asker,
    pub(crate) question: Question,
    pub(crate) state: QuestionState,
    /// The question, if its client disconnected without an answer and another call may have asked it.
    pub(crate) unanswered: Option<Request>,
}

impl Asks {
    /// Creates an empty set of questions for the server of an entry.
    pub(crate) fn new(entry: &Entry) -> Self {
        Self {
            roots: entry.roots.clone(),
            declared: entry.declared.clone(),
            hides_extensions: matches!(entry.server.share, Share::Machine | Share::Project),
            server: AskingServer::of(entry),
            running: JoinSet::new(),
            by_id: HashMap::new(),
            has_asked: false,
        }
    }

    /// Returns true if the configuration answers `roots/list`.
    pub(crate) fn has_roots(&self) -> bool {
        self.roots.is_some()
    }

    /// Returns true if the server has asked something that only a client can answer.
    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// Returns the client capabilities that a server gets at `initialize`, which hold for as long as it runs: those of its entry,
    /// or else those of the client that it is started for. If the configuration has roots, they are among them.
    pub(crate) fn announced(&self, client: Option<&Arc<dyn ClientHandle>>) -> RawJson {
        // A shared server gets what all of its clients have declared, whichever of them starts it.
        let announced = match (&self.declared, client) {
            (Some(declared), _) => declared.clone(),
            (None, Some(client)) => client.capabilities().announced(client.own_era()),
            (None, None) => ObjectText::new().finish(),
        };
        let announced = if self.hides_extensions {
            announced.without_members(&[EXTENSIONS, EXPERIMENTAL])
        } else {
            announced
        };
        let roots = Question::Roots.capability();
        if self.has_roots() && announced.member(roots).is_none() {
            return announced.with_member(roots, &ObjectText::new().finish());
        }
        announced
    }

    /// Handles a request of the server. Returns the response if it is available at once.
    pub(crate) fn take(
        &mut self,
        request: Request,
        addressee: Option<&Addressee>,
    ) -> Option<Frame> {
        if request.method == "ping" {
            return Some(wire::result(&request.id, &ObjectText::new().finish()));
        }
        let question = Question::named(&request.method);
        if let (Some(Question::Roots), Some(roots)) = (question, &self.roots) {
            return Some(wire::result(&request.id, roots));
        }
        // A question that nobody can answer counts as well: it shows that clients must not share this server.
        self.has_asked |= question.is_some();
        let willing = addressee.filter(|it| {
            question
                .is_some_and(|question| is_willing(&it.client, question, request.params.as_ref()))
        });
        let (Some(question), Some(Addressee { client, asker })) = (question, willing) else {
            // The error of a client that lacks the capability. Servers expect it and continue without an answer.
            let message = format!("Method not found: {}", request.method);
            return Some(wire::error(
                Some(&request.id),
                code::METHOD_NOT_FOUND,
                &message,
            ));
        };
        // A second question under the id of an open one could get the answer to the first.
        if self.running.len() >= MAX_QUESTIONS || self.by_id.contains_key(&request.id) {
            let message = format!("more than {MAX_QUESTIONS} questions at once, or a duplicate id");
            return Some(wire::error(
                Some(&request.id),
                code::INTERNAL_ERROR,
                &message,
            ));
        }
        let params = match self.server.params(question, request.params.as_ref()) {
            Ok(params) => params,
            Err(reason) => {
                let message = reason.to_string();
                return Some(wire::error(
                    Some(&request.id),
                    code::INVALID_PARAMS,
                    &message,
                ));
            }
        };
        let answer = client.ask(question, params.as_ref());
        let id = request.id.clone();
        let running = self.running.spawn(async move { (id, answer.await) });
        let open = OpenQuestion {
            client: client.id(),
            asker: *asker,
            question,
            running,
            request,
        };
        self.by_id.insert(open.request.id.clone(), open);
        None
    }

    /// Returns true if a client has an open question.
    pub(crate) fn is_asked(&self, client: ClientId) -> bool {
        self.by_id.values().any(|open| open.client == client)
    }

    /// Withdraws a question that the server cancelled. Returns the calls that may have asked.
    pub(crate) fn cancel(&mut self, id: &RequestId) -> Option<Asker> {
        let question = self.by_id.remove(id)?;
        question.running.abort();
        Some(question.asker)
    }

    /// Returns the next question that ended; waits forever while none is open. Cancel-safe.
    pub(crate) async fn next_answer(&mut self) -> ClosedQuestion {
        loop {
            let Some(done) = self.running.join_next().await else {
                return std::future::pending().await;
            };
            // A withdrawn question gets no answer.
            let Ok((id, answer)) = done else { continue };
            // The server cancelled the question at the moment at which the answer arrived.
            let Some(open) = self.by_id.remove(&id) else {
                continue;
            };
            let OpenQuestion { request, asker, .. } = open;
            let state = match answer {
                Some(Answer::Result(_)) => QuestionState::Answered,
                Some(Answer::Error(_) | Answer::Invalid) | None => QuestionState::Unanswered,
            };
            let may_be_anothers = answer.is_none() && matches!(asker, Asker::Principal(_));
            let answer = match answer {
                Some(Answer::Result(result)) => wire::result(&id, &result),
                Some(Answer::Error(error)) => wire::error_as_sent(&id, &error),
                Some(Answer::Invalid) | None => wire::error(
                    Some(&id),
                    code::INTERNAL_ERROR,
                    "the client did not respond",
                ),
            };
            return ClosedQuestion {
                answer,
                asker,
                question: open.question,
                state,
                unanswered: may_be_anothers.then_some(request),
            };
        }
    }
}

/// Returns true if a client answers a question. A modern client only gets questions that it declared; a legacy client
/// decides itself about the form of the question.
pub(crate) fn is_willing(
    client: &Arc<dyn ClientHandle>,
    question: Question,
    params: Option<&RawJson>,
) -> bool {
    match client.own_era() {
        Era::Legacy => client.can_answer(question),
        Era::Modern => can_answer(client, question, params),
    }
}
