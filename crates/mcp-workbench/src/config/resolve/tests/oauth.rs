//! The OAuth settings of entries.

use pretty_assertions::assert_eq;

use super::*;
use crate::config::{
    CredentialsPer, OAuth, OAuthGrant, OAuthSettings, SigningAlgorithm, oauth::TokenExchange,
};

fn oauth(rest: &str) -> OAuth {
    let entry = format!(r#"{{"url": "https://x/mcp", {rest}}}"#);
    with_remote(&entry, |endpoint| endpoint.oauth.clone())
}

/// Returns the faults of an entry with this `oauth`.
fn faults(written: &str) -> Vec<String> {
    let text = format!(
        r#"{{"toolboxes": {{"y": {{"description": "d", "mcpServers": {{"x": {{"url": "https://x/mcp", "oauth": {written}}}}}}}}}}}"#
    );
    match parse(&text, Path::new("/etc/box/c.json"), &environment()) {
        Ok(loaded) => {
            let warnings = loaded.warnings.iter();
            warnings.map(|it| format!("w: {}", it.fault)).collect()
        }
        Err(problems) => problems.iter().map(|it| it.fault.to_string()).collect(),
    }
}

#[test]
fn oauth_is_on_unless_the_entry_has_credentials_or_disables_it() {
    let on = OAuth::On(Box::default());
    let cases = [
        (r#""headers": {}"#, &on),
        (r#""headers": {"X-Key": "1"}"#, &on),
        (r#""headers": {"authorization": "Bearer x"}"#, &OAuth::Off),
        (r#""oauth": false"#, &OAuth::Off),
        (r#""oauth": {"enabled": false}"#, &OAuth::Off),
        (r#""oauth": null"#, &on),
        (r#""oauth": true"#, &on),
        (r#""oauth": {}"#, &on),
        (r#""oauth": {}, "headers": {"Authorization": "x"}"#, &on),
        (
            r#""oauth": {"enabled": true, "authorizationUrl": "https://a"}"#,
            &on,
        ),
        (r#""url": "https://me:secret@x/mcp""#, &OAuth::Off),
    ];
    for (rest, expected) in cases {
        let entry = if rest.contains("\"url\"") {
            format!("{{{rest}}}")
        } else {
            format!(r#"{{"url": "https://x/mcp", {rest}}}"#)
        };
        with_remote(&entry, |it| assert_eq!(&it.oauth, expected, "{rest}"));
    }
}

#[test]
fn all_oauth_settings_are_read() {
    let found = oauth(
        r#""oauth": {"clientId": "me", "clientSecret": "${TOKEN}", "scopes": ["a", "b"], "callbackPort": 8123,
            "clientMetadataUrl": "https://me.example/client.json", "account": "work", "issuer": "https://a.example",
            "grant": "client_credentials", "privateKey": "${OTHER}", "signingAlgorithm": "RS256"}"#,
    );
    let expected = OAuthSettings {
        client_id: Some("me".into()),
        client_secret: Some("hunter2hunter2".into()),
        scopes: vec!["a".into(), "b".into()],
        callback_port: Some(8123),
        client_metadata_url: Some("https://me.example/client.json".into()),
        account: Some("work".into()),
        issuer: Some("https://a.example".into()),
        grant: OAuthGrant::ClientCredentials,
        private_key: Some("swordfish".into()),
        signing_algorithm: SigningAlgorithm::Rs256,
        per: CredentialsPer::Machine,
        exchange: None,
        literals: Vec::new(),
    };
    let shown = format!("{found:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("swordfish"));
    assert_eq!(found, OAuth::On(Box::new(expected)));
}

#[test]
fn secrets_are_redacted_whatever_their_source() {
    let entry = r#"{"url": "https://x/mcp", "oauth": {"clientId": "me", "clientSecret": "plainly-written"}}"#;
    with_remote(entry, |endpoint| {
        assert_eq!(endpoint.secrets.redact("plainly-written"), "[redacted]");
    });
}

#[test]
fn contradictory_oauth_settings_are_reported() {
    let cases = [
        (r"1", "expected a boolean or an object, found a number"),
        (r#"{"clientSecret": "abcdef"}"#, "`clientId` is missing"),
        (
            r#"{"grant": "client_credentials", "clientId": "x"}"#,
            "`clientSecret` is missing",
        ),
        (r#"{"grant": "password"}"#, "unknown value `password`"),
        (r#"{"signingAlgorithm": "HS256"}"#, "unknown value `HS256`"),
        (
            r#"{"callbackPort": 70000}"#,
            "`70000` is not between 1 and 65535",
        ),
        (
            r#"{"scopes": "a b"}"#,
            "expected an array of strings, found a string",
        ),
        (r#"{"clientID": "x"}"#, "w: unknown key `clientID`"),
    ];
    for (written, expected) in cases {
        assert_eq!(faults(written), [expected], "{written}");
    }
    assert_eq!(faults(r#"{"clientMetadataUrl": "http://x/y"}"#).len(), 1);
}

#[test]
fn credentials_may_be_those_of_users() {
    let audience = |text: &str| {
        let audience = Some(text.to_owned());
        Some(TokenExchange { audience })
    };
    for (written, per, exchange) in [
        (r#"{"per": "machine"}"#, CredentialsPer::Machine, None),
        (r#"{"per": "user"}"#, CredentialsPer::User, None),
        (
            r#"{"per": "user", "exchange": false}"#,
            CredentialsPer::User,
            None,
        ),
        (
            r#"{"per": "user", "exchange": true}"#,
            CredentialsPer::User,
            Some(TokenExchange::default()),
        ),
        (
            r#"{"per": "user", "exchange": {"audience": "files"}}"#,
            CredentialsPer::User,
            audience("files"),
        ),
    ] {
        let text = format!(
            r#"{{"auth": {{"issuer": "https://id.example", "audience": "https://x/mcp", "clientId": "me", "clientSecret": "${{TOKEN}}"}},
                "seal": {{"key": "${{KEY}}"}},
                "toolboxes": {{"y": {{"description": "d", "mcpServers": {{"x": {{"url": "https://x/mcp", "oauth": {written}}}}}}}}}}}"#
        );
        let variables = [
            ("TOKEN", "hunter2"),
            ("KEY", "0123456789abcdef0123456789abcdef"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(variables, "/".into(), None);
        let loaded = parse(&text, Path::new("/etc/box/c.json"), &environment).unwrap();
        let server = &loaded.config.toolboxes["y"].servers["x"];
        let Transport::Remote(endpoint) = &server.transport else {
            panic!("not remote");
        };
        let OAuth::On(settings) = &endpoint.oauth else {
            panic!("off");
        };
        assert_eq!(
            (settings.per, &settings.exchange),
            (per, &exchange),
            "{written}"
        );
        assert_eq!(server.is_per_user(), per == CredentialsPer::User);
    }
}

#[test]
fn contradictory_credentials_of_users_are_reported() {
    let auth = r#""auth": {"issuer": "https://id.example", "audience": "https://x/mcp"},"#;
    let entry = |rest: &str| format!(r#""url": "https://x/mcp", {rest}"#);
    for (top, entry, expected) in [
        ("", entry(r#""oauth": {"per": "user"}"#), None),
        (
            "",
            entry(r#""oauth": {"per": "group"}"#),
            Some("unknown value `group`"),
        ),
        (
            "",
            entry(
                r#""oauth": {"per": "user", "grant": "client_credentials", "clientId": "x", "clientSecret": "${TOKEN}"}"#,
            ),
            Some("credentials of users cannot be combined with the grant `client_credentials`"),
        ),
        (
            "",
            entry(r#""oauth": {"per": "user"}, "headers": {"authorization": "Bearer ${TOKEN}"}"#),
            Some(
                "credentials of users cannot be combined with the `Authorization` header of the entry",
            ),
        ),
        (
            auth,
            entry(r#""oauth": {"per": "user"}"#),
            Some("the credentials of users cannot be stored without `seal`"),
        ),
        (
            "",
            entry(r#""oauth": {"exchange": true}"#),
            Some("`exchange` needs `\"per\": \"user\"`"),
        ),
        (
            auth,
            entry(r#""oauth": {"per": "user", "exchange": true}"#),
            Some("`exchange` needs `clientId` and `clientSecret` in `auth`"),
        ),
        (
            auth,
            entry(
                r#""oauth": {"per": "user", "exchange": true, "issuer": "https://other.example"}"#,
            ),
            Some("`exchange` with a different `issuer` than `auth` needs `clientId`"),
        ),
        (
            "",
            entry(r#""oauth": {"per": "user", "exchange": {"scope": "x"}}"#),
            Some("unknown key `scope`"),
        ),
    ] {
        let text = format!(
            r#"{{{top} "toolboxes": {{"y": {{"description": "d", "mcpServers": {{"x": {{{entry}}}}}}}}}}}"#
        );
        let parsed = parse(&text, Path::new("/etc/box/c.json"), &environment());
        let faults = match parsed {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(|it| it.fault.to_string()).collect(),
        };
        let is_reported = match expected {
            Some(expected) => faults.iter().any(|it| it == expected),
            None => faults.is_empty(),
        };
        assert!(is_reported, "{entry}: {faults:?}");
    }
}
