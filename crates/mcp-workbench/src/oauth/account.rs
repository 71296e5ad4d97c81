//! An account at a server that can be signed in to.

use std::{path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use url::Url;

use super::{
    authority::Authority,
    challenge::is_scope,
    error::{SignInError, StoreFault},
    record::Record,
    store::{Store, hexadecimal},
};
use crate::{
    config::{OAuth, OAuthGrant, OAuthSettings, RemoteEndpoint},
    offload::run_blocking,
};

/// Upper bound on the scopes that are stored for the next sign-in.
const MOST_NEEDED: usize = 100;

/// A server that can be signed in to. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    /// The address of the server, without its fragment.
    url: Url,
    settings: OAuthSettings,
    /// Scopes that the next sign-in requests in addition to those of the entry.
    more_scopes: Vec<String>,
    /// The identifier of the account: a digest that reveals nothing.
    key: String,
    store: Option<Store>,
}

impl Account {
    /// Returns the account of an entry; `None` if nobody signs in to its server.
    pub(crate) fn of(endpoint: &RemoteEndpoint, state: Option<&Path>) -> Option<Self> {
        let OAuth::On(settings) = &endpoint.oauth else {
            return None;
        };
        let mut url = Url::parse(&endpoint.url).ok()?;
        url.set_fragment(None);
        let key = key(&url, settings);
        Some(Self(Arc::new(Inner {
            // Entries with credentials of their own neither use nor store the token of a user.
            store: state
                .filter(|_| settings.grant == OAuthGrant::AuthorizationCode)
                .map(|state| Store::new(state, key.clone())),
            settings: (**settings).clone(),
            more_scopes: Vec::new(),
            url,
            key,
        })))
    }

    /// Returns the account with more scopes to request; `None` if one of them is not a valid scope.
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

    /// Loads the record, if there is one for this server.
    pub(crate) fn load(&self) -> Result<Option<Record>, StoreFault> {
        let Some(store) = &self.0.store else {
            return Ok(None);
        };
        let record = store.load()?;
        Ok(record.filter(|it| it.server == self.0.url.as_str()))
    }

    /// Removes the record, and revokes the token if the authorization server can. Returns false if there was no record.
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

    /// Adds scopes that the next sign-in requests too. Does nothing without a record.
    pub(crate) fn record_needed_scopes(&self, scopes: &[String]) {
        let Ok(Some(_)) = self.load() else {
            return;
        };
        let Some(_lock) = self.0.store.as_ref().and_then(Store::lock_now) else {
            return;
        };
        // Loaded again under the lock, since another workbench may have refreshed the token meanwhile.
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
            tracing::debug!("failed to store the needed scopes: {error}");
        }
    }

    /// Does [`Self::load`] without blocking the event loop.
    pub(crate) async fn read(&self) -> Result<Option<Record>, StoreFault> {
        let account = self.clone();
        let read = run_blocking(move || account.load()).await;
        read.unwrap_or(Err(StoreFault::Unreadable))
    }

    /// Changes the record, if there is one.
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

    /// Revokes a token at the authorization server that issued it, and at no other that the server may name by now.
    async fn revoke(&self, record: &Record) {
        let known = record.resource_metadata.as_deref();
        if let Ok(authority) = Authority::find(self, None, known).await
            && authority.issuer() == record.issuer()
        {
            authority.revoke(record).await;
        }
    }

    /// Returns true if a user has to sign in, and false if the entry has its own credentials.
    pub(crate) fn needs_person(&self) -> bool {
        self.0.settings.grant == OAuthGrant::AuthorizationCode
    }

    /// Returns the port for the redirect of the browser, if the entry names one.
    pub(crate) fn callback_port(&self) -> Option<u16> {
        self.0.settings.callback_port
    }

    /// Returns the identifier of the account, which is the same in every run and reveals nothing.
    pub(crate) fn key(&self) -> &str {
        &self.0.key
    }

    /// Returns the place of the record, for the user.
    pub(crate) fn stored_in(&self) -> Option<String> {
        self.0.store.as_ref().map(Store::place)
    }

    /// Returns the address of the server.
    pub(super) fn url(&self) -> &Url {
        &self.0.url
    }

    pub(super) fn settings(&self) -> &OAuthSettings {
        &self.0.settings
    }

    /// Returns the scopes to request in addition to those of the entry.
    pub(super) fn more_scopes(&self) -> &[String] {
        &self.0.more_scopes
    }

    /// Returns the store; `None` if there is no state directory or nothing may be stored.
    pub(super) fn store(&self) -> Option<&Store> {
        self.0.store.as_ref()
    }
}

/// Returns a digest of the parts of an account: the server, the client there, and the account's name.
fn key(url: &Url, settings: &OAuthSettings) -> String {
    let parts = (url.as_str(), &settings.client_id, &settings.account);
    let text = serde_json::to_vec(&parts).expect("texts can be written");
    let digest = Sha256::digest(text);
    hexadecimal(&digest[..16])
}
