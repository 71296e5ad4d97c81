//! The token of one server while the workbench serves. One task owns it: it loads the record, refreshes before the token
//! expires, and replaces refused tokens. All others read the published token without waiting.

mod ahead;
mod published;
mod task;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
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

use self::task::TokenTask;
use super::{Account, Bearer, Challenge, SignInError, TokenFault};
use crate::config::Secrets;

/// The grace period for a pending refresh at the end: cancelling it could lose the only refresh token.
const GRACE: Duration = Duration::from_secs(3);

/// A handle of the task that owns the token of one server. Cheap to clone; the task ends with the last clone, or by
/// [`Self::end`].
#[derive(Clone)]
pub(crate) struct Tokens(Arc<Inner>);

struct Inner {
    state: watch::Receiver<TokenState>,
    asks: mpsc::UnboundedSender<Ask>,
    /// True if the token was used since the last refresh. Without use there is no refresh.
    is_wanted: Arc<AtomicBool>,
    end: CancellationToken,
    _ends_with_this: DropGuard,
}

/// The published state of the token.
#[derive(Clone, Default)]
pub(super) struct TokenState {
    /// True as soon as the record was loaded.
    is_read: bool,
    /// The token, if there is one.
    token: Option<PublishedToken>,
    /// The values to redact: of this token and of the one before it.
    secrets: Arc<Secrets>,
}

#[derive(Clone)]
struct PublishedToken {
    bearer: Bearer,
    /// The time at which it expires, if it is known.
    expires: Option<Instant>,
    /// The identifier of its sign-in.
    grant: Arc<str>,
    scopes: Arc<[String]>,
}

/// A request to the task.
enum Ask {
    /// Wants a token that has not expired; `None` if nobody is signed in.
    Ready(oneshot::Sender<Result<Option<Bearer>, TokenFault>>),
    /// Wants a different token than the refused one.
    Replace {
        refused: Option<Bearer>,
        challenge: Option<Challenge>,
        reply: oneshot::Sender<Result<Bearer, TokenFault>>,
    },
    /// Wants more scopes at the next sign-in.
    StepUp {
        scopes: Vec<String>,
        reply: oneshot::Sender<Result<(), TokenFault>>,
    },
}

impl PublishedToken {
    fn is_expired(&self) -> bool {
        self.expires.is_some_and(|it| Instant::now() >= it)
    }
}

impl TokenState {
    /// Returns the token, if it has not expired.
    pub(super) fn good(&self) -> Option<&Bearer> {
        let token = self.token.as_ref().filter(|token| !token.is_expired());
        token.map(|token| &token.bearer)
    }
}

impl Tokens {
    /// Starts the task for an account.
    pub(crate) fn new(account: Account, tasks: &TaskTracker) -> Self {
        let (publish, state) = watch::channel(TokenState::default());
        let (asks, asked) = mpsc::unbounded_channel();
        let is_wanted = Arc::new(AtomicBool::new(false));
        let end = CancellationToken::new();
        let task = TokenTask::new(account, publish, Arc::clone(&is_wanted));
        tasks.spawn(task.run(asked, end.clone()));
        Self(Arc::new(Inner {
            state,
            asks,
            is_wanted,
            _ends_with_this: end.clone().drop_guard(),
            end,
        }))
    }

    /// Ends the task, for all clones: the published token stays, and is not refreshed any more.
    pub(crate) fn end(&self) {
        self.0.end.cancel();
    }

    /// Returns the present token, if there is one and it needs no waiting.
    pub(crate) fn present(&self) -> Poll<Option<Bearer>> {
        self.want();
        let state = self.0.state.borrow();
        match (state.good(), &state.token) {
            (Some(good), _) => Poll::Ready(Some(good.clone())),
            // Nobody is signed in.
            (None, None) if state.is_read => Poll::Ready(None),
            (None, _) => Poll::Pending,
        }
    }

    /// Returns the present token, after a refresh if it has expired. `None`: nobody is signed in. Cancel-safe.
    pub(crate) async fn ready(&self) -> Result<Option<Bearer>, TokenFault> {
        self.want();
        let mut state = self.0.state.clone();
        // Until the record is loaded, nobody knows whether there is a token.
        let is_expired = match state.wait_for(|state| state.is_read).await {
            Ok(state) => match (state.good(), &state.token) {
                (Some(good), _) => return Ok(Some(good.clone())),
                (None, token) => token.is_some(),
            },
            Err(_) => false,
        };
        if !is_expired {
            return Ok(None);
        }
        match self.ask(Ask::Ready).await {
            // The request is sent without a token then, and the refusal of the server leads to the sign-in.
            Err(TokenFault::SignedOut(_)) => Ok(None),
            answer => answer,
        }
    }

    /// Returns a different token after a 401, from the store or by one refresh for all callers. Cancel-safe: a refresh
    /// continues without the caller.
    pub(crate) async fn replace(
        &self,
        refused: Option<&Bearer>,
        challenge: Option<&Challenge>,
    ) -> Result<Bearer, TokenFault> {
        self.want();
        let (refused, challenge) = (refused.cloned(), challenge.cloned());
        self.ask(|reply| Ask::Replace {
            refused,
            challenge,
            reply,
        })
        .await
    }

    /// Adds the scopes of a 403 to the next sign-in, and returns once they are stored: a `login` that the user runs right
    /// after the error is a process of its own, and reads them. Cancel-safe.
    pub(crate) async fn step_up(&self, challenge: &Challenge) {
        let scopes = challenge.scopes();
        // The only failure is a task that has ended, and then nothing is refreshed or stored any more.
        let _ = self.ask(|reply| Ask::StepUp { scopes, reply }).await;
    }

    /// Returns the identifier of the present sign-in; `None` if nobody is signed in.
    pub(crate) fn grant_id(&self) -> Option<Arc<str>> {
        let state = self.0.state.borrow();
        state.token.as_ref().map(|token| Arc::clone(&token.grant))
    }

    /// Returns the scopes of a challenge that the present token does not have.
    pub(crate) fn lacking(&self, challenge: &Challenge) -> Vec<String> {
        let state = self.0.state.borrow();
        let token = state.token.as_ref();
        let mut asked = challenge.scopes();
        asked.retain(|scope| token.is_none_or(|token| !token.scopes.contains(scope)));
        asked
    }

    /// Returns the values to redact in texts of the server.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.0.state.borrow().secrets)
    }

    /// Returns the published state, as it changes.
    #[cfg(test)]
    pub(super) fn state(&self) -> watch::Receiver<TokenState> {
        self.0.state.clone()
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
