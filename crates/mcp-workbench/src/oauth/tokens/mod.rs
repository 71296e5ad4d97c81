//! The token of one server while the workbench serves. One task owns it: it reads the store, refreshes ahead of the end,
//! and answers whoever was refused. All others read what it has published, which takes no waiting.

mod ahead;
mod keeper;
mod moments;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use self::keeper::Keeper;
use super::{Account, Bearer, Challenge, SignInError, TokenFault};
use crate::config::Secrets;

/// How much longer a refresh may take that is under way at the end: to break it off could lose the only refresh token.
const GRACE: Duration = Duration::from_secs(3);

/// Keeps the token of one server. Cheap to clone; its task ends with the last clone, or when it is told to.
#[derive(Clone)]
pub(crate) struct Tokens(Arc<Inner>);

struct Inner {
    held: watch::Receiver<Held>,
    asks: mpsc::UnboundedSender<Ask>,
    /// Whether anybody wanted the token since it was last refreshed: nobody refreshes for a server that is not used.
    is_wanted: Arc<AtomicBool>,
    end: CancellationToken,
    _ends_with_this: DropGuard,
}

/// What is known of the token.
#[derive(Clone, Default)]
pub(super) struct Held {
    /// Whether the store was looked at.
    is_read: bool,
    /// The token, if there is one.
    token: Option<HeldToken>,
    /// What must not appear in texts: of this token and of the one before it.
    secrets: Arc<Secrets>,
}

#[derive(Clone)]
struct HeldToken {
    bearer: Bearer,
    /// When it is over, as far as that is known.
    over: Option<Instant>,
    /// The sign-in that it is of.
    grant: Arc<str>,
    /// What it is good for.
    scopes: Arc<[String]>,
}

/// What the task is asked.
enum Ask {
    /// A token that is not over; none if nobody is signed in.
    Ready(oneshot::Sender<Result<Option<Bearer>, TokenFault>>),
    /// Another one than the one that was refused.
    Cure {
        refused: Option<Bearer>,
        challenge: Option<Challenge>,
        reply: oneshot::Sender<Result<Bearer, TokenFault>>,
    },
    /// One for more scopes, the next time.
    StepUp(Vec<String>),
}

impl HeldToken {
    fn is_over(&self) -> bool {
        self.over.is_some_and(|over| Instant::now() >= over)
    }
}

impl Held {
    /// The token, if it is not over.
    pub(super) fn good(&self) -> Option<&Bearer> {
        let token = self.token.as_ref().filter(|token| !token.is_over());
        token.map(|token| &token.bearer)
    }
}

impl Tokens {
    /// Begins to keep the token of an account.
    pub(crate) fn new(account: Account, tasks: &TaskTracker) -> Self {
        let (publish, held) = watch::channel(Held::default());
        let (asks, asked) = mpsc::unbounded_channel();
        let is_wanted = Arc::new(AtomicBool::new(false));
        let end = CancellationToken::new();
        let keeper = Keeper::new(account, publish, Arc::clone(&is_wanted));
        tasks.spawn(keeper.run(asked, end.clone()));
        Self(Arc::new(Inner {
            held,
            asks,
            is_wanted,
            _ends_with_this: end.clone().drop_guard(),
            end,
        }))
    }

    /// Ends the task, for all clones: what is known stays known, and nothing is refreshed any more.
    pub(crate) fn end(&self) {
        self.0.end.cancel();
    }

    /// What is good for this moment, without waiting.
    pub(crate) fn bearer(&self) -> Option<Bearer> {
        self.want();
        self.0.held.borrow().good().cloned()
    }

    /// What is good for this moment; waits for a refresh if the token is over. None: nobody is signed in. Cancel-safe.
    pub(crate) async fn ready(&self) -> Result<Option<Bearer>, TokenFault> {
        self.want();
        let mut held = self.0.held.clone();
        let is_over = match held.wait_for(|held| held.is_read).await {
            Ok(held) => match (held.good(), &held.token) {
                (Some(good), _) => return Ok(Some(good.clone())),
                (None, token) => token.is_some(),
            },
            Err(_) => false,
        };
        if !is_over {
            return Ok(None);
        }
        match self.ask(Ask::Ready).await {
            Err(TokenFault::SignedOut(_)) => Ok(None),
            answer => answer,
        }
    }

    /// After a 401: another token than the one that was refused, from the store or by a refresh, one for all who ask.
    /// Cancel-safe: what has begun goes on without the caller.
    pub(crate) async fn cure(
        &self,
        refused: Option<&Bearer>,
        challenge: Option<&Challenge>,
    ) -> Result<Bearer, TokenFault> {
        self.want();
        let (refused, challenge) = (refused.cloned(), challenge.cloned());
        self.ask(|reply| Ask::Cure {
            refused,
            challenge,
            reply,
        })
        .await
    }

    /// After a 403 for want of scopes: the next sign-in asks for them.
    pub(crate) fn step_up(&self, challenge: &Challenge) {
        // Without a task there is no server either.
        let _ = self.0.asks.send(Ask::StepUp(challenge.scopes()));
    }

    /// What tells the present sign-in from all others; none if nobody is signed in.
    pub(crate) fn grant_id(&self) -> Option<Arc<str>> {
        let held = self.0.held.borrow();
        held.token.as_ref().map(|token| Arc::clone(&token.grant))
    }

    /// What a challenge asks for and the present token is not good for.
    pub(crate) fn lacking(&self, challenge: &Challenge) -> Vec<String> {
        let held = self.0.held.borrow();
        let token = held.token.as_ref();
        let mut asked = challenge.scopes();
        asked.retain(|scope| token.is_none_or(|token| !token.scopes.contains(scope)));
        asked
    }

    /// What must not appear in any text of the server.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.0.held.borrow().secrets)
    }

    /// What is published, as it changes.
    #[cfg(test)]
    pub(super) fn held(&self) -> watch::Receiver<Held> {
        self.0.held.clone()
    }

    fn want(&self) {
        self.0.is_wanted.store(true, Ordering::Relaxed);
    }

    async fn ask<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<Result<T, TokenFault>>) -> Ask,
    ) -> Result<T, TokenFault> {
        let (reply, answer) = oneshot::channel();
        let over = || TokenFault::from(SignInError::Over);
        self.0.asks.send(ask(reply)).map_err(|_| over())?;
        answer.await.unwrap_or_else(|_| Err(over()))
    }
}
