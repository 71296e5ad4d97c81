//! The requests of a server's start, one after the other. Requests and notifications of the server in between are
//! answered or ignored.

use std::sync::Arc;

use rawjson::{Kind, RawJson};

use crate::{
    call::ClientHandle,
    config::Secrets,
    downstream::{
        asks::{Asks, attribution::Addressee},
        error::{CallError, ConnectError, StartPhase, StopReason},
        link::{Link, LinkEvent},
        protocol::dialect::Dialect,
        stray::StrayText,
    },
    era::Era,
    wire::{Answer, Message, Request, RequestId, recover_answer_id},
};

/// Upper bound on the unsent responses to a server that sends requests without reading the responses.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Upper bound on the server's text in an error.
const MAX_MESSAGE_CHARACTERS: usize = 4000;

/// The connection to a server during its start.
pub(crate) struct Conversation<'a> {
    pub(crate) link: Link,
    pub(crate) next_id: u64,
    /// The open questions of the server.
    pub(crate) asks: Asks,
    /// The client that needs the server; the server gets its capabilities.
    pub(crate) client: Option<&'a Arc<dyn ClientHandle>>,
    /// Stores lines that are not messages.
    pub(crate) stray: &'a StrayText,
    /// The form of requests to the server.
    pub(crate) dialect: Dialect,
}

impl Conversation<'_> {
    /// Switches to a different form of requests.
    pub(crate) fn speak(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.link.set_era(dialect.era);
    }

    /// Sends a request; returns its id.
    pub(crate) fn send(&mut self, phase: StartPhase, params: &RawJson) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let params = self.dialect.own_params(params, self.client);
        self.link
            .request(id, &phase.to_string(), params.into(), &[]);
        id
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn request(
        &mut self,
        phase: StartPhase,
        params: &RawJson,
    ) -> Result<Answer, ConnectError> {
        let id = self.send(phase, params);
        let (_, answer) = self.answer(phase, id, None).await?;
        Ok(answer)
    }

    /// Waits for the response to a request, or to an earlier one that still matters; returns its id too. Only a
    /// failure of the later request is an error. Cancel-safe.
    pub(crate) async fn answer(
        &mut self,
        phase: StartPhase,
        id: u64,
        earlier: Option<u64>,
    ) -> Result<(u64, Answer), ConnectError> {
        loop {
            let event = tokio::select! {
                event = self.link.next_event() => event,
                // A server may ask before it is up, and wait for the answer.
                closed = self.asks.next_answer() => {
                    self.link.send(closed.answer);
                    continue;
                }
            };
            match event {
                LinkEvent::Message { message, .. } => {
                    if let Some((answered, answer)) = self.take_message(message)
                        && (answered == id || Some(answered) == earlier)
                    {
                        return Ok((answered, answer));
                    }
                }
                event => self.check(event, phase, id).await?,
            }
        }
    }

    /// Handles a message of the server; returns the response if it is one.
    fn take_message(&mut self, message: Message) -> Option<(u64, Answer)> {
        match message {
            Message::Response(response) => {
                let id = response.id.as_ref().and_then(RequestId::as_u64)?;
                Some((id, response.answer))
            }
            Message::Request(request) => {
                // In the modern era a server has no requests of its own, and gets no response to one.
                if self.dialect.era == Era::Legacy {
                    let addressee = self.client.map(Addressee::certain);
                    answer_server(request, addressee.as_ref(), &mut self.asks, &mut self.link);
                }
                None
            }
            Message::Notification(_) => None,
        }
    }

    /// Checks if the request can still be answered after an event.
    async fn check(
        &mut self,
        event: LinkEvent,
        phase: StartPhase,
        id: u64,
    ) -> Result<(), ConnectError> {
        match event {
            LinkEvent::Lost(fault) => Err(ConnectError::Http { fault }),
            LinkEvent::Failed {
                id: failed, fault, ..
            } if failed == id => Err(ConnectError::Http { fault }),
            LinkEvent::Ended(exit) => {
                let stderr = self.link.stderr_tail().await;
                Err(ConnectError::Exited {
                    exit,
                    phase,
                    stderr,
                })
            }
            LinkEvent::TooLarge(_) => Err(ConnectError::InvalidAnswer { phase }),
            LinkEvent::Nonsense => {
                let stderr = self.link.stderr_tail().await;
                Err(ConnectError::GivenUp {
                    why: StopReason::Nonsense,
                    phase,
                    stderr,
                })
            }
            // It looks like the response. To wait for a better one would only end in the timeout.
            LinkEvent::BadLine(line)
                if recover_answer_id(&line).and_then(|it| it.as_u64()) == Some(id) =>
            {
                Err(ConnectError::InvalidAnswer { phase })
            }
            LinkEvent::BadLine(line) => {
                self.stray.record(&line, &self.link.secrets());
                Ok(())
            }
            LinkEvent::Message { .. }
            | LinkEvent::TooLargeEnded(_)
            | LinkEvent::Failed { .. }
            | LinkEvent::SessionLost
            | LinkEvent::AccountChanged
            | LinkEvent::Renewed(_) => Ok(()),
        }
    }
}

/// Handles a request of the server, unless the server does not read its responses.
pub(crate) fn answer_server(
    request: Request,
    addressee: Option<&Addressee>,
    asks: &mut Asks,
    link: &mut Link,
) -> RequestOutcome {
    if link.backlog() >= MAX_ANSWER_BYTES {
        return RequestOutcome::Done;
    }
    match asks.take(request, addressee) {
        Some(answer) => {
            link.send(answer);
            RequestOutcome::Done
        }
        None => RequestOutcome::Pending,
    }
}

/// The outcome of a request of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// It was answered, or never will be.
    Done,
    Pending,
}

/// Returns the code of an error object as text.
pub(crate) fn error_code(error: &RawJson) -> String {
    let code = error
        .member("code")
        .filter(|code| code.kind() == Kind::Number);
    code.map_or_else(|| "unknown".to_owned(), |code| code.as_str().to_owned())
}

/// Returns the message of an error object, redacted and shortened.
pub(crate) fn error_message(error: &RawJson, secrets: &Secrets) -> String {
    let member = error.member("message");
    let text = member
        .as_ref()
        .and_then(RawJson::as_text)
        .unwrap_or_default();
    let mut message = secrets.redact(&text).into_owned();
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARACTERS) {
        message.truncate(end);
        message.push('…');
    }
    message
}

/// Returns the error for a failed request of the start.
pub(crate) fn refused(phase: StartPhase, answer: &Answer, secrets: &Secrets) -> ConnectError {
    match answer {
        Answer::Error(error) => ConnectError::Refused {
            phase,
            code: error_code(error),
            message: error_message(error, secrets),
        },
        Answer::Result(_) | Answer::Invalid => ConnectError::InvalidAnswer { phase },
    }
}

/// Converts the response to a call.
pub(crate) fn call_answer(answer: Answer, link: &Link) -> Result<RawJson, CallError> {
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Error(error) => Err(CallError::Refused {
            code: error_code(&error),
            message: error_message(&error, &link.secrets()),
            error,
        }),
        Answer::Invalid => Err(CallError::InvalidAnswer),
    }
}
