//! The owner of credentials for servers where every user has their own.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use crate::sync::lock;

/// The owner of the credentials that a client's calls are sent with. It is chosen once, where the servers of the client are
/// created, and no call can change it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CredentialOwner {
    /// The user of this machine.
    #[default]
    Machine,
    /// Nobody: the client is not a user of the authorization server.
    Nobody,
    User(Arc<UserCredentials>),
}

/// A user of the authorization server, and the token that the user's client has sent last. The token is exchanged if an
/// entry says so, and never sent to a server.
pub(crate) struct UserCredentials {
    /// A digest that is the same in every process.
    digest: [u8; 16],
    token: Mutex<Option<Arc<str>>>,
}

impl UserCredentials {
    pub(crate) fn new(digest: [u8; 16]) -> Arc<Self> {
        Arc::new(Self {
            digest,
            token: Mutex::default(),
        })
    }

    pub(crate) fn digest(&self) -> [u8; 16] {
        self.digest
    }

    /// Records the token of the latest request.
    pub(crate) fn set_token(&self, token: &Arc<str>) {
        let mut known = lock(&self.token);
        if known.as_ref() != Some(token) {
            *known = Some(Arc::clone(token));
        }
    }

    pub(super) fn token(&self) -> Option<Arc<str>> {
        lock(&self.token).clone()
    }
}

/// The same user is one owner, whatever the token.
impl PartialEq for UserCredentials {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for UserCredentials {}

/// Hides the token.
impl fmt::Debug for UserCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserCredentials").finish_non_exhaustive()
    }
}
