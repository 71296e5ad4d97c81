//! What a modern server is not sent, because the modern era has it in another form: subscriptions are one request
//! for everybody, and the level of log messages is told with every request. And what it tells by that request.

use rawjson::{ObjectText, RawJson};

use crate::{
    call::CallRequest,
    downstream::{
        error::CallError,
        protocol::conversation::error_code,
        server::QueuedCall,
        session::{Session, Surroundings},
    },
    era::{HEADER_MISMATCH, SUBSCRIPTION_ID},
    wire::{Answer, code},
};

/// A request that is answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Local {
    /// To be told of a resource, or not any more.
    Subscription,
    /// To be sent log messages of a level.
    LogLevel,
}

impl Local {
    /// What a request is, if it is answered here.
    pub(crate) fn of(request: &CallRequest) -> Option<Self> {
        match request.method() {
            "resources/subscribe" | "resources/unsubscribe" => Some(Self::Subscription),
            "logging/setLevel" => Some(Self::LogLevel),
            _ => None,
        }
    }

    /// Answers a request that the server is not sent.
    pub(crate) fn take(self, session: &mut Session, call: Box<QueuedCall>) {
        match self {
            Self::LogLevel => {}
            Self::Subscription if session.subscription.announced().subscriptions => {
                let before = session.calls.resubscriptions().subscribed();
                session.calls.resubscriptions().note(&call.call.request);
                if session.calls.resubscriptions().subscribed() != before {
                    session.listen();
                }
            }
            Self::Subscription => {
                let message = "the server does not tell of single resources";
                call.answer(Err(CallError::refusal(
                    code::METHOD_NOT_FOUND,
                    message,
                    None,
                )));
                return;
            }
        }
        call.answer(Ok(ObjectText::new().finish()));
    }
}

/// Asks the server again after it has stopped telling. What was missed meanwhile is told at once the first
/// time; of a server that goes on refusing nothing more can be known until it grants the request.
pub(crate) fn listen_again(session: &mut Session, surroundings: &Surroundings<'_>) {
    session.listen();
    if session.subscription.ended_once() {
        take_granted(session, surroundings);
    }
}

/// Takes the server's grant of the request, and announces what may have been missed before it.
pub(crate) fn take_granted(session: &mut Session, surroundings: &Surroundings<'_>) {
    if session.subscription.take_missed() {
        session.announce_everything(surroundings);
    }
}

/// What a notification says, without the mark by which we know why it came.
pub(crate) fn untagged(params: &RawJson) -> RawJson {
    let meta = params.member("_meta");
    let Some(meta) = meta.filter(|meta| meta.member(SUBSCRIPTION_ID).is_some()) else {
        return params.clone();
    };
    let rest = meta.without_members(&[SUBSCRIPTION_ID]);
    if rest.members().is_none_or(|members| members.is_empty()) {
        params.without_members(&["_meta"])
    } else {
        params.with_member("_meta", &rest)
    }
}

/// Whether a request was refused because of its headers.
pub(crate) fn is_header_mismatch(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(error) if error_code(error) == HEADER_MISMATCH.to_string())
}
