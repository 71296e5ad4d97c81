//! Untrusted authorities, and addresses that no user is sent to.

use serde_json::{Value, json};
use tempfile::tempdir;
use url::Url;

use super::authority::TestAuthority;
use super::{
    super::{Challenge, FetchFault, SignIn, SignInError, authority::harmless},
    REDIRECT, account, account_with, sign_in,
};
use crate::config::OAuthSettings;

#[tokio::test]
async fn only_the_configured_issuer_gets_requests() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let trusting = |issuer: &str| OAuthSettings {
        client_id: Some("mine".into()),
        client_secret: Some("hush-hush".into()),
        issuer: Some(issuer.into()),
        ..OAuthSettings::default()
    };
    let account = account_with(&authority, state.path(), trusting("https://other.example"));
    let attempt = SignIn::begin(&account, REDIRECT, None).await;
    assert_eq!(attempt.err(), Some(SignInError::UntrustedIssuer));
    let account = account_with(&authority, state.path(), trusting(authority.base()));
    sign_in(&account).await.unwrap();
}

#[tokio::test]
async fn untrustworthy_authorities_are_refused() {
    let insecure = |host: &str| SignInError::Fetch(FetchFault::Insecure { host: host.into() });
    let internal = |host: &str| SignInError::Fetch(FetchFault::Internal { host: host.into() });
    let cases: Vec<(&'static str, Value, SignInError)> = vec![
        (
            "issuer",
            json!("https://other.example"),
            SignInError::WrongIssuer,
        ),
        ("issuer", Value::Null, SignInError::WrongIssuer),
        (
            "code_challenge_methods_supported",
            Value::Null,
            SignInError::NoPkce,
        ),
        (
            "code_challenge_methods_supported",
            json!(["plain"]),
            SignInError::NoPkce,
        ),
        (
            "registration_endpoint",
            Value::Null,
            SignInError::NoRegistration,
        ),
        (
            "authorization_endpoint",
            json!("javascript:alert(1)"),
            SignInError::HostileAddress,
        ),
        (
            "authorization_endpoint",
            json!("file:///etc/passwd"),
            SignInError::HostileAddress,
        ),
        (
            "authorization_endpoint",
            json!("http://example.com/"),
            SignInError::HostileAddress,
        ),
        (
            "token_endpoint",
            json!("http://169.254.169.254/token"),
            insecure("169.254.169.254"),
        ),
        (
            "token_endpoint",
            json!("https://10.0.0.1/token"),
            internal("10.0.0.1"),
        ),
        (
            "registration_endpoint",
            json!("http://example.com/register"),
            insecure("example.com"),
        ),
    ];
    for (field, value, expected) in cases {
        let authority = TestAuthority::start().await;
        let state = tempdir().unwrap();
        let account = account(&authority, state.path());
        authority.change(|it| {
            it.metadata.insert(field, value.clone());
        });
        let begun = SignIn::begin(&account, REDIRECT, None).await;
        assert_eq!(begun.err(), Some(expected), "{field} {value}");
        assert_eq!(authority.seen("/token").len(), 0);
    }
}

/// Redirects are followed within an origin, three times; no other origin is asked.
#[tokio::test]
async fn metadata_is_found_behind_redirects_of_its_origin_only() {
    let authority = TestAuthority::start().await;
    let other = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let moved = "/.well-known/moved";
    let from = "/.well-known/oauth-authorization-server";
    authority.change(|it| {
        it.metadata_path = Some(moved);
        it.redirect = Some((from, moved.to_owned()));
    });
    SignIn::begin(&account, REDIRECT, None).await.unwrap();
    for to in [from.to_owned(), format!("{}{from}", other.base())] {
        authority.change(|it| it.redirect = Some((from, to)));
        let begun = SignIn::begin(&account, REDIRECT, None).await;
        assert_eq!(begun.err(), Some(SignInError::Metadata));
    }
}

/// Each of the addresses that the specification lists for an issuer with a path.
#[tokio::test]
async fn the_metadata_of_an_issuer_with_a_path_is_found_at_each_well_known_address() {
    for path in [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ] {
        let authority = TestAuthority::start().await;
        let state = tempdir().unwrap();
        let account = account(&authority, state.path());
        let issuer = format!("{}/tenant", authority.base());
        authority.change(|it| {
            it.issuer = Some(issuer.clone());
            it.metadata.insert("issuer", json!(issuer));
            it.metadata_path = Some(path);
        });
        let granted = sign_in(&account).await.unwrap();
        assert_eq!(granted.issuer, Some(issuer), "{path}");
    }
}

/// The server names an authorization server inside of a network.
#[tokio::test]
async fn internal_authorities_get_no_request() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    for issuer in [
        "http://169.254.169.254",
        "https://10.0.0.1",
        "https://[fd00::1]",
        "http://example.com",
    ] {
        authority.change(|it| it.issuer = Some(issuer.to_owned()));
        let begun = SignIn::begin(&account, REDIRECT, None).await.err();
        let is_refused = matches!(
            begun,
            Some(SignInError::Fetch(
                FetchFault::Insecure { .. } | FetchFault::Internal { .. }
            ))
        );
        assert!(is_refused, "{issuer} {begun:?}");
    }
    let challenge =
        Challenge::new("Bearer resource_metadata=\"http://169.254.169.254/latest\"").unwrap();
    authority.change(|it| it.issuer = None);
    // It is ignored in favor of the metadata elsewhere.
    SignIn::begin(&account, REDIRECT, Some(&challenge))
        .await
        .unwrap();
}

#[test]
fn only_safe_addresses_are_opened_for_a_person() {
    let public = Url::parse("https://mcp.example.com/mcp").unwrap();
    let local = Url::parse("http://localhost:3000/mcp").unwrap();
    let cases = [
        ("https://as.example.com/authorize?a=b", true, true),
        (
            "https://as.example.com/$(calc)?x=`id`&y=;rm -rf",
            true,
            true,
        ),
        ("http://127.0.0.1:1/authorize", false, true),
        ("http://as.example.com/", false, false),
        ("https://user:pass@as.example.com/", false, false),
        ("https://169.254.169.254/", false, false),
        ("javascript:alert(1)", false, false),
        ("data:text/html,x", false, false),
        ("file:///etc/passwd", false, false),
        ("-https://as.example.com/", false, false),
        ("--help", false, false),
        ("vbscript:x", false, false),
        ("ms-settings:x", false, false),
        ("", false, false),
    ];
    for (address, for_public, for_local) in cases {
        for (server, expected) in [(&public, for_public), (&local, for_local)] {
            let found = harmless(server, address);
            assert_eq!(found.is_ok(), expected, "{address} {server}");
            if let Ok(url) = found {
                assert!(url.as_str().starts_with("http"));
                assert!(
                    url.as_str().bytes().all(|it| it.is_ascii_graphic()),
                    "{url}"
                );
            }
        }
    }
}
