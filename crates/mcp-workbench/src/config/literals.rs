//! Credentials that are written into the configuration itself instead of being taken from a variable: what looks
//! like one, and where it stands. It is a guess, made to be right about what it names.

use super::{
    resolved::{Server, Transport},
    secrets::{Secrets, is_plain_value},
};

/// A shorter value is hardly a credential.
const SHORTEST: usize = 8;

/// Beginnings that issuers give to their credentials.
const BEGINNINGS: &[&str] = &[
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

/// Words in the names of what holds a credential.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "passwd",
    "password",
    "passphrase",
    "pat",
    "secret",
    "token",
];

/// Pairs of words that do too.
const SECRET_PAIRS: &[(&str, &str)] = &[
    ("access", "key"),
    ("api", "key"),
    ("private", "key"),
    ("signing", "key"),
];

/// Last words in the names of what only leads to a credential, or says something about it.
const HARMLESS_ENDINGS: &[&str] = &[
    "count", "dir", "endpoint", "env", "expiry", "file", "folder", "id", "limit", "method", "mode",
    "name", "path", "port", "provider", "scope", "scopes", "ttl", "type", "uri", "url",
];

/// Where a credential stands in the entry of a server, such as `args[1]` or `env.TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiteralPlace {
    /// The argument of this index. Everybody on the machine can see it while the server runs.
    Argument(usize),
    /// The variable of this name.
    Variable(String),
    /// The header of this name.
    Header(String),
    /// The address.
    Url,
}

impl std::fmt::Display for LiteralPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument(index) => write!(f, "args[{index}]"),
            Self::Variable(name) => write!(f, "env.{name}"),
            Self::Header(name) => write!(f, "headers.{name}"),
            Self::Url => f.write_str("url"),
        }
    }
}

impl Server {
    /// Where the entry itself holds what looks like a credential.
    pub fn literal_secrets(&self) -> Vec<LiteralPlace> {
        match &self.transport {
            Transport::Stdio(launch) => {
                let arguments = secret_arguments(&launch.args_as_written);
                let arguments = arguments.into_iter().map(LiteralPlace::Argument);
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
                let url = is_secret_url(&endpoint.url, &endpoint.secrets);
                let url = url.then_some(LiteralPlace::Url);
                headers.chain(url).collect()
            }
            Transport::Unset(_) => Vec::new(),
        }
    }
}

/// The arguments that hold a credential, by themselves or behind an option that is named for one.
fn secret_arguments(arguments: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut option: Option<&str> = None;
    for (index, argument) in arguments.iter().enumerate() {
        let before = option.take();
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if is_option(name) || is_variable(name) => (Some(name), value),
            _ if argument.contains(": ") => {
                let header = argument.split_once(": ").unwrap_or_default();
                (Some(header.0), header.1)
            }
            _ if is_option(argument) => {
                option = Some(argument);
                continue;
            }
            _ => (before, argument.as_str()),
        };
        if is_literal_secret(name.unwrap_or_default(), value, &Secrets::default()) {
            found.push(index);
        }
    }
    found
}

fn is_option(argument: &str) -> bool {
    argument.starts_with('-')
}

/// `NAME` of `NAME=value`, as `docker run -e` takes it.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_literal_secret(name: &str, value: &str, from_variables: &Secrets) -> bool {
    let value = value.strip_prefix("Bearer ").unwrap_or(value).trim();
    let from_variable = value.contains("${") || from_variables.redact(value).as_ref() != value;
    if from_variable || value.len() < SHORTEST || is_plain_value(value) {
        return false;
    }
    looks_issued(value) || has_password(value) || (names_secret(name) && !is_path(value))
}

fn looks_issued(value: &str) -> bool {
    let begins = BEGINNINGS.iter().any(|begin| value.starts_with(begin));
    let is_one_word = !value.contains(|it: char| it.is_whitespace() || it == '/');
    let is_signed = value.starts_with("eyJ") && value.matches('.').count() == 2;
    is_one_word && value.len() >= 2 * SHORTEST && (begins || is_signed)
}

/// Whether it is an address with a password in it.
fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| Some(user.split_once(':')?.1));
    password.is_some_and(|password| !password.is_empty() && !password.contains("${"))
}

fn is_secret_url(url: &str, from_variables: &Secrets) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut parameters = query.split('&').filter_map(|part| part.split_once('='));
    from_variables.redact(url).as_ref() == url && has_password(url)
        || parameters.any(|(name, value)| is_literal_secret(name, value, from_variables))
}

/// Whether a name is that of a credential: `--api-key`, `GITHUB_TOKEN`, `X-Auth-Token`.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name
        .split(|it: char| !it.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let Some(last) = words.last() else {
        return false;
    };
    !HARMLESS_ENDINGS.contains(last)
        && (words.iter().any(|word| SECRET_WORDS.contains(word))
            || words
                .windows(2)
                .any(|pair| SECRET_PAIRS.contains(&(pair[0], pair[1]))))
}

fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.', '~'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_arguments_are_found() {
        let cases: [(&[&str], &[usize]); 11] = [
            (&["--header", "Authorization: Bearer abcdefgh1234"], &[1]),
            (&["--token", "abcdefgh1234"], &[1]),
            (&["--api-key=abcdefgh1234", "x"], &[0]),
            (&["run", "-e", "GITHUB_TOKEN=abcdefgh1234"], &[2]),
            (&["ghp_0123456789abcdef0123"], &[0]),
            (&["postgres://me:hunter2@db/x"], &[0]),
            (&["eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl"], &[0]),
            (&["--token", "${TOKEN}", "--port", "12345678"], &[]),
            (&["--token-file", "somewhere/token.txt", "--auth=true"], &[]),
            (&["-y", "@scope/sk-server", "--secret", "/run/secret"], &[]),
            (&["https://me@example.com/", "postgres://me:${P}@db/x"], &[]),
        ];
        for (arguments, found) in cases {
            let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(secret_arguments(&arguments), found, "{arguments:?}");
        }
    }

    #[test]
    fn values_of_variables_are_not_literal() {
        let mut known = Secrets::default();
        known.add("TOKEN", "abcdefgh1234");
        assert!(!is_literal_secret("API_TOKEN", "abcdefgh1234", &known));
        assert!(!is_literal_secret(
            "Authorization",
            "Bearer abcdefgh1234",
            &known
        ));
        assert!(is_literal_secret(
            "Authorization",
            "Bearer other-abcdefgh",
            &known
        ));
        assert!(is_literal_secret("API_TOKEN", "other-abcdefgh", &known));
        assert!(!is_literal_secret("LOG_LEVEL", "other-abcdefgh", &known));
        assert!(is_secret_url("https://x/mcp?api_key=abcdefgh1", &known));
        assert!(!is_secret_url("https://x/mcp?api_key=abcdefgh1234", &known));
        assert!(!is_secret_url("https://x/mcp?page=abcdefgh1", &known));
    }
}
