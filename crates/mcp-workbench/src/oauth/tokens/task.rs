//! The task that owns the token of a server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        Account, Bearer, Challenge, CredentialOwner, SignInError, SignedOut, TokenFault, TokenWay,
        authority::Authority,
        error::{OAuthCode, StoreFault},
        record::{LAYOUT, Record, RegisteredClient, seconds},
        store::release,
    },
    Ask, GRACE, TokenState, ahead,
    published::{due, due_time, published_token, renewed},
};
use crate::config::Secrets;

/// The age up to which a discovered authorization server is used after a token was refused.
const FRESH: Duration = Duration::from_mins(1);
/// A new token that is refused within this time is not replaced again.
const SOON: Duration = Duration::from_secs(30);

/// The owner of the token.
pub(super) struct TokenTask {
    account: Account,
    publish: watch::Sender<TokenState>,
    is_wanted: Arc<AtomicBool>,
    /// The record as it was last loaded. Credentials of the entry have a record that is not stored.
    record: Option<Record>,
    /// The authorization server, and the time of its discovery.
    authority: Option<(Authority, Instant)>,
    /// The time of the next refresh.
    next: Option<Instant>,
    /// The last failure, and the end of the back-off.
    trouble: Option<(TokenFault, Instant)>,
    failures: u32,
    /// The last token that replaced a refused one.
    replacement: Option<(Bearer, Instant)>,
    /// Additional scopes to request with the credentials of the entry.
    needed: Vec<String>,
}

/// The reason for a new token.
#[derive(Clone, Copy)]
enum Want<'a> {
    /// The old one has expired, or will soon.
    New,
    /// The old one, if there is one, was refused.
    Other(Option<&'a Challenge>),
}

impl TokenTask {
    pub(super) fn new(
        account: Account,
        publish: watch::Sender<TokenState>,
        is_wanted: Arc<AtomicBool>,
    ) -> Self {
        Self {
            account,
            publish,
            is_wanted,
            record: None,
            authority: None,
            next: None,
            trouble: None,
            failures: 0,
            replacement: None,
            needed: Vec::new(),
        }
    }

