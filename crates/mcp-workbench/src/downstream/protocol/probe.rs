//! Detects the era of a server: sends `initialize` if it is known to be legacy, `server/discover` if it is known to
//! be modern, and otherwise `server/discover` followed by `initialize`.

use std::time::Duration;

use rawjson::{ObjectText, RawJson};

use crate::{
    alarm::timeout,
    config::Secrets,
    downstream::{
        error::{ConnectError, HttpFault, StartPhase},
        protocol::{
            conversation::{Conversation, refused},
            dialect::{Dialect, own_identity},
        },
    },
    era::{
        Era, LEGACY_REVISIONS, MODERN_REVISION, SERVER_INFO, UNSUPPORTED_VERSION, is_modern_code,
    },
    server_cache::ServerIdentity,
    wire::Answer,
};

/// The newest revision with a handshake. An older answer is accepted, as nothing that we use differs.
const NEWEST_LEGACY_REVISION: &str = LEGACY_REVISIONS[LEGACY_REVISIONS.len() - 1];

/// The most versions of a server that an error lists, and the most characters of each.
const MAX_LISTED_VERSIONS: usize = 10;
const MAX_VERSION_CHARACTERS: usize = 40;

/// A server whose era is known.
pub(crate) struct DetectedServer {
    pub(crate) era: Era,
    /// The server's description of itself: the result of `initialize` or of `server/discover`.
    pub(crate) said: RawJson,
    pub(crate) certainty: Certainty,
}

/// The certainty of a server's era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    Shown,
    /// Something prevented a clear answer; the next probe may have a different result.
    Guessed,
}

pub(crate) enum ProbeOutcome {
    Detected(DetectedServer),
    /// The server exited because of `server/discover`.
    Exited,
    /// The server refused `initialize` and did not answer `server/discover` in time.
    Unclear(ConnectError),
}

impl DetectedServer {
    /// Returns the name and version of the server.
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
    /// Connects to a server that is known to be legacy.
    pub(crate) async fn initialize(&mut self) -> Result<DetectedServer, ConnectError> {
        self.initialize_or_hear(None).await
    }

    /// Connects to a server that is known to be modern.
    pub(crate) async fn discover(&mut self) -> Result<DetectedServer, ConnectError> {
        let phase = StartPhase::Discover;
        self.speak(Dialect::modern(None, self.asks.has_roots()));
        let answer = self.request(phase, &ObjectText::new().finish()).await?;
        match DiscoverOutcome::of(&answer) {
            DiscoverOutcome::Modern(said) => Ok(self.detected_modern(said)),
            DiscoverOutcome::Legacy => Err(refused(phase, &answer, &self.link.secrets())),
            DiscoverOutcome::NoCommonVersion => {
                Err(no_common_version(&answer, &self.link.secrets()))
            }
        }
    }

    /// Connects to a server that is not known to be legacy. If it does not answer `server/discover` in time,
    /// `initialize` is sent too, and the first response decides.
    pub(crate) async fn probe(&mut self, limit: Duration) -> Result<ProbeOutcome, ConnectError> {
        if self.link.fixed_era() == Some(Era::Legacy) {
            return self.initialize().await.map(ProbeOutcome::Detected);
        }
        let phase = StartPhase::Discover;
        self.speak(Dialect::modern(None, self.asks.has_roots()));
        // A legacy server answers this with an error, or not at all, and `initialize` follows in both cases. The
        // result is remembered for days, so only what the server has shown by itself is certain.
        let probe = self.send(phase, &ObjectText::new().finish());
        let answer = timeout(limit, self.answer(phase, probe, None)).await;
        let mut wants_access = None;
        let (unanswered, certainty) = match answer {
            Ok(Ok((_, answer))) => match DiscoverOutcome::of(&answer) {
                DiscoverOutcome::Modern(said) => {
                    return Ok(ProbeOutcome::Detected(self.detected_modern(said)));
                }
                DiscoverOutcome::Legacy => (None, Certainty::Shown),
                DiscoverOutcome::NoCommonVersion => {
                    return Err(no_common_version(&answer, &self.link.secrets()));
                }
            },
            Ok(Err(ConnectError::Exited { .. })) => return Ok(ProbeOutcome::Exited),
            Ok(Err(error)) if !is_refusal(&error) => return Err(error),
            Ok(Err(error)) => {
                let certainty = shown_by(&error);
                wants_access = Some(error).filter(is_about_access);
                (None, certainty)
            }
            // A silent process will be silent next time too; a remote server has no reason to be.
            Err(_) if self.link.is_remote() => (Some(probe), Certainty::Guessed),
            Err(_) => (Some(probe), Certainty::Shown),
        };
        match self.initialize_or_hear(unanswered).await {
            Ok(detected) if detected.era == Era::Legacy => {
                Ok(ProbeOutcome::Detected(DetectedServer {
                    certainty,
                    ..detected
                }))
            }
            // It was slow to read the request.
            Err(ConnectError::Exited { .. }) if unanswered.is_some() => Ok(ProbeOutcome::Exited),
            Err(error) if unanswered.is_some() && is_refusal(&error) => {
                Ok(ProbeOutcome::Unclear(error))
            }
            // A modern server may accept `initialize` without a token, only to answer that the method is unknown.
            Err(error) => Err(wants_access.filter(|_| is_refusal(&error)).unwrap_or(error)),
            detected => detected.map(ProbeOutcome::Detected),
        }
    }

