//! The client as a server's task sees it: the way back along which a call came.

use std::sync::Arc;

use super::{connection::Connection, log_level::LogLevel, output::ClientOutput};
use crate::{
    call::{
        AnswerFuture, ClientCapabilities, ClientHandle, ClientId, Principal, Question, RoomFuture,
    },
    era::Era,
    wire::{self, Frame, RawJson},
};

/// A client, and the stream on which one of its requests is answered.
pub(super) struct Caller {
    pub(super) connection: Arc<Connection>,
    pub(super) output: ClientOutput,
    /// The client's own token for the progress of the request, if it wants to hear of it.
    progress_token: Option<RawJson>,
    /// How the client speaks in the request.
    era: Era,
}

impl Caller {
    /// The client on one of its streams.
    pub(super) fn new(connection: Arc<Connection>, output: ClientOutput) -> Self {
        Self {
            connection,
            output,
            progress_token: None,
            era: Era::Legacy,
        }
    }

    /// The same, for a request whose progress it wants to hear of under this token.
    pub(super) fn with_progress_token(mut self, token: Option<RawJson>) -> Self {
        self.progress_token = token;
        self
    }

    /// The same, for a request of this era.
    pub(super) fn of_era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }
}

impl ClientHandle for Caller {
    fn id(&self) -> ClientId {
        self.connection.id()
    }

    fn principal(&self) -> Principal {
        self.connection.principal()
    }

    fn era(&self) -> Era {
        self.era
    }

    fn log_level(&self) -> Option<&'static str> {
        Some(self.connection.log_level().name())
    }

    fn progress_token(&self) -> Option<RawJson> {
        self.progress_token.clone()
    }

    fn capabilities(&self) -> ClientCapabilities {
        self.connection.capabilities()
    }

    fn notify(&self, frame: Frame) {
        self.output.notify(frame);
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        let connection = Arc::clone(&self.connection);
        let output = connection.output();
        Arc::new(Self::new(connection, output))
    }

    fn is_full(&self) -> bool {
        self.output.holds_up()
    }

    fn room(&self) -> RoomFuture {
        let output = self.output.clone();
        Box::pin(async move { output.has_room().await })
    }

    fn log(&self, params: &RawJson) {
        let level = params.member("level");
        let level = level.as_ref().and_then(RawJson::as_text);
        let level = level.and_then(|level| LogLevel::named(&level));
        if level.is_some_and(|level| level >= self.connection.log_level()) {
            self.notify(wire::notification("notifications/message", Some(params)));
        }
    }

    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture {
        self.connection
            .questions()
            .ask(question, params, self.output.clone())
    }
}
