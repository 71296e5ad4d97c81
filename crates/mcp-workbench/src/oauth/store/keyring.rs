//! Records in the keyring of the system, for builds with the feature `keyring`. A locked keyring asks its user, so
//! requests run on a separate thread with a timeout.

use std::{sync::mpsc, thread, time::Duration};

use keyring::{Entry, Error};

use super::StoreFault;

/// The name under which the keyring knows the workbench.
const SERVICE: &str = "mcp-workbench";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Loads a record. A keyring that does not exist has none.
pub(super) fn load(key: &str) -> Result<Option<String>, StoreFault> {
    match ask(key, Entry::get_password) {
        Some(Ok(text)) => Ok(Some(text)),
        // These errors mean that this machine has no keyring, for example without a desktop.
        Some(Err(Error::NoEntry | Error::NoStorageAccess(_) | Error::PlatformFailure(_))) => {
            Ok(None)
        }
        Some(Err(error)) => Err(StoreFault::Keyring(error.to_string())),
        None => Err(StoreFault::Keyring("timed out".into())),
    }
}

/// Stores a text. Returns false on failure.
pub(super) fn save(key: &str, text: &str) -> bool {
    let text = text.to_owned();
    matches!(
        ask(key, move |entry| entry.set_password(&text)),
        Some(Ok(()))
    )
}

/// Removes a record. Returns false if there was none.
pub(super) fn remove(key: &str) -> Result<bool, StoreFault> {
    match ask(key, Entry::delete_credential) {
        Some(Ok(())) => Ok(true),
        Some(Err(Error::NoEntry | Error::NoStorageAccess(_) | Error::PlatformFailure(_))) => {
            Ok(false)
        }
        Some(Err(error)) => Err(StoreFault::Keyring(error.to_string())),
        None => Err(StoreFault::Keyring("timed out".into())),
    }
}

/// Asks the keyring; none if it gives no answer.
fn ask<T: Send + 'static>(
    key: &str,
    question: impl FnOnce(&Entry) -> Result<T, Error> + Send + 'static,
) -> Option<Result<T, Error>> {
    let (answer, answered) = mpsc::channel();
    let name = format!("signin/{key}");
    let run = move || {
        let entry = Entry::new(SERVICE, &name);
        // The request may have timed out.
        let _ = answer.send(entry.and_then(|entry| question(&entry)));
    };
    let asking = thread::Builder::new().name("keyring".into()).spawn(run);
    asking.ok()?;
    answered.recv_timeout(TIMEOUT).ok()
}
