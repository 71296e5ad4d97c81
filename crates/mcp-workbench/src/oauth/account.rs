//! An account at a server that can be signed in to.

use std::{path::Path, sync::Arc};

use url::Url;

use super::{
    CredentialOwner,
    authority::{Authority, KnownClient},
    challenge::is_scope,
    error::{SignInError, StoreFault},
    record::Record,
    store::{RecordStore, UserRecords, release},
};
use crate::{
    config::{Auth, CredentialsPer, OAuth, OAuthGrant, OAuthSettings, RemoteEndpoint},
    seal::Sealer,
    sha256::{Sha256, hexadecimal},
};

/// Upper bound on the scopes that are stored for the next sign-in.
const MOST_NEEDED: usize = 100;

/// The key of the client that all users of a server share.
const CLIENT_KEY: &str = "client";

/// The place of accounts: whose they are, and where they are stored.
#[derive(Clone, Copy)]
pub(crate) struct AccountPlace<'a> {
    /// The state directory for the user of this machine, if there is one.
    pub(crate) state: Option<&'a Path>,
    pub(crate) owner: &'a CredentialOwner,
    /// The place of the records of users.
    pub(crate) users: &'a UserRecords,
    /// The authorization server that exchanges the tokens of users.
    pub(crate) auth: Option<&'a Arc<Auth>>,
}

/// The way in which an account gets its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenWay {
    /// Its owner signs in with a browser.
    Person,
    Credentials,
    /// The token of the user is exchanged.
    Exchange,
}

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
    store: Option<RecordStore>,
    /// The user whose account it is; `Machine` for accounts that are not a user's.
    owner: CredentialOwner,
    /// The authorization server that exchanges the token of the owner.
    auth: Option<Arc<Auth>>,
    /// The place of the client that all users of the server share.
    shared_client: Option<RecordStore>,
}

impl Account {
    /// Returns the account of an entry; `None` if its server needs no sign-in.
    pub(crate) fn of(endpoint: &RemoteEndpoint, place: AccountPlace<'_>) -> Option<Self> {
        let OAuth::On(settings) = &endpoint.oauth else {
            return None;
        };
        let mut url = Url::parse(&endpoint.url).ok()?;
        // A fragment is never sent, so two addresses that differ only there are the same account.
        url.set_fragment(None);
        let mut account = Inner {
            key: key(&url, settings),
            settings: (**settings).clone(),
            more_scopes: Vec::new(),
            url,
            store: None,
            owner: CredentialOwner::Machine,
            auth: place.auth.cloned(),
            shared_client: None,
        };
        let is_stored = way(settings) == TokenWay::Person;
        let state = place.state.filter(|_| is_stored);
        match place.owner {
            // With `"per": "machine"` everybody uses the sign-in of this machine, whoever calls.
            _ if settings.per == CredentialsPer::Machine => account.store_for_machine(state),
            CredentialOwner::Machine => account.store_for_machine(state),
            // Without a user there is nobody to store a sign-in for, so the account has no record.
            CredentialOwner::Nobody => account.owner = CredentialOwner::Nobody,
            CredentialOwner::User(user) => {
                // The key of the server names the folder of its users. The key of the record includes the user.
                let server = std::mem::take(&mut account.key);
                account.key = user_key(&server, user.digest());
                if is_stored {
                    account.shared_client = place.users.record(&server, CLIENT_KEY);
                    account.store = place.users.record(&server, &account.key);
                }
                account.owner = place.owner.clone();
            }
        }
        Some(Self(Arc::new(account)))
    }

    /// Returns the account of the user of this machine.
    pub(crate) fn of_machine(endpoint: &RemoteEndpoint, state: Option<&Path>) -> Option<Self> {
        Self::of(
            endpoint,
            AccountPlace {
                state,
                owner: &CredentialOwner::Machine,
                users: &UserRecords::Nowhere,
                auth: None,
            },
        )
    }

    /// Returns the account of the workbench itself at the authorization server of its users.
    pub(super) fn of_workbench(auth: &Auth, users: &UserRecords) -> Self {
        let client = auth.client.as_ref();
        let settings = OAuthSettings {
            client_id: client.map(|it| it.id.clone()),
            client_secret: client.and_then(|it| it.secret.clone()),
            ..OAuthSettings::default()
        };
        let key = key(&auth.issuer_url, &settings);
        Self(Arc::new(Inner {
            url: auth.issuer_url.clone(),
            settings,
            more_scopes: Vec::new(),
            shared_client: users.record(&key, CLIENT_KEY),
            key,
            store: None,
            owner: CredentialOwner::Nobody,
            auth: None,
        }))
    }

