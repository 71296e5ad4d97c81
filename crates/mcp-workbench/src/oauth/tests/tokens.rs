//! Tokens while the workbench serves: refreshed, refused, rotated, revoked.

use std::{
    path::Path,
    task::Poll,
    time::{Duration, SystemTime},
};

use serde_json::json;
use tempfile::tempdir;
use tokio_util::task::TaskTracker;

use super::{
    super::{
        Account, Bearer, Challenge, FetchFault, OAuthCode, Record, SignInError, SignedOut,
        TokenFault, Tokens, record::seconds,
    },
    account,
    authority::TestAuthority,
    sign_in,
};

fn bearer(number: usize) -> Bearer {
    Bearer::new(&format!("access-{number}")).unwrap()
}

/// Returns an account that is signed in with the token `access-1`.
async fn signed_in(state: &Path) -> (TestAuthority, Account) {
    let authority = TestAuthority::start().await;
    let account = account(&authority, state);
    sign_in(&account).await.unwrap();
    (authority, account)
}

async fn change(account: &Account, change: impl FnOnce(&mut Record)) {
    account.change(change).await.unwrap();
}

/// Makes the stored token expire.
async fn end_token(account: &Account) {
    change(account, |record| {
        let token = record.token.as_mut().unwrap();
        token.expires_in = Some(60);
        token.received_at -= 3600;
    })
    .await;
}

#[tokio::test]
async fn an_expired_token_is_refreshed_before_its_use() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    end_token(&account).await;
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let ready = tokens.ready().await.unwrap();
    assert_eq!(ready, Some(bearer(2)));
    assert_eq!(tokens.present(), Poll::Ready(ready));
    let form = &authority.seen("/token")[1];
    assert_eq!(form["refresh_token"], "refresh-1");
    assert_eq!(form["resource"], authority.server());
    let record = account.load().unwrap().unwrap();
    assert_eq!(record.token.unwrap().refresh.as_deref(), Some("refresh-2"));
    // The old token is still redacted.
    let secrets = tokens.secrets();
    assert_eq!(secrets.redact("access-1 access-2"), "[redacted] [redacted]");
}

#[tokio::test]
async fn many_refused_requests_cause_one_refresh() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    let tokens = Tokens::new(account, &TaskTracker::new());
    let refused = tokens.ready().await.unwrap();
    let tasks = TaskTracker::new();
    let mut replacements = Vec::new();
    for _ in 0..20 {
        let (tokens, refused) = (tokens.clone(), refused.clone());
        replacements.push(tasks.spawn(async move { tokens.replace(refused.as_ref(), None).await }));
    }
    for replacement in replacements {
        assert_eq!(replacement.await.unwrap(), Ok(bearer(2)));
    }
    assert_eq!(authority.refreshes(), 1);
    // One that is refused at once is not refreshed again and again.
    let again = tokens.replace(Some(&bearer(2)), None).await;
    assert_eq!(again, Err(SignedOut::Refused.into()));
    assert_eq!(authority.refreshes(), 1);
}

#[tokio::test]
async fn two_workbenches_never_use_one_refresh_token() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    end_token(&account).await;
    let tasks = TaskTracker::new();
    let workbenches: Vec<Tokens> = (0..4)
        .map(|_| Tokens::new(account.clone(), &tasks))
        .collect();
    let (a, b, c, d) = tokio::join!(
        workbenches[0].ready(),
        workbenches[1].ready(),
        workbenches[2].ready(),
        workbenches[3].ready(),
    );
    for ready in [a, b, c, d] {
        assert_eq!(ready, Ok(Some(bearer(2))));
    }
    assert_eq!(authority.refreshes(), 1);
}

#[tokio::test]
async fn a_sign_in_by_another_process_is_used_without_a_restart() {
    let authority = TestAuthority::start().await;
    let state = tempdir().unwrap();
    let account = account(&authority, state.path());
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    assert_eq!(tokens.ready().await, Ok(None));
    assert_eq!(
        tokens.replace(None, None).await,
        Err(SignedOut::Never.into())
    );
    assert!(!state.path().join("signin").exists());
    sign_in(&account).await.unwrap();
    assert_eq!(tokens.replace(None, None).await, Ok(bearer(1)));
    let record = account.load().unwrap().unwrap();
    assert_eq!(tokens.grant_id().as_deref(), Some(record.grant_id()));
}

#[tokio::test]
async fn a_revoked_refresh_token_is_not_used_again() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    let refusal = (400, json!({"error": "invalid_grant"}).to_string());
    authority.change(|it| it.tokens.push(refusal));
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let refused = tokens.ready().await.unwrap();
    for _ in 0..3 {
        let replaced = tokens.replace(refused.as_ref(), None).await;
        assert_eq!(replaced, Err(SignedOut::Ended.into()));
    }
    assert_eq!(authority.refreshes(), 1);
    assert!(!matches!(tokens.present(), Poll::Ready(Some(_))));
    assert!(!account.load().unwrap().unwrap().is_signed_in());
}

/// A workbench without our lock has refreshed the token meanwhile and stored it.
#[tokio::test]
async fn a_token_rotated_by_another_process_is_used() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let refused = tokens.ready().await.unwrap();
    change(&account, |record| {
        let token = record.token.as_mut().unwrap();
        token.access = "access-9".into();
        token.refresh = Some("refresh-9".into());
    })
    .await;
    let replaced = tokens.replace(refused.as_ref(), None).await;
    assert_eq!(replaced, Ok(bearer(9)));
    assert_eq!(authority.refreshes(), 0);
}

