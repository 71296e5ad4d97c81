//! The identity that the last modern client reported. Modern clients describe themselves in every request, almost
//! always with the same text, which is therefore read once.

use std::sync::{Arc, Mutex};

use rawjson::RawJson;

use crate::{call::ClientIdentity, sync::lock};

/// The longest description that is remembered.
const MAX_REMEMBERED: usize = 1024;

/// The last description of a client, and its identity.
#[derive(Default)]
pub(super) struct KnownClient(Mutex<Option<(RawJson, Arc<ClientIdentity>)>>);

impl KnownClient {
    /// Returns the identity that a `clientInfo` describes.
    pub(super) fn identity(&self, info: &RawJson) -> Arc<ClientIdentity> {
        let mut known = lock(&self.0);
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
    use super::*;

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
