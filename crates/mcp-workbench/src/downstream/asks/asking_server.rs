//! The server behind a question. A user who is asked something sees only the client, so the message of a relayed
//! elicitation begins with a line that names the server. A server can write such a line too, but never before ours.
//! An elicitation that sends the user to an address is relayed only if that is a web address.

use rawjson::{Insertion, Kind, ObjectText, RawJson};
use thiserror::Error;

use crate::{
    call::Question,
    downstream::{error::CallError, supervisor::adapt::Entry},
    era::INPUT_REQUESTS,
    visible::visible,
    wire::code,
};

#[derive(Debug, Clone)]
pub(crate) struct AskingServer {
    /// The line that names the server, as JSON text without quotes; `None` if questions are relayed unchanged.
    line: Option<String>,
}

/// The reason why a question is not relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum NotRelayed {
    /// It would send the user to something other than a web page.
    #[error("url: an elicitation may only have an http or https address")]
    Address,
    /// It has no message to put the line in front of.
    #[error("message: Expected string")]
    Message,
}

impl From<NotRelayed> for CallError {
    fn from(reason: NotRelayed) -> Self {
        Self::refusal(code::INVALID_PARAMS, &reason.to_string(), None)
    }
}

impl AskingServer {
    /// Creates the line for the server of an entry, unless the configuration turns it off.
    pub(crate) fn of(entry: &Entry) -> Self {
        let line = entry.names_asker.then(|| {
            let line = format!(
                "Question from server '{}' in toolbox '{}':\n",
                visible(entry.server.name.as_str()),
                visible(entry.toolbox.as_str())
            );
            let quoted = RawJson::of(&line);
            let quoted = quoted.as_str();
            quoted[1..quoted.len() - 1].to_owned()
        });
        Self { line }
    }

    /// Returns the parameters of a question as the client gets them.
    pub(crate) fn params(
        &self,
        question: Question,
        params: Option<&RawJson>,
    ) -> Result<Option<RawJson>, NotRelayed> {
        if question != Question::Elicitation {
            return Ok(params.cloned());
        }
        let nothing = ObjectText::new().finish();
        let Some(params) = params.or(self.line.as_ref().map(|_| &nothing)) else {
            return Ok(None);
        };
        let mut insertions = Vec::new();
        self.add(params, params, &mut insertions)?;
        Ok(Some(params.with_insertions(insertions)))
    }

    /// Returns a result of a modern server, which may ask something, as the client gets it.
    pub(crate) fn result(&self, result: &RawJson) -> Result<RawJson, NotRelayed> {
        let mut insertions = Vec::new();
        let members = result.members().unwrap_or_default();
        let asked = members.iter().filter(|it| it.key == INPUT_REQUESTS);
        for request in asked.flat_map(|asked| asked.value.members().unwrap_or_default()) {
            let parts = request.value.members().unwrap_or_default();
            let is_elicitation = parts.iter().any(|part| {
                let method = (part.key == "method").then(|| part.value.as_text());
                method.flatten().as_deref() == Some(Question::Elicitation.method())
            });
            for params in parts
                .iter()
                .filter(|it| is_elicitation && it.key == "params")
            {
                self.add(result, &params.value, &mut insertions)?;
            }
        }
        Ok(result.with_insertions(insertions))
    }

    /// Returns an error that sends the user to addresses as the client gets it.
    pub(crate) fn error(&self, error: &RawJson) -> Result<RawJson, NotRelayed> {
        let mut insertions = Vec::new();
        let data = error.member("data");
        let wanted = data.and_then(|data| data.member("elicitations")?.elements());
        for elicitation in wanted.unwrap_or_default() {
            self.add(error, &elicitation, &mut insertions)?;
        }
        Ok(error.with_insertions(insertions))
    }

    /// Checks the parameters of an elicitation and adds the insertions for the text that contains them.
    fn add(
        &self,
        whole: &RawJson,
        params: &RawJson,
        insertions: &mut Vec<Insertion>,
    ) -> Result<(), NotRelayed> {
        let Some(members) = params.members() else {
            return Ok(());
        };
        if members
            .iter()
            .any(|it| it.key == "url" && !is_web(&it.value))
        {
            return Err(NotRelayed::Address);
        }
        let Some(line) = &self.line else {
            return Ok(());
        };
        let mut has_message = false;
        // If there are duplicate messages, a client may show either.
        for message in members.iter().filter(|it| it.key == "message") {
            if message.value.kind() != Kind::String {
                return Err(NotRelayed::Message);
            }
            has_message = true;
            insertions.push(whole.insertion(&message.value, 1, line.clone()));
        }
        if !has_message {
            let comma = if members.is_empty() { "" } else { "," };
            let message = format!(r#"{comma}"message":"{line}""#);
            let end = params.as_bytes().len() - 1;
            insertions.push(whole.insertion(params, end, message));
        }
        Ok(())
    }
}

/// Returns true if an address leads to a web page, and not to a file or a script.
fn is_web(url: &RawJson) -> bool {
    url.as_text().is_some_and(|url| {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|it| it.eq_ignore_ascii_case("http") || it.eq_ignore_ascii_case("https"))
    })
}
