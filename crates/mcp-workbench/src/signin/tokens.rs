//! The token of one server, kept fresh.

use tokio_util::task::TaskTracker;

use super::{Account, Bearer, Challenge, TokenFault, error::SignedOut};
use crate::config::Secrets;

/// Keeps the token of one server. Cheap to clone; its task ends with the last clone.
#[derive(Clone)]
pub struct Tokens {
    account: Account,
}

impl Tokens {
    /// Begins to keep the token of an account.
    pub fn new(account: Account, tasks: &TaskTracker) -> Self {
        let _ = tasks;
        Self { account }
    }

    /// The account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What is good for this moment, without waiting.
    pub fn bearer(&self) -> Option<Bearer> {
        None
    }

    /// What is good for this moment; waits for a refresh if the token is over. None: nobody is signed in.
    pub async fn ready(&self) -> Result<Option<Bearer>, TokenFault> {
        Ok(None)
    }

    /// After a 401: another token than the one that was refused, from the store or by a refresh.
    pub async fn cure(
        &self,
        refused: Option<&Bearer>,
        challenge: Option<&Challenge>,
    ) -> Result<Bearer, TokenFault> {
        let _ = (refused, challenge);
        Err(SignedOut::Never.into())
    }

    /// After a 403 for want of scopes: the next sign-in asks for them.
    pub fn step_up(&self, challenge: &Challenge) {
        self.account.note_needed_scopes(&challenge.scopes());
    }

    /// What tells the present sign-in from all others; none if nobody is signed in.
    pub fn grant_id(&self) -> Option<String> {
        None
    }

    /// What must not appear in any text of the server.
    pub fn secrets(&self) -> Secrets {
        Secrets::default()
    }
}
