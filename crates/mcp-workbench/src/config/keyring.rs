//! Secrets in the system's keyring, for builds with the feature `keyring`.

#[cfg(feature = "keyring")]
use std::{sync::mpsc, thread, time::Duration};

/// The service name of the workbench in the keyring.
pub(super) const SERVICE: &str = "mcp-workbench";

/// The timeout for the keyring. A locked keyring asks its user, while a start waits for us.
#[cfg(feature = "keyring")]
const KEYRING_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the secret of this name, or a message.
#[cfg(feature = "keyring")]
pub(super) fn secret(name: &str) -> Result<String, String> {
    let (answer, answered) = mpsc::channel();
    let name = name.to_owned();
    let ask = move || {
        let entry = keyring::Entry::new(SERVICE, &name);
        // The receiver is gone after the timeout.
        let _ = answer.send(entry.and_then(|entry| entry.get_password()));
    };
    // On a thread of its own, since the keyring may still wait for its user after the timeout.
    let asking = thread::Builder::new().name("keyring".into()).spawn(ask);
    asking.map_err(|error| format!("cannot be read from the keyring: {error}"))?;
    match answered.recv_timeout(KEYRING_TIMEOUT) {
        Ok(Ok(secret)) => Ok(secret),
        Ok(Err(keyring::Error::NoEntry)) => Err("is not in the keyring".into()),
        Ok(Err(error)) => Err(format!("cannot be read from the keyring: {error}")),
        Err(_) => Err(format!(
            "cannot be read: timed out after {} s waiting for the keyring",
            KEYRING_TIMEOUT.as_secs()
        )),
    }
}

/// Fails, because the feature is off.
#[cfg(not(feature = "keyring"))]
pub(super) fn secret(_: &str) -> Result<String, String> {
    Err("cannot be read: this build has no keyring support".into())
}
