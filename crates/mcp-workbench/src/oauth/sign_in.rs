//! One attempt to sign in: the address to open, the redirect back, and the record that a success stores.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use url::Url;

use super::{
    Account, Challenge, Listener,
    authority::{Authority, AuthorizationRequest, IssuedToken, KnownClient},
    error::{OAuthCode, SignInError, StoreFault},
    listener::RedirectOutcome,
    record::{LAYOUT, Record, RegisteredClient, Token, seconds},
    store::release,
};
use crate::{alarm::timeout_at, config::Auth, private_files, sha256::hexadecimal};

/// The time that a user has to sign in.
pub(crate) const SIGN_IN_TIMEOUT: Duration = Duration::from_mins(10);

/// A pending attempt. It can be finished once, within ten minutes.
pub(crate) struct SignIn {
    pending: PendingSignIn,
    address: Url,
    until: Instant,
    is_used: AtomicBool,
}

/// The part of an attempt that waits for the redirect.
pub(super) struct PendingSignIn {
    account: Account,
    authority: Authority,
    attempt: Attempt,
}

/// The values of an attempt that the redirect is checked with.
#[derive(Serialize, Deserialize)]
pub(super) struct Attempt {
    client: RegisteredClient,
    redirect_uri: String,
    /// The value that the redirect must repeat.
    state: String,
    /// The secret that the code is bound to (PKCE).
    verifier: String,
    scopes: Vec<String>,
    resource_metadata: Option<String>,
    issuer: Option<String>,
}

/// The result of a successful attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrantedAccess {
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The authorization server, or `None` if it does not name itself.
    pub issuer: Option<String>,
}

/// The parameters of the redirect.
struct RedirectAnswer {
    state: String,
    issuer: Option<String>,
    code: Result<String, OAuthCode>,
}

impl SignIn {
    /// Finds the authorization server, registers the workbench there if necessary, and makes the address.
    pub(crate) async fn begin(
        account: &Account,
        redirect_uri: &str,
        challenge: Option<&Challenge>,
    ) -> Result<Self, SignInError> {
        let (pending, address) = PendingSignIn::begin(account, redirect_uri, challenge).await?;
        Ok(Self {
            pending,
            address,
            until: Instant::now() + SIGN_IN_TIMEOUT,
            is_used: AtomicBool::new(false),
        })
    }

    /// Returns the address to open in a browser: https, or http to this machine.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// Finishes the sign-in with the redirect address of the browser, and stores the grant.
    pub(crate) async fn finish(&self, redirected: &str) -> Result<GrantedAccess, SignInError> {
        let answer = self.pending.check(redirected)?;
        if Instant::now() > self.until {
            return Err(SignInError::Over);
        }
        // Only a redirect that is certainly ours uses the attempt up.
        if self.is_used.swap(true, Ordering::Relaxed) {
            return Err(SignInError::Over);
        }
        self.pending.store(answer).await
    }

    /// Waits for the browser, finishes the sign-in, and shows the outcome in the browser. A redirect of a different
    /// sign-in is refused, and the wait continues. Not cancel-safe while a code is exchanged.
    pub(crate) async fn wait(&self, listener: &mut Listener) -> Result<GrantedAccess, SignInError> {
        loop {
            let redirected = timeout_at(self.until, listener.next())
                .await
                .map_err(|_| SignInError::Over)?;
            let finished = self.finish(&redirected.address).await;
            let outcome = RedirectOutcome::of(&finished);
            redirected.say(outcome).await;
            if outcome != RedirectOutcome::Stray {
                return finished;
            }
        }
    }
}

impl PendingSignIn {
    /// Begins an attempt. Returns it with the address to open.
    pub(super) async fn begin(
        account: &Account,
        redirect_uri: &str,
        challenge: Option<&Challenge>,
    ) -> Result<(Self, Url), SignInError> {
        if !account.needs_person() {
            return Err(SignInError::NotNeeded);
        }
        let record = account.read_to_replace().await?;
        // Without a challenge the server is asked for one, since the record does not say which scopes it wants.
        let authority = Authority::find(account, challenge, None).await?;
        // No value from a different authority is sent to this one.
        let record = record.filter(|it| it.issuer() == authority.issuer());
        let challenge = challenge.or(authority.challenge());
        let resource_metadata = challenge
            .and_then(|it| it.resource_metadata(account.url()))
            .map(String::from);
        // A user who lacks scopes keeps the granted ones, even if the record does not yet name the missing ones.
        let is_step_up = challenge.is_some_and(Challenge::is_insufficient_scope);
        let scopes = authority.scopes(record.as_ref(), is_step_up);
        let known = match account.shared_client().await? {
            Some(shared) => Some(shared),
            None => record.map(|it| it.known_client()),
        };
        let request = NewAttempt {
            redirect_uri,
            scopes,
            known,
            resource_metadata,
        };
        Self::with(account, authority, request).await
    }

