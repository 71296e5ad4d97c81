//! Records on this machine: files in the state directory that only the user can read, or the keyring of the system if the
//! build has it and it works. Records of the users of an authorization server are encrypted files.

use std::{
    fmt,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::time::sleep;

use super::{
    super::{error::StoreFault, record::Record},
    LOCK_INTERVAL, keyring, parse,
};
use crate::{
    private_files,
    seal::{SealPurpose, Sealer},
};

/// The folder in the state directory.
const FOLDER: &str = "signin";
/// The folder of the users' records in it.
const USERS: &str = "users";
/// The extension of encrypted records.
const SEALED: &str = "sealed";
/// The largest record that is read or written.
const MOST_BYTES: usize = 256 * 1024;

/// The place of one record on this machine. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::oauth) struct LocalRecord(Arc<RecordPath>);

struct RecordPath {
    folder: PathBuf,
    /// The identifier of the account.
    key: String,
    /// Encrypts the record, if it is that of a user.
    sealer: Option<Sealer>,
}

impl fmt::Debug for RecordPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordPath")
            .field("folder", &self.folder)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl LocalRecord {
    pub(super) fn new(state: &Path, key: String) -> Self {
        Self(Arc::new(RecordPath {
            folder: state.join(FOLDER),
            key,
            sealer: None,
        }))
    }

    /// Returns the place of a user's record for a server.
    pub(super) fn of_user(state: &Path, server: &str, key: String, sealer: &Sealer) -> Self {
        Self(Arc::new(RecordPath {
            folder: user_folder(state, server),
            key,
            sealer: Some(sealer.clone()),
        }))
    }

    /// Loads the record. A file is newer than an entry of the keyring: it exists because the keyring did not work.
    pub(in crate::oauth) fn load(&self) -> Result<Option<Record>, StoreFault> {
        let text = self.load_text()?;
        text.map(|text| parse(&text)).transpose()
    }

    /// Loads the text of a record.
    pub(super) fn load_text(&self) -> Result<Option<Vec<u8>>, StoreFault> {
        let file = self.record_file();
        match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = match self.0.sealer {
                    None => keyring::load(&self.0.key)?,
                    // The keyring is that of the user of this machine, who is not one of the users of the workbench.
                    Some(_) => None,
                };
                return Ok(text.map(String::into_bytes));
            }
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let read = private_files::read(&file, MOST_BYTES as u64);
        let text = match &self.0.sealer {
            None => read.map(|(text, _)| text),
            Some(sealer) => read.and_then(|(sealed, _)| {
                sealer.decrypt(SealPurpose::Credentials, &self.seal_place(), &sealed)
            }),
        };
        text.map(Some).ok_or(StoreFault::Unreadable)
    }

    /// Stores the text of a record.
    pub(super) fn save_text(&self, text: &str) -> Result<(), StoreFault> {
        let sealed;
        let content = match &self.0.sealer {
            Some(sealer) => {
                sealed = sealer.encrypt(
                    SealPurpose::Credentials,
                    &self.seal_place(),
                    text.as_bytes(),
                );
                &sealed
            }
            None if keyring::save(&self.0.key, text) => {
                // A file that stays would win over the keyring at the next load.
                self.remove_file()?;
                return Ok(());
            }
            None => text.as_bytes(),
        };
        let name = format!("{}.{}", self.0.key, self.extension());
        Ok(private_files::replace(&self.0.folder, &name, content)?)
    }

    /// Removes the record. Returns false if there was none.
    pub(super) fn remove(&self) -> Result<bool, StoreFault> {
        let was_file = self.remove_file()?;
        let was_in_keyring = self.0.sealer.is_none() && keyring::remove(&self.0.key)?;
        Ok(was_in_keyring || was_file)
    }

    fn remove_file(&self) -> Result<bool, StoreFault> {
        match fs::remove_file(self.record_file()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lock of the record, which is released when the value is dropped. Returns `None` after the timeout.
    pub(super) async fn lock(&self, timeout: Duration) -> Option<File> {
        let file = self.open_lock()?;
        let mut waited = Duration::ZERO;
        // Waiting in `File::lock` would block a thread that nobody can cancel.
        while waited < timeout {
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
        let file = self.record_file();
        if file.exists() {
            file.display().to_string()
        } else {
            format!("the keyring of the system: {}", self.0.key)
        }
    }

    fn open_lock(&self) -> Option<File> {
        private_files::open_lock(&self.0.folder, &format!("{}.lock", self.0.key))
    }

    fn record_file(&self) -> PathBuf {
        let name = format!("{}.{}", self.0.key, self.extension());
        self.0.folder.join(name)
    }

    fn extension(&self) -> &'static str {
        match self.0.sealer {
            Some(_) => SEALED,
            None => "json",
        }
    }

    /// Returns the place that an encrypted record is bound to, so that no file can be moved to another user or server.
    fn seal_place(&self) -> String {
        let folder = self.0.folder.file_name().unwrap_or_default();
        format!("{}/{}", folder.display(), self.0.key)
    }
}

/// Returns the folder of the users' records for a server.
fn user_folder(state: &Path, server: &str) -> PathBuf {
    state.join(FOLDER).join(USERS).join(server)
}

/// Returns the keys of all users with a record for a server.
pub(super) fn user_keys(state: &Path, server: &str) -> Vec<String> {
    let Ok(folder) = fs::read_dir(user_folder(state, server)) else {
        return Vec::new();
    };
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let keys = names.filter_map(|name| {
        let key = name.strip_suffix(SEALED)?.strip_suffix('.')?;
        // A key becomes part of a path again, so it can only be a name that we have written.
        key.bytes()
            .all(|it| it.is_ascii_hexdigit())
            .then(|| key.to_owned())
    });
    keys.collect()
}
