//! Reads `oauth` of an entry.

use jsonc_parser::ast::Value;
#[cfg(test)]
use schemars::JsonSchema;

use super::{
    file::unknown_key,
    keys::{EXCHANGE_KEYS, IGNORED_OAUTH_KEYS, OAUTH_KEYS},
    reader::{Node, Reader, is_null},
    types::Text,
};
use crate::{
    config::problems::{KeyScope, ValueFault},
    near::nearest,
};

const GRANTS: &[&str] = &["authorization_code", "client_credentials"];
/// The values of `per`.
const OWNERS: &[&str] = &["machine", "user"];
/// The values of `signingAlgorithm`.
const ALGORITHMS: &[&str] = &["RS256", "RS384", "RS512", "ES256", "ES384"];

/// Turns sign-in to the server on or off, or configures it.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "OAuth", untagged))]
pub(in crate::config) enum RawOAuth {
    /// Sign-in with the defaults (`true`), or none (`false`).
    Used(bool),
    /// Sign-in with these settings.
    Details(Box<RawOAuthDetails>),
}

/// The OAuth settings of a remote server.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "OAuthDetails",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true})
))]
pub(in crate::config) struct RawOAuthDetails {
    /// The client id of the workbench at the authorization server. Without it, the workbench registers itself.
    pub(in crate::config) client_id: Option<Text>,
    /// The client secret, such as `${keyring:NAME}`.
    pub(in crate::config) client_secret: Option<Text>,
    /// The scopes to request. Without it, those that the server names.
    pub(in crate::config) scopes: Option<Vec<Text>>,
    /// The local port for the browser's redirect. Without it, any free port.
    #[cfg_attr(test, schemars(range(min = 1, max = 65_535)))]
    pub(in crate::config) callback_port: Option<u64>,
    /// The https URL of a client metadata document, for servers that support it.
    pub(in crate::config) client_metadata_url: Option<Text>,
    /// A name for the account, if one server is used with several.
    pub(in crate::config) account: Option<Text>,
    /// The only authorization server that may be used, as it names itself. Without it, any that the server names.
    pub(in crate::config) issuer: Option<Text>,
    /// The way to get a token: a person signs in, or the client uses its own credentials.
    #[cfg_attr(test, schemars(extend("default" = "authorization_code")))]
    pub(in crate::config) grant: Option<RawGrant>,
    /// The owner of the credentials: all clients use the same, or each user over HTTP has their own.
    #[cfg_attr(test, schemars(extend("default" = "machine")))]
    pub(in crate::config) per: Option<RawPer>,
    /// Exchange the token of the user for one of the server at the `issuer` of `auth` (RFC 8693), so that users do not
    /// have to sign in.
    pub(in crate::config) exchange: Option<RawExchange>,
    /// The private key of the client in PEM form, such as `${file:key.pem}`, for `client_credentials` without a
    /// secret.
    pub(in crate::config) private_key: Option<Text>,
    /// The signing algorithm of that key.
    #[cfg_attr(test, schemars(extend("default" = "ES256")))]
    pub(in crate::config) signing_algorithm: Option<RawSigningAlgorithm>,
    /// `false` turns sign-in off. Other clients use this key.
    #[cfg_attr(test, schemars(skip))]
    pub(in crate::config) enabled: Option<bool>,
}

/// The way to get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Grant", rename_all = "snake_case"))]
pub(in crate::config) enum RawGrant {
    AuthorizationCode,
    ClientCredentials,
}

/// The owner of the credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Per", rename_all = "snake_case"))]
pub(in crate::config) enum RawPer {
    Machine,
    User,
}

/// Turns the exchange of tokens on or off, or configures it.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Exchange", untagged))]
pub(in crate::config) enum RawExchange {
    Used(bool),
    Details(RawExchangeDetails),
}

/// The settings of the exchange of tokens.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "ExchangeDetails",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false)
))]
pub(in crate::config) struct RawExchangeDetails {
    /// The name of the server at the authorization server. Without it, only the address of the server is sent.
    pub(in crate::config) audience: Option<Text>,
}

