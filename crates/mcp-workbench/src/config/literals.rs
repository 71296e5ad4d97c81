//! Detects credentials that are written into a configuration, ours or a client's, instead of being read from a
//! variable. A false positive costs a remark and a false negative costs a leak, so the rules are broad.

use std::fmt;

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use super::{
    resolved::{Server, Transport},
    secrets::{Secrets, is_plain_value},
};
use crate::visible::visible;

/// The minimum length of a credential.
const MIN_LENGTH: usize = 6;

/// The minimum length of a credential that an issuer generated.
const MIN_ISSUED_LENGTH: usize = 16;

/// Prefixes that issuers give to their credentials.
const PREFIXES: &[&str] = &[
    "AIza",
    "AKIA",
    "ASIA",
    "SG.",
    "dckr_pat_",
    "figd_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "lin_api_",
    "npm_",
    "ntn_",
    "pypi-",
    "rk_live_",
    "sbp_",
    "secret_",
    "shpat_",
    "sk-",
    "sk_live_",
    "sk_test_",
    "tvly-",
    "xapp-",
    "xoxb-",
    "xoxp-",
    "ya29.",
];

/// Endings of words that name a credential: `token`, and `accessToken` too.
const SECRET_ENDINGS: &[&str] = &[
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "key",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "token",
];

/// Whole words that name a credential.
const SECRET_WORDS: &[&str] = &["auth", "dsn", "pass", "pat", "private", "pwd", "session"];

/// The last parts of names that only refer to a credential or describe it.
const HARMLESS_ENDINGS: &[&str] = &[
    "count", "dir", "endpoint", "env", "expiry", "file", "folder", "id", "limit", "method", "mode",
    "name", "path", "port", "provider", "scope", "scopes", "ttl", "type", "uri", "url",
];

/// The place of a credential in the entry of a server, such as `args[1]` or `env.TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiteralPlace {
    /// The argument with this index. Every user of the machine can see it while the server runs.
    Argument(usize),
    /// The variable of this name.
    Variable(String),
    /// The header of this name.
    Header(String),
    /// The key of this name in `oauth`.
    OAuth(String),
    Url,
}

impl fmt::Display for LiteralPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(index) => write!(f, "args[{index}]"),
            Self::Variable(name) => write!(f, "env.{}", visible(name)),
            Self::Header(name) => write!(f, "headers.{}", visible(name)),
            Self::OAuth(name) => write!(f, "oauth.{}", visible(name)),
            Self::Url => f.write_str("url"),
        }
    }
}

impl Server {
    /// Returns the places of literal credentials in the entry.
    pub fn literal_secrets(&self) -> Vec<LiteralPlace> {
        match &self.transport {
            Transport::Stdio(launch) => {
                let arguments = secret_arguments(&launch.args_as_written)
                    .into_iter()
                    .map(LiteralPlace::Argument);
                let own = launch.environment.own.iter();
                let variables = own
                    .filter(|(name, value)| is_literal_secret(name, value, &launch.secrets))
                    .map(|(name, _)| LiteralPlace::Variable(name.clone()));
                arguments.chain(variables).collect()
            }
            Transport::Remote(endpoint) => {
                let headers = endpoint.headers.iter();
                let headers = headers
                    .filter(|(name, value)| is_literal_secret(name, value, &endpoint.secrets))
                    .map(|(name, _)| LiteralPlace::Header(name.clone()));
                let oauth = endpoint
                    .oauth
                    .literals()
                    .iter()
                    .map(|key| LiteralPlace::OAuth((*key).to_owned()));
                let url =
                    is_secret_url(&endpoint.url, &endpoint.secrets).then_some(LiteralPlace::Url);
                headers.chain(oauth).chain(url).collect()
            }
            Transport::Unset(_) => Vec::new(),
        }
    }

    /// Returns all values that must not be stored from the server's output: values of variables, those in its current
    /// `envFile` included, and literal credentials in the entry.
    pub fn secrets(&self) -> Secrets {
        let mut found = self.literal_credentials();
        match &self.transport {
            Transport::Stdio(launch) => {
                found.merge(&launch.secrets);
                // If the file cannot be read, the server has none of its values.
                let _ = launch.environment.variables(&mut found);
            }
            Transport::Remote(endpoint) => found.merge(&endpoint.secrets),
            Transport::Unset(_) => {}
        }
        found
    }

