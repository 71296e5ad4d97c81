//! What a modern server is not sent, because the modern era has it in another form: subscriptions are one request
//! for everybody, and the level of log messages is told with every request. And what it tells by that request.

use tokio::time::Instant;

use crate::{
    call::CallRequest,
    downstream::{
        error::CallError,
        event::Change,
        protocol::{conversation::error_code, subscription::Listening},
        server::QueuedCall,
        session::{Session, Surroundings, pending::Asked},
    },
    era::{HEADER_MISMATCH, SUBSCRIPTION_ID},
    wire::{Answer, ObjectText, RawJson, code},
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
}

impl Session {
    /// Answers a request that the server is not sent.
    pub(crate) fn take_local(&mut self, local: Local, call: Box<QueuedCall>) {
        match local {
            Local::LogLevel => {}
            Local::Subscription if self.subscription.announced().subscriptions => {
                let before = self.calls.lasting().subscribed();
                self.calls.lasting().note(&call.call.request);
                if self.calls.lasting().subscribed() != before {
                    self.listen();
                }
            }
            Local::Subscription => {
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

    /// Asks the server to tell what it tells of and somebody wants to hear. What it was asked before is taken back
    /// after that, so that nothing is missed.
    pub(crate) fn listen(&mut self) {
        let params = self.subscription.params(self.calls.lasting());
        let open = params.map(|params| {
            let method = "subscriptions/listen";
            let asked = self
                .calls
                .ask(&mut self.link, Asked::Listen, method, &params);
            Listening {
                id: asked.0,
                frame: asked.1,
                since: Instant::now(),
            }
        });
        if let Some(before) = self.subscription.replace(open) {
            self.calls
                .take_back(&mut self.link, before.id, before.frame);
        }
    }

    /// Asks the server again after it has stopped telling. What was missed meanwhile is told at once the first
    /// time; of a server that goes on refusing nothing more can be known until it grants the request.
    pub(crate) fn listen_again(&mut self, surroundings: &Surroundings<'_>) {
        self.listen();
        if self.subscription.ended_once() {
            self.take_granted(surroundings);
        }
    }

    /// The server tells again.
    pub(crate) fn take_granted(&mut self, surroundings: &Surroundings<'_>) {
        if self.subscription.take_missed() {
            self.announce_everything(surroundings);
        }
    }

    /// Everything that the server has may have changed.
    pub(crate) fn announce_everything(&mut self, surroundings: &Surroundings<'_>) {
        self.announce_change(surroundings.status);
        (surroundings.tell)(Change::Prompts);
        (surroundings.tell)(Change::Resources);
    }

    /// The server has answered that it will tell no more, or that it has no such thing.
    pub(crate) fn stop_listening(&mut self, id: u64, answer: &Answer) {
        match answer {
            Answer::Error(error) if error_code(error) == code::METHOD_NOT_FOUND.to_string() => {
                tracing::debug!("the server does not tell of changes");
                self.subscription.refused(id);
            }
            _ => self.subscription.ended(id, Instant::now()),
        }
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
