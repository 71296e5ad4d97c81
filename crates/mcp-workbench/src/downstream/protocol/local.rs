//! Requests that the workbench answers itself for a modern server, because the modern era expresses them differently:
//! there is one subscription request for all clients, and every request carries the log level. Also handles the grant
//! and the end of that subscription.

use rawjson::{ObjectText, RawJson};

use crate::{
    call::CallRequest,
    downstream::{
        error::CallError,
        protocol::conversation::error_code,
        server::QueuedCall,
        session::{Session, SessionContext},
    },
    era::{HEADER_MISMATCH, SUBSCRIPTION_ID},
    wire::{Answer, code},
};

/// A request that the workbench answers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalRequest {
    /// Subscribes to a resource, or unsubscribes.
    Subscription,
    /// Sets the level of log messages.
    LogLevel,
}

impl LocalRequest {
    /// Returns the kind of a request, if the workbench answers it itself.
    pub(crate) fn of(request: &CallRequest) -> Option<Self> {
        match request.method() {
            "resources/subscribe" | "resources/unsubscribe" => Some(Self::Subscription),
            "logging/setLevel" => Some(Self::LogLevel),
            _ => None,
        }
    }

    /// Answers a request that is not sent to the server.
    pub(crate) fn take(self, session: &mut Session, call: Box<QueuedCall>) {
        match self {
            // Every later request carries the level.
            Self::LogLevel => {}
            Self::Subscription if session.subscription.announced().subscriptions => {
                let before = session.calls.resubscriptions().subscribed();
                session.calls.resubscriptions().record(&call.call.request);
                // A second client may want the same resource, and to subscribe again would interrupt the reports for
                // everybody.
                if session.calls.resubscriptions().subscribed() != before {
                    session.listen();
                }
            }
            Self::Subscription => {
                let message = "the server does not support subscriptions to single resources";
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

/// Subscribes again after the subscription ended. Possibly missed changes are announced at once the first time. If
/// the server keeps refusing, they are announced when it grants the request.
pub(crate) fn listen_again(session: &mut Session, context: &SessionContext<'_>) {
    session.listen();
    if session.subscription.ended_once() {
        take_granted(session, context);
    }
}

/// Handles the server's grant of the subscription, and announces changes that may have been missed before it.
pub(crate) fn take_granted(session: &mut Session, context: &SessionContext<'_>) {
    if session.subscription.take_missed() {
        session.announce_everything(context);
    }
}

/// Returns the parameters of a notification without the id of our subscription.
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

/// Returns true if a request was refused because of its headers.
pub(crate) fn is_header_mismatch(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(error) if error_code(error) == HEADER_MISMATCH.to_string())
}
