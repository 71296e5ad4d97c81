//! A client handle for requests that we send to servers after their client has gone.

use std::sync::Arc;

use rawjson::RawJson;

use crate::{
    call::{AnswerFuture, ClientHandle, ClientId, Declaration, Principal, Question, RoomFuture},
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

    fn declaration(&self) -> Arc<Declaration> {
        Arc::default()
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
