//! The question whether a tool may run, as a form for the user, and what the answers mean.

use serde_json::json;

use super::refusal::{NoAnswer, NotPermitted, Reason};
use crate::{
    ident::{ServerIdentifier, ToolName},
    visible::{visible, visible_name},
    wire::RawJson,
};

/// How many characters of the arguments are shown.
const SHOWN_ARGUMENTS: usize = 1500;
/// How many characters of a name are shown.
const SHOWN_NAME: usize = 200;

/// The field of the form.
const FIELD: &str = "decision";
const ONCE: &str = "once";
const SESSION: &str = "for this session";
const NO: &str = "no";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Once,
    /// Also for as long as the client's session.
    Session,
}

/// What the user has permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    Once,
    /// All calls of the tool in this session.
    Session,
}

/// The parameters of the question. Everything that is not ours stands on a line of its own, in quotes or as JSON, and
/// without characters that could make it look otherwise.
pub(crate) fn question(
    server: &ServerIdentifier,
    tool: &ToolName,
    arguments: &RawJson,
    reason: &Reason,
    offer: Offer,
) -> RawJson {
    let message = format!(
        "MCP Workbench asks: may this tool run?\ntoolbox: '{}'\nserver: '{}'\ntool: '{}'\narguments: {}\nwhy you are \
         asked: {reason}",
        cut(&visible_name(server.toolbox.as_str()), SHOWN_NAME),
        cut(&visible_name(server.server.as_str()), SHOWN_NAME),
        cut(&visible_name(tool.as_str()), SHOWN_NAME),
        cut(&visible(arguments.minified().as_str()), SHOWN_ARGUMENTS),
    );
    let answers: &[&str] = match offer {
        Offer::Once => &[ONCE, NO],
        Offer::Session => &[ONCE, SESSION, NO],
    };
    RawJson::of(&json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                FIELD: { "type": "string", "title": "Run it?", "enum": answers },
            },
            "required": [FIELD],
        },
    }))
}

/// What an answer means. Whatever is not clearly a yes is a no.
pub(crate) fn answer(result: &RawJson, offer: Offer) -> Result<Answered, NotPermitted> {
    let unusable = NotPermitted::Unanswered(NoAnswer::Unusable);
    let text = |value: Option<RawJson>| Some(value?.as_text()?.into_owned());
    match text(result.member("action")).as_deref() {
        Some("accept") => {}
        Some("decline" | "cancel") => return Err(NotPermitted::Refused),
        _ => return Err(unusable),
    }
    let content = result.member("content");
    let decision = text(content.and_then(|content| content.member(FIELD)));
    match (decision.as_deref(), offer) {
        (Some(ONCE), _) => Ok(Answered::Once),
        (Some(SESSION), Offer::Session) => Ok(Answered::Session),
        (Some(NO), _) => Err(NotPermitted::Refused),
        _ => Err(unusable),
    }
}

/// Returns the beginning of a text, and how much is not shown.
fn cut(shown: &str, most: usize) -> String {
    let length = shown.chars().count();
    if length <= most {
        return shown.to_owned();
    }
    let begin: String = shown.chars().take(most).collect();
    format!(
        "{begin}… (and {} more characters that are not shown)",
        length - most
    )
}
