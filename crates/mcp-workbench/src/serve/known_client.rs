//! The descriptions that modern clients have sent. They are part of every request and almost always have the same text,
//! which is therefore read once.

use std::sync::{Arc, Mutex, OnceLock};

use rawjson::RawJson;

use super::modern::ModernClient;
use crate::{call::ClientIdentity, era::RequestMeta, sync::lock};

/// The longest description that is remembered.
const MAX_REMEMBERED: usize = 1024;

#[derive(Default)]
pub(super) struct KnownClient {
    /// The last `clientInfo`, and its identity.
    identity: Mutex<Option<(RawJson, Arc<ClientIdentity>)>>,
    /// The first `_meta` that describes a client and nothing else. It is never replaced, so that reading it takes no lock.
    meta: OnceLock<KnownMeta>,
}

/// A `_meta` that describes a client.
pub(super) struct KnownMeta {
    pub(super) text: RawJson,
    pub(super) client: Arc<ModernClient>,
}

impl KnownClient {
    /// Returns the `_meta` that the next call probably has.
    pub(super) fn meta(&self) -> Option<&KnownMeta> {
        self.meta.get()
    }

    /// Remembers a valid `_meta` that has nothing but the description of its client, unless there is one already.
    pub(super) fn remember(&self, text: &RawJson) {
        // Nothing in such a text has to be found again: no escapes, line ends or letters that are not ASCII.
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
        let bytes = text.as_bytes();
        if self.meta.get().is_some() || bytes.len() > MAX_REMEMBERED || !bytes.iter().all(is_plain)
        {
            return;
        }
        // Read from a copy: a slice of the message would keep the whole message alive.
        let text = text.copied();
        if let Ok(client) = ModernClient::read(&mut RequestMeta::read(&text)) {
            let client = Arc::new(client);
            self.meta.get_or_init(|| KnownMeta { text, client });
        }
    }

    /// Returns the identity that a `clientInfo` describes.
    pub(super) fn identity(&self, info: &RawJson) -> Arc<ClientIdentity> {
        let mut known = lock(&self.identity);
        if let Some((text, identity)) = &*known
            && text == info
        {
            return Arc::clone(identity);
        }
        let identity = Arc::new(ClientIdentity::of(Some(info)));
        if info.as_bytes().len() <= MAX_REMEMBERED {
            // A slice of the message would keep the whole message alive.
            *known = Some((info.copied(), Arc::clone(&identity)));
        }
        identity
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_first_plain_description_is_remembered() {
        let meta = |capabilities: &str| {
            format!(
                r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
            )
        };
        let known = KnownClient::default();
        for capabilities in [
            &*format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_REMEMBERED)),
            r#"{"a":"\u0061"}"#,
            "{\"a\":\n1}",
            r#"{"a":"é"}"#,
            "7",
        ] {
            known.remember(&RawJson::trusted(meta(capabilities).into()));
            assert!(known.meta().is_none(), "{capabilities}");
        }
        for capabilities in [r#"{"a":1}"#, r#"{"a":2}"#] {
            let text = meta(capabilities);
            let message = Bytes::from(format!("[{text}]"));
            known.remember(&RawJson::trusted(message.slice(1..=text.len())));
            // Nothing that is remembered keeps the message alive.
            assert!(message.is_unique(), "{capabilities}");
            let remembered = known.meta().unwrap();
            assert_eq!(remembered.text.as_str(), meta(r#"{"a":1}"#));
            let declared = remembered.client.declaration.capabilities.clone();
            assert_eq!(declared.into_declared().as_str(), r#"{"a":1}"#);
        }
    }

    #[test]
    fn each_client_gets_its_own_identity() {
        let known = KnownClient::default();
        let long = "x".repeat(MAX_REMEMBERED);
        for name in ["a", "b", "b", &long, "b"] {
            let info = RawJson::of(&serde_json::json!({ "name": name }));
            let expected = ClientIdentity::of(Some(&info));
            assert_eq!(*known.identity(&info), expected, "{name}");
        }
    }
}
