//! The pages for the browsers of users who sign in to servers. They need no token: a browser has none. The first step
//! finds out whose browser it is.

use std::sync::Arc;

use hyper::{
    HeaderMap, Method, Request, StatusCode,
    header::{self, HeaderValue},
};
use ident::{ClientName, ServerIdentifier};
use percent_encoding::percent_decode_str;

use super::{
    ENDPOINT_PATH,
    contexts::Contexts,
    response::{self, Response, empty},
};
use crate::{
    config::Transport,
    oauth::{
        Account, BROWSER_PATH, BrowserStep, CALLBACK, JourneyUser, RedirectOutcome, ResourceServer,
        SIGN_IN, SignInError, UserSignIns,
    },
    visible::visible,
};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BrowserPage {
    /// The page that begins a sign-in to a server.
    SignIn(ServerIdentifier),
    /// The page that authorization servers redirect to.
    Callback,
}

impl BrowserPage {
    /// Returns the page that a request is for. A proxy may pass on the path by which the public knows the workbench.
    pub(super) fn of<B>(request: &Request<B>, public_path: &str) -> Option<Self> {
        if request.method() != Method::GET {
            return None;
        }
        let path = request.uri().path();
        let rest = [ENDPOINT_PATH, public_path.trim_end_matches('/')]
            .into_iter()
            .find_map(|prefix| path.strip_prefix(prefix)?.strip_prefix(BROWSER_PATH))?;
        let mut segments = rest.strip_prefix('/')?.split('/');
        let mut name = || {
            let text = percent_decode_str(segments.next()?).decode_utf8().ok()?;
            Some(text.into_owned()).filter(|it| !it.is_empty())
        };
        let page = match name()?.as_str() {
            CALLBACK => Self::Callback,
            SIGN_IN => Self::SignIn(ServerIdentifier {
                toolbox: name()?.as_str().into(),
                server: name()?.as_str().into(),
            }),
            _ => return None,
        };
        name().is_none().then_some(page)
    }
}

/// The parts of the workbench that a page needs.
pub(super) struct BrowserPages<'a> {
    pub(super) users: &'a Arc<UserSignIns>,
    pub(super) contexts: &'a Contexts,
    pub(super) resource_server: &'a ResourceServer,
}

/// The reaction to a browser.
enum Reaction {
    Go(BrowserStep),
    Say(RedirectOutcome),
}