    /// Sends `initialize`. A late response to `server/discover` may still decide instead.
    async fn initialize_or_hear(
        &mut self,
        mut probe: Option<u64>,
    ) -> Result<DetectedServer, ConnectError> {
        self.speak(Dialect::LEGACY);
        let params = ObjectText::new()
            .member("protocolVersion", NEWEST_LEGACY_REVISION)
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
            // The server was slow to start; it has both requests and answers now.
            probe = None;
            match DiscoverOutcome::of(&answer) {
                DiscoverOutcome::Modern(said) => return Ok(self.detected_modern(said)),
                DiscoverOutcome::Legacy => {}
                DiscoverOutcome::NoCommonVersion => {
                    return Err(no_common_version(&answer, &self.link.secrets()));
                }
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
        Ok(DetectedServer {
            era: Era::Legacy,
            said,
            certainty: Certainty::Shown,
        })
    }

    fn detected_modern(&mut self, said: RawJson) -> DetectedServer {
        self.speak(Dialect::modern(Some(&said), self.asks.has_roots()));
        DetectedServer {
            era: Era::Modern,
            said,
            certainty: Certainty::Shown,
        }
    }
}

/// Returns true if the server may not have understood the request, so that the other era is tried. An unreachable
/// server does not count.
fn is_refusal(error: &ConnectError) -> bool {
    match error {
        ConnectError::Http { fault } => !matches!(fault, HttpFault::Unreachable { .. }),
        ConnectError::InvalidAnswer { .. } | ConnectError::Refused { .. } => true,
        _ => false,
    }
}

/// Returns how certain the era is after `server/discover` failed: a failure that may pass shows nothing.
fn shown_by(error: &ConnectError) -> Certainty {
    let may_pass = matches!(error, ConnectError::Http { fault } if fault.may_pass());
    if may_pass || is_about_access(error) {
        Certainty::Guessed
    } else {
        Certainty::Shown
    }
}

/// Returns true if the server requires authorization.
fn is_about_access(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Http { fault } if fault.is_about_access())
}

/// The meaning of an answer to `server/discover`.
#[derive(Debug, PartialEq, Eq)]
enum DiscoverOutcome {
    /// A modern server that supports our revision, and its description of itself. The description is empty if the
    /// response is an error that only modern servers send.
    Modern(RawJson),
    /// A legacy server, or one that names a legacy revision: `initialize` follows.
    Legacy,
    /// A server that supports no revision of the workbench. The specification forbids `initialize` after this.
    NoCommonVersion,
}

impl DiscoverOutcome {
    fn of(answer: &Answer) -> Self {
        let (versions, said) = match answer {
            Answer::Result(said) => match said.member("supportedVersions") {
                Some(versions) if versions.elements().is_some() => (Some(versions), said.clone()),
                // Some legacy servers answer any method with a result.
                _ => return Self::Legacy,
            },
            Answer::Error(error) if error_is(error, UNSUPPORTED_VERSION) => {
                (supported(error), ObjectText::new().finish())
            }
            Answer::Error(error) if is_modern_code(error) => {
                return Self::Modern(ObjectText::new().finish());
            }
            Answer::Error(_) | Answer::Invalid => return Self::Legacy,
        };
        let names = |revisions: &[&str]| versions.as_ref().is_some_and(|it| names(it, revisions));
        if names(&[MODERN_REVISION]) {
            Self::Modern(said)
        } else if names(&LEGACY_REVISIONS) {
            Self::Legacy
        } else {
            Self::NoCommonVersion
        }
    }
}

