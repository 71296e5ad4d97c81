//! One attempt to sign in: where to, the way back, and what is stored when it succeeds.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use url::Url;

use super::{
    Account, Challenge, Listener,
    authority::{Authority, OFFLINE, parameter},
    error::{OAuthCode, SignInError, StoreFault},
    listener::Outcome,
    record::{LAYOUT, Record, RegisteredClient, Token, seconds},
    store::hexadecimal,
};
use crate::{alarm::timeout_at, private_files};

/// How long an attempt can be finished.
const PATIENCE: Duration = Duration::from_mins(10);

/// An attempt that is under way. It can be finished once, within ten minutes.
pub(crate) struct SignIn {
    account: Account,
    authority: Authority,
    client: RegisteredClient,
    address: Url,
    /// What the browser has to bring back.
    state: String,
    scopes: Vec<String>,
    resource_metadata: Option<String>,
    until: Instant,
    is_used: AtomicBool,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The authorization server; none where it does not say who it is.
    pub issuer: Option<String>,
}

/// What a browser brought back.
struct Answer {
    state: String,
    issuer: Option<String>,
    code: Result<String, OAuthCode>,
}

impl SignIn {
    /// Finds out where to sign in, registers the workbench there if need be, and makes the address.
    pub(crate) async fn begin(
        account: &Account,
        redirect_uri: &str,
        challenge: Option<&Challenge>,
    ) -> Result<Self, SignInError> {
        if !account.needs_person() {
            return Err(SignInError::NotNeeded);
        }
        // A record that cannot be read is replaced by the one to come.
        let record = account.read().await.ok().flatten();
        // Without a challenge the server is asked for one: what is known of it does not say which scopes it wants.
        let mut authority = Authority::find(account, challenge.map(Challenge::as_str)).await?;
        // Nothing of what another authority gave is told to this one.
        let record = record.filter(|it| it.issuer() == authority.issuer());
        let challenge = challenge.or(authority.challenge());
        let resource_metadata = challenge.and_then(|it| it.resource_metadata(account.url()));
        authority.check_pkce()?;
        // Who lacks scopes keeps those that they have, also if nobody has noted yet which are lacking.
        let is_step_up = challenge.is_some_and(Challenge::is_insufficient_scope);
        let scopes = authority.scopes(record.as_ref(), is_step_up).await;
        let client = authority.become_client(redirect_uri, &scopes, record.as_ref());
        let client = client.await?;
        let mut address = authority.address(&scopes).await?;
        if scopes.iter().any(|scope| scope == OFFLINE) {
            // Else OpenID providers leave the scope out (OpenID Connect Core, section 11).
            address.query_pairs_mut().append_pair("prompt", "consent");
        }
        let state = parameter(&address, "state").ok_or(SignInError::Metadata)?;
        Ok(Self {
            account: account.clone(),
            authority,
            client,
            address,
            state,
            scopes,
            resource_metadata,
            until: Instant::now() + PATIENCE,
            is_used: AtomicBool::new(false),
        })
    }

    /// The address to open in a browser: https, or http to this machine.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// Finishes it with the address that the browser was sent back to, and stores what was granted.
    pub(crate) async fn finish(&self, redirected: &str) -> Result<Granted, SignInError> {
        let answer = Answer::of(redirected)?;
        if answer.state != self.state {
            return Err(SignInError::WrongState);
        }
        if Instant::now() > self.until {
            return Err(SignInError::Over);
        }
        self.check_issuer(answer.issuer.as_deref())?;
        // Only what is ours for certain uses the attempt up.
        if self.is_used.swap(true, Ordering::Relaxed) {
            return Err(SignInError::Over);
        }
        let code = match answer.code {
            Ok(code) => code,
            Err(code) => {
                self.forget_needed(code).await;
                return Err(SignInError::Denied { code });
            }
        };
        let issuer = answer.issuer.as_deref();
        let given = self
            .authority
            .exchange(&code, &answer.state, issuer)
            .await?;
        let scopes = given.scopes.unwrap_or_else(|| self.scopes.clone());
        self.keep(given.token, scopes.clone()).await?;
        Ok(Granted {
            scopes,
            issuer: self.authority.issuer().map(str::to_owned),
        })
    }

    /// Waits until the browser comes back, tells it the outcome, and finishes. What belongs to another attempt is told so and
    /// ends nothing. Not cancel-safe while a code is exchanged.
    pub(crate) async fn wait(&self, listener: &mut Listener) -> Result<Granted, SignInError> {
        loop {
            let redirected = timeout_at(self.until, listener.next()).await;
            let redirected = redirected.map_err(|_| SignInError::Over)?;
            let finished = self.finish(&redirected.address).await;
            let outcome = Outcome::of(&finished);
            redirected.say(outcome).await;
            if outcome != Outcome::Stray {
                return finished;
            }
        }
    }

    /// An answer of another authority than the one that was asked is a mix-up, also if it is a refusal.
    fn check_issuer(&self, received: Option<&str>) -> Result<(), SignInError> {
        match (received, self.authority.issuer()) {
            (Some(received), Some(expected)) if received == expected => Ok(()),
            (Some(_), _) => Err(SignInError::WrongIssuer),
            (None, _) if self.authority.names_itself() => Err(SignInError::WrongIssuer),
            (None, _) => Ok(()),
        }
    }

    /// Scopes that nobody grants are not asked for again.
    async fn forget_needed(&self, code: OAuthCode) {
        if code != OAuthCode::InvalidScope {
            return;
        }
        let forgotten = self.account.change(|record| record.needed.clear()).await;
        if let Err(error) = forgotten {
            tracing::debug!("the scopes that are needed are still kept: {error}");
        }
    }

    async fn keep(&self, token: Token, scopes: Vec<String>) -> Result<(), SignInError> {
        let now = seconds(SystemTime::now());
        let store = self.account.store().ok_or(StoreFault::NoPlace)?;
        let mut client = self.client.clone();
        if client.redirect_uri.is_none() {
            // It is the entry's, which has its secret.
            client.secret = None;
        }
        let record = Record {
            layout: LAYOUT,
            server: self.account.url().to_string(),
            issuer: self.authority.issuer().map(str::to_owned),
            client,
            token: Some(Token {
                received_at: now,
                ..token
            }),
            scopes,
            needed: Vec::new(),
            grant: grant_id(),
            resource_metadata: self.resource_metadata.clone(),
            signed_in_at: now,
        };
        let _lock = store.lock().await;
        Ok(store.write(record).await?)
    }
}

impl Answer {
    /// Reads the address that a browser was sent back to. A parameter that stands there twice makes it none.
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

/// What discovery begins with: the challenge, or what is known of where the server describes itself.
pub(super) fn hint(
    challenge: Option<&Challenge>,
    resource_metadata: Option<&str>,
) -> Option<String> {
    let challenge = challenge.map(|it| it.as_str().to_owned());
    let known = |it: &str| format!("Bearer resource_metadata=\"{it}\"");
    challenge.or_else(|| resource_metadata.map(known))
}

/// What tells one sign-in from all others.
pub(super) fn grant_id() -> String {
    hexadecimal(&private_files::random::<16>())
}
