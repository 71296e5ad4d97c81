//! The start of a server: process, handshake as a client of revision 2025-11-25, first list of tools.
//! It reads from top to bottom; what the server says in between is answered or ignored.

use std::sync::Arc;

use serde_json::json;

use super::{SupervisorContext, asks::Asks};
use crate::{
    call::ClientHandle,
    config::{Secrets, Server},
    downstream::{
        error::{ConnectError, GiveUp, StartPhase},
        introduction::Introduction,
        link::{Link, LinkEvent},
        listing::{ListWalk, Step, ToolList},
    },
    wire::{Answer, Kind, Message, ObjectText, RawJson, Request, RequestId, recover_answer_id},
};

/// The newest revision with a handshake. An older answer is accepted, as nothing that we use differs.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// A server that asks without reading the answers gets no more of them beyond this.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// How much of a server's words an error repeats.
const MESSAGE_CHARACTERS: usize = 4000;

/// The error code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// A server that is up.
pub(super) struct Started {
    pub(super) link: Link,
    /// What the server has asked and is not answered yet.
    pub(super) asks: Asks,
    pub(super) tools: ToolList,
    /// The first id that the start has not used.
    pub(super) next_id: u64,
}

/// Starts `server` and waits until it has told its tools. Dropping the future ends the server.
pub(super) async fn start(
    server: &Server,
    context: &SupervisorContext,
    client: Option<&Arc<dyn ClientHandle>>,
) -> Result<Started, ConnectError> {
    let mut start = Start {
        link: Link::open(server, &context.links)?,
        next_id: 1,
        asks: Asks::new(context.roots.clone()),
        client,
    };
    match start.run().await {
        Ok((introduction, walk)) => Ok(Started {
            tools: walk.finish(&server.filters, introduction),
            link: start.link,
            next_id: start.next_id,
            asks: start.asks,
        }),
        Err(error) => Err(error.redacted(start.link.secrets())),
    }
}

struct Start<'a> {
    link: Link,
    next_id: u64,
    asks: Asks,
    /// Who needs the server; it is told what that client can do.
    client: Option<&'a Arc<dyn ClientHandle>>,
}

