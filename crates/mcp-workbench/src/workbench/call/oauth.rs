//! Sign-in: offers it to the user of the client that needs the server. The offer is the workbench's own: it goes to the client
//! by the way of the call, and the token that it brings stays here. Nothing that a server sends counts as an answer.

use std::{io, sync::Arc};

use ident::ServerIdentifier;
use rawjson::{ObjectText, RawJson};
use thiserror::Error;
use tokio::pin;

use crate::{
    alarm::timeout,
    call::{AnswerFuture, ClientHandle, Principal, Question},
    downstream::{OAuthClient, OpenWait, ServerHandle, SignInNeeded, can_answer, fresh_id},
    era::Era,
    oauth::{Account, CredentialOwner, Listener, SIGN_IN_TIMEOUT, SignIn, SignInError},
    toolbox::{OpenError, Opened, Toolbox},
    visible::visible,
    wire::{self, Answer},
    workbench::Workbench,
};

/// Opens a toolbox, and offers the user to sign in to the servers that want it, one after the other.
pub(in crate::workbench) async fn open_with_sign_in(
    workbench: &Workbench,
    toolbox: &Toolbox,
    client: &Arc<dyn ClientHandle>,
) -> Result<Arc<Opened>, OpenError> {
    let opened = workbench.open(toolbox, client).await;
    let failures = match &opened {
        Ok(opened) => &opened.failures,
        Err(error) => &error.failures,
    };
    let mut has_changed = false;
    for failure in failures {
        let server = toolbox.server(&failure.server);
        if let (Some(server), Some(needed)) = (server, failure.error.sign_in()) {
            // One after the other, because a user cannot sign in at two pages at once.
            has_changed |= Box::pin(offer_sign_in(&server, needed, client)).await;
        }
    }
    if has_changed {
        return workbench.open(toolbox, client).await;
    }
    opened
}

/// Returns whether the user of a client can be offered to sign in to a server.
pub(super) fn can_offer(
    server: &ServerHandle,
    needed: &SignInNeeded,
    client: &Arc<dyn ClientHandle>,
) -> bool {
    let oauth = server.oauth().get();
    needed.is_for_a_person() && oauth.is_some_and(|it| can_be_offered(it.account(), client))
}

/// Offers the user of a client to sign in, and waits until that is done. Returns whether it is. Dropping the future
/// withdraws the offer.
pub(super) async fn offer_sign_in(
    server: &ServerHandle,
    needed: &SignInNeeded,
    client: &Arc<dyn ClientHandle>,
) -> bool {
    if !can_offer(server, needed, client) {
        return false;
    }
    let (Some(oauth), Some(_permit)) = (server.oauth().get(), server.oauth().offer()) else {
        return false;
    };
    let place = server.identifier();
    let offered = timeout(SIGN_IN_TIMEOUT, offer(place, oauth, needed, client)).await;
    let toolbox = visible(place.toolbox.as_str());
    let name = visible(place.server.as_str());
    match offered.unwrap_or(Err(NotSignedIn::Late)) {
        Ok(()) => {
            tracing::info!("signed in to server '{name}' of toolbox '{toolbox}'");
            // The start failed only because a sign-in was missing, so the next open waits for the server in full.
            server.set_open_wait(OpenWait::Never);
            true
        }
        Err(why) => {
            tracing::warn!("failed to sign in to server '{name}' of toolbox '{toolbox}': {why}");
            false
        }
    }
}

async fn offer(
    place: &ServerIdentifier,
    oauth: &OAuthClient,
    needed: &SignInNeeded,
    client: &Arc<dyn ClientHandle>,
) -> Result<(), NotSignedIn> {
    if let Some((users, page)) = oauth.user_page() {
        let awaited = users.awaited(oauth.account()).await;
        let params = |id: &str| question(place, needed, page, client.own_era(), id);
        return ask(client, params, awaited.signed_in()).await;
    }
    let account = oauth.account();
    // Before the address is made, because that names the port.
    let mut listener = Listener::bind(account.callback_port()).await?;
    let challenge = needed.challenge.as_ref();
    let sign_in = SignIn::begin(account, listener.redirect_uri(), challenge).await?;
    let address = sign_in.address().as_str();
    let params = |id: &str| question(place, needed, address, client.own_era(), id);
    ask(client, params, sign_in.wait(&mut listener)).await
}

/// Asks the user of a client to open an address, and waits until the browser is done.
async fn ask<T>(
    client: &Arc<dyn ClientHandle>,
    params: impl FnOnce(&str) -> RawJson,
    done: impl Future<Output = Result<T, SignInError>>,
) -> Result<(), NotSignedIn> {
    let id = fresh_id();
    // Until the browser is done, which may be long after the client has answered.
    let _wait = client.wait_for_user();
    let asked = client.ask_user(&params(&id));
    let granted = agreed(asked, done).await;
    // A legacy client may show the address until it hears that the user is done with it.
    let is_begun = !matches!(granted, Err(NotSignedIn::Declined));
    if is_begun && client.own_era() == Era::Legacy {
        let params = ObjectText::new().member("elicitationId", &id).finish();
        let complete = "notifications/elicitation/complete";
        client.notify(wire::notification(complete, Some(&params)));
    }
    granted
}

/// A sign-in that was offered and did not happen.
#[derive(Debug, Error)]
enum NotSignedIn {
    #[error("failed to listen for the browser's redirect: {0}")]
    NoPort(#[from] io::Error),
    #[error("{0}")]
    Failed(#[from] SignInError),
    #[error("sign-in was declined by the user")]
    Declined,
    #[error("timed out after {} minutes waiting for the user", SIGN_IN_TIMEOUT.as_secs() / 60)]
    Late,
}

/// Waits until the user has agreed and the browser has come back.
async fn agreed<T>(
    asked: AnswerFuture,
    redirected: impl Future<Output = Result<T, SignInError>>,
) -> Result<(), NotSignedIn> {
    pin!(redirected);
    tokio::select! {
        biased;
        // Some clients answer only after the browser has finished.
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

/// Returns whether a client can be asked: it shows addresses, and its user is the owner of the account. The user of this machine
/// also needs a browser that can reach a port of it.
fn can_be_offered(account: &Account, client: &Arc<dyn ClientHandle>) -> bool {
    let params = ObjectText::new().member("mode", "url").finish();
    let is_owner = match account.owner() {
        CredentialOwner::Machine => client.is_local() && client.principal() != Principal::Anybody,
        CredentialOwner::User(user) => client.principal() == Principal::User(user.digest()),
        CredentialOwner::Nobody => false,
    };
    is_owner && can_answer(client, Question::Elicitation, Some(&params))
}

/// Returns the question for the user.
fn question(
    place: &ServerIdentifier,
    needed: &SignInNeeded,
    address: &str,
    era: Era,
    id: &str,
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
        // The id under which a legacy client reports completion; the modern era has no equivalent.
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