    /// Begins an attempt of a user at the authorization server of the workbench's users.
    pub(super) async fn begin_for_users(
        account: &Account,
        auth: &Auth,
        redirect_uri: &str,
    ) -> Result<(Self, Url), SignInError> {
        let authority = Authority::of_users(account, auth, auth.resource.as_str()).await?;
        let request = NewAttempt {
            redirect_uri,
            scopes: auth.scopes.clone(),
            known: account.shared_client().await?,
            resource_metadata: None,
        };
        Self::with(account, authority, request).await
    }

    async fn with(
        account: &Account,
        authority: Authority,
        request: NewAttempt<'_>,
    ) -> Result<(Self, Url), SignInError> {
        authority.check_support()?;
        let NewAttempt {
            redirect_uri,
            scopes,
            known,
            resource_metadata,
        } = request;
        let client = authority
            .client(redirect_uri, &scopes, known.as_ref())
            .await?;
        let issuer = authority.issuer().map(str::to_owned);
        // Only a client that was registered just now is shared. One of the entry has no redirect address.
        let is_new = known.is_none_or(|it| it.client.id != client.id);
        if is_new && client.redirect_uri.is_some() {
            let (issuer, client) = (issuer.clone(), client.clone());
            account.share_client(&KnownClient { issuer, client }).await;
        }
        let attempt = Attempt {
            client,
            redirect_uri: redirect_uri.to_owned(),
            state: random_text(),
            verifier: random_text(),
            scopes,
            resource_metadata,
            issuer,
        };
        let address = authority.address(&AuthorizationRequest {
            client_id: &attempt.client.id,
            redirect_uri,
            scopes: &attempt.scopes,
            state: &attempt.state,
            verifier: &attempt.verifier,
        })?;
        let pending = Self {
            account: account.clone(),
            authority,
            attempt,
        };
        Ok((pending, address))
    }

    /// Continues an attempt that was begun elsewhere: the authorization server must still be the same.
    pub(super) async fn resume(account: &Account, attempt: Attempt) -> Result<Self, SignInError> {
        let known = attempt.resource_metadata.as_deref();
        let authority = Authority::find(account, None, known).await?;
        Self::resume_at(account, authority, attempt)
    }

    /// Continues an attempt at the authorization server of the workbench's users.
    pub(super) async fn resume_for_users(
        account: &Account,
        auth: &Auth,
        attempt: Attempt,
    ) -> Result<Self, SignInError> {
        let authority = Authority::of_users(account, auth, auth.resource.as_str()).await?;
        Self::resume_at(account, authority, attempt)
    }

    fn resume_at(
        account: &Account,
        authority: Authority,
        attempt: Attempt,
    ) -> Result<Self, SignInError> {
        if authority.issuer() != attempt.issuer.as_deref() {
            return Err(SignInError::WrongIssuer);
        }
        Ok(Self {
            account: account.clone(),
            authority,
            attempt,
        })
    }

    pub(super) fn into_attempt(self) -> Attempt {
        self.attempt
    }

    /// Finishes the sign-in with the redirect address of the browser, and stores the grant.
    pub(super) async fn finish(&self, redirected: &str) -> Result<GrantedAccess, SignInError> {
        self.store(self.check(redirected)?).await
    }

    /// Exchanges the code of a redirect, and returns the token without storing it.
    pub(super) async fn redeem(&self, redirected: &str) -> Result<String, SignInError> {
        let issued = self.exchange(self.check(redirected)?).await?;
        Ok(issued.token.access)
    }

    /// Returns the parameters of a redirect that belongs to this attempt.
    fn check(&self, redirected: &str) -> Result<RedirectAnswer, SignInError> {
        let answer = RedirectAnswer::of(redirected)?;
        if answer.state != self.attempt.state {
            return Err(SignInError::WrongState);
        }
        self.check_issuer(answer.issuer.as_deref())?;
        Ok(answer)
    }

