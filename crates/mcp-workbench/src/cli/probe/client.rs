//! The user of a shell command as an MCP client: messages of servers appear on the terminal, and forms are filled
//! in there.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use rawjson::RawJson;
use serde_json::json;

use super::elicitation::{self, Asker};
use crate::{
    call::{
        AnswerFuture, ClientCapabilities, ClientHandle, ClientId, ClientIdentity, Declaration,
        Principal, Question, RoomFuture,
    },
    cli::terminal::{Progress, cut},
    era::Era,
    visible::visible,
    wire::Frame,
};

/// The log level that servers are asked for.
const LOG_LEVEL: &str = "info";

/// The levels of log messages that are hidden.
const UNSHOWN_LEVELS: &[&str] = &["debug"];

/// The number of characters of a message that are shown.
const SHOWN_CHARACTERS: usize = 2000;

/// The client of a command.
#[derive(Clone)]
pub(in crate::cli) struct ShellClient {
    progress: Progress,
    role: Role,
}

/// The purpose of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Lists tools only.
    Observer,
    /// Calls a tool, and shows its progress and log messages.
    Caller {
        /// True if a user is there to answer questions.
        can_be_asked: bool,
    },
}

impl ShellClient {
    /// Creates a client that only lists tools.
    pub(in crate::cli) fn observer(progress: Progress) -> Self {
        Self {
            progress,
            role: Role::Observer,
        }
    }

    /// Creates a client that calls a tool; `stdin_is_free` if stdin is not used for the arguments.
    pub(in crate::cli) fn caller(progress: Progress, stdin_is_free: bool) -> Self {
        // A question needs a terminal to show it on and one to read the answer from.
        let can_be_asked = stdin_is_free && progress.is_seen() && io::stdin().is_terminal();
        Self {
            progress,
            role: Role::Caller { can_be_asked },
        }
    }

    /// Asks a question that the host passes on: of a server, or of its own.
    pub(in crate::cli) fn ask_for_host(&self, params: &RawJson) -> AnswerFuture {
        let (progress, params) = (self.progress.clone(), params.clone());
        Box::pin(elicitation::ask(progress, params, Asker::Host))
    }
}

impl ClientHandle for ShellClient {
    fn id(&self) -> ClientId {
        // The command is the only client of its workbench.
        ClientId(0)
    }

    fn principal(&self) -> Principal {
        Principal::Local
    }

    fn identity(&self) -> Arc<ClientIdentity> {
        Arc::new(ClientIdentity {
            name: Some("mcp-workbench call".into()),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        })
    }

    fn era(&self) -> Era {
        Era::Legacy
    }

    fn declaration(&self) -> Arc<Declaration> {
        let declared = match self.role {
            // Some servers list a tool only for clients that it could ask. An observer declares everything, because a tool
            // that is missing from the first list would be reported as new as soon as a client sees it.
            Role::Observer => {
                json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
            }
            Role::Caller { can_be_asked: true } => json!({ "elicitation": { "form": {} } }),
            Role::Caller {
                can_be_asked: false,
            } => json!({}),
        };
        Arc::new(Declaration {
            capabilities: ClientCapabilities::of(Some(RawJson::of(&declared))),
            log_level: (self.role != Role::Observer).then_some(LOG_LEVEL),
        })
    }

    fn can_answer(&self, question: Question) -> bool {
        let can_be_asked = self.role == Role::Caller { can_be_asked: true };
        can_be_asked && question == Question::Elicitation
    }

    fn progress_token(&self) -> Option<RawJson> {
        // Any token is unique, because a command makes one call at a time.
        (self.role != Role::Observer).then(|| RawJson::of(&0))
    }

    fn notify(&self, frame: Frame) {
        let message = RawJson::parse(&frame.to_vec().into()).ok();
        let params = message.and_then(|message| message.member("params"));
        if let Some(params) = params {
            self.progress.note(&progress_words(&params));
        }
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        Arc::new(self.clone())
    }

    fn is_full(&self) -> bool {
        false
    }

    fn room(&self) -> RoomFuture {
        Box::pin(std::future::ready(()))
    }

    fn log(&self, params: &RawJson) {
        if self.role != Role::Observer
            && let Some(words) = log_words(params)
        {
            self.progress.say(&words);
        }
    }

    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture {
        match (question, params) {
            (Question::Elicitation, Some(params)) => {
                let (progress, params) = (self.progress.clone(), params.clone());
                Box::pin(elicitation::ask(progress, params, Asker::Server))
            }
            _ => Box::pin(std::future::ready(None)),
        }
    }

    fn ask_user(&self, params: &RawJson) -> AnswerFuture {
        let (progress, params) = (self.progress.clone(), params.clone());
        Box::pin(elicitation::ask(progress, params, Asker::Workbench))
    }
}

/// Formats a progress notification: `12 of 40, reading`.
fn progress_words(params: &RawJson) -> String {
    let number = |name: &str| params.member(name).map(|it| it.as_str().to_owned());
    let mut words = number("progress").unwrap_or_default();
    if let Some(total) = number("total") {
        words.push_str(&format!(" of {total}"));
    }
    let message = params.member("message");
    if let Some(message) = message.as_ref().and_then(RawJson::as_text) {
        words.push_str(&format!(", {}", visible(&message)));
    }
    cut(&visible(&words), SHOWN_CHARACTERS)
}

/// Formats a log message: `warning (db): it is late`. Returns `None` if its level is hidden.
fn log_words(params: &RawJson) -> Option<String> {
    let level = params.member("level")?;
    let level = level.as_text()?;
    if UNSHOWN_LEVELS.contains(&level.as_ref()) {
        return None;
    }
    let logger = params
        .member("logger")
        .and_then(|it| Some(format!(" ({})", it.as_text()?)))
        .unwrap_or_default();
    let data = params.member("data")?;
    let data = data.as_text().unwrap_or_else(|| data.as_str().into());
    let words = format!("{level}{logger}: {data}");
    Some(cut(&visible(&words), SHOWN_CHARACTERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(&text.to_owned().into()).unwrap()
    }

    #[test]
    fn progress_is_described_in_words() {
        let cases = [
            (r#"{"progress":3}"#, "3"),
            (
                r#"{"progress":3,"total":4.5,"message":"a\u001bb"}"#,
                "3 of 4.5, a⟦U+001B⟧b",
            ),
        ];
        for (params, words) in cases {
            assert_eq!(progress_words(&json(params)), words);
        }
    }

    #[test]
    fn log_messages_are_formatted() {
        let cases = [
            (r#"{"level":"info","data":"hello"}"#, Some("info: hello")),
            (
                r#"{"level":"error","logger":"db","data":{"a":1}}"#,
                Some(r#"error (db): {"a":1}"#),
            ),
            (r#"{"level":"debug","data":"x"}"#, None),
            (r#"{"data":"x"}"#, None),
        ];
        for (params, words) in cases {
            assert_eq!(log_words(&json(params)).as_deref(), words, "{params}");
        }
    }
}