    /// Answers requests and refreshes when that is due, one after the other, until no handle is left.
    pub(super) async fn run(
        mut self,
        mut asks: mpsc::UnboundedReceiver<Ask>,
        end: CancellationToken,
    ) {
        let over = async {
            end.cancelled().await;
            // A refresh that has begun may finish: a used refresh token without its successor ends the sign-in.
            sleep(GRACE).await;
        };
        let work = async {
            let stored = self.account.read().await;
            self.use_record(stored.unwrap_or_default());
            loop {
                let next = self.next;
                tokio::select! {
                    () = end.cancelled() => return,
                    ask = asks.recv() => match ask {
                        Some(ask) => self.answer(ask).await,
                        None => return,
                    },
                    () = due(next) => self.refresh_ahead().await,
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = over => {}
        }
    }

    async fn answer(&mut self, ask: Ask) {
        // A receiver that is gone needs no answer.
        match ask {
            Ask::Ready(reply) => drop(reply.send(self.ready().await)),
            Ask::Replace {
                refused,
                challenge,
                reply,
            } => {
                let replaced = self.replace(refused.as_ref(), challenge.as_ref()).await;
                drop(reply.send(replaced));
            }
            Ask::StepUp { scopes, reply } => {
                self.step_up(scopes).await;
                drop(reply.send(Ok(())));
            }
        }
    }

    async fn ready(&mut self) -> Result<Option<Bearer>, TokenFault> {
        if let Some(good) = self.good() {
            return Ok(Some(good));
        }
        self.check_trouble()?;
        self.renew(Want::New).await?;
        Ok(self.good())
    }

    async fn replace(
        &mut self,
        refused: Option<&Bearer>,
        challenge: Option<&Challenge>,
    ) -> Result<Bearer, TokenFault> {
        // A request that was in flight during a refresh was refused with the old token. The new token needs no further
        // refresh.
        let is_other = |it: &Bearer| Some(it) != refused;
        if let Some(other) = self.good().filter(is_other) {
            return Ok(other);
        }
        // Another workbench may have signed in or refreshed.
        self.reload().await.map_err(SignInError::from)?;
        if let Some(other) = self.good().filter(is_other) {
            return Ok(other);
        }
        self.check_trouble()?;
        let is_replacement =
            |(it, at): &(Bearer, Instant)| Some(it) == refused && at.elapsed() < SOON;
        // The server refuses even a new token. Refreshing again would never end.
        if self.replacement.as_ref().is_some_and(is_replacement) {
            return Err(SignedOut::Refused.into());
        }
        self.renew(Want::Other(challenge)).await?;
        let other = self.good().filter(is_other).ok_or(SignedOut::Refused)?;
        self.replacement = Some((other.clone(), Instant::now()));
        Ok(other)
    }

    async fn step_up(&mut self, scopes: Vec<String>) {
        if self.account.needs_person() {
            let recorded = self.account.record_needed_scopes(&scopes).await;
            let reloaded = self.reload().await;
            if let Err(error) = recorded.and(reloaded) {
                tracing::debug!("failed to store the needed scopes: {error}");
            }
            return;
        }
        let new: Vec<String> = scopes
            .into_iter()
            .filter(|it| !self.needed.contains(it))
            .collect();
        if !new.is_empty() {
            self.needed.extend(new);
            // Without a token the next request is refused, and then gets one with all of these scopes.
            self.use_record(None);
        }
    }

    async fn refresh_ahead(&mut self) {
        self.next = None;
        // A server that nobody uses is refreshed at its next use.
        if !self.is_wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        // While the old token is valid, another attempt follows after the pause. Otherwise the next request makes one.
        if self.renew(Want::New).await.is_err() && self.good().is_some() {
            self.next = self.trouble.as_ref().map(|(_, until)| *until);
        }
    }

    /// Gets a new token, and records the outcome for the back-off.
    async fn renew(&mut self, want: Want<'_>) -> Result<(), TokenFault> {
        let renewed = match self.account.way() {
            TokenWay::Person => self.refresh(want).await,
            TokenWay::Credentials => self.get_by_credentials(want).await,
            TokenWay::Exchange => self.get_by_exchange(want).await,
        };
        match &renewed {
            Ok(()) => {
                self.trouble = None;
                self.failures = 0;
            }
            Err(fault) => {
                self.failures = self.failures.saturating_add(1);
                let until = Instant::now() + ahead::pause(self.failures);
                self.trouble = Some((fault.clone(), until));
            }
        }
        renewed
    }

    /// Uses the refresh token, under the lock that all workbenches share.
    async fn refresh(&mut self, want: Want<'_>) -> Result<(), TokenFault> {
        if self.record.is_none() {
            return Err(SignedOut::Never.into());
        }
        let lock = match self.account.store() {
            Some(store) => store.lock().await.map_err(SignInError::from)?,
            None => None,
        };
        // One refresh at a time: many servers revoke a sign-in whose refresh token is used twice.
        let refreshed = self.refresh_locked(want).await;
        release(lock).await;
        refreshed
    }

    async fn refresh_locked(&mut self, want: Want<'_>) -> Result<(), TokenFault> {
        // Another workbench may have refreshed while we waited for the lock.
        if self.reload().await.map_err(SignInError::from)? {
            return Ok(());
        }
        let record = self.record.clone().ok_or(SignedOut::Never)?;
        if !record.can_refresh() {
            return Err(SignedOut::Ended.into());
        }
        self.find(want, record.resource_metadata.as_deref()).await?;
        let Some((authority, _)) = &self.authority else {
            return Err(SignedOut::Ended.into());
        };
        // A token of one authority is never sent to another.
        if authority.issuer() != record.issuer() {
            return Err(SignedOut::OtherIssuer.into());
        }
        match authority.refresh(&record).await {
            Ok(issued) => {
                self.store(renewed(record, issued)).await;
                Ok(())
            }
            Err(SignInError::NoToken {
                code:
                    code @ (OAuthCode::InvalidGrant
                    | OAuthCode::InvalidClient
                    | OAuthCode::UnauthorizedClient),
            }) => self.give_up(record, code, want).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a refused refresh token, unless a workbench without the lock has stored another one.
    async fn give_up(
        &mut self,
        mut record: Record,
        code: OAuthCode,
        want: Want<'_>,
    ) -> Result<(), TokenFault> {
        if self.reload().await.map_err(SignInError::from)? {
            return Ok(());
        }
        // The access token may still be valid although it cannot be refreshed, and is used until it expires.
        let is_good = self.good().is_some() && matches!(want, Want::New);
        match &mut record.token {
            Some(token) if is_good => token.refresh = None,
            token => *token = None,
        }
        if code != OAuthCode::InvalidGrant {
            // The client is unknown there: the next sign-in registers a new one.
            record.client.redirect_uri = None;
            self.account.forget_shared_client().await;
        }
        self.store(record).await;
        Err(SignedOut::Ended.into())
    }

    async fn get_by_credentials(&mut self, want: Want<'_>) -> Result<(), TokenFault> {
        self.find(want, None).await?;
        let Some((authority, _)) = &self.authority else {
            return Err(SignedOut::Ended.into());
        };
        let issued = authority.client_credentials(&self.needed).await?;
        let issuer = authority.issuer().map(str::to_owned);
        let record = self.record_of_credentials(issuer);
        self.use_record(Some(renewed(record, issued)));
        Ok(())
    }

    /// Exchanges the last token that the user's client sent. The user's token is sent only to the authorization server
    /// that issued it. If the entry trusts another one, that one gets an assertion about the user.
    async fn get_by_exchange(&mut self, want: Want<'_>) -> Result<(), TokenFault> {
        let account = self.account.clone();
        let CredentialOwner::User(user) = account.owner() else {
            return Err(SignedOut::Never.into());
        };
        let subject = user.token().ok_or(SignedOut::Never)?;
        let auth = account.auth().ok_or(SignedOut::Never)?;
        let client = auth.client.as_ref().ok_or(SignedOut::Never)?;
        let resource = account.url().as_str();
        let issuer = Authority::of_users(&account, auth, resource).await?;
        let other = account.settings().issuer.as_deref();
        let (named, issued) = match other.filter(|other| *other != auth.issuer) {
            None => {
                let exchange = issuer.exchange_token(client, &subject, &self.needed);
                (auth.issuer.as_str(), exchange.await?)
            }
            Some(other) => {
                self.find(want, None).await?;
                let (authority, _) = self.authority.as_ref().ok_or(SignedOut::Ended)?;
                let exchange = issuer.exchange_for_assertion(client, &subject, other, &self.needed);
                (other, authority.by_assertion(&exchange.await?).await?)
            }
        };
        let record = self.record_of_credentials(Some(named.to_owned()));
        self.use_record(Some(renewed(record, issued)));
        Ok(())
    }

    /// Finds the authorization server, unless a recent discovery can be used.
    async fn find(&mut self, want: Want<'_>, known: Option<&str>) -> Result<(), SignInError> {
        // An expired token says nothing about the authority. A refused one may mean that the server now uses another.
        let (challenge, lasts) = match want {
            Want::New => (None, Duration::MAX),
            Want::Other(challenge) => (challenge, FRESH),
        };
        let is_usable = |found: &(Authority, Instant)| found.1.elapsed() < lasts;
        if !self.authority.as_ref().is_some_and(is_usable) {
            let found = Authority::find(&self.account, challenge, known).await?;
            self.authority = Some((found, Instant::now()));
        }
        Ok(())
    }

    /// Stores a record. If that fails, it is used until the process ends.
    async fn store(&mut self, record: Record) {
        if let Some(store) = self.account.store()
            && let Err(error) = store.write(&record).await
        {
            tracing::warn!("failed to store a new token: {error}");
        }
        self.use_record(Some(record));
    }

    /// Loads the record. Returns true if it has a different token that is valid. Fails if the store of replicas cannot
    /// be reached: then it is unknown whether the user is signed in.
    async fn reload(&mut self) -> Result<bool, StoreFault> {
        if !self.account.needs_person() || self.account.store().is_none() {
            return Ok(false);
        }
        let stored = match self.account.read().await {
            Ok(stored) => stored,
            Err(fault @ StoreFault::Unreachable(_)) => return Err(fault),
            // A record that cannot be read now counts as unchanged.
            Err(_) => return Ok(false),
        };
        let token = |record: &Option<Record>| record.as_ref().and_then(|it| it.token.clone());
        let is_other = token(&stored) != token(&self.record);
        if stored != self.record {
            self.use_record(stored);
            // The last failure may not apply to the new record.
            self.trouble = None;
            self.failures = 0;
        }
        Ok(is_other && self.good().is_some())
    }

    /// Uses a record from now on, and publishes its token.
    fn use_record(&mut self, record: Option<Record>) {
        let mut secrets = self.own_secrets();
        for known in [&self.record, &record].into_iter().flatten() {
            secrets.merge(&known.secrets());
        }
        let token = record.as_ref().and_then(published_token);
        self.next = record
            .as_ref()
            .and_then(|it| it.token.as_ref())
            // Without a refresh token there is nothing to do ahead, unless the entry has credentials.
            .filter(|it| it.refresh.is_some() || !self.account.needs_person())
            .and_then(due_time);
        self.record = record;
        self.publish.send_replace(TokenState {
            is_read: true,
            token,
            secrets: Arc::new(secrets),
        });
    }

    fn own_secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        if let Some(secret) = &self.account.settings().client_secret {
            secrets.add("secret", secret);
        }
        secrets
    }

    fn good(&self) -> Option<Bearer> {
        self.publish.borrow().good().cloned()
    }

    fn check_trouble(&self) -> Result<(), TokenFault> {
        match &self.trouble {
            Some((fault, until)) if Instant::now() < *until => Err(fault.clone()),
            _ => Ok(()),
        }
    }

    /// Returns a record for a token by the credentials of the entry. It is not stored, since they get a new token at any
    /// time.
    fn record_of_credentials(&self, issuer: Option<String>) -> Record {
        let id = self.account.settings().client_id.clone();
        Record {
            layout: LAYOUT,
            server: self.account.url().to_string(),
            issuer,
            client: RegisteredClient {
                id: id.unwrap_or_default(),
                secret: None,
                redirect_uri: None,
            },
            token: None,
            scopes: Vec::new(),
            needed: Vec::new(),
            // There was no sign-in. The tools depend only on the credentials, so the identifier stays the same.
            grant: self.account.key().to_owned(),
            resource_metadata: None,
            signed_in_at: seconds(SystemTime::now()),
        }
    }
}
