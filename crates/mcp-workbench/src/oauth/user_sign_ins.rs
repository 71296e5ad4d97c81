//! Sign-ins of the users of an authorization server to remote servers, with a browser on any machine.
//!
//! A user opens the sign-in page of a server at the address of the workbench. The browser first goes to the authorization
//! server of the users, as that of any client does, and comes back with a code for a token of this workbench: so it is known
//! whose browser it is. Then it goes to the authorization server of the server, and the token that this yields is stored for
//! that user. The address of the page contains no secret, and it does not matter who sent it: whoever opens it signs in
//! for themselves.
//!
//! Between the steps everything is in an encrypted cookie, so that any replica with the same key can take the next step.
//! `state` names the cookie and is used once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ident::{ClientName, ServerIdentifier};
use serde::{Deserialize, Serialize};
use tokio::{sync::broadcast, time::sleep};
use url::Url;

use super::{
    Account, CredentialOwner, GrantedAccess, SignInError, UserCredentials,
    account::AccountPlace,
    record::seconds,
    sign_in::{Attempt, PendingSignIn, SIGN_IN_TIMEOUT},
    store::UserRecords,
};
use crate::{
    config::{Auth, Config, RemoteEndpoint},
    seal::{SealPurpose, Sealer},
    sync::lock,
};

/// The folder of the pages for browsers, below the address of the workbench.
pub(crate) const BROWSER_PATH: &str = "/oauth";
/// The page that the authorization servers redirect to, in that folder.
pub(crate) const CALLBACK: &str = "callback";
/// The page that begins a sign-in, in that folder, before the names of the toolbox and the server.
pub(crate) const SIGN_IN: &str = "sign-in";

/// The prefix of the names of cookies.
const COOKIE: &str = "mcp-sign-in-";
/// The length of the part of `state` in the name of a cookie.
const COOKIE_SUFFIX: usize = 16;
/// The longest cookie that browsers are sure to keep.
const MAX_COOKIE_BYTES: usize = 4000;
/// How many used values of `state` are remembered.
const MAX_USED: usize = 10_000;
/// How often the store is checked for a sign-in by another process.
const STORE_INTERVAL: Duration = Duration::from_secs(1);
/// How many results a waiting call may miss before it relies on the store.
const RESULTS: usize = 64;

/// The sign-ins of all users.
pub(crate) struct UserSignIns {
    auth: Arc<Auth>,
    /// The place of the users' records.
    records: UserRecords,
    sealer: Sealer,
    results: broadcast::Sender<SignInResult>,
    /// The values of `state` that were used.
    used: Mutex<VecDeque<String>>,
}

/// The end of a sign-in, for the calls that wait for it.
#[derive(Clone)]
struct SignInResult {
    /// The key of the account.
    account: String,
    result: Result<(), SignInError>,
}

/// The next step of a browser: where it goes, and the cookie that it brings back.
pub(crate) struct BrowserStep {
    pub(crate) location: Url,
    /// The value of `Set-Cookie`.
    pub(crate) cookie: String,
}

/// A browser on its way through a sign-in.
#[derive(Serialize, Deserialize)]
pub(crate) struct Journey {
    toolbox: String,
    server: String,
    /// The user, once it is known who that is.
    user: Option<JourneyUser>,
    attempt: Attempt,
    /// In seconds since 1970.
    expires_at: u64,
}

/// The user whose browser it is.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct JourneyUser {
    digest: [u8; 16],
    client: Option<String>,
}

/// A call that waits until its user has signed in.
pub(crate) struct AwaitedSignIn {
    account: Account,
    /// The identifier of the sign-in before.
    before: Option<String>,
    results: broadcast::Receiver<SignInResult>,
}

impl Journey {
    pub(crate) fn place(&self) -> ServerIdentifier {
        ServerIdentifier {
            toolbox: self.toolbox.as_str().into(),
            server: self.server.as_str().into(),
        }
    }

    pub(crate) fn user(&self) -> Option<&JourneyUser> {
        self.user.as_ref()
    }
}

impl JourneyUser {
    pub(crate) fn new(digest: [u8; 16], client: Option<&ClientName>) -> Self {
        Self {
            digest,
            client: client.map(ToString::to_string),
        }
    }

    pub(crate) fn digest(&self) -> [u8; 16] {
        self.digest
    }

    /// Returns the client of the configuration that the user is.
    pub(crate) fn client(&self) -> Option<ClientName> {
        self.client.as_deref().map(ClientName::from)
    }
}