#[tokio::test]
async fn a_temporary_error_keeps_the_token() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    authority.change(|it| it.tokens.push((503, String::new())));
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let refused = tokens.ready().await.unwrap();
    let trouble = tokens.replace(refused.as_ref(), None).await.unwrap_err();
    let host = "127.0.0.1".to_owned();
    let expected = FetchFault::Status { host, status: 503 };
    assert_eq!(trouble, TokenFault::Trouble(expected.into()));
    // There is no retry at once, and nothing is lost.
    assert!(tokens.replace(refused.as_ref(), None).await.is_err());
    assert_eq!(authority.refreshes(), 1);
    assert!(account.load().unwrap().unwrap().can_refresh());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    assert_eq!(tokens.replace(refused.as_ref(), None).await, Ok(bearer(2)));
}

/// The server names a different authorization server than the issuer of the token.
#[tokio::test]
async fn tokens_of_one_authority_are_never_sent_to_another() {
    let state = tempdir().unwrap();
    let (first, account) = signed_in(state.path()).await;
    let other = TestAuthority::start().await;
    first.change(|it| it.issuer = Some(other.base().to_owned()));
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let refused = tokens.ready().await.unwrap();
    let challenge = Challenge::new("Bearer error=\"invalid_token\"");
    let replaced = tokens.replace(refused.as_ref(), challenge.as_ref()).await;
    assert_eq!(replaced, Err(SignedOut::OtherIssuer.into()));
    assert_eq!((first.refreshes(), other.refreshes()), (0, 0));
    // Signing in again registers there.
    sign_in(&account).await.unwrap();
    assert_eq!(other.seen("/register").len(), 1);
    let record = account.load().unwrap().unwrap();
    assert_eq!(record.issuer(), Some(other.base()));
}

#[tokio::test]
async fn a_clock_change_does_not_expire_a_token() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    let now = seconds(SystemTime::now());
    // The time of receipt, the lifetime, and true if the token is used without a refresh.
    let cases = [
        (now + 100_000, Some(60), true),
        (now + 30, Some(60), true),
        (now, None, true),
        (now, Some(0), true),
        (0, None, true),
        (now, Some(u64::MAX), true),
        (now - 30, Some(3600), true),
    ];
    for (received_at, expires_in, is_tried) in cases {
        change(&account, |record| {
            let token = record.token.as_mut().unwrap();
            (token.received_at, token.expires_in) = (received_at, expires_in);
        })
        .await;
        let tokens = Tokens::new(account.clone(), &TaskTracker::new());
        let ready = tokens.ready().await.unwrap();
        let is_first = ready == Some(bearer(1));
        assert_eq!(is_first, is_tried, "{received_at} {expires_in:?}");
    }
    assert_eq!(authority.refreshes(), 0);
}

#[tokio::test]
async fn a_token_in_use_is_refreshed_ahead() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    change(&account, |record| {
        let token = record.token.as_mut().unwrap();
        token.expires_in = Some(3600);
        token.received_at -= 3590;
    })
    .await;
    authority.change(|it| it.expires_in = Some(3600));
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let mut state = tokens.state();
    assert_eq!(tokens.ready().await, Ok(Some(bearer(1))));
    let good = state.wait_for(|state| state.good() == Some(&bearer(2)));
    tokio::time::timeout(Duration::from_secs(20), good)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(authority.refreshes(), 1);
}

#[tokio::test]
async fn an_expired_token_without_a_refresh_token_ends_the_sign_in() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    change(&account, |record| {
        record.token.as_mut().unwrap().refresh = None;
    })
    .await;
    end_token(&account).await;
    let tokens = Tokens::new(account, &TaskTracker::new());
    assert_eq!(tokens.ready().await, Ok(None));
    assert_eq!(
        tokens.replace(None, None).await,
        Err(SignedOut::Ended.into())
    );
    assert_eq!(authority.refreshes(), 0);
}

#[tokio::test]
async fn an_unknown_client_is_registered_again() {
    let state = tempdir().unwrap();
    let (authority, account) = signed_in(state.path()).await;
    let refusal = (401, json!({"error": "invalid_client"}).to_string());
    authority.change(|it| it.tokens.push(refusal));
    let tokens = Tokens::new(account.clone(), &TaskTracker::new());
    let refused = tokens.ready().await.unwrap();
    let replaced = tokens.replace(refused.as_ref(), None).await;
    assert_eq!(replaced, Err(SignedOut::Ended.into()));
    sign_in(&account).await.unwrap();
    assert_eq!(authority.seen("/register").len(), 2);
}

#[tokio::test]
async fn missing_scopes_are_stored_before_the_error_is_returned() {
    let state = tempdir().unwrap();
    let (_authority, account) = signed_in(state.path()).await;
    let tasks = TaskTracker::new();
    let tokens = Tokens::new(account.clone(), &tasks);
    let challenge = Challenge::new("Bearer error=\"insufficient_scope\", scope=\"write\"").unwrap();
    tokens.step_up(&challenge).await;
    assert_eq!(account.load().unwrap().unwrap().needed_scopes(), ["write"]);
    let both = "Bearer error=\"insufficient_scope\", scope=\"read write\"";
    let both = Challenge::new(both).unwrap();
    assert_eq!(tokens.lacking(&both), ["write"], "`read` is granted");
    drop(tokens);
    tasks.close();
    tasks.wait().await;
}

#[test]
fn only_temporary_errors_are_retried() {
    let passes = SignInError::NoToken {
        code: OAuthCode::Unavailable,
    };
    let stays = SignInError::NoToken {
        code: OAuthCode::InvalidClient,
    };
    assert!(passes.is_transient() && !stays.is_transient());
}
