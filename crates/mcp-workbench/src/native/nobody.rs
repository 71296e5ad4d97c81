//! A client handle for requests that we send to servers after their client has gone.

use std::sync::Arc;

use rawjson::RawJson;

use crate::{
    call::{
        AnswerFuture, ClientCapabilities, ClientHandle, ClientId, Principal, Question, RoomFuture,
    },
    era::Era,
    wire::Frame,
};

/// A client that wants no notifications and answers no questions.
pub(crate) struct Nobody;

impl ClientHandle for Nobody {
    fn id(&self) -> ClientId {
        // Cannot collide with a real client: ids are counted from zero.
        ClientId(u64::MAX)
    }

    fn principal(&self) -> Principal {
        Principal::Anybody
    }

    fn era(&self) -> Era {
        Era::Modern
    }

    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn progress_token(&self) -> Option<RawJson> {
        None
    }

    fn notify(&self, _: Frame) {}

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        Arc::new(Self)
    }

    fn is_full(&self) -> bool {
        false
    }

    fn room(&self) -> RoomFuture {
        Box::pin(async {})
    }

    fn log(&self, _: &RawJson) {}

    fn ask(&self, _: Question, _: Option<&RawJson>) -> AnswerFuture {
        Box::pin(async { None })
    }
}
