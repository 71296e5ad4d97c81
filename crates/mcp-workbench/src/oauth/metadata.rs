//! The metadata of an authorization server (RFC 8414, OIDC discovery). Fields are read leniently: a field of
//! an unexpected type counts as absent.

use serde_json::{Map, Value, json};
use url::Url;

/// The members of a metadata document.
pub(super) struct Metadata(Map<String, Value>);

impl Metadata {
    /// Parses a document. Returns `None` if it does not describe an authorization server that issues tokens.
    pub(super) fn parse(document: &[u8]) -> Option<Self> {
        let metadata = Self(serde_json::from_slice(document).ok()?);
        metadata.text("token_endpoint")?;
        Some(metadata)
    }

    /// Returns the default endpoints that revision 2025-03-26 defines for a server without metadata.
    pub(super) fn guess(server: &Url) -> Self {
        let at = |path: &str| {
            let mut url = server.clone();
            url.set_query(None);
            url.set_path(path);
            Value::from(String::from(url))
        };
        let endpoints = [
            ("authorization_endpoint", at("/authorize")),
            ("token_endpoint", at("/token")),
            ("registration_endpoint", at("/register")),
        ]
        .map(|(name, url)| (name.to_owned(), url));
        Self(endpoints.into_iter().collect())
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.as_str()
    }

    pub(super) fn flag(&self, field: &str) -> bool {
        self.0.get(field) == Some(&json!(true))
    }

    /// Returns true if a list has a word, and `None` if there is no such list.
    pub(super) fn lists(&self, field: &str, word: &str) -> Option<bool> {
        let list = self.0.get(field)?.as_array()?;
        Some(list.iter().any(|it| it == word))
    }
}
