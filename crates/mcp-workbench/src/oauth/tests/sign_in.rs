//! Attempts to sign in, good and bad.

use std::{fs, task::Poll};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::authority::TestAuthority;
use super::{
    super::{Challenge, OAuthCode, SignIn, SignInError, Tokens},
    REDIRECT, account, account_with, parameter, redirect, sign_in,
};
use crate::config::{OAuthGrant, OAuthSettings, SigningAlgorithm};
use tokio_util::task::TaskTracker;

#[tokio::test]
async fn an_accepted_sign_in_stores_a_token() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let attempt = SignIn::begin(&account, REDIRECT, None).await.unwrap();
    let address = attempt.address();
    assert_eq!(address.path(), "/authorize");
    assert_eq!(parameter(address, "client_id").unwrap(), "registered");
    assert_eq!(parameter(address, "code_challenge_method").unwrap(), "S256");
    assert_eq!(parameter(address, "resource"), Some(authority.server()));
    assert_eq!(parameter(address, "scope").unwrap(), "read");
    let back = redirect(&attempt, "code=good");
    let granted = attempt.finish(&back).await.unwrap();
    assert_eq!(granted.issuer.as_deref(), Some(authority.base()));
    assert_eq!(attempt.finish(&back).await, Err(SignInError::Over));

    let record = account.load().unwrap().unwrap();
    assert!(record.is_signed_in() && record.can_refresh());
    assert_eq!(record.scopes(), ["read"]);
    assert!(!format!("{record:?}").contains("access-1"));
    assert_eq!(
        record
            .secrets()
            .redact("access-1 refresh-1 hush-hush")
            .matches("[redacted]")
            .count(),
        3
    );
    let token = &authority.seen("/token")[0];
    assert_eq!(token["code"], "good");
    assert_eq!(token["resource"], authority.server());
    assert!(token.contains_key("code_verifier"));
}

#[cfg(unix)]
#[tokio::test]
async fn the_record_is_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    sign_in(&account).await.unwrap();
    let folder = state.path().join("signin");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.clone()), 0o700);
    for file in fs::read_dir(folder).unwrap() {
        assert_eq!(mode(file.unwrap().path()), 0o600);
    }
    assert!(account.sign_out().await.unwrap());
    assert!(!account.sign_out().await.unwrap());
    assert_eq!(account.load(), Ok(None));
    assert_eq!(authority.seen("/revoke")[0]["token"], "refresh-1");
}

#[tokio::test]
async fn foreign_redirects_do_not_end_the_sign_in() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let attempt = SignIn::begin(&account, REDIRECT, None).await.unwrap();
    let own = parameter(attempt.address(), "state").unwrap();
    let cases = [
        (
            format!("{REDIRECT}?state=other&code=x"),
            SignInError::WrongState,
        ),
        (format!("{REDIRECT}?code=x"), SignInError::NotARedirect),
        (format!("{REDIRECT}?state={own}"), SignInError::NotARedirect),
        (
            format!("{REDIRECT}?state={own}&code=a&code=b"),
            SignInError::NotARedirect,
        ),
        ("hello".to_owned(), SignInError::NotARedirect),
        (
            format!("{REDIRECT}?state={own}&code=x&iss=https://evil.example"),
            SignInError::WrongIssuer,
        ),
        (
            format!("{REDIRECT}?state={own}&error=access_denied&iss=https://evil.example"),
            SignInError::WrongIssuer,
        ),
    ];
    for (address, expected) in cases {
        assert_eq!(attempt.finish(&address).await, Err(expected), "{address}");
    }
    assert_eq!(authority.seen("/token").len(), 0);
    attempt
        .finish(&redirect(&attempt, "code=good"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_refusal_is_reported_by_its_code_only() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    for (word, code) in [
        ("access_denied", OAuthCode::AccessDenied),
        ("%1b%5b2Jevil", OAuthCode::Other),
    ] {
        let attempt = SignIn::begin(&account, REDIRECT, None).await.unwrap();
        let back = redirect(&attempt, &format!("error={word}&error_description=secret"));
        let finished = attempt.finish(&back).await;
        assert_eq!(finished, Err(SignInError::Denied { code }));
    }
    let attempt = SignIn::begin(&account, REDIRECT, None).await.unwrap();
    authority.change(|it| {
        it.tokens.push((
            400,
            json!({"error": "invalid_grant", "error_description": "sec-ret"}).to_string(),
        ));
    });
    let error = attempt
        .finish(&redirect(&attempt, "code=bad"))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        SignInError::NoToken {
            code: OAuthCode::InvalidGrant
        }
    );
    assert!(!format!("{error} {error:?}").contains("sec-ret"));
    assert_eq!(account.load(), Ok(None));
}

