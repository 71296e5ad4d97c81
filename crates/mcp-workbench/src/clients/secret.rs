//! Whether a value that stands in a client's file looks like a secret. A guess that is too wide costs a
//! remark, one that is too narrow a leak, so it is wide.

use std::borrow::Cow;

use crate::config::Secrets;

/// Parts of names that say that a value is a secret.
const TELLING: &[&str] = &[
    "apikey",
    "auth",
    "cookie",
    "credential",
    "dsn",
    "key",
    "pass",
    "pat",
    "private",
    "pwd",
    "secret",
    "session",
    "token",
];

/// Whether a variable or a header holds a secret as it is.
pub(super) fn in_value(name: &str, value: &str) -> bool {
    !value.contains("${") && is_telling(name) && is_hidden(name, value)
}

/// Whether an address holds one: a password, or a parameter.
pub(super) fn in_url(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let password = host
        .rsplit_once('@')
        .is_some_and(|(user, _)| !user.contains("${"));
    let parameters = rest
        .split_once('?')
        .map_or("", |(_, parameters)| parameters);
    let mut parameters = parameters.split('&').filter_map(|it| it.split_once('='));
    password || parameters.any(|(name, value)| in_value(name, value))
}

/// The numbers of the arguments that hold one.
pub(super) fn argument_secrets(arguments: &[Cow<'_, str>]) -> Vec<usize> {
    let mut found = Vec::new();
    for (number, argument) in arguments.iter().enumerate() {
        let before = number
            .checked_sub(1)
            .map(|number| arguments[number].as_ref());
        let named = match argument.split_once(['=', ':']) {
            Some((name, value)) => in_value(name, value.trim()),
            None => false,
        };
        let follows = before.is_some_and(|flag| {
            flag.starts_with('-') && !flag.contains('=') && in_value(flag, argument)
        });
        if named || (follows && !argument.starts_with('-')) || in_url(argument) {
            found.push(number);
        }
    }
    found
}

/// Whether a name says that its value is a secret. Words count as wholes where they are short.
fn is_telling(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|it: char| !it.is_ascii_alphanumeric());
    words.any(|word| {
        TELLING.iter().any(|part| match part.len() {
            ..=3 => word == *part || (word.len() > 3 && *part == "key" && word.ends_with(part)),
            _ => word.contains(part),
        })
    })
}

fn is_hidden(name: &str, value: &str) -> bool {
    let mut secrets = Secrets::default();
    secrets.add(name, value);
    !secrets.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell() {
        let value = "hunter2-hunter2";
        for name in [
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "apiKey",
            "Authorization",
            "X-Api-Key",
            "DB_PASSWORD",
            "GITHUB_PAT",
            "AWS_SECRET_ACCESS_KEY",
            "--api-key",
        ] {
            assert!(in_value(name, value), "{name}");
        }
        for name in [
            "LOG_FORMAT",
            "PATH",
            "REGION",
            "KEYBOARD",
            "PATTERN",
            "MODE",
        ] {
            assert!(!in_value(name, value), "{name}");
        }
        assert!(!in_value("GITHUB_TOKEN", "${GITHUB_TOKEN}"));
        assert!(!in_value("GITHUB_TOKEN", ""));
    }

    #[test]
    fn addresses_and_arguments_tell() {
        let cases = [
            ("https://u:hunter2@host/x", true),
            ("https://host/x?api_key=hunter2", true),
            ("postgres://me:hunter2@localhost/db", true),
            ("https://host/x?api_key=${KEY}", false),
            ("https://host/x?page=hunter2", false),
            ("@scope/package", false),
            ("me@example.com", false),
        ];
        for (url, secret) in cases {
            assert_eq!(in_url(url), secret, "{url}");
        }
        let arguments = [
            "--token",
            "hunter2",
            "--api-key=hunter2",
            "-y",
            "--key",
            "-y",
            "-H",
            "Authorization: Bearer hunter2",
        ];
        let arguments = arguments.map(Cow::from);
        assert_eq!(argument_secrets(&arguments), [1, 2, 7]);
    }
}
