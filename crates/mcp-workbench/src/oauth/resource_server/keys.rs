//! The public keys of the authorization server. One task owns them: it fetches them when a token names an unknown key, or
//! when they are old, but not more often than every few seconds, whatever tokens arrive.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::Issuer;
use crate::oauth::SignInError;

/// The age at which keys are fetched again, while the old ones are still used.
const FRESH: Duration = Duration::from_mins(10);
/// The age at which keys that cannot be fetched again are no longer used.
const USABLE: Duration = Duration::from_hours(24);
/// The pause between two fetches. A token with an unknown key costs at most one of them.
const PAUSE: Duration = Duration::from_secs(5);
/// The most keys that are stored.
const MAX_KEYS: usize = 100;

/// A key of the authorization server.
pub(super) struct IssuerKey {
    id: Option<String>,
    algorithm: Option<String>,
    pub(super) public: DecodingKey,
}

/// The keys, and the time at which they were fetched.
pub(super) struct KeySet {
    keys: Vec<IssuerKey>,
    fetched_at: Instant,
}

impl KeySet {
    /// Reads a document with keys. Keys of a kind that is not supported are left out.
    fn parse(document: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(document).ok()?;
        let keys = document
            .get("keys")?
            .as_array()?
            .iter()
            .filter_map(|it| serde_json::from_value::<Jwk>(it.clone()).ok())
            .filter_map(|jwk| {
                let is_for_signatures = !matches!(
                    jwk.common.public_key_use,
                    Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_))
                );
                Some(IssuerKey {
                    public: DecodingKey::from_jwk(&jwk)
                        .ok()
                        .filter(|_| is_for_signatures)?,
                    id: jwk.common.key_id,
                    algorithm: jwk.common.key_algorithm.map(|it| it.to_string()),
                })
            });
        Some(Self {
            keys: keys.take(MAX_KEYS).collect(),
            fetched_at: Instant::now(),
        })
    }

    /// Returns the keys that a token may be signed with.
    pub(super) fn candidates<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a IssuerKey> {
        let name = format!("{algorithm:?}");
        self.keys.iter().filter(move |key| {
            // Tokens may leave out the id of their key. Then every key is tried.
            let has_id = id.is_none() || key.id.as_deref() == id;
            let has_algorithm = key.algorithm.as_deref().is_none_or(|it| it == name);
            // The token names the algorithm, so it must belong to the kind of the key. A public key is never used as
            // a shared secret.
            has_id && has_algorithm && key.public.family().algorithms().contains(&algorithm)
        })
    }
}

pub(super) struct Keys {
    current: watch::Receiver<Option<Arc<KeySet>>>,
    wanted: mpsc::Sender<oneshot::Sender<()>>,
}

/// The task that owns the keys.
pub(super) struct KeyOwner {
    issuer: Issuer,
    current: watch::Sender<Option<Arc<KeySet>>>,
    wanted: mpsc::Receiver<oneshot::Sender<()>>,
}

/// Creates the keys of an authorization server, and the task that owns them.
pub(super) fn keys(issuer: Issuer) -> (Keys, KeyOwner) {
    let (sender, current) = watch::channel(None);
    // A request that finds no room waits for a fetch that has been asked for already.
    let (wanted, receiver) = mpsc::channel(64);
    let owner = KeyOwner {
        issuer,
        current: sender,
        wanted: receiver,
    };
    (Keys { current, wanted }, owner)
}

impl Keys {
    /// Returns the keys that are known. Old ones are fetched again for later requests.
    pub(super) fn known(&self) -> Option<Arc<KeySet>> {
        let known = self.current.borrow().clone()?;
        let age = known.fetched_at.elapsed();
        if age > FRESH {
            let (done, _) = oneshot::channel();
            // Without room others have asked.
            let _ = self.wanted.try_send(done);
        }
        (age < USABLE).then_some(known)
    }

    /// Fetches the keys, unless that was done a moment ago, and returns them.
    pub(super) async fn fetched(&self) -> Option<Arc<KeySet>> {
        let (done, fetched) = oneshot::channel();
        if self.wanted.send(done).await.is_ok() {
            // If the owner of the keys has ended, the known ones are used until they are too old.
            let _ = fetched.await;
        }
        self.known()
    }
}

impl KeyOwner {
    /// Fetches keys for as long as somebody may want them.
    pub(super) async fn run(mut self) {
        let mut tried_at: Option<Instant> = None;
        while let Some(first) = self.wanted.recv().await {
            if tried_at.is_none_or(|it| it.elapsed() >= PAUSE) {
                self.fetch().await;
                tried_at = Some(Instant::now());
            }
            // Everybody who has asked meanwhile gets the same keys.
            let _ = first.send(());
            while let Ok(other) = self.wanted.try_recv() {
                let _ = other.send(());
            }
        }
    }

    async fn fetch(&self) {
        match self.try_fetch().await {
            Ok(keys) => {
                // If nobody holds the keys any more, the owner ends too.
                let _ = self.current.send(Some(Arc::new(keys)));
            }
            Err(error) => {
                tracing::warn!("failed to fetch the keys of the authorization server: {error}");
            }
        }
    }

    async fn try_fetch(&self) -> Result<KeySet, SignInError> {
        let url = self.issuer.endpoint("jwks_uri").await?;
        let document = self.issuer.fetcher.get(&url).await?;
        let keys = document.and_then(|it| KeySet::parse(&it));
        keys.ok_or(SignInError::Metadata)
    }
}
