//! A client of either era that calls the tool of a row in one of the modes.

use serde_json::json;

use super::table::{ClientEra, Mode, Row};
use crate::{
    asking_back,
    harness::{
        InputRequired, Message, ModernClient, ModernRequest, Setup, TIMEOUT, ToolResult, Workbench,
        asks, call_params, use_arguments,
    },
};

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

/// A call of the test, named by its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Before the event, for the consent.
    Before,
    /// The call during which the event happens.
    Event,
    /// The call that is checked.
    After,
    /// The call after a question that was answered with no.
    Again,
}

impl Step {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Event => "event",
            Self::After => "after",
            Self::Again => "again",
        }
    }
}

/// An answer of the user to the question whether a tool may run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Decision {
    Once,
    ForThisSession,
    No,
}

impl Decision {
    fn result(self) -> String {
        let decision = match self {
            Self::Once => "once",
            Self::ForThisSession => "for this session",
            Self::No => "no",
        };
        json!({"action": "accept", "content": {"decision": decision}}).to_string()
    }
}

/// A call that was sent.
pub(super) struct Sent {
    id: String,
    /// The request of a modern client, which repeats it with its answers.
    request: Option<ModernRequest>,
}

/// The next thing that a client hears of its call.
pub(super) enum Reply {
    Ran,
    /// A refusal with its code, or the number of a JSON-RPC error.
    Refused(String),
    Asked(Question),
}

/// A question about a call.
pub(super) enum Question {
    /// The raw id of the request.
    Legacy(String),
    Modern(InputRequired),
}

/// A workbench and its client.
pub(super) struct Client {
    workbench: Workbench,
    mode: Mode,
    era: ClientEra,
}

impl Client {
    /// Starts the workbench in a mode and opens the toolbox `dev`.
    pub(super) fn start(setup: Setup, mode: Mode, era: ClientEra) -> Self {
        let setup = match mode {
            Mode::Proxy => setup,
            Mode::Dynamic => setup.top("toolMode", json!("dynamic")),
            Mode::Native => setup
                .top("toolMode", json!("native"))
                .top("nativeToolbox", json!("dev")),
        };
        let workbench = match (era, mode) {
            (ClientEra::Legacy, Mode::Proxy | Mode::Dynamic) => {
                asking_back::connect(setup, &json!({"elicitation": {}}))
            }
            (ClientEra::Legacy, Mode::Native) => {
                let mut workbench = setup.start();
                let params = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"elicitation": {}},
                    "clientInfo": {"name": "it", "version": "1"},
                });
                workbench.ask("initialize", &params.to_string());
                workbench.notify("notifications/initialized", "{}");
                workbench
            }
            (ClientEra::Modern, Mode::Proxy | Mode::Dynamic) => {
                let mut workbench = setup.start();
                workbench.call_modern(&ModernRequest::open("dev").capabilities(FORMS));
                workbench
            }
            (ClientEra::Modern, Mode::Native) => {
                let mut workbench = setup.start();
                workbench.ask_modern(&ModernRequest::new("server/discover").capabilities(FORMS));
                workbench
            }
        };
        Self {
            workbench,
            mode,
            era,
        }
    }

    pub(super) fn is_native(&self) -> bool {
        self.mode == Mode::Native
    }

    /// Calls the tool of a row.
    pub(super) fn send(&mut self, row: &Row, step: Step) -> Sent {
        let (server, tool) = (row.server(), row.tool());
        let arguments = json!({"step": step.name()}).to_string();
        let (name, arguments) = match self.mode {
            Mode::Proxy => (
                "use_tool".to_owned(),
                use_arguments(["dev", &server, &tool], Some(&arguments)),
            ),
            Mode::Dynamic => (format!("dev__{server}__{tool}"), arguments),
            Mode::Native => (tool, arguments),
        };
        match self.era {
            ClientEra::Legacy => Sent {
                id: self
                    .workbench
                    .request("tools/call", &call_params(&name, &arguments)),
                request: None,
            },
            ClientEra::Modern => {
                self.send_modern(ModernRequest::call(&name, &arguments).capabilities(FORMS))
            }
        }
    }

    fn send_modern(&mut self, request: ModernRequest) -> Sent {
        Sent {
            id: self.workbench.send_modern(&request),
            request: Some(request),
        }
    }

    /// Waits until the workbench has taken everything that was sent so far.
    pub(super) fn settle(&mut self) {
        let unknown = "checks/unknown";
        match self.era {
            ClientEra::Legacy => self.workbench.ask(unknown, "{}"),
            ClientEra::Modern => self.workbench.ask_modern(&ModernRequest::new(unknown)),
        };
    }

    /// Waits for the answer to a call or for a question about it.
    pub(super) fn reply(&mut self, sent: &Sent) -> Result<Reply, String> {
        let wanted = |message: &Message| {
            message.answers(&sent.id) || message.method.as_deref() == Some("elicitation/create")
        };
        let message = self.workbench.message_within(TIMEOUT, wanted);
        let message = message.ok_or("there was no answer")?;
        if message.method.is_some() {
            let id = message.id().unwrap().to_owned();
            return Ok(Reply::Asked(Question::Legacy(id)));
        }
        if message.is_error() {
            return Ok(Reply::Refused(message.error().code.to_string()));
        }
        if asks(&message) {
            let question = InputRequired::of(&message);
            return Ok(Reply::Asked(Question::Modern(question)));
        }
        let result = ToolResult::of(&message);
        if !result.failed() {
            return Ok(Reply::Ran);
        }
        let code = &result.failure()["code"];
        Ok(Reply::Refused(code.as_str().unwrap_or_default().to_owned()))
    }

    /// Answers a question about a call, and returns the call that goes on.
    pub(super) fn decide(&mut self, sent: Sent, question: &Question, decision: Decision) -> Sent {
        let result = decision.result();
        match (question, &sent.request) {
            (Question::Modern(asked), Some(request)) => {
                let responses = asked.responses(|_, _| result.clone());
                let retry = request.retry(asked, &responses);
                self.send_modern(retry)
            }
            (Question::Modern(_), None) => panic!("a legacy client is not asked by a result"),
            (Question::Legacy(id), _) => {
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                self.workbench.send_line(&answer);
                sent
            }
        }
    }
}