#[tokio::test]
async fn an_authority_that_announces_its_issuer_must_send_it() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    authority.change(|it| {
        it.metadata.insert(
            "authorization_response_iss_parameter_supported",
            true.into(),
        );
    });
    let attempt = SignIn::begin(&account, REDIRECT, None).await.unwrap();
    let without = attempt.finish(&redirect(&attempt, "code=good")).await;
    assert_eq!(without, Err(SignInError::WrongIssuer));
    let with = redirect(&attempt, &format!("code=good&iss={}", authority.base()));
    attempt.finish(&with).await.unwrap();
}

#[tokio::test]
async fn a_server_of_the_first_revision_has_no_metadata() {
    let authority = TestAuthority::start().await;
    authority.change(|it| it.is_silent = true);
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let granted = sign_in(&account).await.unwrap();
    assert_eq!(granted.issuer, None);
    assert!(account.load().unwrap().unwrap().is_signed_in());
}

#[tokio::test]
async fn missing_scopes_are_requested() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    sign_in(&account).await.unwrap();
    let needed = ["write".into(), "read".into(), "\u{1b}".into()];
    account.record_needed_scopes(&needed).await.unwrap();
    assert_eq!(account.load().unwrap().unwrap().needed_scopes(), ["write"]);
    let attempt = SignIn::begin(&account, REDIRECT, None).await.unwrap();
    assert_eq!(parameter(attempt.address(), "scope").unwrap(), "read write");
    // The client of last time is used again.
    assert_eq!(authority.seen("/register").len(), 1);
}

/// The lacking scopes are stored in the background, and may not be on disk when a client is offered a sign-in.
#[tokio::test]
async fn a_step_up_keeps_the_scopes_that_were_granted() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    sign_in(&account).await.unwrap();
    let asked = async |error: &str| {
        let header = format!("Bearer error=\"{error}\", scope=\"write\"");
        let challenge = Challenge::new(&header).unwrap();
        let attempt = SignIn::begin(&account, REDIRECT, Some(&challenge)).await;
        parameter(attempt.unwrap().address(), "scope").unwrap()
    };
    assert_eq!(asked("insufficient_scope").await, "write read");
    // With an invalid token the sign-in requests the scopes that the server names.
    assert_eq!(asked("invalid_token").await, "write");
}

#[tokio::test]
async fn client_credentials_need_no_person() {
    let key = include_str!("key.pem");
    let by_secret = OAuthSettings {
        client_id: Some("machine".into()),
        client_secret: Some("hush-hush".into()),
        grant: OAuthGrant::ClientCredentials,
        ..OAuthSettings::default()
    };
    let by_key = OAuthSettings {
        client_secret: None,
        private_key: Some(key.to_owned()),
        signing_algorithm: SigningAlgorithm::Es256,
        ..by_secret.clone()
    };
    for settings in [by_secret, by_key] {
        let authority = TestAuthority::start().await;
        // The user is not sent there.
        authority.change(|it| {
            it.metadata.insert("authorization_endpoint", Value::Null);
        });
        let state = tempdir().unwrap();
        let account = account_with(&authority, state.path(), settings.clone());
        let begun = SignIn::begin(&account, REDIRECT, None).await;
        assert_eq!(begun.err(), Some(SignInError::NotNeeded));
        let tokens = Tokens::new(account, &TaskTracker::new());
        assert_eq!(tokens.ready().await, Ok(None));
        let bearer = tokens.replace(None, None).await.unwrap();
        assert_eq!(tokens.present(), Poll::Ready(Some(bearer)));
        let form = &authority.seen("/token")[0];
        assert_eq!(form["grant_type"], "client_credentials");
        assert_eq!(form["resource"], authority.server());
        assert_eq!(form["scope"], "read");
        if settings.private_key.is_some() {
            assert_eq!(form["client_assertion"].split('.').count(), 3);
            assert!(!form.contains_key("client_secret"));
        } else {
            assert_eq!(form["client_secret"], "hush-hush");
        }
        assert!(!state.path().join("signin").exists());
    }
}

#[tokio::test]
async fn without_an_authorization_endpoint_nobody_can_sign_in() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    authority.change(|it| {
        it.metadata.insert("authorization_endpoint", Value::Null);
    });
    let begun = SignIn::begin(&account, REDIRECT, None).await;
    assert_eq!(begun.err(), Some(SignInError::Metadata));
}

#[tokio::test]
async fn client_credentials_do_not_use_the_record_of_a_person() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let person = OAuthSettings {
        client_id: Some("both".into()),
        client_secret: Some("hush-hush".into()),
        ..OAuthSettings::default()
    };
    let machine = OAuthSettings {
        grant: OAuthGrant::ClientCredentials,
        ..person.clone()
    };
    sign_in(&account_with(&authority, state.path(), person))
        .await
        .unwrap();
    let machine = account_with(&authority, state.path(), machine);
    assert!(machine.load().unwrap().is_none());
    let tokens = Tokens::new(machine, &TaskTracker::new());
    assert_eq!(tokens.ready().await, Ok(None));
}
