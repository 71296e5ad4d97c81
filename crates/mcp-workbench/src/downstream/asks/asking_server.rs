//! The server behind a question. A user who is asked something sees only the client, so the message of a relayed
//! elicitation begins with a line that names the server. A server can write such a line too, but never before ours.
//! An elicitation that sends the user to an address is relayed only if that is a web address.

use rawjson::{Insertion, Kind, ObjectText, RawJson};
use thiserror::Error;

use crate::{
    call::Question,
    downstream::{error::CallError, supervisor::adapt::Entry},
    era::INPUT_REQUESTS,
    visible::{is_unseen, visible_name},
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
                visible_name(entry.server.name.as_str()),
                visible_name(entry.toolbox.as_str())
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
        let asked = values_named(result, INPUT_REQUESTS);
        for request in asked
            .iter()
            .flat_map(|asked| asked.members().unwrap_or_default())
        {
            let methods = values_named(&request.value, "method");
            let is_elicitation = methods
                .iter()
                .any(|it| it.as_text().as_deref() == Some(Question::Elicitation.method()));
            if is_elicitation {
                for params in values_named(&request.value, "params") {
                    self.add(result, &params, &mut insertions)?;
                }
            }
        }
        // Inserted into the text of the whole result, so that all other bytes stay as they were sent.
        Ok(result.with_insertions(insertions))
    }

    /// Returns an error that sends the user to addresses as the client gets it.
    pub(crate) fn error(&self, error: &RawJson) -> Result<RawJson, NotRelayed> {
        let mut insertions = Vec::new();
        for elicitation in elicitations(error) {
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
        if values_named(params, "url").iter().any(|url| !is_web(url)) {
            return Err(NotRelayed::Address);
        }
        let Some(line) = &self.line else {
            return Ok(());
        };
        let mut has_message = false;
        for message in values_named(params, "message") {
            if message.kind() != Kind::String {
                // Without the line the user would not see who asks.
                return Err(NotRelayed::Message);
            }
            has_message = true;
            // Behind the opening quote, so that nothing of the server comes before the line.
            insertions.push(whole.insertion(&message, 1, line.clone()));
        }
        // A form without a message would be shown without a word about its server.
        if !has_message {
            let comma = if members.is_empty() { "" } else { "," };
            let message = format!(r#"{comma}"message":"{line}""#);
            let end = params.as_bytes().len() - 1;
            insertions.push(whole.insertion(params, end, message));
        }
        Ok(())
    }
}

/// Returns true if an error sends the user to addresses. The code of the error does not count: there are many ways to
/// write a number, and a client may ignore it.
pub(crate) fn has_elicitations(error: &RawJson) -> bool {
    !elicitations(error).is_empty()
}

fn elicitations(error: &RawJson) -> Vec<RawJson> {
    let data = values_named(error, "data").into_iter();
    let lists = data.flat_map(|data| values_named(&data, "elicitations"));
    lists
        .flat_map(|list| list.elements().unwrap_or_default())
        .collect()
}

/// Returns the values of all members that a client may read as `name`. Of duplicates, a client may read either. Decoders
/// such as that of Go ignore the case of names, by the rules of Unicode: `meſſage` is `message`.
fn values_named(object: &RawJson, name: &str) -> Vec<RawJson> {
    let name = name.to_uppercase();
    let members = object.members().unwrap_or_default().into_iter();
    let named = members.filter(|it| it.key.to_uppercase() == name);
    named.map(|it| it.value).collect()
}

/// Returns true if an address leads to a web page, and not to a file or a script. An address with spaces or invisible
/// characters is not one, but some programs open it.
fn is_web(url: &RawJson) -> bool {
    url.as_text().is_some_and(|url| {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|it| it.eq_ignore_ascii_case("http") || it.eq_ignore_ascii_case("https"))
            && !url.chars().any(|it| it.is_whitespace() || is_unseen(it))
    })
}
