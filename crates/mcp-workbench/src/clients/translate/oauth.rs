//! Translates the OAuth settings of a client's entry, for servers that require a registered client.

use serde_json::{Map, Value, json};

use super::{super::fields::Fields, Translation, literals};

const OAUTH_KEYS: [&str; 2] = ["oauth", "auth"];
/// Our keys and the clients' spellings.
const CREDENTIAL_KEYS: [(&str, &[&str]); 2] = [
    ("clientId", &["clientId", "client_id", "CLIENT_ID"]),
    (
        "clientSecret",
        &["clientSecret", "client_secret", "CLIENT_SECRET"],
    ),
];

impl Translation<'_> {
    /// Translates the client credentials, scopes and callback port. Everything else is discovered.
    pub(super) fn oauth(&mut self, fields: Fields<'_>) {
        let Some(theirs) = OAUTH_KEYS.iter().find_map(|key| fields.inner(key)) else {
            if fields.first(&OAUTH_KEYS) == Some(&json!(false)) {
                self.entry.insert("oauth".into(), false.into());
            }
            return;
        };
        let mut ours = Map::new();
        for (key, spellings) in CREDENTIAL_KEYS {
            if let Some(text) = theirs.text(spellings) {
                let text = self.text(text, &format!("oauth.{key}"));
                ours.insert(key.into(), text.into());
            }
        }
        let scopes = [theirs, fields].into_iter().find_map(scopes);
        if let Some(scopes) = scopes {
            ours.insert("scopes".into(), scopes);
        }
        if let Some(port) = theirs.first(&["callbackPort"]).and_then(Value::as_u64) {
            ours.insert("callbackPort".into(), port.into());
        }
        // A secret is useless without its client id.
        if !ours.is_empty() && (ours.contains_key("clientId") || !ours.contains_key("clientSecret"))
        {
            self.entry.insert("oauth".into(), ours.into());
        }
    }
}

/// Returns the scopes, from a list or from words.
fn scopes(fields: Fields<'_>) -> Option<Value> {
    let words = fields.text(&["scope", "scopes"]);
    let mut scopes = literals(words.into_iter().flat_map(str::split_whitespace));
    let listed = fields.texts(&["scopes", "scope"]);
    scopes.extend(literals(listed.iter().map(AsRef::as_ref)));
    (!scopes.is_empty()).then(|| scopes.into())
}
