//! How a server is met: with `initialize` where it is known to be legacy, with `server/discover` where it is
//! known to be modern, and where nothing is known with the question first and the handshake after it.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    downstream::{
        error::{ConnectError, HttpFault, StartPhase},
        protocol::{
            conversation::{Conversation, refused},
            dialect::{Dialect, own_identity},
        },
        verdicts::ServerIdentity,
    },
    era::{Era, MODERN_REVISION, SERVER_INFO, UNSUPPORTED_VERSION, is_modern_code},
    wire::{Answer, ObjectText, RawJson},
};

/// The newest revision with a handshake. An older answer is accepted, as nothing that we use differs.
const LEGACY_REVISION: &str = "2025-11-25";

/// A server that has told how it speaks.
pub(crate) struct Met {
    pub(crate) era: Era,
    /// What it said of itself: the result of `initialize` or of `server/discover`.
    pub(crate) said: RawJson,
    /// How certain it is that it speaks so.
    pub(crate) certainty: Certainty,
}

/// How certain it is how a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It has shown it.
    Shown,
    /// Something stood in the way of the question: another time it may answer otherwise.
    Guessed,
}

/// What came of meeting a server of which nothing is known.
pub(crate) enum Probed {
    /// It is met.
    Met(Met),
    /// It has ended because of a question that it does not know.
    Ended,
    /// It has refused the handshake, and was not heard on the question.
    Unclear(ConnectError),
}

impl Met {
    /// What the server calls itself.
    pub(crate) fn identity(&self) -> ServerIdentity {
        let info = match self.era {
            Era::Legacy => self.said.member("serverInfo"),
            Era::Modern => {
                let meta = self.said.member("_meta");
                meta.and_then(|meta| meta.member(SERVER_INFO))
            }
        };
        let text = |name: &str| {
            let value = info.as_ref()?.member(name)?;
            Some(value.as_text()?.into_owned())
        };
        ServerIdentity::new(text("name").as_deref(), text("version").as_deref())
    }
}

impl Conversation<'_> {
    /// Meets a server that is known to be legacy.
    pub(crate) async fn initialize(&mut self) -> Result<Met, ConnectError> {
        self.initialize_or_hear(None).await
    }

    /// Meets a server that is known to be modern.
    pub(crate) async fn discover(&mut self) -> Result<Met, ConnectError> {
        let phase = StartPhase::Discover;
        self.speak(Dialect::modern(None, self.asks.has_roots()));
        let answer = self.request(phase, &ObjectText::new().finish()).await?;
        match modern_introduction(&answer) {
            Some(said) => Ok(self.met_modern(said)),
            None => Err(refused(phase, &answer, &self.link.secrets())),
        }
    }

    /// Meets a server that is not known to be legacy: after so long a silence it is spoken to in both ways, and
    /// what it answers first decides.
    pub(crate) async fn probe(&mut self, patience: Duration) -> Result<Probed, ConnectError> {
        if self.link.fixed_era() == Some(Era::Legacy) {
            return self.initialize().await.map(Probed::Met);
        }
        let phase = StartPhase::Discover;
        self.speak(Dialect::modern(None, self.asks.has_roots()));
        let probe = self.send(phase, &ObjectText::new().finish());
        let answer = timeout(patience, self.answer(phase, probe, None)).await;
        let mut wants_access = None;
        let (unanswered, certainty) = match answer {
            Ok(Ok((_, answer))) => match modern_introduction(&answer) {
                Some(said) => return Ok(Probed::Met(self.met_modern(said))),
                None => (None, Certainty::Shown),
            },
            Ok(Err(ConnectError::Exited { .. })) => return Ok(Probed::Ended),
            Ok(Err(error)) if !is_refusal(&error) => return Err(error),
            Ok(Err(error)) => {
                let certainty = shown_by(&error);
                wants_access = Some(error).filter(is_about_access);
                (None, certainty)
            }
            // A process that is silent will be so again; a remote server has never a reason to be.
            Err(_) if self.link.is_remote() => (Some(probe), Certainty::Guessed),
            Err(_) => (Some(probe), Certainty::Shown),
        };
        match self.initialize_or_hear(unanswered).await {
            Ok(met) if met.era == Era::Legacy => Ok(Probed::Met(Met { certainty, ..met })),
            // It was slow to read the question.
            Err(ConnectError::Exited { .. }) if unanswered.is_some() => Ok(Probed::Ended),
            Err(error) if unanswered.is_some() && is_refusal(&error) => Ok(Probed::Unclear(error)),
            // A modern server may let the handshake pass without a token, only to say that it does not know it.
            Err(error) => Err(wants_access.filter(|_| is_refusal(&error)).unwrap_or(error)),
            met => met.map(Probed::Met),
        }
    }

    /// The handshake, unless a question that was not answered in time is answered after all and decides it.
    async fn initialize_or_hear(&mut self, mut probe: Option<u64>) -> Result<Met, ConnectError> {
        self.speak(Dialect::LEGACY);
        let params = ObjectText::new()
            .member("protocolVersion", LEGACY_REVISION)
            .raw("capabilities", &self.asks.announced(self.client))
            .raw("clientInfo", &own_identity())
            .finish();
        let phase = StartPhase::Initialize;
        let id = self.send(phase, &params);
        let answer = loop {
            let (answered, answer) = self.answer(phase, id, probe).await?;
            if answered == id {
                break answer;
            }
            // A server that was slow to come up: it has been asked both, and says now what it is.
            probe = None;
            if let Some(said) = modern_introduction(&answer) {
                return Ok(self.met_modern(said));
            }
        };
        let Answer::Result(said) = answer else {
            return Err(refused(phase, &answer, &self.link.secrets()));
        };
        let version = said.member("protocolVersion");
        let Some(version) = version.and_then(|it| Some(it.as_text()?.into_owned())) else {
            return Err(ConnectError::InvalidAnswer { phase });
        };
        self.link.initialized(&version);
        Ok(Met {
            era: Era::Legacy,
            said,
            certainty: Certainty::Shown,
        })
    }

    fn met_modern(&mut self, said: RawJson) -> Met {
        self.speak(Dialect::modern(Some(&said), self.asks.has_roots()));
        Met {
            era: Era::Modern,
            said,
            certainty: Certainty::Shown,
        }
    }
}

