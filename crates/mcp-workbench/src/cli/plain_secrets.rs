//! Secrets that an entry holds as plain text, where a reference to a variable would keep them out of the file.

use std::fmt;

use serde_json::Value;

use crate::visible::visible;

/// Parts of the names of variables and headers whose values are secret, in capital letters.
const SECRET_NAMES: &[&str] = &[
    "API_KEY",
    "APIKEY",
    "API-KEY",
    "ACCESS_KEY",
    "AUTHORIZATION",
    "COOKIE",
    "CREDENTIAL",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PRIVATE_KEY",
    "SECRET",
    "TOKEN",
];

/// How keys that services hand out begin.
const SECRET_BEGINNINGS: &[&str] = &[
    "AKIA",
    "AIza",
    "Bearer ",
    "eyJ",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "sk-",
    "sk_live_",
    "xoxb-",
    "xoxp-",
];

/// Shorter values are no secrets.
const SHORTEST: usize = 6;

/// Where a secret stands. Its words never hold the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlainSecret {
    /// In the value of a variable.
    Variable(String),
    /// In the value of a header.
    Header(String),
    /// In an argument of the program, counted from 1.
    Argument(usize),
    /// In the address.
    Address,
}

/// The secrets that stand in an entry as plain text.
pub(super) fn plain_secrets(entry: &Value) -> Vec<PlainSecret> {
    let mut found = Vec::new();
    let texts = |key: &str| {
        let members = entry[key].as_object().into_iter().flatten();
        members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?)))
    };
    let named = |(name, value): &(String, &str)| is_plain_secret(name, value);
    found.extend(
        texts("env")
            .filter(named)
            .map(|(name, _)| PlainSecret::Variable(name)),
    );
    found.extend(
        texts("headers")
            .filter(named)
            .map(|(name, _)| PlainSecret::Header(name)),
    );
    let arguments = entry["args"].as_array().into_iter().flatten();
    let mut before = "";
    for (n, argument) in arguments.filter_map(Value::as_str).enumerate() {
        let (name, value) = argument
            .split_once(['=', ':'])
            .unwrap_or((before, argument));
        if is_plain_secret(name, value.trim_start()) {
            found.push(PlainSecret::Argument(n + 1));
        }
        before = if argument.starts_with('-') {
            argument
        } else {
            ""
        };
    }
    if entry["url"].as_str().is_some_and(has_plain_secret) {
        found.push(PlainSecret::Address);
    }
    found
}

fn is_plain_secret(name: &str, value: &str) -> bool {
    if value.len() < SHORTEST || value.contains("${") {
        return false;
    }
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
        || SECRET_BEGINNINGS
            .iter()
            .any(|begin| value.starts_with(begin))
}

/// Whether an address has a password, or a parameter that is secret.
fn has_plain_secret(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let (host, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let password = host
        .rsplit_once('@')
        .and_then(|(user, _)| user.split_once(':'));
    let parameters = rest
        .split_once('?')
        .map_or("", |(_, parameters)| parameters);
    let mut parameters = parameters.split('&').filter_map(|it| it.split_once('='));
    password.is_some_and(|(_, password)| !password.contains("${"))
        || parameters.any(|(name, value)| is_plain_secret(name, value))
}

impl fmt::Display for PlainSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the value of `{}`", visible(name))?,
            Self::Header(name) => write!(f, "the value of the header `{}`", visible(name))?,
            Self::Argument(number) => write!(f, "argument {number}")?,
            Self::Address => f.write_str("the URL")?,
        }
        f.write_str(" looks like a secret, in plain text\n  hint: ")?;
        let variable = match self {
            Self::Variable(name) => visible(name),
            _ => "VARIABLE".into(),
        };
        write!(
            f,
            "write '${{{variable}}}' for it, set that variable where the workbench is started, and the \
             secret stays out of the file"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_told_from_settings_and_references() {
        let entry = json!({
            "args": ["--token=abcdefgh", "--token=${T}", "sk-12345678", "--port=808080", "plain",
                "--api-key", "12345678", "87654321", "--header", "Authorization: Bearer 12345678"],
            "env": {"API_TOKEN": "12345678", "OTHER_TOKEN": "${OTHER}", "LEVEL": "information", "PASSWORD": ""},
            "headers": {"authorization": "Bearer 12345678", "X-Trace": "12345678"},
            "url": "https://user:pass@x.test/mcp",
        });
        assert_eq!(
            plain_secrets(&entry),
            [
                PlainSecret::Variable("API_TOKEN".into()),
                PlainSecret::Header("authorization".into()),
                PlainSecret::Argument(1),
                PlainSecret::Argument(3),
                PlainSecret::Argument(7),
                PlainSecret::Argument(10),
                PlainSecret::Address,
            ]
        );
        let urls = [
            ("https://x.test/mcp?api_key=123456", true),
            ("https://x.test/mcp?api_key=${KEY}", false),
            ("https://user:${PASSWORD}@x.test", false),
            ("https://x.test/a:b@c", false),
        ];
        for (url, expected) in urls {
            assert_eq!(
                !plain_secrets(&json!({"url": url})).is_empty(),
                expected,
                "{url}"
            );
        }
    }

    #[test]
    fn the_words_do_not_hold_the_secret() {
        let entry = json!({"env": {"TOKEN": "hunter2-hunter2"}});
        assert_eq!(
            plain_secrets(&entry)[0].to_string(),
            "the value of `TOKEN` looks like a secret, in plain text\n  hint: write '${TOKEN}' for it, set \
             that variable where the workbench is started, and the secret stays out of the file"
        );
    }
}
