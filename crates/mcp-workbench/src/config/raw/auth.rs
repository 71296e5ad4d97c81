//! Reads `auth` of the file.

#[cfg(test)]
use schemars::JsonSchema;

use super::{
    file::unknown_key,
    keys::{AUTH_KEYS, INTROSPECTION_KEYS},
    reader::{Node, Reader, is_null},
    types::Text,
};
use crate::{
    config::{
        auth::TokenAlgorithm,
        problems::{KeyFault, KeyScope, ValueFault},
    },
    near::nearest,
};

/// The authorization server whose tokens clients over HTTP need.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Auth",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false, "required" = ["issuer", "audience"])
))]
pub(in crate::config) struct RawAuth {
    /// The authorization server, by the URL that it names itself with.
    pub(in crate::config) issuer: Option<Text>,
    /// The audience that tokens must have, usually the address of the workbench, such as
    /// `https://tools.example.com/mcp`.
    pub(in crate::config) audience: Option<Text>,
    /// The address of the workbench for its clients. Without it, the audience.
    pub(in crate::config) resource: Option<Text>,
    /// The algorithms that tokens may be signed with.
    pub(in crate::config) algorithms: Option<Vec<TokenAlgorithm>>,
    /// The scopes that every token must have.
    pub(in crate::config) scopes: Option<Vec<Text>>,
    /// The client id of the workbench at the authorization server, for users who sign in to servers. Without it, the
    /// workbench registers itself.
    pub(in crate::config) client_id: Option<Text>,
    /// The secret of that client, such as `${file:secret}`.
    pub(in crate::config) client_secret: Option<Text>,
    /// Ask the authorization server about every token, in place of checking signatures.
    pub(in crate::config) introspection: Option<RawIntrospection>,
}

impl RawAuth {
    /// Returns whether the workbench is a client with a secret.
    pub(in crate::config) fn has_client(&self) -> bool {
        self.client_id.is_some() && self.client_secret.is_some()
    }
}

/// The credentials of the workbench for questions about tokens.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Introspection",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false, "required" = ["clientId", "clientSecret"])
))]
pub(in crate::config) struct RawIntrospection {
    /// The client id of the workbench at the authorization server.
    pub(in crate::config) client_id: Option<Text>,
    /// The client secret, such as `${file:secret}`.
    pub(in crate::config) client_secret: Option<Text>,
}

pub(super) fn auth(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawAuth> {
    let mut auth = RawAuth::default();
    for entry in reader.entries(node)?.iter().filter(|it| !is_null(&it.node)) {
        let value = &entry.node;
        match entry.key {
            "issuer" => auth.issuer = reader.filled_text(value, "URL"),
            "audience" => auth.audience = reader.filled_text(value, "audience"),
            "resource" => auth.resource = reader.filled_text(value, "URL"),
            "algorithms" => auth.algorithms = algorithms(reader, value),
            "scopes" => auth.scopes = reader.filled_texts(value, "scope"),
            "clientId" => auth.client_id = reader.filled_text(value, "client id"),
            "clientSecret" => auth.client_secret = reader.filled_text(value, "secret"),
            "introspection" => auth.introspection = introspection(reader, value),
            _ => unknown_key(reader, entry, KeyScope::Auth, AUTH_KEYS),
        }
    }
    for (key, is_missing) in [
        ("issuer", auth.issuer.is_none()),
        ("audience", auth.audience.is_none()),
    ] {
        if is_missing {
            reader.report_value(node, KeyFault::Missing { key });
        }
    }
    Some(auth)
}

fn introspection(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawIntrospection> {
    let mut read = RawIntrospection::default();
    for entry in reader.entries(node)?.iter().filter(|it| !is_null(&it.node)) {
        let value = &entry.node;
        match entry.key {
            "clientId" => read.client_id = reader.filled_text(value, "client id"),
            "clientSecret" => read.client_secret = reader.filled_text(value, "secret"),
            _ => unknown_key(reader, entry, KeyScope::Introspection, INTROSPECTION_KEYS),
        }
    }
    for (key, is_missing) in [
        ("clientId", read.client_id.is_none()),
        ("clientSecret", read.client_secret.is_none()),
    ] {
        if is_missing {
            reader.report_value(node, KeyFault::Missing { key });
        }
    }
    Some(read)
}

fn algorithms(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Vec<TokenAlgorithm>> {
    let words = reader.filled_texts(node, "algorithm")?;
    let mut algorithms = Vec::new();
    for word in words {
        match TokenAlgorithm::named(&word.written) {
            Some(algorithm) => algorithms.push(algorithm),
            None => {
                let known = TokenAlgorithm::NAMES;
                let fault = ValueFault::UnknownWord {
                    near: nearest(&word.written, known.iter().copied()),
                    found: word.written.clone(),
                    known,
                };
                reader.report_text(&word, fault);
            }
        }
    }
    Some(algorithms)
}