impl Start<'_> {
    async fn run(&mut self) -> Result<(Introduction, ListWalk), ConnectError> {
        let introduction = self.initialize().await?;
        let walk = self.list().await?;
        Ok((introduction, walk))
    }

    /// The handshake; returns what the server says of itself.
    async fn initialize(&mut self) -> Result<Introduction, ConnectError> {
        let capabilities = self.client.map(|client| client.capabilities());
        let capabilities = capabilities.unwrap_or_default();
        let identity = json!({ "name": "mcp-workbench", "version": env!("CARGO_PKG_VERSION") });
        let params = ObjectText::new()
            .member("protocolVersion", PROTOCOL_VERSION)
            .raw("capabilities", &self.asks.announced(&capabilities))
            .member("clientInfo", &identity)
            .finish();
        let phase = StartPhase::Initialize;
        let answer = self.request(phase, &params).await?;
        let Answer::Result(result) = answer else {
            return Err(refused(phase, &answer, self.link.secrets()));
        };
        let version = result.member("protocolVersion");
        let Some(version) = version.and_then(|it| Some(it.as_text()?.into_owned())) else {
            return Err(ConnectError::InvalidAnswer { phase });
        };
        self.link.initialized(&version);
        Ok(Introduction::of(&result))
    }

    async fn list(&mut self) -> Result<ListWalk, ConnectError> {
        let phase = StartPhase::ListTools;
        let mut walk = ListWalk::tools();
        loop {
            let answer = self.request(phase, &walk.params()).await?;
            let step = match &answer {
                Answer::Result(page) => walk.accept(page),
                Answer::Error(error) if error_code(error) == METHOD_NOT_FOUND.to_string() => {
                    // A server without tools may still be useful for what else it has.
                    Some(Step::Done)
                }
                _ => None,
            };
            match step {
                Some(Step::Next) => {}
                Some(Step::Done) => return Ok(walk),
                None if walk.has_pages() => {
                    walk.cut_short("because a later page could not be read");
                    return Ok(walk);
                }
                None => return Err(refused(phase, &answer, self.link.secrets())),
            }
        }
    }

    async fn request(
        &mut self,
        phase: StartPhase,
        params: &RawJson,
    ) -> Result<Answer, ConnectError> {
        let id = self.next_id;
        self.next_id += 1;
        self.link.request(id, &phase.to_string(), params, &[]);
        loop {
            let event = tokio::select! {
                event = self.link.next_event() => event,
                answer = self.asks.next_answer() => {
                    self.link.send(answer);
                    continue;
                }
            };
            match event {
                LinkEvent::Message {
                    message: Message::Response(response),
                    ..
                } if response.id.as_ref().and_then(RequestId::as_u64) == Some(id) => {
                    return Ok(response.answer);
                }
                LinkEvent::Message {
                    message: Message::Request(request),
                    ..
                } => answer_server(request, self.client, &mut self.asks, &mut self.link),
                LinkEvent::Lost(fault) => return Err(ConnectError::Http { fault }),
                LinkEvent::Failed {
                    id: failed, fault, ..
                } if failed == id => return Err(ConnectError::Http { fault }),
                LinkEvent::Ended(exit) => {
                    let stderr = self.link.stderr_tail().await;
                    return Err(ConnectError::Exited {
                        exit,
                        phase,
                        stderr,
                    });
                }
                LinkEvent::TooLarge(_) => return Err(ConnectError::InvalidAnswer { phase }),
                LinkEvent::Nonsense => {
                    let stderr = self.link.stderr_tail().await;
                    return Err(ConnectError::GivenUp {
                        why: GiveUp::Nonsense,
                        phase,
                        stderr,
                    });
                }
                LinkEvent::BadLine(line)
                    if recover_answer_id(&line).and_then(|it| it.as_u64()) == Some(id) =>
                {
                    return Err(ConnectError::InvalidAnswer { phase });
                }
                LinkEvent::Message { .. }
                | LinkEvent::BadLine(_)
                | LinkEvent::TooLargeEnded(_)
                | LinkEvent::Failed { .. }
                | LinkEvent::Renewed => {}
            }
        }
    }
}

/// Takes a request of the server, unless it asks without reading the answers.
pub(super) fn answer_server(
    request: Request,
    client: Option<&Arc<dyn ClientHandle>>,
    asks: &mut Asks,
    link: &mut Link,
) {
    if link.backlog() < MAX_ANSWER_BYTES
        && let Some(answer) = asks.take(request, client)
    {
        link.send(answer);
    }
}

/// The code of an error object, as it is written.
pub(super) fn error_code(error: &RawJson) -> String {
    let code = error
        .member("code")
        .filter(|code| code.kind() == Kind::Number);
    code.map_or_else(|| "unknown".to_owned(), |code| code.as_str().to_owned())
}

/// The words of an error object without secrets, cut where they go on for ever.
pub(super) fn error_message(error: &RawJson, secrets: &Secrets) -> String {
    let message = error.member("message");
    let message = message
        .as_ref()
        .and_then(RawJson::as_text)
        .unwrap_or_default();
    let mut message = secrets.redact(&message).into_owned();
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARACTERS) {
        message.truncate(end);
        message.push('…');
    }
    message
}

fn refused(phase: StartPhase, answer: &Answer, secrets: &Secrets) -> ConnectError {
    match answer {
        Answer::Error(error) => ConnectError::Refused {
            phase,
            code: error_code(error),
            message: error_message(error, secrets),
        },
        Answer::Result(_) | Answer::Invalid => ConnectError::InvalidAnswer { phase },
    }
}
