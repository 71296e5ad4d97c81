//! The approval question as a form for the user, and the meaning of the answers.

use ident::{ServerIdentifier, ToolName};
use rawjson::RawJson;
use serde_json::json;

use super::refusal::{NoAnswer, NotPermitted, Reason};
use crate::visible::{visible, visible_name};

/// The number of characters of the arguments that are shown.
const SHOWN_ARGUMENTS: usize = 1500;
/// The number of characters of a name that are shown.
const SHOWN_NAME: usize = 200;

/// The field of the form.
const FIELD: &str = "decision";
const ONCE: &str = "once";
const RUN: &str = "for this run";
const SESSION: &str = "for this session";
const NO: &str = "no";

/// The answers that a user is offered besides "once" and "no".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// For the rest of the run of a script.
    pub(crate) run: bool,
    /// For the rest of the client's session.
    pub(crate) session: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approval {
    Once,
    /// All calls of the tool in this run of a script.
    Run,
    /// All calls of the tool in this session.
    Session,
}

/// Returns the parameters of the question. Text of others has a line of its own, in quotes or as JSON, without
/// characters that could disguise it.
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
    let mut answers = vec![ONCE];
    answers.extend(offer.run.then_some(RUN));
    answers.extend(offer.session.then_some(SESSION));
    answers.push(NO);
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

/// Interprets an answer. Anything but a clear yes is a no.
pub(crate) fn answer(result: &RawJson, offer: Offer) -> Result<Approval, NotPermitted> {
    let unusable = NotPermitted::Unanswered(NoAnswer::Unusable);
    let text = |value: Option<RawJson>| Some(value?.as_text()?.into_owned());
    match text(result.member("action")).as_deref() {
        // Closing the form (`cancel`) is not consent.
        Some("accept") => {}
        Some("decline" | "cancel") => return Err(NotPermitted::Refused),
        _ => return Err(unusable),
    }
    let content = result.member("content");
    let decision = text(content.and_then(|content| content.member(FIELD)));
    match decision.as_deref() {
        Some(ONCE) => Ok(Approval::Once),
        Some(RUN) if offer.run => Ok(Approval::Run),
        Some(SESSION) if offer.session => Ok(Approval::Session),
        Some(NO) => Err(NotPermitted::Refused),
        _ => Err(unusable),
    }
}

/// Cuts a text, and appends the number of characters that are not shown.
fn cut(shown: &str, most: usize) -> String {
    let length = shown.chars().count();
    if length <= most {
        return shown.to_owned();
    }
    let begin: String = shown.chars().take(most).collect();
    format!("{begin}… ({} more characters are not shown)", length - most)
}