impl UserSignIns {
    /// Returns the sign-ins of the users of a configuration, if it has any.
    pub(crate) fn of(config: &Config, sealer: &Sealer, records: &UserRecords) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            auth: Arc::new(config.auth.clone()?),
            records: records.clone(),
            sealer: sealer.clone(),
            results: broadcast::channel(RESULTS).0,
            used: Mutex::default(),
        }))
    }

    /// Returns the authorization server of the users.
    pub(crate) fn auth(&self) -> &Arc<Auth> {
        &self.auth
    }

    /// Returns the address of the page that begins a sign-in.
    pub(crate) fn page(&self, place: &ServerIdentifier) -> Url {
        let mut url = self.public(SIGN_IN);
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(place.toolbox.as_str())
                .push(place.server.as_str());
        }
        url
    }

    /// Returns the account of a user at a server where every user signs in.
    pub(crate) fn account(&self, endpoint: &RemoteEndpoint, digest: [u8; 16]) -> Option<Account> {
        let owner = CredentialOwner::User(UserCredentials::new(digest));
        let account = Account::of(
            endpoint,
            AccountPlace {
                state: None,
                owner: &owner,
                users: &self.records,
                auth: None,
            },
        );
        account.filter(|it| it.is_per_user() && it.needs_person())
    }

    /// Begins a sign-in: the browser shows whose it is.
    pub(crate) async fn begin(&self, place: &ServerIdentifier) -> Result<BrowserStep, SignInError> {
        let account = self.own_account();
        let redirect_uri = self.public(CALLBACK);
        let begun =
            PendingSignIn::begin_for_users(&account, &self.auth, redirect_uri.as_str()).await;
        let (pending, location) = begun?;
        self.step(place, None, pending, location)
    }

    /// Returns the address that a browser was redirected to, with these parameters.
    pub(crate) fn redirected(&self, query: Option<&str>) -> Url {
        let mut url = self.public(CALLBACK);
        url.set_query(query);
        url
    }

    /// Returns the journey of a browser that came back to this address, and uses it up.
    pub(crate) async fn resume(
        &self,
        redirected: &Url,
        cookies: &str,
    ) -> Result<Journey, SignInError> {
        let state = redirected
            .query_pairs()
            .find_map(|(name, value)| (name == "state").then(|| value.into_owned()))
            .ok_or(SignInError::NotARedirect)?;
        let name = cookie_name(&state).ok_or(SignInError::WrongState)?;
        let mut pairs = cookies.split("; ").filter_map(|it| it.split_once('='));
        let (_, value) = pairs
            .find(|(it, _)| *it == name)
            .ok_or(SignInError::WrongState)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(value).ok();
        // The cookie is sealed with the whole `state`, of which its name has only a part.
        let text = sealed.and_then(|it| self.sealer.decrypt(SealPurpose::SignIn, &state, &it));
        let journey = text
            .and_then(|it| serde_json::from_slice::<Journey>(&it).ok())
            .ok_or(SignInError::WrongState)?;
        if journey.attempt.state() != state {
            return Err(SignInError::WrongState);
        }
        let is_over = journey.expires_at < seconds(SystemTime::now());
        // The first check is for all replicas, and needs their store. The second one works without a store.
        if is_over || !self.records.use_up(&state, SIGN_IN_TIMEOUT).await? || !self.use_up(state) {
            return Err(SignInError::Over);
        }
        Ok(journey)
    }

    /// Returns the token of the user whose browser came back, for the workbench to check like every other.
    pub(crate) async fn identify(
        &self,
        journey: Journey,
        redirected: &Url,
    ) -> Result<String, SignInError> {
        let account = self.own_account();
        let pending = PendingSignIn::resume_for_users(&account, &self.auth, journey.attempt);
        pending.await?.redeem(redirected.as_str()).await
    }

    /// Sends the browser of a user to the authorization server of the server.
    pub(crate) async fn sign_in(
        &self,
        place: &ServerIdentifier,
        user: JourneyUser,
        account: &Account,
    ) -> Result<BrowserStep, SignInError> {
        let redirect_uri = self.public(CALLBACK);
        let (pending, location) =
            PendingSignIn::begin(account, redirect_uri.as_str(), None).await?;
        self.step(place, Some(user), pending, location)
    }

    /// Finishes the sign-in of a user, and tells the calls that wait for it.
    pub(crate) async fn finish(
        &self,
        journey: Journey,
        account: &Account,
        redirected: &Url,
    ) -> Result<GrantedAccess, SignInError> {
        let finished = async {
            let pending = PendingSignIn::resume(account, journey.attempt).await?;
            pending.finish(redirected.as_str()).await
        };
        let finished = finished.await;
        // Nobody may be waiting.
        let _ = self.results.send(SignInResult {
            account: account.key().to_owned(),
            result: finished.clone().map(drop),
        });
        finished
    }

    /// Prepares to wait for the next sign-in to an account.
    pub(crate) async fn awaited(&self, account: &Account) -> AwaitedSignIn {
        // Before the record is read, so that a sign-in between the two is not missed.
        let results = self.results.subscribe();
        let record = account.read().await.ok().flatten();
        AwaitedSignIn {
            account: account.clone(),
            before: record.map(|it| it.grant_id().to_owned()),
            results,
        }
    }

    fn step(
        &self,
        place: &ServerIdentifier,
        user: Option<JourneyUser>,
        pending: PendingSignIn,
        location: Url,
    ) -> Result<BrowserStep, SignInError> {
        let journey = Journey {
            toolbox: place.toolbox.to_string(),
            server: place.server.to_string(),
            user,
            attempt: pending.into_attempt(),
            expires_at: seconds(SystemTime::now() + SIGN_IN_TIMEOUT),
        };
        let state = journey.attempt.state();
        let name = cookie_name(state).ok_or(SignInError::WrongState)?;
        let text = serde_json::to_vec(&journey).map_err(|_| SignInError::TooLong)?;
        let sealed = self.sealer.encrypt(SealPurpose::SignIn, state, &text);
        let value = BASE64_URL_SAFE_NO_PAD.encode(sealed);
        if value.len() > MAX_COOKIE_BYTES {
            return Err(SignInError::TooLong);
        }
        let mut folder = self.auth.resource.clone();
        extend_path(&mut folder, BROWSER_PATH);
        // Browsers drop a `Secure` cookie that arrives over http.
        let secure = match folder.scheme() {
            "https" => "; Secure",
            _ => "",
        };
        let (path, age) = (folder.path(), SIGN_IN_TIMEOUT.as_secs());
        Ok(BrowserStep {
            location,
            cookie: format!(
                // `Lax`, since the browser comes back from another site, and `Strict` cookies are left out then.
                "{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"
            ),
        })
    }

    /// Records that a value of `state` is used. Returns false if this process has used it before.
    fn use_up(&self, state: String) -> bool {
        let mut used = lock(&self.used);
        if used.contains(&state) {
            return false;
        }
        if used.len() == MAX_USED {
            used.pop_front();
        }
        used.push_back(state);
        true
    }

    /// Returns the account of the workbench at the authorization server of the users. Nothing is stored for it but the
    /// client that it has registered.
    fn own_account(&self) -> Account {
        Account::of_workbench(&self.auth, &self.records)
    }

    /// Returns the address of a page, below that of the workbench.
    fn public(&self, page: &str) -> Url {
        let mut url = self.auth.resource.clone();
        url.set_query(None);
        url.set_fragment(None);
        extend_path(&mut url, &format!("{BROWSER_PATH}/{page}"));
        url
    }
}

impl AwaitedSignIn {
    /// Waits until the user has signed in, in this process or in another one. A failure is known only in this process.
    pub(crate) async fn signed_in(mut self) -> Result<(), SignInError> {
        loop {
            tokio::select! {
                Ok(result) = self.results.recv() => {
                    if result.account == self.account.key() {
                        return result.result;
                    }
                }
                () = sleep(STORE_INTERVAL) => {
                    let record = self.account.read().await.ok().flatten();
                    // A refresh keeps the identifier, so this is true only after a new sign-in.
                    let is_new = |it: &str| Some(it) != self.before.as_deref();
                    if record.is_some_and(|it| it.is_signed_in() && is_new(it.grant_id())) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Returns the name of the cookie of an attempt, so that two sign-ins of one browser do not disturb each other.
fn cookie_name(state: &str) -> Option<String> {
    let suffix = state.get(..COOKIE_SUFFIX)?;
    let is_plain = suffix
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
    is_plain.then(|| format!("{COOKIE}{suffix}"))
}

fn extend_path(url: &mut Url, path: &str) {
    let whole = format!("{}{path}", url.path().trim_end_matches('/'));
    url.set_path(&whole);
}
