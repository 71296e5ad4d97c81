//! What a server answers to a request without a good token: where to sign in, and for which scopes.

use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// The longest that is looked at.
const MOST_BYTES: usize = 8 * 1024;
/// How many scopes are taken from one, and how long each may be.
const MOST_SCOPES: usize = 100;
const MOST_SCOPE_BYTES: usize = 256;

/// The value of a `WWW-Authenticate` header, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge(String);

impl Challenge {
    /// A challenge; none where it says nothing of bearer tokens or is too long.
    pub(crate) fn new(header: &str) -> Option<Self> {
        let is_bearer = header.to_ascii_lowercase().contains("bearer");
        (is_bearer && header.len() <= MOST_BYTES).then(|| Self(header.to_owned()))
    }

    /// The challenge of a response, from all of its headers of this name: the one that says where to sign in, if there
    /// are several.
    pub(crate) fn of<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let challenges: Vec<Self> = headers.filter_map(Self::new).collect();
        let is_pointed = |it: &&Self| it.0.to_ascii_lowercase().contains("resource_metadata");
        let pointed = challenges.iter().find(is_pointed);
        pointed.or(challenges.first()).cloned()
    }

    /// Whether the token is good but not for this request.
    pub(crate) fn is_insufficient_scope(&self) -> bool {
        self.parameters().is_insufficient_scope()
    }

    /// The scopes that it names.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let scope = self.parameters().scope.unwrap_or_default();
        let scopes = scope.split_ascii_whitespace();
        let scopes = scopes.filter(|it| is_scope(it)).take(MOST_SCOPES);
        scopes.map(str::to_owned).collect()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the server describes itself, if it says so and may.
    pub(super) fn resource_metadata(&self, server: &Url) -> Option<String> {
        let parameters = WWWAuthenticateParams::parse(&self.0, server);
        let url = parameters.resource_metadata_url.map(String::from);
        url.filter(|url| !url.contains('"'))
    }

    fn parameters(&self) -> WWWAuthenticateParams {
        let nowhere = Url::parse("https://invalid./").expect("an address");
        WWWAuthenticateParams::parse(&self.0, &nowhere)
    }
}

/// Whether a text can be a scope, by the characters that the standard allows.
pub(super) fn is_scope(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.len() <= MOST_SCOPE_BYTES && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_challenge_says() {
        let challenge = Challenge::new(
            r#"Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="https://x/y""#,
        );
        let challenge = challenge.unwrap();
        assert!(challenge.is_insufficient_scope());
        assert_eq!(challenge.scopes(), ["files:read", "files:write"]);
        assert_eq!(Challenge::new("Basic realm=x"), None);
        assert_eq!(
            Challenge::new(&format!("Bearer {}", "x".repeat(9000))),
            None
        );
    }

    #[test]
    fn scopes_that_could_forge_something_are_left_out() {
        let challenge = Challenge::new("Bearer scope=\"a \u{1b}[2J b\"").unwrap();
        assert_eq!(challenge.scopes(), ["a", "b"]);
    }
}
