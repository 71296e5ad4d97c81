//! Records of users in the store that replicas share.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{LOCK_INTERVAL, LOCK_TIMEOUT};
use crate::store::{Store, StoreError, StoreLock, StoredAt, StoredKind};

/// How long a record is stored after it was last written.
const LIFE: Duration = Duration::from_hours(90 * 24);

/// The place of one record in the store. Cheap to clone.
#[derive(Clone)]
pub(in crate::oauth) struct SharedRecord {
    store: Store,
    /// The key of the server.
    server: Arc<str>,
    /// The identifier of the account there.
    key: Arc<str>,
}

impl fmt::Debug for SharedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRecord")
            .field("server", &self.server)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl SharedRecord {
    pub(super) fn new(store: &Store, server: &str, key: &str) -> Self {
        Self {
            store: store.clone(),
            server: server.into(),
            key: key.into(),
        }
    }

    pub(super) async fn get(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(self.at()).await
    }

    pub(super) async fn set(&self, text: &[u8]) -> Result<(), StoreError> {
        self.store.set(self.at(), text, LIFE).await
    }

    /// Removes the record. Returns false if there was none.
    pub(super) async fn remove(&self) -> Result<bool, StoreError> {
        self.store.remove(self.at()).await
    }

    /// Takes the lock of the record. Returns `None` after the timeout.
    pub(super) async fn lock(&self, timeout: Duration) -> Result<Option<StoreLock>, StoreError> {
        let name = format!("credentials\0{}\0{}", self.server, self.key);
        let until = Instant::now() + timeout;
        loop {
            let lock = self.store.lock(&name, LOCK_TIMEOUT).await?;
            if lock.is_some() || Instant::now() >= until {
                return Ok(lock);
            }
            sleep(LOCK_INTERVAL).await;
        }
    }

    fn at(&self) -> StoredAt<'_> {
        StoredAt {
            kind: StoredKind::Credentials,
            // The identifier of the account is a digest of the user.
            owner: &self.key,
            name: &self.server,
        }
    }
}
