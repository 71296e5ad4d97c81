//! Secrets in the keyring of the system, for builds that have it (the feature `keyring`).

#[cfg(feature = "keyring")]
use std::{sync::mpsc, thread, time::Duration};

/// The name under which the keyring knows the workbench.
pub(super) const SERVICE: &str = "mcp-workbench";

/// A keyring that is locked asks its user, and somebody waits for us.
#[cfg(feature = "keyring")]
const PATIENCE: Duration = Duration::from_secs(20);

/// The secret of this name, or why there is none.
#[cfg(feature = "keyring")]
pub(super) fn secret(name: &str) -> Result<String, String> {
    let (answer, answered) = mpsc::channel();
    let name = name.to_owned();
    let ask = move || {
        let entry = keyring::Entry::new(SERVICE, &name);
        // Nobody may wait for it any more.
        let _ = answer.send(entry.and_then(|entry| entry.get_password()));
    };
    let asking = thread::Builder::new().name("keyring".into()).spawn(ask);
    asking.map_err(|error| format!("cannot be read from the keyring: {error}"))?;
    match answered.recv_timeout(PATIENCE) {
        Ok(Ok(secret)) => Ok(secret),
        Ok(Err(keyring::Error::NoEntry)) => Err("is not in the keyring".into()),
        Ok(Err(error)) => Err(format!("cannot be read from the keyring: {error}")),
        Err(_) => Err(format!(
            "cannot be read: timed out after {} s waiting for the keyring",
            PATIENCE.as_secs()
        )),
    }
}

/// Without the feature there is none.
#[cfg(not(feature = "keyring"))]
pub(super) fn secret(_: &str) -> Result<String, String> {
    Err("cannot be read: this build has no keyring support".into())
}
