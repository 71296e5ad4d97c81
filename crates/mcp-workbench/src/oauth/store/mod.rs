//! The storage of records: files in the state directory that only the user can read, or the keyring of the system if the
//! build has it and it works. A lock for each record keeps two workbenches from using the same refresh token.

#[cfg(all(feature = "keyring", not(test)))]
mod keyring;
#[cfg(not(all(feature = "keyring", not(test))))]
#[path = "no_keyring.rs"]
mod keyring;

use std::{
    fs::{self, File, TryLockError},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::time::sleep;

use super::{
    error::StoreFault,
    record::{LAYOUT, Record},
};
use crate::{offload::run_blocking, private_files};

/// The folder in the state directory.
const FOLDER: &str = "signin";
/// The largest record that is read or written.
const MOST_BYTES: usize = 256 * 1024;
/// The timeout for the lock: longer than a refresh by another workbench takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);
const SHORT_LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

/// The place of one record. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Store(Arc<Place>);

#[derive(Debug)]
struct Place {
    folder: PathBuf,
    /// The identifier of the account.
    key: String,
}

impl Store {
    pub(super) fn new(state: &std::path::Path, key: String) -> Self {
        let folder = state.join(FOLDER);
        Self(Arc::new(Place { folder, key }))
    }

    /// Loads the record. A file is newer than an entry of the keyring: it exists because the keyring did not work.
    pub(super) fn load(&self) -> Result<Option<Record>, StoreFault> {
        let file = self.file("json");
        match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = keyring::load(&self.0.key)?;
                return text.map(|text| parse(text.as_bytes())).transpose();
            }
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let read = private_files::read(&file, MOST_BYTES as u64);
        let (text, _) = read.ok_or(StoreFault::Unreadable)?;
        parse(&text).map(Some)
    }

    pub(super) fn save(&self, record: &Record) -> Result<(), StoreFault> {
        let text = serde_json::to_string(record).map_err(|_| StoreFault::Unreadable)?;
        if keyring::save(&self.0.key, &text) {
            self.remove_file()?;
            return Ok(());
        }
        let name = format!("{}.json", self.0.key);
        Ok(private_files::replace(
            &self.0.folder,
            &name,
            text.as_bytes(),
        )?)
    }

    /// Removes the record. Returns false if there was none.
    pub(super) fn remove(&self) -> Result<bool, StoreFault> {
        let was_file = self.remove_file()?;
        Ok(keyring::remove(&self.0.key)? || was_file)
    }

    fn remove_file(&self) -> Result<bool, StoreFault> {
        match fs::remove_file(self.file("json")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Does [`Self::save`] without blocking the event loop.
    pub(super) async fn write(&self, record: Record) -> Result<(), StoreFault> {
        let store = self.clone();
        let written = run_blocking(move || store.save(&record)).await;
        written.unwrap_or(Err(StoreFault::Unreadable))
    }

    /// Does [`Self::remove`] without blocking the event loop.
    pub(super) async fn erase(&self) -> Result<bool, StoreFault> {
        let store = self.clone();
        let erased = run_blocking(move || store.remove()).await;
        erased.unwrap_or(Err(StoreFault::Unreadable))
    }

    /// Does [`Self::lock`] with a short timeout.
    pub(super) fn lock_now(&self) -> Option<File> {
        private_files::wait_for_lock(self.open_lock()?, SHORT_LOCK_TIMEOUT)
    }

    /// Takes the lock of the record, which is released when the value is dropped. Returns `None` after a timeout: it is
    /// better to refresh twice than never.
    pub(super) async fn lock(&self) -> Option<File> {
        let file = self.open_lock()?;
        let mut waited = Duration::ZERO;
        while waited < LOCK_TIMEOUT {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(TryLockError::WouldBlock) => sleep(LOCK_INTERVAL).await,
                Err(TryLockError::Error(_)) => return None,
            }
            waited += LOCK_INTERVAL;
        }
        None
    }

    /// Returns the place of the record, for the user.
    pub(super) fn place(&self) -> String {
        let file = self.file("json");
        if file.exists() {
            file.display().to_string()
        } else {
            format!("the keyring of the system: {}", self.0.key)
        }
    }

    fn open_lock(&self) -> Option<File> {
        private_files::open_lock(&self.0.folder, &format!("{}.lock", self.0.key))
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.0.folder.join(format!("{}.{extension}", self.0.key))
    }
}

fn parse(text: &[u8]) -> Result<Record, StoreFault> {
    let record = serde_json::from_slice::<Record>(text)
        .ok()
        .filter(|it| it.layout == LAYOUT);
    record.ok_or(StoreFault::Unreadable)
}

/// Encodes bytes as hexadecimal digits, which are safe in the name of a file.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
