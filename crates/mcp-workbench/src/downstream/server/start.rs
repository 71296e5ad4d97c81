//! The start of a server: process, handshake as a client of revision 2025-11-25, first list of tools.
//! It reads from top to bottom; what the server says in between is answered or ignored.

use std::sync::Arc;

use serde_json::json;

use super::super::{
    error::{ConnectError, GiveUp, StartPhase},
    listing::{ListWalk, Step, ToolList},
    process::ProcessTable,
    stdio::{LinkEvent, StdioLink},
};
use crate::{
    config::{Server, Transport},
    wire::{self, Answer, Kind, Message, RawJson, Request, recover_id},
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
    pub(super) link: StdioLink,
    pub(super) tools: ToolList,
    /// The first id that the start has not used.
    pub(super) next_id: u64,
}

/// Starts `server` and waits until it has told its tools. Dropping the future ends the process.
pub(super) async fn start(
    server: &Server,
    processes: &Arc<ProcessTable>,
) -> Result<Started, ConnectError> {
    let launch = match &server.transport {
        Transport::Stdio(launch) => launch,
        Transport::Remote(_) => return Err(ConnectError::RemoteUnavailable),
        Transport::Unset(variables) => return Err(ConnectError::Unset(variables.clone())),
    };
    let link = StdioLink::start(launch, processes);
    let mut start = Start {
        link: link.map_err(|error| error.redacted(&launch.secrets))?,
        next_id: 1,
    };
    match start.run().await {
        Ok((instructions, walk)) => Ok(Started {
            tools: walk.finish(&server.filters, instructions),
            link: start.link,
            next_id: start.next_id,
        }),
        Err(error) => Err(error.redacted(start.link.secrets())),
    }
}

struct Start {
    link: StdioLink,
    next_id: u64,
}

impl Start {
    async fn run(&mut self) -> Result<(Option<String>, ListWalk), ConnectError> {
        let instructions = self.initialize().await?;
        let walk = self.list().await?;
        Ok((instructions, walk))
    }

    /// The handshake; returns what the server says of itself.
    async fn initialize(&mut self) -> Result<Option<String>, ConnectError> {
        let params = RawJson::of(&json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": { "name": "mcp-workbench", "version": env!("CARGO_PKG_VERSION") },
        }));
        let phase = StartPhase::Initialize;
        let answer = self.request(phase, &params).await?;
        let Answer::Result(result) = answer else {
            return Err(refused(phase, &answer));
        };
        if result
            .member("protocolVersion")
            .and_then(|it| Some(it.as_text()?.into_owned()))
            .is_none()
        {
            return Err(ConnectError::InvalidAnswer { phase });
        }
        self.link
            .send(wire::notification("notifications/initialized", None));
        let instructions = result.member("instructions");
        let instructions = instructions.and_then(|it| Some(it.as_text()?.into_owned()));
        Ok(instructions.filter(|text| !text.is_empty()))
    }

    async fn list(&mut self) -> Result<ListWalk, ConnectError> {
        let phase = StartPhase::ListTools;
        let mut walk = ListWalk::default();
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
                None => return Err(refused(phase, &answer)),
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
        self.link
            .send(wire::request(id, &phase.to_string(), params));
        loop {
            match self.link.next_event().await {
                LinkEvent::Message(Message::Response(response))
                    if response.id.as_ref().and_then(wire::RequestId::as_u64) == Some(id) =>
                {
                    return Ok(response.answer);
                }
                LinkEvent::Message(Message::Request(request)) => {
                    answer_server(&request, &mut self.link);
                }
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
                    if recover_id(&line).and_then(|it| it.as_u64()) == Some(id) =>
                {
                    return Err(ConnectError::InvalidAnswer { phase });
                }
                LinkEvent::Message(_) | LinkEvent::BadLine(_) | LinkEvent::TooLargeEnded(_) => {}
            }
        }
    }
}

/// What a server gets that asks us something: nothing was announced to it but `ping`.
pub(super) fn answer_server(request: &Request, link: &mut StdioLink) {
    if link.outbox().len() >= MAX_ANSWER_BYTES {
        return;
    }
    let answer = if request.method == "ping" {
        wire::result(&request.id, &wire::ObjectText::new().finish())
    } else {
        let message = format!("Method not found: {}", request.method);
        wire::error(Some(&request.id), METHOD_NOT_FOUND, &message)
    };
    link.send(answer);
}

/// The code of an error object, as it is written.
pub(super) fn error_code(error: &RawJson) -> String {
    let code = error
        .member("code")
        .filter(|code| code.kind() == Kind::Number);
    code.map_or_else(|| "unknown".to_owned(), |code| code.as_str().to_owned())
}

/// The words of an error object, cut where they go on for ever.
pub(super) fn error_message(error: &RawJson) -> String {
    let message = error.member("message");
    let message = message.and_then(|it| Some(it.as_text()?.into_owned()));
    let mut message = message.unwrap_or_default();
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARACTERS) {
        message.truncate(end);
        message.push('…');
    }
    message
}

fn refused(phase: StartPhase, answer: &Answer) -> ConnectError {
    match answer {
        Answer::Error(error) => ConnectError::Refused {
            phase,
            code: error_code(error),
            message: error_message(error),
        },
        Answer::Result(_) | Answer::Invalid => ConnectError::InvalidAnswer { phase },
    }
}
