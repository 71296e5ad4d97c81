//! The storage of records: on this machine, or for users in the store that replicas share. A lock for each record keeps two
//! workbenches from using the same refresh token.

#[cfg(all(feature = "keyring", not(test)))]
mod keyring;
#[cfg(not(all(feature = "keyring", not(test))))]
#[path = "no_keyring.rs"]
mod keyring;
mod local;
mod shared;

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use self::{local::LocalRecord, shared::SharedRecord};
use super::{
    error::StoreFault,
    record::{LAYOUT, Record},
};
use crate::{
    config::Config,
    offload::run_blocking,
    seal::Sealer,
    store::{Store, StoreLock},
};

/// The timeout for the lock: longer than a refresh by another workbench takes. A lock in the store of replicas ends after this
/// time if its holder is gone.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);
const SHORT_LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// The place of the records of all users.
#[derive(Clone)]
pub(crate) enum UserRecords {
    Nowhere,
    /// Files in the state directory, which the sealer encrypts.
    Local {
        state: PathBuf,
        sealer: Sealer,
    },
    /// The store that replicas share.
    Shared(Store),
}

impl UserRecords {
    /// Returns the place of the users of a configuration: the store, if there is one.
    pub(crate) fn of(config: &Config, sealer: &Sealer, store: Option<&Store>) -> Self {
        match (store, &config.state) {
            (Some(store), _) => Self::Shared(store.clone()),
            (None, Some(state)) => Self::Local {
                state: state.clone(),
                sealer: sealer.clone(),
            },
            (None, None) => Self::Nowhere,
        }
    }

    /// Returns the place of a record for a server.
    pub(super) fn record(&self, server: &str, key: &str) -> Option<RecordStore> {
        match self {
            Self::Nowhere => None,
            Self::Local { state, sealer } => {
                let record = LocalRecord::of_user(state, server, key.to_owned(), sealer);
                Some(RecordStore::Local(record))
            }
            Self::Shared(store) => {
                let record = SharedRecord::new(store, server, key);
                Some(RecordStore::Shared(record))
            }
        }
    }

    /// Records for `ttl`, and for all replicas, that a value is used. Returns false if it was used before. Without a
    /// store, each process knows only the values that it has used itself.
    pub(super) async fn use_up(&self, value: &str, ttl: Duration) -> Result<bool, StoreFault> {
        match self {
            Self::Nowhere | Self::Local { .. } => Ok(true),
            // A lock that nobody releases: whoever takes it has used the value up for all replicas.
            Self::Shared(store) => {
                let taken = store.lock(&format!("used\0{value}"), ttl).await?;
                Ok(taken.is_some())
            }
        }
    }
}

/// The place of one record. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) enum RecordStore {
    Local(LocalRecord),
    Shared(SharedRecord),
}

pub(super) enum RecordLock {
    /// It is released with the file.
    Local {
        _file: File,
    },
    Shared(StoreLock),
}

impl RecordStore {
    /// Returns the place of the record of the user of this machine.
    pub(super) fn of_machine(state: &Path, key: String) -> Self {
        Self::Local(LocalRecord::new(state, key))
    }

    /// Returns the places of the records of all users on this machine for a server.
    pub(super) fn of_users(state: &Path, server: &str, sealer: &Sealer) -> Vec<Self> {
        let keys = local::user_keys(state, server).into_iter();
        let records = keys.map(|key| LocalRecord::of_user(state, server, key, sealer));
        records.map(Self::Local).collect()
    }

    pub(super) async fn read(&self) -> Result<Option<Record>, StoreFault> {
        let text = self.read_text().await?;
        text.map(|text| parse(&text)).transpose()
    }

    /// Reads the text of a record.
    pub(super) async fn read_text(&self) -> Result<Option<Vec<u8>>, StoreFault> {
        match self {
            Self::Local(record) => {
                let record = record.clone();
                let read = run_blocking(move || record.load_text()).await;
                read.unwrap_or(Err(StoreFault::Unreadable))
            }
            Self::Shared(record) => Ok(record.get().await?),
        }
    }

    pub(super) async fn write(&self, record: &Record) -> Result<(), StoreFault> {
        let text = serde_json::to_string(record).map_err(|_| StoreFault::Unreadable)?;
        self.write_text(text).await
    }

    /// Stores the text of a record.
    pub(super) async fn write_text(&self, text: String) -> Result<(), StoreFault> {
        match self {
            Self::Local(record) => {
                let record = record.clone();
                let written = run_blocking(move || record.save_text(&text)).await;
                written.unwrap_or(Err(StoreFault::Unreadable))
            }
            Self::Shared(record) => Ok(record.set(text.as_bytes()).await?),
        }
    }

    /// Removes the record. Returns false if there was none.
    pub(super) async fn erase(&self) -> Result<bool, StoreFault> {
        match self {
            Self::Local(record) => {
                let record = record.clone();
                let erased = run_blocking(move || record.remove()).await;
                erased.unwrap_or(Err(StoreFault::Unreadable))
            }
            Self::Shared(record) => Ok(record.remove().await?),
        }
    }

    /// Takes the lock of the record. Returns `None` after a timeout: it is better to refresh twice than never.
    pub(super) async fn lock(&self) -> Result<Option<RecordLock>, StoreFault> {
        self.lock_within(LOCK_TIMEOUT).await
    }

    /// Does [`Self::lock`] with a short timeout.
    pub(super) async fn lock_soon(&self) -> Result<Option<RecordLock>, StoreFault> {
        self.lock_within(SHORT_LOCK_TIMEOUT).await
    }

    async fn lock_within(&self, timeout: Duration) -> Result<Option<RecordLock>, StoreFault> {
        match self {
            Self::Local(record) => {
                let file = record.lock(timeout).await;
                Ok(file.map(|file| RecordLock::Local { _file: file }))
            }
            Self::Shared(record) => {
                let lock = record.lock(timeout).await?;
                Ok(lock.map(RecordLock::Shared))
            }
        }
    }

    /// Returns the place of the record, for the user.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Local(record) => record.place(),
            Self::Shared(_) => "the store of the replicas".to_owned(),
        }
    }
}

impl RecordLock {
    pub(super) async fn release(self) {
        if let Self::Shared(lock) = self
            && let Err(error) = lock.release().await
        {
            tracing::debug!(
                "failed to release the lock of a sign-in; it expires by itself: {error}"
            );
        }
    }
}

/// Releases a lock, if it was taken.
pub(super) async fn release(lock: Option<RecordLock>) {
    if let Some(lock) = lock {
        lock.release().await;
    }
}

fn parse(text: &[u8]) -> Result<Record, StoreFault> {
    let record = serde_json::from_slice::<Record>(text)
        .ok()
        .filter(|it| it.layout == LAYOUT);
    record.ok_or(StoreFault::Unreadable)
}
