//! Questions of a legacy server that could belong to calls of several principals. A server does not say which of its
//! calls asks; other calls end by themselves, so a question waits a moment until it can only belong to one principal, and
//! is refused if that does not happen.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    call::Question,
    downstream::{
        asks::{
            ClosedQuestion,
            attribution::{Addressee, Asker},
            is_willing,
            users::Users,
        },
        link::Origin,
        protocol::conversation::{RequestOutcome, answer_server},
        session::{Session, hops::report_question},
    },
    era::Era,
    events::QuestionState,
    wire::{self, Request, RequestId, code},
};

/// How long a question waits. The asking call fails after that, so it must be short.
const ATTRIBUTION_TIMEOUT: Duration = Duration::from_millis(750);
/// Upper bound on the waiting questions.
const MAX_WAITING: usize = 32;

/// The waiting questions, oldest first.
#[derive(Default)]
pub(crate) struct UnattributedQuestions {
    waiting: Vec<UnattributedQuestion>,
}

struct UnattributedQuestion {
    request: Request,
    until: Instant,
}

impl UnattributedQuestions {
    /// Returns the time at which the next question is refused.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waiting.iter().map(|question| question.until).min()
    }
}

/// Handles a question of the server at once, or lets it wait.
pub(crate) fn take_question(session: &mut Session, request: Request, origin: Origin) {
    // The question goes to a client, waits for a moment, or is refused. `answer_server` refuses one without an
    // addressee.
    let addressee = addressee(session, &request, origin);
    if addressee.is_none() && may_be_attributed_later(session, &request, origin) {
        session.unattributed.waiting.push(UnattributedQuestion {
            request,
            until: Instant::now() + ATTRIBUTION_TIMEOUT,
        });
        return;
    }
    let question = Question::named(&request.method);
    let taken = answer_server(
        request,
        addressee.as_ref(),
        &mut session.asks,
        &mut session.link,
    );
    if let (RequestOutcome::Pending, Some(addressee)) = (taken, addressee) {
        session.calls.question_opened(addressee.asker);
        report(session, question, QuestionState::Asked);
    }
}

/// Passes on the answer to a question. If the call that was asked has ended without one, another call that may have
/// asked is asked in its place.
pub(crate) fn take_answer(session: &mut Session, closed: ClosedQuestion) {
    close_question(session, Some(closed.asker));
    report(session, Some(closed.question), closed.state);
    // The call that was asked ended, but the one that asks may be another.
    let unanswered = closed.unanswered.filter(|request| {
        let question = Question::named(&request.method);
        question.is_some_and(|it| session.calls.somebody_can_answer(it))
    });
    match unanswered {
        Some(request) => take_question(session, request, Origin::Connection),
        None => session.link.send(closed.answer),
    }
}

/// Removes a question that the server cancelled.
pub(crate) fn cancel_question(session: &mut Session, id: &RequestId) {
    session
        .unattributed
        .waiting
        .retain(|question| question.request.id != *id);
    let asker = session.asks.cancel(id);
    close_question(session, asker);
}

/// Reports a question to the event stream.
fn report(session: &Session, question: Option<Question>, state: QuestionState) {
    if let Some(question) = question {
        report_question(session.calls.about(), question, state);
    }
}

fn close_question(session: &mut Session, asker: Option<Asker>) {
    if let Some(asker) = asker {
        session.calls.question_closed(asker);
    }
}

/// Returns the client that gets a question, if the question can belong to one principal only.
fn addressee(session: &Session, request: &Request, origin: Origin) -> Option<Addressee> {
    let has_one_user =
        matches!(&session.users, Users::One(client) if client.own_era() == Era::Legacy);
    // On the stream of a request the server has named the call.
    if has_one_user || origin != Origin::Connection {
        return session.meant_client(origin).map(Addressee::certain);
    }
    let question = Question::named(&request.method);
    session.calls.addressee(&session.asks, |client| {
        question.is_some_and(|it| is_willing(client, it, request.params.as_ref()))
    })
}

/// Returns true if it may become clear later which principal a question belongs to.
fn may_be_attributed_later(session: &Session, request: &Request, origin: Origin) -> bool {
    let Some(question) = Question::named(&request.method) else {
        return false;
    };
    // The workbench answers these itself, whoever they are for.
    let from_configuration = question == Question::Roots && session.asks.has_roots();
    origin == Origin::Connection
        && !from_configuration
        && session.unattributed.waiting.len() < MAX_WAITING
        && session.calls.somebody_can_answer(question)
}

/// Takes the questions that can now belong to one principal only.
pub(crate) fn release(session: &mut Session) {
    if session.unattributed.waiting.is_empty() {
        return;
    }
    for question in std::mem::take(&mut session.unattributed.waiting) {
        let is_clear = addressee(session, &question.request, Origin::Connection).is_some();
        // A question that nobody can answer any more is taken too, which refuses it at once.
        if is_clear || !may_be_attributed_later(session, &question.request, Origin::Connection) {
            take_question(session, question.request, Origin::Connection);
        } else {
            session.unattributed.waiting.push(question);
        }
    }
}

/// Refuses the questions that have waited for too long.
pub(crate) fn refuse_due(session: &mut Session, now: Instant) {
    let due = session
        .unattributed
        .waiting
        .extract_if(.., |question| question.until <= now);
    for question in due {
        let words = "this question could belong to several clients, and none of them was asked";
        let id = Some(&question.request.id);
        session
            .link
            .send(wire::error(id, code::INTERNAL_ERROR, words));
    }
}
