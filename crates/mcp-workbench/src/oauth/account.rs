//! A server that can be signed in to, by one account.

use std::{path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use url::Url;

use super::{
    authority::Authority,
    challenge::is_scope,
    error::{SignInError, StoreFault},
    record::Record,
    sign_in::hint,
    store::{Store, hexadecimal},
};
use crate::{
    config::{OAuth, OAuthGrant, OAuthSettings, RemoteEndpoint},
    offload::run_blocking,
};

/// How many scopes are remembered for the next sign-in.
const MOST_NEEDED: usize = 100;

/// A server that can be signed in to. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    /// The address of the server, without its fragment.
    url: Url,
    settings: OAuthSettings,
    /// What the next sign-in asks for besides.
    more_scopes: Vec<String>,
    /// Tells this account from all others.
    key: String,
    store: Option<Store>,
}

impl Account {
    /// The account of an entry; none where nobody signs in to its server.
    pub(crate) fn of(endpoint: &RemoteEndpoint, state: Option<&Path>) -> Option<Self> {
        let OAuth::On(settings) = &endpoint.oauth else {
            return None;
        };
        let mut url = Url::parse(&endpoint.url).ok()?;
        url.set_fragment(None);
        let key = key(&url, settings);
        Some(Self(Arc::new(Inner {
            // What a person was given is not for entries that have credentials of their own, and nothing of theirs is kept.
            store: state
                .filter(|_| settings.grant == OAuthGrant::AuthorizationCode)
                .map(|state| Store::new(state, key.clone())),
            settings: (**settings).clone(),
            more_scopes: Vec::new(),
            url,
            key,
        })))
    }

    /// The same account, which asks for more scopes when somebody signs in; none if one of them can be no scope.
    pub(crate) fn asking_for(&self, scopes: &[String]) -> Option<Self> {
        if !scopes.iter().all(|scope| is_scope(scope)) {
            return None;
        }
        let mut inner = (*self.0).clone();
        inner.more_scopes = scopes.to_vec();
        Some(Self(Arc::new(inner)))
    }

    /// Returns true if the entry says something about signing in.
    pub(crate) fn is_configured(&self) -> bool {
        self.0.settings != OAuthSettings::default()
    }

    /// What is stored of it, if that is of this server.
    pub(crate) fn load(&self) -> Result<Option<Record>, StoreFault> {
        let Some(store) = &self.0.store else {
            return Ok(None);
        };
        let record = store.load()?;
        Ok(record.filter(|it| it.server == self.0.url.as_str()))
    }

    /// Removes what is stored, and has the authorization server forget the token where it can. False if there was nothing.
    pub(crate) async fn sign_out(&self) -> Result<bool, SignInError> {
        let Some(store) = &self.0.store else {
            return Ok(false);
        };
        let record = self.read().await.ok().flatten();
        if let Some(record) = record.filter(|it| it.token.is_some()) {
            self.revoke(&record).await;
        }
        let _lock = store.lock().await;
        Ok(store.erase().await?)
    }

    /// Has the next sign-in ask for these scopes too. Best effort: without a record there is nothing to add to.
    pub(crate) fn note_needed_scopes(&self, scopes: &[String]) {
        let Ok(Some(_)) = self.load() else {
            return;
        };
        let Some(_lock) = self.0.store.as_ref().and_then(Store::lock_now) else {
            return;
        };
        // What it is now: somebody may have refreshed meanwhile.
        let Ok(Some(mut record)) = self.load() else {
            return;
        };
        let known = record.needed.len();
        for scope in scopes.iter().filter(|it| is_scope(it)) {
            let is_known = record.needed.contains(scope) || record.scopes.contains(scope);
            if record.needed.len() < MOST_NEEDED && !is_known {
                record.needed.push(scope.clone());
            }
        }
        if record.needed.len() > known
            && let Some(store) = &self.0.store
            && let Err(error) = store.save(&record)
        {
            tracing::debug!("the scopes that are needed are not kept: {error}");
        }
    }

    /// [`Self::load`], without holding anybody up.
    pub(crate) async fn read(&self) -> Result<Option<Record>, StoreFault> {
        let account = self.clone();
        let read = run_blocking(move || account.load()).await;
        read.unwrap_or(Err(StoreFault::Unreadable))
    }

    /// Changes what is stored, if there is anything.
    pub(super) async fn change(&self, change: impl FnOnce(&mut Record)) -> Result<(), StoreFault> {
        let Some(store) = &self.0.store else {
            return Ok(());
        };
        let _lock = store.lock().await;
        let Some(mut record) = self.read().await? else {
            return Ok(());
        };
        change(&mut record);
        store.write(record).await
    }

    /// Has the authorization server that gave a token forget it: that one, and no other that the server names by now.
    async fn revoke(&self, record: &Record) {
        let hint = hint(None, record.resource_metadata.as_deref());
        if let Ok(authority) = Authority::find(self, hint.as_deref()).await
            && authority.issuer() == record.issuer()
        {
            authority.revoke(record).await;
        }
    }

    /// Whether somebody has to sign in; else tokens are got with the credentials of the entry.
    pub(crate) fn needs_person(&self) -> bool {
        self.0.settings.grant == OAuthGrant::AuthorizationCode
    }

    /// The port that the browser is to come back to, if the entry says one.
    pub(crate) fn callback_port(&self) -> Option<u16> {
        self.0.settings.callback_port
    }

    /// What tells the account from all others, the same in every run: a digest that gives nothing away.
    pub(crate) fn key(&self) -> &str {
        &self.0.key
    }

    /// Where it is kept, for a person.
    pub(crate) fn stored_in(&self) -> Option<String> {
        self.0.store.as_ref().map(Store::place)
    }

    /// The address of the server.
    pub(super) fn url(&self) -> &Url {
        &self.0.url
    }

    pub(super) fn settings(&self) -> &OAuthSettings {
        &self.0.settings
    }

    /// What the next sign-in asks for besides what the entry says.
    pub(super) fn more_scopes(&self) -> &[String] {
        &self.0.more_scopes
    }

    /// Where it is stored, if anywhere.
    pub(super) fn store(&self) -> Option<&Store> {
        self.0.store.as_ref()
    }
}

/// A digest of what makes an account: the server, who we are there, and the account's name.
fn key(url: &Url, settings: &OAuthSettings) -> String {
    let parts = (url.as_str(), &settings.client_id, &settings.account);
    let text = serde_json::to_vec(&parts).expect("texts can be written");
    let digest = Sha256::digest(text);
    hexadecimal(&digest[..16])
}