/// Whether a server may simply not have understood: then it is spoken to in the other way. One that cannot be
/// reached has not.
fn is_refusal(error: &ConnectError) -> bool {
    match error {
        ConnectError::Http { fault } => !matches!(fault, HttpFault::Unreachable { .. }),
        ConnectError::InvalidAnswer { .. } | ConnectError::Refused { .. } => true,
        _ => false,
    }
}

/// Whether the failure of the question shows how the server speaks, or has passed another time.
fn shown_by(error: &ConnectError) -> Certainty {
    let may_pass = matches!(error, ConnectError::Http { fault } if fault.may_pass());
    if may_pass || is_about_access(error) {
        Certainty::Guessed
    } else {
        Certainty::Shown
    }
}

/// Whether the server wants somebody who may ask it.
fn is_about_access(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Http { fault } if fault.is_about_access())
}

/// What a modern server says of itself in its answer to `server/discover`; nothing if the answer is not that of a
/// modern server which speaks our revision. An error that only modern servers have shows one that says nothing.
fn modern_introduction(answer: &Answer) -> Option<RawJson> {
    match answer {
        Answer::Result(said) => {
            names_ours(&said.member("supportedVersions")?).then(|| said.clone())
        }
        Answer::Error(error) if is_modern_code(error) => {
            let supported = error.member("data").and_then(|it| it.member("supported"));
            let is_version = error_is(error, UNSUPPORTED_VERSION);
            let ours = !is_version || supported.is_some_and(|it| names_ours(&it));
            ours.then(|| ObjectText::new().finish())
        }
        Answer::Error(_) | Answer::Invalid => None,
    }
}

fn names_ours(versions: &RawJson) -> bool {
    let versions = versions.elements().unwrap_or_default();
    versions
        .iter()
        .any(|version| version.as_text().is_some_and(|it| it == MODERN_REVISION))
}

fn error_is(error: &RawJson, code: i64) -> bool {
    let given = error.member("code");
    given.is_some_and(|given| given.as_str() == code.to_string())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn only_modern_answers_make_a_server_modern() {
        let json =
            |text: &'static str| RawJson::parse(&Bytes::from_static(text.as_bytes())).unwrap();
        let results = [
            (r#"{"supportedVersions":["2026-07-28"]}"#, true),
            (
                r#"{"supportedVersions":["2025-11-25","2026-07-28"],"x":1}"#,
                true,
            ),
            (r#"{"supportedVersions":["2025-11-25"]}"#, false),
            (r#"{"supportedVersions":"2026-07-28"}"#, false),
            (r#"{"protocolVersion":"2025-11-25"}"#, false),
        ];
        for (result, modern) in results {
            let answer = Answer::Result(json(result));
            assert_eq!(modern_introduction(&answer).is_some(), modern, "{result}");
        }
        let errors = [
            (r#"{"code":-32020,"message":""}"#, true),
            (r#"{"code":-32021,"message":""}"#, true),
            (
                r#"{"code":-32022,"message":"","data":{"supported":["2026-07-28"]}}"#,
                true,
            ),
            (
                r#"{"code":-32022,"message":"","data":{"supported":["2025-11-25"]}}"#,
                false,
            ),
            (r#"{"code":-32022,"message":""}"#, false),
            (r#"{"code":-32601,"message":""}"#, false),
            (r#"{"code":-32602,"message":""}"#, false),
            (r#"{"code":-32000,"message":""}"#, false),
        ];
        for (error, modern) in errors {
            let answer = Answer::Error(json(error));
            assert_eq!(modern_introduction(&answer).is_some(), modern, "{error}");
        }
    }
}
