//! Session ids that contain their session. With a configured key another replica, or the next process, continues a session
//! that it does not know: it opens the id, which is sealed for its principal, and agrees with the client again.

use rawjson::{ObjectText, RawJson};

use crate::{
    call::Principal,
    seal::{SealPurpose, Sealer},
    serve::replica::Replica,
};

/// Upper bound on the length of an id that contains its session. Clients and proxies bound the heads of requests, often to 8 KiB.
/// The session of a client that declares more stays in its process.
const MAX_ID_LENGTH: usize = 4096;
/// The parameters of `initialize` that a session consists of.
const PARTS: [&str; 3] = ["protocolVersion", "capabilities", "clientInfo"];

/// A session as its id contains it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SealedSession {
    /// The name of the session, the same in all processes.
    pub(super) name: String,
    /// The parameters of `initialize`.
    pub(super) initialize: RawJson,
}

impl SealedSession {
    /// Creates the session that a client begins with these parameters.
    pub(super) fn new(name: String, params: &RawJson) -> Self {
        let parts = PARTS
            .iter()
            .filter_map(|name| Some((*name, params.member(name)?)));
        let initialize = parts.fold(ObjectText::new(), |text, (name, value)| {
            text.raw(name, &value)
        });
        Self {
            name,
            initialize: initialize.finish().minified(),
        }
    }

    /// Returns the id that contains the session; `None` if it would be too long.
    pub(super) fn id(&self, sealer: &Sealer, principal: Principal) -> Option<String> {
        let content = ObjectText::new()
            .member("name", &self.name)
            .raw("initialize", &self.initialize)
            .finish();
        let id = sealer.hide_at(SealPurpose::Session, &place(principal), content.as_str());
        (id.len() <= MAX_ID_LENGTH).then_some(id)
    }

    /// Returns the session that an id contains, if this process has replicas and it was made for this principal.
    pub(super) fn open_at(replica: &Replica, id: &str, principal: Principal) -> Option<Self> {
        let sealer = replica.has_others().then(|| replica.sealer())?;
        Self::open(sealer, id, principal)
    }

    fn open(sealer: &Sealer, id: &str, principal: Principal) -> Option<Self> {
        if id.len() > MAX_ID_LENGTH {
            return None;
        }
        let content = sealer.reveal_at(SealPurpose::Session, &place(principal), id)?;
        let content = RawJson::parse(&content.into()).ok()?;
        Some(Self {
            name: content.member("name")?.as_text()?.into_owned(),
            initialize: content.member("initialize")?,
        })
    }
}

fn place(principal: Principal) -> String {
    principal.holder().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::SealKeys;

    fn sealer(key: &str) -> Sealer {
        Sealer::new(Some(&SealKeys::new(&key.repeat(32), None).unwrap()))
    }

    fn params(capabilities: &str) -> RawJson {
        let text = format!(
            r#"{{"protocolVersion": "2025-11-25", "capabilities": {capabilities}, "clientInfo": {{"name": "c"}}, "x": 1}}"#
        );
        RawJson::parse(&text.into()).unwrap()
    }

    #[test]
    fn an_id_opens_with_the_same_key_for_the_same_principal() {
        let session = SealedSession::new("n".into(), &params(r#"{"roots": {}}"#));
        let expected = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c"}}"#;
        assert_eq!(session.initialize.as_str(), expected);
        let owner = Principal::Holder(1);
        let id = session.id(&sealer("a"), owner).unwrap();
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(SealedSession::open(&sealer("a"), &id, owner), Some(session));
        for other in [
            Principal::Holder(2),
            Principal::Anybody,
            Principal::User([0; 16]),
        ] {
            assert_eq!(SealedSession::open(&sealer("a"), &id, other), None);
        }
        assert_eq!(SealedSession::open(&sealer("b"), &id, owner), None);
        assert_eq!(SealedSession::open(&sealer("a"), &id[1..], owner), None);
    }

    #[test]
    fn a_session_that_is_too_large_for_a_header_gets_no_such_id() {
        let large = format!(r#"{{"experimental": {{"x": "{}"}}}}"#, "x".repeat(4000));
        let session = SealedSession::new("n".into(), &params(&large));
        assert_eq!(session.id(&sealer("a"), Principal::Anybody), None);
    }
}