/// Returns the versions in an error about unsupported versions.
fn supported(error: &RawJson) -> Option<RawJson> {
    error.member("data")?.member("supported")
}

fn names(versions: &RawJson, revisions: &[&str]) -> bool {
    let versions = versions.elements().unwrap_or_default();
    versions.iter().any(|version| {
        let version = version.as_text();
        version.is_some_and(|it| revisions.contains(&it.as_ref()))
    })
}

/// Returns the error for a server that supports no revision of the workbench.
fn no_common_version(answer: &Answer, secrets: &Secrets) -> ConnectError {
    let versions = match answer {
        Answer::Result(said) => said.member("supportedVersions"),
        Answer::Error(error) => supported(error),
        Answer::Invalid => None,
    };
    let versions = versions.and_then(|it| it.elements()).unwrap_or_default();
    let theirs: Vec<String> = versions
        .iter()
        .filter_map(RawJson::as_text)
        .take(MAX_LISTED_VERSIONS)
        .map(|it| {
            secrets
                .redact(&it)
                .chars()
                .take(MAX_VERSION_CHARACTERS)
                .collect()
        })
        .collect();
    ConnectError::NoCommonVersion {
        supported: theirs,
        refusal: Box::new(refused(StartPhase::Discover, answer, secrets)),
    }
}

fn error_is(error: &RawJson, code: i64) -> bool {
    let given = error.member("code");
    given.is_some_and(|given| given.as_str() == code.to_string())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[derive(Debug, PartialEq, Eq)]
    enum Next {
        Modern,
        Legacy,
        Fail,
    }

    fn next(answer: &Answer) -> Next {
        match DiscoverOutcome::of(answer) {
            DiscoverOutcome::Modern(_) => Next::Modern,
            DiscoverOutcome::Legacy => Next::Legacy,
            DiscoverOutcome::NoCommonVersion => Next::Fail,
        }
    }

    #[test]
    fn the_versions_in_a_discover_response_decide_the_next_step() {
        let results = [
            (r#"{"supportedVersions":["2026-07-28"]}"#, Next::Modern),
            (
                r#"{"supportedVersions":["2025-11-25","2026-07-28"],"x":1}"#,
                Next::Modern,
            ),
            (
                r#"{"supportedVersions":["2027-01-01","2025-11-25"]}"#,
                Next::Legacy,
            ),
            (r#"{"supportedVersions":["2027-01-01"]}"#, Next::Fail),
            (r#"{"supportedVersions":[]}"#, Next::Fail),
            (r#"{"supportedVersions":"2026-07-28"}"#, Next::Legacy),
            (r#"{"protocolVersion":"2025-11-25"}"#, Next::Legacy),
        ];
        for (result, expected) in results {
            assert_eq!(next(&Answer::Result(json(result))), expected, "{result}");
        }
        let unsupported = |data: &str| format!(r#"{{"code":-32022,"message":""{data}}}"#);
        let errors = [
            (r#"{"code":-32020,"message":""}"#.to_owned(), Next::Modern),
            (r#"{"code":-32021,"message":""}"#.to_owned(), Next::Modern),
            (
                unsupported(r#","data":{"supported":["2026-07-28"]}"#),
                Next::Modern,
            ),
            (
                unsupported(r#","data":{"supported":["2024-11-05"]}"#),
                Next::Legacy,
            ),
            (
                unsupported(r#","data":{"supported":["2027-01-01"]}"#),
                Next::Fail,
            ),
            (unsupported(r#","data":{"supported":7}"#), Next::Fail),
            (unsupported(""), Next::Fail),
            (r#"{"code":-32601,"message":""}"#.to_owned(), Next::Legacy),
            (r#"{"code":-32602,"message":""}"#.to_owned(), Next::Legacy),
            (r#"{"code":-32000,"message":""}"#.to_owned(), Next::Legacy),
        ];
        for (error, expected) in errors {
            assert_eq!(next(&Answer::Error(json(&error))), expected, "{error}");
        }
    }
}
