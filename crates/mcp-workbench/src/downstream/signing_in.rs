//! Signing in to a server that wants it: its access, and the offer to sign in, made to the user of the client that
//! needs the server. The offer is ours: it goes to the client by the way of the call, and what comes of it is a token
//! that only we have. Nothing that a server sends counts as an answer to it.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use thiserror::Error;
use tokio::{pin, sync::Semaphore, time::timeout};

use crate::{
    call::{AnswerFuture, ClientHandle, Principal, Question},
    config::Transport,
    downstream::{
        access::Access,
        asks::questions::{can_answer, fresh_id},
        error::SignInNeeded,
        link::LinkContext,
        server::ServerHandle,
        supervisor::adapt::Entry,
    },
    era::Era,
    ident::ServerIdentifier,
    signin::{Granted, Listener, SignIn, SignInError},
    visible::visible,
    wire::{self, Answer, ObjectText, RawJson},
};

/// How long a user may take to sign in, the answer to the offer included.
const PATIENCE: Duration = Duration::from_mins(10);

/// How a server is signed in to.
pub(crate) struct SigningIn {
    /// Known from the first start on; none if nobody signs in to the server.
    access: OnceLock<Option<Access>>,
    /// The right to offer it: to one user at a time.
    offer: Semaphore,
}

impl Default for SigningIn {
    fn default() -> Self {
        Self {
            access: OnceLock::new(),
            offer: Semaphore::new(1),
        }
    }
}

impl SigningIn {
    /// The access to the server, made if there is none yet.
    pub(crate) fn access(
        &self,
        place: &ServerIdentifier,
        entry: &Entry,
        links: &LinkContext,
    ) -> Option<&Access> {
        let access = || match &entry.server.transport {
            Transport::Remote(endpoint) => {
                Access::new(endpoint, place, &links.access, &links.tasks)
            }
            Transport::Stdio(_) | Transport::Unset(_) => None,
        };
        self.access.get_or_init(access).as_ref()
    }

    /// Ends what goes on beside the server.
    pub(crate) fn end(&self) {
        if let Some(access) = self.known() {
            access.end();
        }
    }

    /// What tells whose answers the server gives.
    pub(crate) fn grant(&self) -> Option<String> {
        self.known()?.grant()
    }

    fn known(&self) -> Option<&Access> {
        self.access.get()?.as_ref()
    }
}

impl ServerHandle {
    /// Whether the server may want somebody to sign in.
    pub fn may_want_sign_in(&self) -> bool {
        self.about.signing_in.known().is_some()
    }

    /// Offers the user of a client to sign in, and waits until that is done; false if it is not, or cannot be offered.
    /// Dropping the future withdraws the offer.
    pub async fn offer_sign_in(
        &self,
        needed: &SignInNeeded,
        client: &Arc<dyn ClientHandle>,
    ) -> bool {
        let Some(access) = self.about.signing_in.known() else {
            return false;
        };
        if !needed.is_for_a_person() || !can_be_offered(client) {
            return false;
        }
        let Ok(_permit) = self.about.signing_in.offer.try_acquire() else {
            return false;
        };
        let offered = timeout(PATIENCE, self.offer(access, needed, client)).await;
        let (place, why) = (
            self.identifier(),
            offered.unwrap_or(Err(NotSignedIn::Late)).err(),
        );
        let (toolbox, server) = (
            visible(place.toolbox.as_str()),
            visible(place.server.as_str()),
        );
        match &why {
            None => tracing::info!("signed in to server '{server}' of toolbox '{toolbox}'"),
            Some(why) => {
                tracing::warn!("not signed in to server '{server}' of toolbox '{toolbox}': {why}");
            }
        }
        why.is_none()
    }

    async fn offer(
        &self,
        access: &Access,
        needed: &SignInNeeded,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<(), NotSignedIn> {
        let account = access.account();
        let mut listener = Listener::bind(account.callback_port()).await?;
        let challenge = needed.challenge.as_ref();
        let sign_in = SignIn::begin(account, listener.redirect_uri(), challenge).await?;
        let id = fresh_id();
        let address = sign_in.address().as_str();
        let params = question(self.identifier(), needed, address, (client.era(), &id));
        let asked = client.ask_user(&params);
        let granted = agreed(asked, sign_in.wait(&mut listener)).await;
        let is_begun = !matches!(granted, Err(NotSignedIn::Declined));
        if is_begun && client.era() == Era::Legacy {
            let params = ObjectText::new().member("elicitationId", &id).finish();
            let complete = "notifications/elicitation/complete";
            client.notify(wire::notification(complete, Some(&params)));
        }
        granted
    }
}

/// Why an offer has come to nothing.
#[derive(Debug, Error)]
enum NotSignedIn {
    #[error("there is no port for the browser to come back to: {0}")]
    NoPort(#[from] io::Error),
    #[error("{0}")]
    Failed(#[from] SignInError),
    #[error("the user did not want to")]
    Declined,
    #[error("the user took longer than {} minutes", PATIENCE.as_secs() / 60)]
    Late,
}

/// Waits until the user has agreed and the browser has come back.
async fn agreed(
    asked: AnswerFuture,
    redirected: impl Future<Output = Result<Granted, SignInError>>,
) -> Result<(), NotSignedIn> {
    pin!(redirected);
    tokio::select! {
        biased;
        // Some clients answer when everything is done.
        granted = &mut redirected => {
            granted?;
            return Ok(());
        }
        answer = asked => {
            if !is_accepted(answer.as_ref()) {
                return Err(NotSignedIn::Declined);
            }
        }
    }
    redirected.await?;
    Ok(())
}

/// Whether a client can be made the offer: it shows addresses, and its user's browser can reach this machine.
fn can_be_offered(client: &Arc<dyn ClientHandle>) -> bool {
    let params = ObjectText::new().member("mode", "url").finish();
    client.is_here()
        && client.principal() != Principal::Anybody
        && can_answer(client, Question::Elicitation, Some(&params))
}

/// What the user is asked.
fn question(
    place: &ServerIdentifier,
    needed: &SignInNeeded,
    address: &str,
    (era, id): (Era, &str),
) -> RawJson {
    let (toolbox, server) = (place.toolbox.as_str(), place.server.as_str());
    let message = format!(
        "MCP Workbench asks: sign in to server '{}' of toolbox '{}'? {}",
        visible(server),
        visible(toolbox),
        needed.lack.for_the_user()
    );
    let params = ObjectText::new()
        .member("mode", "url")
        .member("message", &message)
        .member("url", address);
    match era {
        // Where to find it again; the modern era has nothing like it.
        Era::Legacy => params.member("elicitationId", id).finish(),
        Era::Modern => params.finish(),
    }
}

fn is_accepted(answer: Option<&Answer>) -> bool {
    let Some(Answer::Result(result)) = answer else {
        return false;
    };
    let action = result.member("action");
    action.is_some_and(|action| action.as_text().is_some_and(|it| it == "accept"))
}
