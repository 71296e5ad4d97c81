//! Parses the workbench's lines as events.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    history::{Answer, EchoState, Event, Outcome},
    identity::{Id, Nonce},
    outgoing::payload,
};

/// The error code of a line that is not JSON.
const PARSE_ERROR: i64 = -32700;

/// How much of a stray line is shown.
const STRAY_CHARACTERS: usize = 300;

#[derive(Deserialize)]
struct Line<'a> {
    jsonrpc: &'a str,
    id: Option<Value>,
    method: Option<String>,
    params: Option<Progress>,
    #[serde(borrow)]
    result: Option<ToolResult<'a>>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: Value,
    progress: u64,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
}

/// The parts of a tool's result that matter; other results have none of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(borrow)]
    structured_content: Option<Echo<'a>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "mcp-workbench/error")]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: Box<str>,
    outcome: Option<WireOutcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireOutcome {
    NotSent,
    Rejected,
    Unknown,
}

/// The parameters of a call, as its server got them.
#[derive(Deserialize)]
struct Echo<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: EchoArguments<'a>,
}

#[derive(Deserialize)]
struct EchoArguments<'a> {
    nonce: u64,
    tool: &'a str,
    length: usize,
    #[serde(borrow)]
    payload: Cow<'a, str>,
}

pub(crate) fn event(line: &[u8]) -> Event {
    let read = serde_json::from_slice::<Line>(line);
    let event = read
        .ok()
        .filter(|it| it.jsonrpc == "2.0")
        .and_then(read_line);
    event.unwrap_or_else(|| {
        let line = String::from_utf8_lossy(line);
        Event::Stray(line.chars().take(STRAY_CHARACTERS).collect())
    })
}

fn read_line(line: Line<'_>) -> Option<Event> {
    match (line.method.as_deref(), line.id, line.result, line.error) {
        (Some("notifications/progress"), None, None, None) => {
            let params = line.params?;
            Some(Event::Progress {
                call: Nonce::from_token(&params.progress_token)?,
                value: params.progress,
            })
        }
        (None, Some(id), Some(result), None) => Some(Event::Answered {
            id: Id::from_json(&id)?,
            answer: read_result(result),
        }),
        (None, Some(id), None, Some(error)) => Some(Event::Answered {
            id: Id::from_json(&id)?,
            answer: Answer::RpcError(error.code),
        }),
        (None, None, None, Some(error)) if error.code == PARSE_ERROR => Some(Event::GarbageRefused),
        _ => None,
    }
}

fn read_result(result: ToolResult<'_>) -> Answer {
    if let Some(failure) = result.meta.and_then(|meta| meta.error) {
        return Answer::Failed {
            code: failure.code,
            outcome: match failure.outcome {
                Some(WireOutcome::NotSent) => Outcome::NotSent,
                Some(WireOutcome::Rejected) => Outcome::Rejected,
                Some(WireOutcome::Unknown) => Outcome::Unknown,
                None => Outcome::Answered,
            },
        };
    }
    let Some(echo) = result.structured_content else {
        return Answer::Result;
    };
    let arguments = echo.arguments;
    let nonce = Nonce(arguments.nonce);
    let intact = echo.name == arguments.tool
        && arguments.payload == payload(nonce, arguments.length).as_str();
    let state = if intact {
        EchoState::Intact
    } else {
        EchoState::Damaged
    };
    Answer::Echo { nonce, state }
}
