//! The session of a command with the host: the command is a client like any other, over a socket instead of stdin and stdout.

use std::sync::Arc;

use rawjson::{ObjectText, RawJson};
use serde_json::json;
use thiserror::Error;
use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::process::waiting;
use crate::{
    call::{ClientHandle, Question},
    cli::{output, part::ServedPart, probe::ShellClient},
    config::{Environment, Loaded, MetaTool},
    era::LEGACY_REVISIONS,
    host::{BlockingLink, Selection, has_host},
    pipe::LineReader,
    wire::{self, Answer, Frame, Line, Message, Notification, Request, RequestId},
};

/// The host ended, or sent something that is not a message.
#[derive(Debug, Error)]
#[error("the host ended")]
pub(in crate::cli) struct HostEnded;

/// A host that has taken a command as its client.
pub(in crate::cli) struct CommandHost {
    stream: std::os::unix::net::UnixStream,
    /// The host serves the command as long as this is open.
    link: BlockingLink,
}

/// Attaches a command to the host of a configuration, for one server. Returns `None` if the command works alone.
pub(in crate::cli) fn command_host(
    loaded: &Loaded,
    environment: &Environment,
    part: &ServedPart,
    only: Selection,
) -> Option<CommandHost> {
    if !loaded.config.shared && !has_host(&loaded.config.file, environment) {
        return None;
    }
    let mut waiting = waiting(loaded, environment, part).ok()?;
    waiting.attach.only = Some(only);
    match waiting.attach_command() {
        Ok(attached) => attached.map(|(link, stream)| CommandHost { stream, link }),
        Err(error) => {
            output::remark(&format!("working without the host: {error}"));
            None
        }
    }
}

/// A command as a client of the host.
pub(in crate::cli) struct HostSession {
    reader: LineReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    shell: Arc<ShellClient>,
    requests: u64,
    _link: BlockingLink,
}

impl HostSession {
    /// Begins the session. The host gets the capabilities and the log level of the shell.
    pub(in crate::cli) async fn begin(
        host: CommandHost,
        shell: Arc<ShellClient>,
    ) -> Result<Self, HostEnded> {
        let CommandHost { stream, link } = host;
        stream.set_nonblocking(true).map_err(|_| HostEnded)?;
        let stream = UnixStream::from_std(stream).map_err(|_| HostEnded)?;
        let (reader, writer) = stream.into_split();
        let mut session = Self {
            reader: LineReader::new(reader),
            writer,
            shell,
            requests: 0,
            _link: link,
        };
        let identity = session.shell.identity();
        let product = json!({ "name": identity.name, "version": identity.version });
        let params = ObjectText::new()
            .member("protocolVersion", &LEGACY_REVISIONS.last())
            .raw(
                "capabilities",
                &session.shell.capabilities().into_declared(),
            )
            .member("clientInfo", &product);
        session.request("initialize", &params.finish()).await?;
        let initialized = wire::notification("notifications/initialized", None);
        session.send(&initialized).await?;
        if let Some(level) = session.shell.declaration().log_level {
            let params = ObjectText::new().member("level", level).finish();
            session.request("logging/setLevel", &params).await?;
        }
        Ok(session)
    }

    pub(in crate::cli) async fn call(
        &mut self,
        tool: MetaTool,
        arguments: &RawJson,
    ) -> Result<Answer, HostEnded> {
        let mut params = ObjectText::new().member("name", tool.name());
        params = params.raw("arguments", arguments);
        if let Some(token) = self.shell.progress_token() {
            let meta = ObjectText::new().raw("progressToken", &token).finish();
            params = params.raw("_meta", &meta);
        }
        self.request("tools/call", &params.finish()).await
    }

    /// Cancels the request that was sent last.
    pub(in crate::cli) async fn cancel(&mut self) {
        let params = ObjectText::new()
            .member("requestId", &self.requests)
            .finish();
        let cancelled = wire::notification("notifications/cancelled", Some(&params));
        // A host that has ended has cancelled it already.
        let _ = self.send(&cancelled).await;
    }

    async fn request(&mut self, method: &str, params: &RawJson) -> Result<Answer, HostEnded> {
        self.requests += 1;
        let request = wire::request(self.requests, method, params);
        self.send(&request).await?;
        loop {
            match self.next().await? {
                Message::Response(response) => {
                    let id = response.id.as_ref().and_then(RequestId::as_u64);
                    // Another id is that of a request that was cancelled.
                    if id == Some(self.requests) {
                        return Ok(response.answer);
                    }
                }
                Message::Request(request) => self.answer(request).await?,
                Message::Notification(notification) => self.take(&notification),
            }
        }
    }

    /// Answers a question at the terminal.
    async fn answer(&mut self, request: Request) -> Result<(), HostEnded> {
        let answer = match Question::named(&request.method) {
            Some(question) if self.shell.can_answer(question) => match request.params.as_ref() {
                Some(params) => self.shell.ask_for_host(params).await,
                None => None,
            },
            _ => None,
        };
        let frame = match answer {
            Some(Answer::Result(result)) => wire::result(&request.id, &result),
            _ => wire::error(
                Some(&request.id),
                wire::code::METHOD_NOT_FOUND,
                "The command cannot answer this",
            ),
        };
        self.send(&frame).await
    }

    fn take(&self, notification: &Notification) {
        match (&*notification.method, &notification.params) {
            ("notifications/message", Some(params)) => self.shell.log(params),
            ("notifications/progress", params) => {
                let frame = wire::notification(&notification.method, params.as_ref());
                self.shell.notify(frame);
            }
            _ => {}
        }
    }

    async fn next(&mut self) -> Result<Message, HostEnded> {
        loop {
            match self.reader.next().await {
                Ok(Some(Line::Complete(line))) => {
                    if let Ok(message) = Message::parse(&line) {
                        return Ok(message);
                    }
                }
                Ok(Some(Line::TooLong(_) | Line::TooLongEnded(_))) => {}
                Ok(None) | Err(_) => return Err(HostEnded),
            }
        }
    }

    async fn send(&mut self, frame: &Frame) -> Result<(), HostEnded> {
        let written = self.writer.write_all(&frame.to_vec()).await;
        written.map_err(|_| HostEnded)
    }
}
