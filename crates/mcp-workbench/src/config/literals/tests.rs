//! The texts that count as credentials, and those that do not.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

#[test]
fn credentials_in_arguments_are_found() {
    let cases: [(&[&str], &[usize]); 15] = [
        (&["--header", "Authorization: Bearer abcdefgh1234"], &[1]),
        (&["--header=X-Key:abcdefgh1234"], &[0]),
        (&["--token", "hunter2", "hunter2"], &[1]),
        (&["--api-key=abcdefgh1234", "x"], &[0]),
        (&["run", "-e", "GITHUB_TOKEN=abcdefgh1234"], &[2]),
        (&["ghp_0123456789abcdef0123"], &[0]),
        (&["postgres://me:hunter2@db/x"], &[0]),
        (&["https://host/x?api_key=hunter2"], &[0]),
        (&["eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl"], &[0]),
        (&["--key", "-y", "--port=808080", "plain-word"], &[]),
        (&["--token", "${TOKEN}", "--port", "12345678"], &[]),
        (&["--token-file", "somewhere/token.txt", "--auth=true"], &[]),
        (&["-y", "@scope/sk-server", "--secret", "/run/secret"], &[]),
        (&["https://me@example.com/", "postgres://me:${P}@db/x"], &[]),
        (&["https://host/a:b@c", "me@example.com"], &[]),
    ];
    for (arguments, found) in cases {
        assert_eq!(secret_arguments(arguments), found, "{arguments:?}");
    }
}

#[test]
fn arguments_are_named_for_secrets() {
    let cases: [(&[&str], &[usize]); 7] = [
        (&["--token", "${X}", "${Y}"], &[1]),
        (&["--api-key=${X}", "--port", "${Y}"], &[0]),
        (&["-e", "API_TOKEN=${X}", "${TOKEN}"], &[1]),
        (&["--header", "Authorization: Bearer ${X}"], &[1]),
        (&["--header", "Accept: ${X}"], &[]),
        (&["--key", "~/${X}", "--token-file", "${Y}"], &[]),
        (&["--token", "--verbose", "${X}"], &[]),
    ];
    for (arguments, found) in cases {
        assert_eq!(arguments_for_secrets(arguments), found, "{arguments:?}");
    }
}

#[test]
fn secrets_are_recognized_by_their_names() {
    let tells = |name: &str| is_literal_secret(name, "hunter2-hunter2", &Secrets::default());
    for name in [
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "apiKey",
        "accessToken",
        "Authorization",
        "X-Api-Key",
        "DB_PASSWORD",
        "GITHUB_PAT",
        "AWS_SECRET_ACCESS_KEY",
        "SENTRY_DSN",
        "--api-key",
    ] {
        assert!(tells(name), "{name}");
    }
    for name in [
        "LOG_FORMAT",
        "PATH",
        "REGION",
        "KEYBOARD",
        "PATTERN",
        "MODE",
        "TOKENIZER",
        "MAX_TOKENS",
        "AUTH_PROVIDER",
        "SECRET_NAME",
    ] {
        assert!(!tells(name), "{name}");
    }
    assert!(!is_literal_secret(
        "DOCS_KEY",
        "https://host/x",
        &Secrets::default()
    ));
}

#[test]
fn values_of_variables_are_not_literal() {
    let mut known = Secrets::default();
    known.add("TOKEN", "abcdefgh1234");
    let cases = [
        ("API_TOKEN", "abcdefgh1234", false),
        ("Authorization", "Bearer abcdefgh1234", false),
        ("Authorization", "Bearer other-abcdefgh", true),
        ("API_TOKEN", "other-abcdefgh", true),
        ("LOG_LEVEL", "other-abcdefgh", false),
        ("X-Trace", "Bearer other-abcdefgh", true),
    ];
    for (name, value, secret) in cases {
        assert_eq!(
            is_literal_secret(name, value, &known),
            secret,
            "{name} {value}"
        );
    }
    let addresses = [
        ("https://x/mcp?api_key=abcdefgh1", true),
        ("https://x/mcp?api_key=abcdefgh1234", false),
        ("https://x/mcp?page=abcdefgh1", false),
        ("https://user:${PASSWORD}@x.test", false),
        ("https://ghp_0123456789abcdef0123@x.test", true),
    ];
    for (url, secret) in addresses {
        assert_eq!(is_secret_url(url, &known), secret, "{url}");
    }
}

#[test]
fn every_part_of_an_entry_is_checked() {
    let entry = json!({
        "args": ["--token=abcdefgh", "--token=${T}", "plain"],
        "env": {"API_TOKEN": "12345678", "OTHER_TOKEN": "${OTHER}", "LEVEL": "information", "PASSWORD": ""},
        "headers": {"authorization": "Bearer 12345678", "X-Trace": "12345678"},
        "url": "https://user:pass@x.test/mcp",
    });
    let places = literal_secrets(&entry);
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(
        places,
        ["args[0]", "env.API_TOKEN", "headers.authorization", "url"]
    );
    assert_eq!(literal_secrets(&json!({"command": "x", "args": 1})), []);
}
