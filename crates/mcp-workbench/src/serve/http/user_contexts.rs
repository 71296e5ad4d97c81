//! The workbenches of users who have credentials of their own at some servers. Each has the configuration of the client that
//! the user is, shares the servers that do not depend on the user, and has the others for itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    guard::UserToken,
    limits::{MAX_USERS, MIN_USER_IDLE},
    refusal::Refusal,
};
use crate::{
    call::Principal,
    oauth::{User, UserCredentials},
    serve::ServeContext,
    sync::lock,
};

/// The contexts of the users that were active lately.
pub(super) struct UserContexts {
    table: Mutex<HashMap<[u8; 16], UserContext>>,
    /// How long a user may be idle.
    idle_limit: Duration,
}

struct UserContext {
    context: ServeContext,
    credentials: Arc<UserCredentials>,
    /// The time of the last request.
    used: Instant,
}

impl UserContexts {
    pub(super) fn new(session_timeout: Duration) -> Self {
        Self {
            table: Mutex::default(),
            idle_limit: session_timeout.max(MIN_USER_IDLE),
        }
    }

    /// Returns the context of a user, beside the one that has the user's configuration.
    pub(super) fn of(
        &self,
        base: &ServeContext,
        user: &User,
        token: Option<&UserToken>,
        is_busy: impl Fn(Principal) -> bool,
    ) -> Result<ServeContext, Refusal> {
        // A known user may have come with a new token.
        self.touch(user, token);
        let known = lock(&self.table)
            .get(&user.digest)
            .map(|it| it.context.clone());
        if let Some(context) = known {
            return Ok(context);
        }
        if lock(&self.table).len() >= MAX_USERS {
            self.end_idlest(is_busy)?;
        }
        let credentials = UserCredentials::new(user.digest);
        if let Some(token) = token {
            credentials.set_token(token.text());
        }
        let context = base.beside(base.workbench.for_user(&credentials));
        let entry = UserContext {
            context: context.clone(),
            credentials,
            used: Instant::now(),
        };
        lock(&self.table).insert(user.digest, entry);
        Ok(context)
    }

    /// Records a request of a user, and the token that came with it, if one did.
    pub(super) fn touch(&self, user: &User, token: Option<&UserToken>) {
        if let Some(known) = lock(&self.table).get_mut(&user.digest) {
            known.used = Instant::now();
            if let Some(token) = token {
                known.credentials.set_token(token.text());
            }
        }
    }

    /// Ends the workbenches of users who were idle for too long and have nothing under way.
    pub(super) fn sweep(&self, is_busy: impl Fn(Principal) -> bool) {
        let now = Instant::now();
        lock(&self.table).retain(|digest, user| {
            let is_idle = now.saturating_duration_since(user.used) >= self.idle_limit;
            let is_over = is_idle && !is_busy(Principal::User(*digest));
            if is_over {
                user.context.workbench.end_user();
            }
            !is_over
        });
    }

    /// Makes room for another user.
    fn end_idlest(&self, is_busy: impl Fn(Principal) -> bool) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut table = lock(&self.table);
        let idle = table.iter().filter(|(digest, user)| {
            now.saturating_duration_since(user.used) >= MIN_USER_IDLE
                && !is_busy(Principal::User(**digest))
        });
        let idlest = idle.min_by_key(|(_, user)| user.used);
        let digest = *idlest.ok_or(Refusal::TooManyUsers)?.0;
        if let Some(ended) = table.remove(&digest) {
            ended.context.workbench.end_user();
        }
        Ok(())
    }
}