impl BrowserPages<'_> {
    pub(super) async fn respond<B>(&self, page: BrowserPage, request: &Request<B>) -> Response {
        let reaction = match page {
            BrowserPage::SignIn(place) => {
                let begun = self.users.begin(&place).await;
                begun.map(Reaction::Go).map_err(|error| (place, error))
            }
            BrowserPage::Callback => self.come_back(request).await,
        };
        match reaction {
            Ok(Reaction::Go(step)) => go(&step),
            Ok(Reaction::Say(outcome)) => say(outcome),
            Err((place, error)) => {
                let (toolbox, server) = (place.toolbox.as_str(), place.server.as_str());
                tracing::warn!(
                    "failed to sign a user in to server '{}' of toolbox '{}': {error}",
                    visible(server),
                    visible(toolbox)
                );
                say(RedirectOutcome::of_user(&error))
            }
        }
    }

    /// Takes the next step with a browser that an authorization server has sent back.
    async fn come_back<B>(
        &self,
        request: &Request<B>,
    ) -> Result<Reaction, (ServerIdentifier, SignInError)> {
        let redirected = self.users.redirected(request.uri().query());
        let cookies = cookies(request.headers());
        let journey = match self.users.resume(&redirected, &cookies).await {
            Ok(journey) => journey,
            Err(error @ SignInError::Store(_)) => {
                tracing::warn!("failed to continue the sign-in of a user: {error}");
                return Ok(Reaction::Say(RedirectOutcome::of_user(&error)));
            }
            Err(_) => return Ok(Reaction::Say(RedirectOutcome::Stray)),
        };
        let place = journey.place();
        let failed = |error| (place.clone(), error);
        // Two redirects end here. The first comes from the issuer of `auth` and tells whose browser this is; the
        // second comes from the authorization server of the server and brings the grant.
        let Some(user) = journey.user().cloned() else {
            let token = self
                .users
                .identify(journey, &redirected)
                .await
                .map_err(failed)?;
            // The check that requests pass: whoever may not use the workbench must not sign in to its servers either.
            let Ok(user) = self.resource_server.check(&token).await else {
                return Ok(Reaction::Say(RedirectOutcome::NoAccess));
            };
            let user = JourneyUser::new(user.digest, user.client.as_ref());
            let Some(account) = self.account(&place, &user) else {
                return Ok(Reaction::Say(RedirectOutcome::NoAccess));
            };
            let step = self.users.sign_in(&place, user, &account).await;
            return step.map(Reaction::Go).map_err(failed);
        };
        let Some(account) = self.account(&place, &user) else {
            return Ok(Reaction::Say(RedirectOutcome::NoAccess));
        };
        let finished = self.users.finish(journey, &account, &redirected).await;
        finished.map_err(failed)?;
        Ok(Reaction::Say(RedirectOutcome::GoBack))
    }

    /// Returns the account of a user at a server; `None` if the user does not have the server.
    fn account(&self, place: &ServerIdentifier, user: &JourneyUser) -> Option<Account> {
        let client: Option<ClientName> = user.client();
        let config = self.contexts.base(client.as_ref())?.workbench.config();
        let toolbox = config.toolboxes.get(&place.toolbox)?;
        let server = toolbox.servers.get(&place.server)?;
        match &server.transport {
            Transport::Remote(endpoint) => self.users.account(endpoint, user.digest()),
            Transport::Stdio(_) | Transport::Unset(_) => None,
        }
    }
}

/// Returns all cookies of a request.
fn cookies(headers: &HeaderMap) -> String {
    let cookies: Vec<&str> = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .collect();
    cookies.join("; ")
}

fn go(step: &BrowserStep) -> Response {
    let mut response = empty(StatusCode::SEE_OTHER);
    let headers = response.headers_mut();
    for (name, value) in [
        (header::LOCATION, step.location.as_str()),
        (header::SET_COOKIE, &step.cookie),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        // Addresses and cookies have only characters that a header may have.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

fn say(outcome: RedirectOutcome) -> Response {
    let (head, page) = outcome.response().into_parts();
    let mut response = response::typed("text/html; charset=utf-8", page);
    *response.status_mut() = head.status;
    response.headers_mut().extend(head.headers);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pages_of_browsers_are_public() {
        let sign_in = |toolbox: &str, server: &str| {
            Some(BrowserPage::SignIn(ServerIdentifier {
                toolbox: toolbox.into(),
                server: server.into(),
            }))
        };
        for (method, path, expected) in [
            (
                "GET",
                "/mcp/oauth/callback?code=1",
                Some(BrowserPage::Callback),
            ),
            (
                "GET",
                "/tools/mcp/oauth/callback",
                Some(BrowserPage::Callback),
            ),
            ("GET", "/mcp/oauth/sign-in/dev/gh", sign_in("dev", "gh")),
            (
                "GET",
                "/mcp/oauth/sign-in/my%20box/a%2Fb",
                sign_in("my box", "a/b"),
            ),
            ("POST", "/mcp/oauth/callback", None),
            ("GET", "/mcp", None),
            ("GET", "/mcp/oauth", None),
            ("GET", "/mcp/oauth/callback/x", None),
            ("GET", "/mcp/oauth/sign-in/dev", None),
            ("GET", "/mcp/oauth/sign-in/dev/", None),
            ("GET", "/oauth/callback", None),
        ] {
            let request = Request::builder().method(method).uri(path).body(());
            let found = BrowserPage::of(&request.unwrap(), "/tools/mcp");
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}
