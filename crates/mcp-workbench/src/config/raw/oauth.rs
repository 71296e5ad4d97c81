//! Reading `oauth` of an entry: how the workbench signs in to a remote server.

use jsonc_parser::ast::Value;
use schemars::JsonSchema;

use super::{
    file::unknown_key,
    keys::{IGNORED_OAUTH_KEYS, OAUTH_KEYS},
    reader::{Node, Reader, is_null},
    types::Text,
};
use crate::{
    config::problems::{Scope, ValueFault},
    near::nearest,
};

/// The words for `grant`.
const GRANTS: &[&str] = &["authorization_code", "client_credentials"];
/// The words for `signingAlgorithm`.
const ALGORITHMS: &[&str] = &["RS256", "RS384", "RS512", "ES256", "ES384"];

/// Whether the workbench signs in to the server, or how.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "OAuth", untagged)]
pub(in crate::config) enum RawOAuth {
    /// With the defaults, or not at all.
    Used(bool),
    /// How.
    Details(Box<RawOAuthDetails>),
}

/// How the workbench signs in to a remote server.
#[derive(Debug, Default, JsonSchema)]
#[schemars(
    rename = "OAuthDetails",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true})
)]
pub(in crate::config) struct RawOAuthDetails {
    /// The id under which the workbench is registered at the authorization server. Without it, it registers itself.
    pub(in crate::config) client_id: Option<Text>,
    /// The secret of that client, such as `${keyring:NAME}`.
    pub(in crate::config) client_secret: Option<Text>,
    /// The scopes to ask for. Without it, those that the server names.
    pub(in crate::config) scopes: Option<Vec<Text>>,
    /// The port of this machine that the browser comes back to. Without it, any that is free.
    #[schemars(range(min = 1, max = 65_535))]
    pub(in crate::config) callback_port: Option<u64>,
    /// The https address of a document that describes the workbench as a client, for servers that take one.
    pub(in crate::config) client_metadata_url: Option<Text>,
    /// A name for the account, where one server is used with several.
    pub(in crate::config) account: Option<Text>,
    /// The only authorization server that is told anything, as it names itself. Without it, whichever the server names.
    pub(in crate::config) issuer: Option<Text>,
    /// How a token is got: by a person who signs in, or with the credentials of the client alone.
    #[schemars(extend("default" = "authorization_code"))]
    pub(in crate::config) grant: Option<RawGrant>,
    /// The private key of the client in PEM form, such as `${file:key.pem}`, for `client_credentials` without a secret.
    pub(in crate::config) private_key: Option<Text>,
    /// What that key signs with.
    #[schemars(extend("default" = "ES256"))]
    pub(in crate::config) signing_algorithm: Option<RawSigningAlgorithm>,
    /// Whether it is used; other clients write that.
    #[schemars(skip)]
    pub(in crate::config) enabled: Option<bool>,
}

/// How a token is got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "Grant", rename_all = "snake_case")]
pub(in crate::config) enum RawGrant {
    AuthorizationCode,
    ClientCredentials,
}

/// What a private key signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "SigningAlgorithm", rename_all = "UPPERCASE")]
pub(in crate::config) enum RawSigningAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Es256,
    Es384,
}

/// Reads `oauth`.
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
            "privateKey" => details.private_key = reader.filled_text(value, "key"),
            "signingAlgorithm" => details.signing_algorithm = signing_algorithm(reader, value),
            "enabled" => details.enabled = reader.flag(value),
            key if IGNORED_OAUTH_KEYS.contains(&key) => {}
            _ => unknown_key(reader, entry, Scope::OAuth, OAUTH_KEYS),
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
