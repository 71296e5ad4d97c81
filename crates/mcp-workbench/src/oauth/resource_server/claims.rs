//! The claims of a token, and the client of the configuration that they make its user.

use ident::ClientName;
use serde_json::{Map, Value};

use super::TokenRefusal;
use crate::config::ClientClaims;

/// The holder of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenSubject<'a> {
    User(&'a str),
    /// A client of the authorization server that acts for itself. Not every authorization server gives it a subject.
    Program(&'a str),
}

/// The claims of a token whose issuer, audience and times were checked.
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    pub(super) fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// Returns the user that the token is for, or the program if it acts for itself.
    pub(super) fn subject(&self) -> Option<TokenSubject<'_>> {
        let text = |name| self.0.get(name).and_then(Value::as_str);
        // A `sub` that is not text makes the token invalid. It is no reason to look at `client_id`.
        let subject = match self.0.get("sub") {
            Some(_) => TokenSubject::User(text("sub")?),
            None => TokenSubject::Program(text("client_id")?),
        };
        let (TokenSubject::User(name) | TokenSubject::Program(name)) = subject;
        (!name.is_empty()).then_some(subject)
    }

    /// Returns true if the token is bound to a key of its holder. A thief who has only the token must not get in, and
    /// the proof of the key is not checked here.
    pub(super) fn is_bound(&self) -> bool {
        self.0.contains_key("cnf")
    }

    /// Returns whether the token has all of these scopes.
    pub(super) fn have(&self, scopes: &[String]) -> bool {
        let has = |scope: &String| {
            // Some issuers, such as Entra ID and Okta, use `scp`.
            let claims = ["scope", "scp"].into_iter();
            claims
                .filter_map(|claim| self.0.get(claim))
                .any(|value| has_scope(value, scope))
        };
        scopes.iter().all(has)
    }

    /// Returns true if a claim has a value, or is a list that contains it.
    fn has(&self, name: &str, value: &str) -> bool {
        // The whole name comes first, since names that are URLs contain dots.
        let found = self.0.get(name).or_else(|| {
            let (first, rest) = name.split_once('.')?;
            let inner = self.0.get(first)?;
            rest.split('.')
                .try_fold(inner, |inner, name| inner.get(name))
        });
        match found {
            Some(Value::String(text)) => text == value,
            Some(Value::Array(items)) => items.iter().any(|it| it == value),
            _ => false,
        }
    }

    /// Returns the client of the user: the first one whose claims the user has. If no client has claims, users have no
    /// client. If any does, a user who matches none is refused.
    pub(super) fn client(
        &self,
        clients: &[(ClientName, ClientClaims)],
    ) -> Result<Option<ClientName>, TokenRefusal> {
        if clients.is_empty() {
            return Ok(None);
        }
        let is_theirs = |wanted: &ClientClaims| {
            let mut claims = wanted.claims.iter();
            claims.all(|(name, value)| self.has(name, value))
        };
        let found = clients.iter().find(|(_, wanted)| is_theirs(wanted));
        let (name, wanted) = found.ok_or(TokenRefusal::NoClient)?;
        if self.have(&wanted.scopes) {
            Ok(Some(name.clone()))
        } else {
            Err(TokenRefusal::MissingScopes(wanted.scopes.clone()))
        }
    }
}

/// Returns true if a claim with scopes, in a text or a list, has one of them.
fn has_scope(claim: &Value, scope: &str) -> bool {
    match claim {
        Value::String(text) => text.split(' ').any(|it| it == scope),
        Value::Array(items) => items.iter().any(|it| it == scope),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Claims {
        match value {
            Value::Object(map) => Claims(map),
            _ => unreachable!("the tests write objects"),
        }
    }

    fn wanting(claims: &[(&str, &str)], scopes: &[&str]) -> ClientClaims {
        let claims = claims.iter();
        ClientClaims {
            claims: claims
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            scopes: scopes.iter().map(|it| (*it).into()).collect(),
        }
    }

    #[test]
    fn a_program_that_acts_for_itself_is_no_user() {
        for (value, expected) in [
            (
                json!({"sub": "ada", "client_id": "x"}),
                Some(TokenSubject::User("ada")),
            ),
            (json!({"client_id": "x"}), Some(TokenSubject::Program("x"))),
            (json!({"sub": "", "client_id": "x"}), None),
            (json!({"sub": 1, "client_id": "x"}), None),
            (json!({}), None),
        ] {
            assert_eq!(claims(value.clone()).subject(), expected, "{value}");
        }
    }

    #[test]
    fn scopes_are_read_from_a_text_or_a_list() {
        for value in [
            json!({"scope": "read write"}),
            json!({"scp": "read write"}),
            json!({"scp": ["read", "write"]}),
        ] {
            let claims = claims(value);
            assert!(claims.have(&["write".to_owned(), "read".to_owned()]));
            assert!(!claims.have(&["write".to_owned(), "admin".to_owned()]));
            assert!(!claims.have(&["rea".to_owned()]));
        }
        assert!(!claims(json!({})).have(&["x".into()]));
        assert!(claims(json!({})).have(&[]));
    }

    #[test]
    fn the_first_client_with_all_claims_is_the_users() {
        let clients = [
            (
                "admins".into(),
                wanting(&[("groups", "admins"), ("tenant", "a")], &[]),
            ),
            (
                "developers".into(),
                wanting(&[("realm_access.roles", "dev")], &["tools"]),
            ),
            ("sub".into(), wanting(&[("a.b", "x")], &[])),
        ];
        let client = |value| claims(value).client(&clients);
        for (value, expected) in [
            (
                json!({"groups": ["x", "admins"], "tenant": "a"}),
                Ok(Some("admins".into())),
            ),
            (
                json!({"groups": ["admins"], "tenant": "b"}),
                Err(TokenRefusal::NoClient),
            ),
            (
                json!({"groups": "admins ", "tenant": "a"}),
                Err(TokenRefusal::NoClient),
            ),
            (
                json!({"realm_access": {"roles": ["dev"]}, "scope": "tools"}),
                Ok(Some("developers".into())),
            ),
            (
                json!({"realm_access": {"roles": ["dev"]}}),
                Err(TokenRefusal::MissingScopes(vec!["tools".into()])),
            ),
            // A claim of exactly this name counts before one inside another.
            (
                json!({"a.b": "y", "a": {"b": "x"}}),
                Err(TokenRefusal::NoClient),
            ),
            (json!({}), Err(TokenRefusal::NoClient)),
        ] {
            assert_eq!(client(value.clone()), expected, "{value}");
        }
        assert_eq!(claims(json!({})).client(&[]), Ok(None));
    }
}