    /// Returns the literal credentials in the entry.
    pub fn literal_credentials(&self) -> Secrets {
        let mut found = Secrets::default();
        for place in self.literal_secrets() {
            let value = match (&place, &self.transport) {
                (LiteralPlace::Argument(index), Transport::Stdio(launch)) => {
                    launch.args_as_written.get(*index)
                }
                (LiteralPlace::Variable(name), Transport::Stdio(launch)) => {
                    launch.environment.own.get(name)
                }
                (LiteralPlace::Header(name), Transport::Remote(endpoint)) => {
                    endpoint.headers.get(name)
                }
                (LiteralPlace::Url, Transport::Remote(endpoint)) => Some(&endpoint.url),
                // Those of `oauth` are already secrets of the endpoint.
                _ => None,
            };
            if let Some(value) = value {
                found.add_value(value);
                // The value may be `--token=…` or `Bearer …`.
                let bare = value.rsplit(['=', ' ']).next();
                found.add_value(bare.unwrap_or_default());
            }
        }
        found
    }
}

/// Returns the places of literal credentials in an entry, as it is written in a file.
pub(crate) fn literal_secrets(entry: &Value) -> Vec<LiteralPlace> {
    // Elements that are not strings become empty, so that the indexes stay right.
    let arguments: Vec<&str> = entry["args"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it.as_str().unwrap_or_default())
        .collect();
    let variables = secret_members(&entry["env"]).map(LiteralPlace::Variable);
    let headers = secret_members(&entry["headers"]).map(LiteralPlace::Header);
    let oauth = secret_members(&entry["oauth"]).map(LiteralPlace::OAuth);
    let url = entry["url"].as_str().unwrap_or_default();
    let url_place = is_secret_url(url, &Secrets::default()).then_some(LiteralPlace::Url);
    secret_arguments(&arguments)
        .into_iter()
        .map(LiteralPlace::Argument)
        .chain(variables)
        .chain(headers)
        .chain(oauth)
        .chain(url_place)
        .collect()
}

/// Returns the literal credentials anywhere in the texts of configurations.
pub(crate) fn literal_values(texts: &[&str]) -> Secrets {
    let mut found = Secrets::default();
    for text in texts {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value = parse_to_serde_value::<Option<Value>>(text, &ParseOptions::default());
        collect(&value.ok().flatten().unwrap_or_default(), &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Secrets) {
    let secrets = Secrets::default();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let text = member.as_str().unwrap_or_default();
                if is_literal_secret(name, text, &secrets) || is_secret_url(text, &secrets) {
                    add_written(text, found);
                }
                collect(member, found);
            }
        }
        Value::Array(elements) => {
            // Strings or not, every element keeps its index.
            let texts: Vec<&str> = elements
                .iter()
                .map(|it| it.as_str().unwrap_or_default())
                .collect();
            for index in secret_arguments(&texts) {
                add_written(texts[index], found);
            }
            for element in elements {
                collect(element, found);
            }
        }
        _ => {}
    }
}

/// Adds a text as it is, and as JSON escapes it.
fn add_written(text: &str, found: &mut Secrets) {
    let written = Value::from(text).to_string();
    found.add_value(text);
    found.add_value(&written[1..written.len() - 1]);
}

/// Returns the names of the members that have a credential.
fn secret_members(members: &Value) -> impl Iterator<Item = String> {
    let members = members.as_object().into_iter().flatten();
    let secret = members.filter(|(name, value)| {
        let value = value.as_str().unwrap_or_default();
        is_literal_secret(name, value, &Secrets::default())
    });
    secret.map(|(name, _)| name.clone())
}

