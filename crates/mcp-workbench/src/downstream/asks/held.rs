//! Questions of a legacy server that could belong to several calls. A server does not say which of its calls asks;
//! the others end by themselves, so a question waits until it can only belong to one. Where it cannot be told in
//! time it is refused, which ends one of the calls, and so the next may be told.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    call::Question,
    downstream::{
        link::Origin,
        protocol::conversation::{Taken, answer_server},
        session::Session,
    },
    wire::{self, Request, RequestId, code},
};

/// How long a question waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many of them wait.
const MAX_HELD: usize = 32;

/// The questions that wait, oldest first.
#[derive(Default)]
pub(crate) struct HeldQuestions {
    held: Vec<Held>,
}

struct Held {
    request: Request,
    until: Instant,
}

impl HeldQuestions {
    /// When the next of them is refused.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.until).min()
    }

    /// Forgets a question that the server takes back.
    pub(crate) fn cancel(&mut self, id: &RequestId) {
        self.held.retain(|held| held.request.id != *id);
    }
}

/// Takes a question of the server, or lets it wait.
pub(crate) fn take_question(session: &mut Session, request: Request, origin: Origin) {
    let client = session.meant_client(origin).cloned();
    if client.is_none() && may_be_told_later(session, &request, origin) {
        session.held.held.push(Held {
            request,
            until: Instant::now() + PATIENCE,
        });
        return;
    }
    let taken = answer_server(
        request,
        client.as_ref(),
        &mut session.asks,
        &mut session.link,
    );
    if let (Taken::Asked, Some(client)) = (taken, client) {
        session.calls.question_opened(client.id());
    }
}

/// Returns whether it may become known later which call a question belongs to.
fn may_be_told_later(session: &Session, request: &Request, origin: Origin) -> bool {
    let Some(question) = Question::named(&request.method) else {
        return false;
    };
    let from_configuration = question == Question::Roots && session.asks.has_roots();
    origin == Origin::Connection
        && !from_configuration
        && session.held.held.len() < MAX_HELD
        && session.calls.somebody_can_answer(question)
}

/// Takes the questions of which it can now be told whose they are, and refuses those that have waited for too
/// long, one at a time.
pub(crate) fn release(session: &mut Session) {
    if session.held.held.is_empty() {
        return;
    }
    let now = Instant::now();
    let mut refused = false;
    for held in std::mem::take(&mut session.held.held) {
        let is_told = session.meant_client(Origin::Connection).is_some();
        if is_told || !may_be_told_later(session, &held.request, Origin::Connection) {
            take_question(session, held.request, Origin::Connection);
        } else if held.until <= now && !refused {
            refused = true;
            let words = "it cannot be told which of several calls asks this";
            let id = Some(&held.request.id);
            session
                .link
                .send(wire::error(id, code::INTERNAL_ERROR, words));
        } else {
            let until = if refused { now + PATIENCE } else { held.until };
            session.held.held.push(Held { until, ..held });
        }
    }
}