    /// Refuses a redirect from a different authority (RFC 9207), even if it reports an error.
    fn check_issuer(&self, received: Option<&str>) -> Result<(), SignInError> {
        match (received, self.authority.issuer()) {
            (Some(received), Some(expected)) if received == expected => Ok(()),
            (Some(_), _) => Err(SignInError::WrongIssuer),
            (None, _) if self.authority.names_itself() => Err(SignInError::WrongIssuer),
            (None, _) => Ok(()),
        }
    }

    async fn exchange(&self, answer: RedirectAnswer) -> Result<IssuedToken, SignInError> {
        let code = match answer.code {
            Ok(code) => code,
            Err(code) => {
                self.forget_needed(code).await;
                return Err(SignInError::Denied { code });
            }
        };
        let Attempt {
            client,
            verifier,
            redirect_uri,
            ..
        } = &self.attempt;
        let exchange = self
            .authority
            .exchange(client, &code, verifier, redirect_uri);
        exchange.await
    }

    /// Removes scopes that the authority does not know from the record, so that the next sign-in succeeds without them.
    async fn forget_needed(&self, code: OAuthCode) {
        if code != OAuthCode::InvalidScope {
            return;
        }
        let forgotten = self.account.change(|record| record.needed.clear()).await;
        if let Err(error) = forgotten {
            tracing::debug!("failed to remove the needed scopes from the record: {error}");
        }
    }

    /// Exchanges the code, and stores the token.
    async fn store(&self, answer: RedirectAnswer) -> Result<GrantedAccess, SignInError> {
        let issued = self.exchange(answer).await?;
        let scopes = issued.scopes.unwrap_or_else(|| self.attempt.scopes.clone());
        let now = seconds(SystemTime::now());
        let store = self.account.store().ok_or(StoreFault::NoPlace)?;
        let mut client = self.attempt.client.clone();
        if client.redirect_uri.is_none() {
            // It is the client of the entry, which has the secret.
            client.secret = None;
        }
        let issuer = self.authority.issuer().map(str::to_owned);
        let record = Record {
            layout: LAYOUT,
            server: self.account.url().to_string(),
            issuer: issuer.clone(),
            client,
            token: Some(Token {
                received_at: now,
                ..issued.token
            }),
            scopes: scopes.clone(),
            needed: Vec::new(),
            grant: hexadecimal(&private_files::random::<16>()),
            resource_metadata: self.attempt.resource_metadata.clone(),
            signed_in_at: now,
        };
        // The code is exchanged by now: it expires quickly, and the lock may be taken for long.
        let lock = store.lock().await?;
        let written = store.write(&record).await;
        // Even after a failure, since a lock in the store of replicas would last until its timeout.
        release(lock).await;
        written?;
        Ok(GrantedAccess { scopes, issuer })
    }
}

/// The values that a new attempt begins with.
struct NewAttempt<'a> {
    redirect_uri: &'a str,
    scopes: Vec<String>,
    /// A client that was registered before.
    known: Option<KnownClient>,
    resource_metadata: Option<String>,
}

impl Attempt {
    pub(super) fn state(&self) -> &str {
        &self.state
    }
}

impl RedirectAnswer {
    /// Parses the address that the browser was redirected to. A duplicate parameter makes it invalid.
    fn of(redirected: &str) -> Result<Self, SignInError> {
        let url = Url::parse(redirected.trim()).map_err(|_| SignInError::NotARedirect)?;
        let value = |name: &str| {
            let mut values = url.query_pairs().filter(|(key, _)| key == name);
            match (values.next(), values.next()) {
                (Some((_, value)), None) => Ok(Some(value.into_owned())),
                (None, _) => Ok(None),
                (Some(_), Some(_)) => Err(SignInError::NotARedirect),
            }
        };
        let state = value("state")?.ok_or(SignInError::NotARedirect)?;
        let code = match (value("error")?, value("code")?) {
            (Some(error), _) => Err(OAuthCode::of(&error)),
            (None, Some(code)) if !code.is_empty() => Ok(code),
            (None, _) => return Err(SignInError::NotARedirect),
        };
        let issuer = value("iss")?;
        Ok(Self {
            state,
            issuer,
            code,
        })
    }
}

/// Returns an unguessable text of 43 characters.
pub(super) fn random_text() -> String {
    // As a code verifier it needs at least 43 characters (RFC 7636, section 4.1).
    BASE64_URL_SAFE_NO_PAD.encode(private_files::random::<32>())
}
