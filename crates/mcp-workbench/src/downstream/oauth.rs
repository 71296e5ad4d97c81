//! OAuth for one remote server: the token that its requests carry, the reaction to a refusal, and the
//! message if nothing helps.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    task::Poll,
};

use ident::ServerIdentifier;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    error::{SignInNeeded, SignInReason, SignInRemedy},
    link::LinkContext,
    supervisor::adapt::Entry,
};
use crate::{
    config::{Config, Invocation, RemoteEndpoint, Secrets, Transport},
    oauth::{
        Account, AccountPlace, Bearer, Challenge, CredentialOwner, SignedOut, TokenFault, TokenWay,
        Tokens, UserRecords, UserSignIns,
    },
    seal::Sealer,
    store::Store,
};

/// Settings that all servers share.
#[derive(Clone)]
pub(crate) struct OAuthContext {
    /// The directory where tokens of the user of this machine are stored, if there is one.
    pub(crate) state: Option<PathBuf>,
    /// The command line that signs in.
    program: Invocation,
    /// The place of the credentials of users.
    records: UserRecords,
    /// The sign-ins of the users of the configuration, if it has any.
    pub(crate) users: Option<Arc<UserSignIns>>,
}

impl OAuthContext {
    pub(crate) fn of(config: &Config, sealer: &Sealer, store: Option<&Store>) -> Self {
        let records = UserRecords::of(config, sealer, store);
        Self {
            users: UserSignIns::of(config, sealer, &records),
            records,
            state: config.state.clone(),
            program: Invocation::of(config),
        }
    }
}

/// The OAuth client of one server: its account and its token. Cheap to clone.
#[derive(Clone)]
pub(crate) struct OAuthClient {
    account: Account,
    tokens: Tokens,
    remedy: SignInRemedy,
    /// The sign-ins of users, if it is the account of one.
    users: Option<Arc<UserSignIns>>,
}

impl OAuthClient {
    /// Returns the client of a server, or `None` if the server needs no sign-in.
    pub(crate) fn new(
        endpoint: &RemoteEndpoint,
        place: &ServerIdentifier,
        owner: &CredentialOwner,
        links: &LinkContext,
    ) -> Option<Self> {
        let context = &links.oauth;
        let account = Account::of(
            endpoint,
            AccountPlace {
                state: context.state.as_deref(),
                owner,
                users: &context.records,
                auth: context.users.as_ref().map(|it| it.auth()),
            },
        )?;
        let users = context
            .users
            .as_ref()
            .filter(|_| matches!(account.owner(), CredentialOwner::User(_)));
        Some(Self {
            tokens: Tokens::new(account.clone(), &links.tasks),
            remedy: match (account.way(), account.owner(), users) {
                (TokenWay::Exchange, CredentialOwner::User(_), _) | (TokenWay::Credentials, ..) => {
                    SignInRemedy::Entry
                }
                (_, CredentialOwner::Nobody, _) | (TokenWay::Exchange, ..) => SignInRemedy::NoUser,
                (TokenWay::Person, _, Some(users)) => {
                    SignInRemedy::Page(users.page(place).as_str().into())
                }
                (TokenWay::Person, ..) => {
                    SignInRemedy::Command(context.program.about("login", place, None).into())
                }
            },
            users: users.cloned(),
            account,
        })
    }