/// The signing algorithm of a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "SigningAlgorithm", rename_all = "UPPERCASE"))]
pub(in crate::config) enum RawSigningAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Es256,
    Es384,
}

pub(super) fn oauth(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawOAuth> {
    match node.value {
        Value::BooleanLit(boolean) => Some(RawOAuth::Used(boolean.value)),
        Value::Object(_) => details(reader, node).map(|it| RawOAuth::Details(Box::new(it))),
        _ => {
            reader.wrong_type(node, "a boolean or an object");
            None
        }
    }
}

fn details(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawOAuthDetails> {
    let mut details = RawOAuthDetails::default();
    for entry in reader.entries(node)?.iter().filter(|it| !is_null(&it.node)) {
        let value = &entry.node;
        match entry.key {
            "clientId" => details.client_id = reader.filled_text(value, "client id"),
            "clientSecret" => details.client_secret = reader.filled_text(value, "secret"),
            "scopes" => details.scopes = reader.filled_texts(value, "scope"),
            "callbackPort" => details.callback_port = reader.positive(value, 1, 65_535),
            "clientMetadataUrl" => details.client_metadata_url = reader.filled_text(value, "URL"),
            "account" => details.account = reader.filled_text(value, "account"),
            "issuer" => details.issuer = reader.filled_text(value, "issuer"),
            "grant" => details.grant = grant(reader, value),
            "per" => details.per = per(reader, value),
            "exchange" => details.exchange = exchange(reader, value),
            "privateKey" => details.private_key = reader.filled_text(value, "key"),
            "signingAlgorithm" => details.signing_algorithm = signing_algorithm(reader, value),
            "enabled" => details.enabled = reader.flag(value),
            key if IGNORED_OAUTH_KEYS.contains(&key) => {}
            _ => unknown_key(reader, entry, KeyScope::OAuth, OAUTH_KEYS),
        }
    }
    Some(details)
}

fn grant(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawGrant> {
    let word = reader.text(node)?.written;
    match word.as_str() {
        "authorization_code" => return Some(RawGrant::AuthorizationCode),
        "client_credentials" => return Some(RawGrant::ClientCredentials),
        _ => unknown_word(reader, node, word, GRANTS),
    }
    None
}

fn per(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawPer> {
    let word = reader.text(node)?.written;
    match word.as_str() {
        "machine" => return Some(RawPer::Machine),
        "user" => return Some(RawPer::User),
        _ => unknown_word(reader, node, word, OWNERS),
    }
    None
}

fn exchange(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawExchange> {
    match node.value {
        Value::BooleanLit(boolean) => Some(RawExchange::Used(boolean.value)),
        Value::Object(_) => {
            let mut details = RawExchangeDetails::default();
            for entry in reader.entries(node)?.iter().filter(|it| !is_null(&it.node)) {
                match entry.key {
                    "audience" => details.audience = reader.filled_text(&entry.node, "audience"),
                    _ => unknown_key(reader, entry, KeyScope::Exchange, EXCHANGE_KEYS),
                }
            }
            Some(RawExchange::Details(details))
        }
        _ => {
            reader.wrong_type(node, "a boolean or an object");
            None
        }
    }
}

fn signing_algorithm(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawSigningAlgorithm> {
    let word = reader.text(node)?.written;
    match word.as_str() {
        "RS256" => return Some(RawSigningAlgorithm::Rs256),
        "RS384" => return Some(RawSigningAlgorithm::Rs384),
        "RS512" => return Some(RawSigningAlgorithm::Rs512),
        "ES256" => return Some(RawSigningAlgorithm::Es256),
        "ES384" => return Some(RawSigningAlgorithm::Es384),
        _ => unknown_word(reader, node, word, ALGORITHMS),
    }
    None
}

fn unknown_word(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    found: String,
    known: &'static [&'static str],
) {
    let near = nearest(&found, known.iter().copied());
    reader.report_value(node, ValueFault::UnknownWord { found, known, near });
}
