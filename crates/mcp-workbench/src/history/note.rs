//! Notes in words on events other than calls.

use std::time::SystemTime;

use ident::{ServerIdentifier, ToolIdentifier};
use serde::Serialize;

use crate::{
    audit::redact_and_cut,
    config::Secrets,
    era::Era,
    events::{ApprovalState, Event, QuestionState, ServerPhase, Side},
    moment::moment,
    visible::visible,
};

const MAX_CHARACTERS: usize = 500;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Note {
    time: String,
    text: String,
}

impl Note {
    /// Returns the note about an event, unless it is about a call.
    pub(super) fn of(event: &Event<'_>, secrets: &Secrets) -> Option<Self> {
        let text = visible(&text(event)?).into_owned();
        Some(Self {
            time: moment(SystemTime::now()),
            text: redact_and_cut(text.into(), secrets, MAX_CHARACTERS).into_owned(),
        })
    }
}

fn text(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::Server(change) => {
            let word = match change.phase {
                ServerPhase::Starting => "is starting",
                ServerPhase::Up => "is up",
                ServerPhase::Resting => "has ended",
                ServerPhase::Failed => "failed to start",
            };
            let reason = change.reason.as_deref().map(|it| format!(": {it}"));
            format!(
                "{} {word}{}",
                server(&change.server),
                reason.unwrap_or_default()
            )
        }
        Event::Question(asked) => {
            let state = match asked.state {
                QuestionState::Asked => "asks its client",
                QuestionState::Answered => "got the answer of its client",
                QuestionState::Unanswered => "got no answer of its client",
            };
            format!(
                "{} {state}: {}",
                server(&asked.server),
                asked.question.method()
            )
        }
        Event::Approval(change) => {
            let state = match change.state {
                ApprovalState::Waiting => "waits for a decision",
                ApprovalState::Granted => "is allowed to run",
                ApprovalState::Refused => "is not allowed to run",
            };
            format!("{} {state}", tool(&change.tool))
        }
        Event::Trust(change) if change.withheld == 0 && change.notices.is_empty() => {
            format!("{}: all tools are approved", server(&change.server))
        }
        Event::Trust(change) => {
            let withheld = match change.withheld {
                0 => None,
                1 => Some("1 tool is withheld until you approve it".to_owned()),
                count => Some(format!("{count} tools are withheld until you approve them")),
            };
            let words: Vec<_> = withheld.into_iter().chain(change.notices.clone()).collect();
            format!("{}: {}", server(&change.server), words.join("; "))
        }
        Event::Budget(cut) => {
            let (tool, bytes, kept) = (tool(&cut.tool), cut.bytes, cut.kept_bytes);
            format!("a result of {tool} was cut from {bytes} to {kept} bytes")
        }
        Event::Session(ended) => {
            let era = match ended.era {
                Era::Legacy => "legacy",
                Era::Modern => "modern",
            };
            let whom = match (ended.side, &ended.server) {
                (Side::Server, Some(place)) => server(place),
                _ => "a client".to_owned(),
            };
            let seconds = ended.duration.as_secs();
            let error = ended.error.map(|it| format!(": {it}")).unwrap_or_default();
            format!("a {era} session with {whom} ended after {seconds} s{error}")
        }
        Event::OperationBegan(_)
        | Event::OperationEnded(_)
        | Event::HopBegan(_)
        | Event::HopEnded(_) => return None,
    })
}

fn server(place: &ServerIdentifier) -> String {
    format!("{}/{}", place.toolbox, place.server)
}

fn tool(tool: &ToolIdentifier) -> String {
    format!("{}/{}/{}", tool.toolbox, tool.server, tool.tool)
}