    /// Returns the sign-ins of users and the address of the page that begins one, if it is the account of a user.
    pub(crate) fn user_page(&self) -> Option<(&Arc<UserSignIns>, &str)> {
        match (&self.users, &self.remedy) {
            (Some(users), SignInRemedy::Page(page)) => Some((users, page)),
            _ => None,
        }
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    pub(crate) fn end(&self) {
        self.tokens.end();
    }

    /// Returns the token for a request, if there is one and it needs no waiting.
    pub(crate) fn present_bearer(&self) -> Poll<Option<Bearer>> {
        self.tokens.present()
    }

    /// Returns the token for a request, if there is one.
    pub(crate) async fn bearer(&self) -> Option<Bearer> {
        // The request is sent without a token: the challenge in the refusal says what to do.
        let ready = self.tokens.ready().await;
        ready.unwrap_or_else(|fault| {
            tracing::debug!("no token: {fault}");
            None
        })
    }

    /// Returns a token to replace a refused one, if there is one.
    pub(crate) async fn replace_token(
        &self,
        refused: Option<&Bearer>,
        challenge: Option<&Challenge>,
    ) -> Result<Bearer, Box<SignInNeeded>> {
        match self.tokens.replace(refused, challenge).await {
            Ok(bearer) => Ok(bearer),
            Err(fault) => {
                let lack = match fault {
                    TokenFault::SignedOut(why) => SignInReason::Token(why),
                    TokenFault::Trouble(why) => SignInReason::Trouble(why),
                };
                Err(Box::new(self.needed(lack, challenge)))
            }
        }
    }

    /// Returns a token with more scopes than the refused one, if there is one without the user: credentials of the entry
    /// get any scope, and the user may have signed in again elsewhere. The token is not refreshed, since that adds no
    /// scopes.
    pub(crate) async fn widen(
        &self,
        refused: Option<&Bearer>,
        challenge: &Challenge,
    ) -> Result<Bearer, Box<SignInNeeded>> {
        if !self.account.needs_person() {
            self.tokens.step_up(challenge).await;
            return self.replace_token(None, Some(challenge)).await;
        }
        let stored = self.account.read().await.ok().flatten();
        let known = self.tokens.grant_id();
        // The stored sign-in is the one that was refused, so only the user can get more scopes.
        if stored.is_none_or(|it| Some(it.grant_id()) == known.as_deref()) {
            return Err(Box::new(self.step_up(challenge).await));
        }
        self.replace_token(refused, Some(challenge)).await
    }

    /// Returns the identifier of the account whose answers the server gives, for the tool cache.
    pub(crate) fn grant(&self) -> Option<String> {
        grant_of(&self.account, || Some(self.tokens.grant_id()?.to_string()))
    }

    /// Returns the values to redact in texts of the server.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        self.tokens.secrets()
    }

    /// Returns the error for a token that was refused although it is new.
    pub(crate) fn refused(&self, challenge: Option<&Challenge>) -> SignInNeeded {
        self.needed(SignInReason::Token(SignedOut::Refused), challenge)
    }

    /// Returns the error for a token that lacks scopes. The next sign-in requests them.
    pub(crate) async fn step_up(&self, challenge: &Challenge) -> SignInNeeded {
        self.tokens.step_up(challenge).await;
        self.needed(
            SignInReason::Scopes(self.tokens.lacking(challenge)),
            Some(challenge),
        )
    }

    fn needed(&self, lack: SignInReason, challenge: Option<&Challenge>) -> SignInNeeded {
        SignInNeeded {
            lack,
            remedy: self.remedy.clone(),
            challenge: challenge.cloned(),
        }
    }
}

/// Returns the identifier of the account whose answers a server gives: the stored sign-in of the user of this machine, or
/// the credentials of its entry.
pub(crate) fn stored_grant(endpoint: &RemoteEndpoint, state: Option<&Path>) -> Option<String> {
    let account = Account::of_machine(endpoint, state)?;
    grant_of(&account, || {
        let stored = account.load().ok().flatten()?;
        Some(stored.grant_id().to_owned())
    })
}

fn grant_of(account: &Account, signed_in: impl FnOnce() -> Option<String>) -> Option<String> {
    if account.needs_person() {
        signed_in()
    } else {
        Some(account.key().to_owned())
    }
}

/// Holds the OAuth client of one server, which is created at its first start.
pub(crate) struct ServerOAuth {
    /// `None` if the server needs no sign-in.
    oauth: OnceLock<Option<OAuthClient>>,
    /// The right to offer a sign-in: to one user at a time.
    offer: Semaphore,
}

impl Default for ServerOAuth {
    fn default() -> Self {
        Self {
            oauth: OnceLock::new(),
            offer: Semaphore::new(1),
        }
    }
}

impl ServerOAuth {
    /// Returns the client, and creates it if there is none yet.
    pub(crate) fn get_or_make(
        &self,
        place: &ServerIdentifier,
        entry: &Entry,
        links: &LinkContext,
    ) -> Option<&OAuthClient> {
        let owner = entry.owner.as_ref().unwrap_or(&CredentialOwner::Machine);
        let oauth = || match &entry.server.transport {
            Transport::Remote(endpoint) => OAuthClient::new(endpoint, place, owner, links),
            Transport::Stdio(_) | Transport::Unset(_) => None,
        };
        self.oauth.get_or_init(oauth).as_ref()
    }

    /// Returns the client, if somebody may have to sign in to the server.
    pub(crate) fn get(&self) -> Option<&OAuthClient> {
        self.oauth.get()?.as_ref()
    }

    /// Takes the permit to offer a sign-in; `None` while another user is asked.
    pub(crate) fn offer(&self) -> Option<SemaphorePermit<'_>> {
        self.offer.try_acquire().ok()
    }

    /// Stops the background work of the client.
    pub(crate) fn end(&self) {
        if let Some(oauth) = self.get() {
            oauth.end();
        }
    }

    /// Returns the key of the account whose answers the server gives.
    pub(crate) fn grant(&self) -> Option<String> {
        self.get()?.grant()
    }
}