/// Returns the arguments that are a credential, by themselves or because they follow an option that names one.
pub(super) fn secret_arguments(arguments: &[impl AsRef<str>]) -> Vec<usize> {
    let secrets = Secrets::default();
    let found = named_arguments(arguments)
        .into_iter()
        .filter(|(_, name, value)| {
            // An argument may be a whole header: `--header "Authorization: …"`.
            let header = value.split_once(':').unwrap_or_default();
            is_literal_secret(name, value, &secrets)
                || is_literal_secret(header.0, header.1, &secrets)
                || is_secret_url(value, &secrets)
        });
    found.map(|(index, ..)| index).collect()
}

/// Returns the arguments whose option or variable names a credential, whatever their value.
pub(super) fn arguments_for_secrets(arguments: &[impl AsRef<str>]) -> Vec<usize> {
    let found = named_arguments(arguments)
        .into_iter()
        .filter(|(_, name, value)| {
            let header = value.split_once(':').unwrap_or_default().0;
            (names_secret(name) || names_secret(header)) && !is_path(value)
        });
    found.map(|(index, ..)| index).collect()
}

/// Returns the values among arguments: their indexes, the names of their options or variables (if any), and the
/// values.
fn named_arguments(arguments: &[impl AsRef<str>]) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    let mut option = "";
    for (index, argument) in arguments.iter().map(AsRef::as_ref).enumerate() {
        // An option names only the argument that follows it.
        let before = std::mem::take(&mut option);
        match argument.split_once('=') {
            Some((name, value)) if is_option(name) || is_variable(name) => {
                found.push((index, name, value));
            }
            _ if is_option(argument) => option = argument,
            _ => found.push((index, before, argument)),
        }
    }
    found
}

fn is_option(argument: &str) -> bool {
    argument.starts_with('-')
}

/// Returns whether this is the `NAME` of a `NAME=value`, as `docker run -e` takes it.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

pub(super) fn is_literal_secret(name: &str, value: &str, from_variables: &Secrets) -> bool {
    let value = value.trim();
    let (value, is_bearer) = match value.strip_prefix("Bearer ") {
        Some(value) => (value.trim(), true),
        None => (value, false),
    };
    // A value from a variable is what we ask users to write, so it is not reported.
    let from_variable = value.contains("${") || from_variables.redact(value).as_ref() != value;
    if from_variable || value.len() < MIN_LENGTH || is_plain_value(value) {
        return false;
    }
    is_bearer
        || looks_issued(value)
        || has_password(value)
        || (names_secret(name) && !is_path(value))
}

fn looks_issued(value: &str) -> bool {
    let begins = PREFIXES.iter().any(|begin| value.starts_with(begin));
    let is_one_word = !value.contains(|it: char| it.is_whitespace() || it == '/');
    // A JSON Web Token: `eyJ` is the Base64 form of `{"`.
    let is_signed = value.starts_with("eyJ") && value.matches('.').count() == 2;
    is_one_word && value.len() >= MIN_ISSUED_LENGTH && (begins || is_signed)
}

/// Returns whether a value is a URL with a password, or a credential for a user.
fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The last `@`, since a password may contain one that is not encoded.
    let Some((user, _)) = authority.rsplit_once('@') else {
        return false;
    };
    let password = user.split_once(':').map_or("", |(_, password)| password);
    // Some services take a token in place of the user.
    looks_issued(user) || (!password.is_empty() && !password.contains("${"))
}

pub(super) fn is_secret_url(url: &str, from_variables: &Secrets) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut parameters = query.split('&').filter_map(|part| part.split_once('='));
    from_variables.redact(url).as_ref() == url && has_password(url)
        || parameters.any(|(name, value)| is_literal_secret(name, value, from_variables))
}

/// Returns whether a name is that of a credential: `--api-key`, `GITHUB_TOKEN`, `X-Auth-Token`.
pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name
        .split(|it: char| !it.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let Some(last) = words.last() else {
        return false;
    };
    let is_secret = |word: &&str| {
        SECRET_WORDS.contains(word) || SECRET_ENDINGS.iter().any(|end| word.ends_with(end))
    };
    // The last word says what it is: `TOKEN_FILE` is a file.
    !HARMLESS_ENDINGS.contains(last) && words.iter().any(is_secret)
}

/// Returns whether a value is a path or a URL. URLs are checked separately.
fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.', '~']) || value.contains("://")
}

#[cfg(test)]
mod tests;
