//! What a client's entry says about signing in, for servers that know the client already.

use serde_json::{Map, Value, json};

use super::{super::fields::Fields, Translation, literals};

const AROUND: [&str; 2] = ["oauth", "auth"];
/// Our names of the texts in it, and theirs.
const TEXTS: [(&str, &[&str]); 2] = [
    ("clientId", &["clientId", "client_id", "CLIENT_ID"]),
    (
        "clientSecret",
        &["clientSecret", "client_secret", "CLIENT_SECRET"],
    ),
];

impl Translation<'_> {
    /// Takes over which client the server knows, what it is asked for, and where the browser comes back to. Everything else
    /// is found out.
    pub(super) fn oauth(&mut self, fields: Fields<'_>) {
        let Some(theirs) = AROUND.iter().find_map(|key| fields.inner(key)) else {
            if fields.first(&AROUND) == Some(&json!(false)) {
                self.entry.insert("oauth".into(), false.into());
            }
            return;
        };
        let mut ours = Map::new();
        for (key, spellings) in TEXTS {
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
        // A secret without its client is of no use.
        if !ours.is_empty() && (ours.contains_key("clientId") || !ours.contains_key("clientSecret"))
        {
            self.entry.insert("oauth".into(), ours.into());
        }
    }
}

/// The scopes, as a list or as words.
fn scopes(fields: Fields<'_>) -> Option<Value> {
    let words = fields.text(&["scope", "scopes"]);
    let mut scopes = literals(words.into_iter().flat_map(str::split_whitespace));
    let listed = fields.texts(&["scopes", "scope"]);
    scopes.extend(literals(listed.iter().map(AsRef::as_ref)));
    (!scopes.is_empty()).then(|| scopes.into())
}
