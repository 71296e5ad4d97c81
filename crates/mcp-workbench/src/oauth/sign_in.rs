//! One attempt to sign in: the address to open, the redirect back, and the record that a success stores.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use tokio::time::Instant;
use url::Url;

use super::{
    Account, Challenge, Listener,
    authority::{Authority, AuthorizationRequest},
    error::{OAuthCode, SignInError, StoreFault},
    listener::Outcome,
    record::{LAYOUT, Record, RegisteredClient, Token, seconds},
    store::hexadecimal,
};
use crate::{alarm::timeout_at, private_files};

const TIMEOUT: Duration = Duration::from_mins(10);

/// A pending attempt. It can be finished once, within ten minutes.
pub(crate) struct SignIn {
    account: Account,
    authority: Authority,
    client: RegisteredClient,
    redirect_uri: String,
    address: Url,
    /// The value that the redirect must repeat.
    state: String,
    /// The secret that the code is bound to (PKCE).
    verifier: String,
    scopes: Vec<String>,
    resource_metadata: Option<String>,
    until: Instant,
    is_used: AtomicBool,
}

/// The result of a successful attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The authorization server, or `None` if it does not name itself.
    pub issuer: Option<String>,
}

/// The parameters of the redirect.
struct Answer {
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
        if !account.needs_person() {
            return Err(SignInError::NotNeeded);
        }
        // A record that cannot be read is replaced by the one to come.
        let record = account.read().await.ok().flatten();
        // Without a challenge the server is asked for one, since the record does not say which scopes it wants.
        let authority = Authority::find(account, challenge, None).await?;
        // No value from a different authority is sent to this one.
        let record = record.filter(|it| it.issuer() == authority.issuer());
        let challenge = challenge.or(authority.challenge());
        let resource_metadata = challenge.and_then(|it| it.resource_metadata(account.url()));
        authority.check_support()?;
        // A user who lacks scopes keeps the granted ones, also if the record does not yet name the missing ones.
        let is_step_up = challenge.is_some_and(Challenge::is_insufficient_scope);
        let scopes = authority.scopes(record.as_ref(), is_step_up);
        let client = authority.client(redirect_uri, &scopes, record.as_ref());
        let client = client.await?;
        let (state, verifier) = (random_text(), random_text());
        let address = authority.address(&AuthorizationRequest {
            client_id: &client.id,
            redirect_uri,
            scopes: &scopes,
            state: &state,
            verifier: &verifier,
        })?;
        Ok(Self {
            account: account.clone(),
            authority,
            client,
            redirect_uri: redirect_uri.to_owned(),
            address,
            state,
            verifier,
            scopes,
            resource_metadata: resource_metadata.map(String::from),
            until: Instant::now() + TIMEOUT,
            is_used: AtomicBool::new(false),
        })
    }

    /// Returns the address to open in a browser: https, or http to this machine.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// Finishes the sign-in with the redirect address of the browser, and stores the grant.
    pub(crate) async fn finish(&self, redirected: &str) -> Result<Granted, SignInError> {
        let answer = Answer::of(redirected)?;
        if answer.state != self.state {
            return Err(SignInError::WrongState);
        }
        if Instant::now() > self.until {
            return Err(SignInError::Over);
        }
        self.check_issuer(answer.issuer.as_deref())?;
        // Only a redirect that is certainly ours uses the attempt up.
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
        let (verifier, redirect_uri) = (&self.verifier, &self.redirect_uri);
        let exchange = self
            .authority
            .exchange(&self.client, &code, verifier, redirect_uri);
        let issued = exchange.await?;
        let scopes = issued.scopes.unwrap_or_else(|| self.scopes.clone());
        self.store(issued.token, scopes.clone()).await?;
        Ok(Granted {
            scopes,
            issuer: self.authority.issuer().map(str::to_owned),
        })
    }

    /// Waits for the browser, finishes the sign-in, and shows the outcome in the browser. A redirect of a different
    /// sign-in is refused, and the wait continues. Not cancel-safe while a code is exchanged.
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

    /// Refuses a redirect from a different authority (RFC 9207), even if it reports an error.
    fn check_issuer(&self, received: Option<&str>) -> Result<(), SignInError> {
        match (received, self.authority.issuer()) {
            (Some(received), Some(expected)) if received == expected => Ok(()),
            (Some(_), _) => Err(SignInError::WrongIssuer),
            (None, _) if self.authority.names_itself() => Err(SignInError::WrongIssuer),
            (None, _) => Ok(()),
        }
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

    async fn store(&self, token: Token, scopes: Vec<String>) -> Result<(), SignInError> {
        let now = seconds(SystemTime::now());
        let store = self.account.store().ok_or(StoreFault::NoPlace)?;
        let mut client = self.client.clone();
        if client.redirect_uri.is_none() {
            // It is the client of the entry, which has the secret.
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
            grant: hexadecimal(&private_files::random::<16>()),
            resource_metadata: self.resource_metadata.clone(),
            signed_in_at: now,
        };
        let _lock = store.lock().await;
        Ok(store.write(record).await?)
    }
}

impl Answer {
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
fn random_text() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(private_files::random::<32>())
}
