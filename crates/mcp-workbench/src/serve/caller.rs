//! The client as a server's task sees it: the way back along the path of a call.

use std::sync::Arc;

use rawjson::RawJson;

use super::{
    connection::Connection, log_level::LogLevel, output::ClientOutput, revision::Revision,
};
use crate::{
    call::{
        AnswerFuture, Carrier, ClientHandle, ClientId, ClientIdentity, Declaration, Principal,
        Question, Recipient, RoomFuture,
    },
    era::Era,
    trace::CallSpan,
    wire::{self, Frame},
};

/// A client, and the stream on which one of its requests is answered.
pub(super) struct Caller {
    pub(super) connection: Arc<Connection>,
    pub(super) output: ClientOutput,
    /// The client's own token for the progress of the request, if it wants progress.
    progress_token: Option<RawJson>,
    /// The operation of the request, if it is not a tool call and anybody listens.
    span: Option<Box<CallSpan>>,
}

impl Caller {
    /// Creates the client on one of its streams.
    pub(super) fn new(connection: Arc<Connection>, output: ClientOutput) -> Self {
        Self {
            connection,
            output,
            progress_token: None,
            span: None,
        }
    }

    /// Sets the operation that the request belongs to.
    pub(super) fn with_span(mut self, span: Option<CallSpan>) -> Self {
        self.span = span.map(Box::new);
        self
    }

    /// Sets the token under which the client wants to receive progress.
    pub(super) fn with_progress_token(mut self, token: Option<RawJson>) -> Self {
        self.progress_token = token;
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

    fn user(&self) -> Option<Arc<str>> {
        self.connection.user()
    }

    fn is_local(&self) -> bool {
        self.connection.is_local()
    }

    fn identity(&self) -> Arc<ClientIdentity> {
        self.connection.identity()
    }

    fn era(&self) -> Era {
        Era::Legacy
    }

    fn carrier(&self) -> Carrier {
        self.connection.carrier()
    }

    fn revision(&self) -> Option<&'static str> {
        self.connection.revision().map(Revision::name)
    }

    fn session(&self) -> Option<Arc<str>> {
        self.connection.session()
    }

    fn span(&self) -> Option<CallSpan> {
        self.span.as_deref().cloned()
    }

    fn recipient(&self) -> Recipient {
        self.connection.recipient()
    }

    fn progress_token(&self) -> Option<RawJson> {
        self.progress_token.clone()
    }

    fn declaration(&self) -> Arc<Declaration> {
        self.connection.declaration()
    }

    fn notify(&self, frame: Frame) {
        self.output.notify(frame);
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        let connection = Arc::clone(&self.connection);
        // The stream of the request ends with its response, so later messages go by the one of the connection.
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
        let level = LogLevel::of_message(params);
        if level.is_some_and(|level| level >= self.connection.log_level()) {
            self.output
                .log(wire::notification("notifications/message", Some(params)));
        }
    }

    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture {
        self.connection
            .questions()
            .ask(question, params, self.output.clone())
    }
}