    /// Returns the accounts of all users with a record on this machine for the server of its account, if each user has their own.
    /// They do not say who the users are.
    pub(crate) fn of_users(&self, state: Option<&Path>, sealer: &Sealer) -> Vec<Self> {
        let Some(state) = state.filter(|_| self.is_per_user()) else {
            return Vec::new();
        };
        let records = RecordStore::of_users(state, &self.0.key, sealer).into_iter();
        let accounts = records.map(|record| {
            let mut inner = (*self.0).clone();
            inner.store = Some(record);
            Self(Arc::new(inner))
        });
        accounts.collect()
    }

    /// Returns whether each user has their own account at the server.
    pub(crate) fn is_per_user(&self) -> bool {
        self.0.settings.per == CredentialsPer::User
    }

    pub(crate) fn owner(&self) -> &CredentialOwner {
        &self.0.owner
    }

    /// Returns the client that all users of the server share, if one was registered.
    pub(super) async fn shared_client(&self) -> Result<Option<KnownClient>, StoreFault> {
        let Some(store) = &self.0.shared_client else {
            return Ok(None);
        };
        let text = replaceable(store.read_text().await)?;
        // A damaged record counts as missing: the next sign-in registers another client.
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// Stores the client for all users of the server. Without it the next user registers another one.
    pub(super) async fn share_client(&self, client: &KnownClient) {
        if let Some(store) = &self.0.shared_client
            && let Ok(text) = serde_json::to_string(client)
            && let Err(error) = store.write_text(text).await
        {
            tracing::debug!("failed to store the registered client: {error}");
        }
    }

    /// Removes the client that all users of the server share, because the authorization server does not know it any more.
    pub(super) async fn forget_shared_client(&self) {
        if let Some(store) = &self.0.shared_client {
            let _ = store.erase().await;
        }
    }

    /// Returns the account with more scopes to request; `None` if one of them is not a valid scope.
    pub(crate) fn asking_for(&self, scopes: &[String]) -> Option<Self> {
        // Scopes are joined with spaces, so that a text with a space would become several.
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

    /// Loads the record of this machine, if there is one for this server. Blocks meanwhile.
    pub(crate) fn load(&self) -> Result<Option<Record>, StoreFault> {
        let Some(RecordStore::Local(store)) = &self.0.store else {
            return Ok(None);
        };
        Ok(store.load()?.filter(|it| self.is_for_this_server(it)))
    }

    /// Reads the record, if there is one for this server.
    pub(crate) async fn read(&self) -> Result<Option<Record>, StoreFault> {
        let Some(store) = &self.0.store else {
            return Ok(None);
        };
        let record = store.read().await?;
        Ok(record.filter(|it| self.is_for_this_server(it)))
    }

    /// Reads the record for a sign-in that will replace it.
    pub(super) async fn read_to_replace(&self) -> Result<Option<Record>, StoreFault> {
        replaceable(self.read().await)
    }

    fn is_for_this_server(&self, record: &Record) -> bool {
        // The key is only a digest. The address is compared too, so that a file that was renamed or copied gives its
        // token to no other server.
        record.server == self.0.url.as_str()
    }

    /// Removes the record, and revokes the token if the authorization server can. Returns false if there was no record.
    pub(crate) async fn sign_out(&self) -> Result<bool, SignInError> {
        let Some(store) = &self.0.store else {
            return Ok(false);
        };
        // Revocation may take long, so it is done before the lock is taken. A record that cannot be read is removed
        // too.
        let record = self.read().await.ok().flatten();
        if let Some(record) = record.filter(|it| it.token.is_some()) {
            self.revoke(&record).await;
        }
        let lock = store.lock().await?;
        let erased = store.erase().await;
        release(lock).await;
        Ok(erased?)
    }

    /// Adds scopes that the next sign-in requests too. Does nothing without a record.
    pub(crate) async fn record_needed_scopes(&self, scopes: &[String]) -> Result<(), StoreFault> {
        let Some(store) = &self.0.store else {
            return Ok(());
        };
        if self.read().await?.is_none() {
            return Ok(());
        }
        // A client waits for this, so this does not wait for a busy lock. The server names the scopes again at its next
        // refusal.
        let Some(lock) = store.lock_soon().await? else {
            return Ok(());
        };
        let changed = self.change_locked(store, |record| {
            for scope in scopes.iter().filter(|it| is_scope(it)) {
                let is_known = record.needed.contains(scope) || record.scopes.contains(scope);
                // The server chooses the scopes, and could name new ones at every refusal.
                if record.needed.len() < MOST_NEEDED && !is_known {
                    record.needed.push(scope.clone());
                }
            }
        });
        let changed = changed.await;
        lock.release().await;
        changed
    }

    /// Changes the record, if there is one.
    pub(super) async fn change(&self, change: impl FnOnce(&mut Record)) -> Result<(), StoreFault> {
        let Some(store) = &self.0.store else {
            return Ok(());
        };
        let lock = store.lock().await?;
        let changed = self.change_locked(store, change).await;
        release(lock).await;
        changed
    }

    /// Reads the record under the lock, since another workbench may have refreshed the token meanwhile, and changes it.
    async fn change_locked(
        &self,
        store: &RecordStore,
        change: impl FnOnce(&mut Record),
    ) -> Result<(), StoreFault> {
        let Some(before) = self.read().await? else {
            return Ok(());
        };
        let mut record = before.clone();
        change(&mut record);
        if record == before {
            return Ok(());
        }
        store.write(&record).await
    }

    /// Revokes a token at the authorization server that issued it, even if the server names a different one by now.
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
        self.way() == TokenWay::Person
    }

    /// Returns the way in which the account gets its token.
    pub(crate) fn way(&self) -> TokenWay {
        way(&self.0.settings)
    }

    /// Returns the port for the redirect of the browser, if the entry names one.
    pub(crate) fn callback_port(&self) -> Option<u16> {
        self.0.settings.callback_port
    }

    /// Returns the identifier of the account, which is the same in every run and reveals nothing.
    pub(crate) fn key(&self) -> &str {
        &self.0.key
    }

    /// Returns the authorization server that exchanges the token of the owner.
    pub(super) fn auth(&self) -> Option<&Auth> {
        self.0.auth.as_deref()
    }

    /// Returns the place of the record, for the user.
    pub(crate) fn stored_in(&self) -> Option<String> {
        self.0.store.as_ref().map(RecordStore::place)
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

    /// Returns the place of the record; `None` if there is no state directory or nothing may be stored.
    pub(super) fn store(&self) -> Option<&RecordStore> {
        self.0.store.as_ref()
    }
}

impl Inner {
    fn store_for_machine(&mut self, state: Option<&Path>) {
        // Entries with credentials of their own neither use nor store the token of a user.
        self.store = state.map(|state| RecordStore::of_machine(state, self.key.clone()));
    }
}

/// Treats a value that is damaged as missing, since the next one replaces it. A store that cannot be reached could not
/// store that either.
fn replaceable<T>(read: Result<Option<T>, StoreFault>) -> Result<Option<T>, StoreFault> {
    match read {
        Err(fault @ StoreFault::Unreachable(_)) => Err(fault),
        read => Ok(read.ok().flatten()),
    }
}

fn way(settings: &OAuthSettings) -> TokenWay {
    match (settings.grant, &settings.exchange) {
        (OAuthGrant::ClientCredentials, _) => TokenWay::Credentials,
        (OAuthGrant::AuthorizationCode, Some(_)) => TokenWay::Exchange,
        (OAuthGrant::AuthorizationCode, None) => TokenWay::Person,
    }
}

/// Returns the key of a user's record, which does not reveal the user.
fn user_key(server: &str, user: [u8; 16]) -> String {
    let mut digest = Sha256::new();
    digest.update(server);
    digest.update(user);
    hexadecimal(&digest.finish()[..16])
}

/// Returns a digest of the parts of an account: the server, the client there, and the account's name.
fn key(url: &Url, settings: &OAuthSettings) -> String {
    let parts = (url.as_str(), &settings.client_id, &settings.account);
    let text = serde_json::to_vec(&parts).expect("texts can be written");
    let digest = Sha256::digest(text);
    hexadecimal(&digest[..16])
}
