//! The address of the store that replicas share.

use std::fmt;

/// The address, which may contain a password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress(String);

impl StoreAddress {
    pub(crate) fn new(url: String) -> Self {
        Self(url)
    }

    pub(crate) fn url(&self) -> &str {
        &self.0
    }
}

/// Hides the password.
impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAddress").finish_non_exhaustive()
    }
}
