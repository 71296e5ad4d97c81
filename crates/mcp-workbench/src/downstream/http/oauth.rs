//! The token of one request, and its replacement if it is refused. A request with a refused token did not run, so it
//! is sent again with another token.

use std::task::Poll;

use hyper::{
    HeaderMap, StatusCode,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};

use super::{
    client::{Response, SendError},
    peer::{Peer, PeerEvent},
};
use crate::{
    downstream::{error::SignInNeeded, oauth::OAuthClient},
    oauth::{Bearer, Challenge},
};

/// The token of one request.
pub(super) struct RequestToken<'a> {
    peer: &'a Peer,
    oauth: Option<&'a OAuthClient>,
    bearer: Option<Bearer>,
    replaced: bool,
}

/// The meaning of a response for the token.
pub(super) enum TokenVerdict {
    Other,
    /// It was refused, and there is another one: send the request again.
    Again,
    /// It was refused, and the user must sign in.
    Lacks(Box<SignInNeeded>),
}

/// The reason why a request for a stream has no response.
pub(super) enum NoResponse {
    Send(SendError),
    SignIn(Box<SignInNeeded>),
}

impl<'a> RequestToken<'a> {
    /// Returns the token for a request that is made now.
    pub(super) async fn begin(peer: &'a Peer) -> Self {
        let oauth = peer.oauth();
        let bearer = match oauth {
            Some(oauth) => match oauth.present_bearer() {
                Poll::Ready(present) => present,
                // On the heap because it is large and rare.
                Poll::Pending => Box::pin(oauth.bearer()).await,
            },
            None => None,
        };
        Self {
            peer,
            oauth,
            bearer,
            replaced: false,
        }
    }

    /// Returns the header of the token. An entry with a header of this name has no token.
    pub(super) fn headers(&self) -> HeaderMap {
        let bearer = self.bearer.iter();
        let token = bearer.map(|bearer| (AUTHORIZATION, bearer.header().clone()));
        token.collect()
    }

    /// Judges a response, and gets another token if that may help.
    pub(super) fn judge<'b>(
        &'b mut self,
        response: &Response,
    ) -> impl Future<Output = TokenVerdict> + use<'a, 'b> {
        let status = response.status();
        let is_about_tokens = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let judged = self.oauth.filter(|_| is_about_tokens).map(|oauth| {
            let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let challenge = Challenge::of(values.filter_map(|value| value.to_str().ok()));
            // On the heap because it is large and rare.
            Box::pin(self.judge_refusal(oauth, status, challenge))
        });
        async {
            match judged {
                Some(judged) => judged.await,
                None => TokenVerdict::Other,
            }
        }
    }

    async fn judge_refusal(
        &mut self,
        oauth: &OAuthClient,
        status: StatusCode,
        challenge: Option<Challenge>,
    ) -> TokenVerdict {
        let before = oauth.grant();
        let scopes = challenge.as_ref().filter(|it| it.is_insufficient_scope());
        let replaced = match (status, scopes) {
            (StatusCode::FORBIDDEN, None) => return TokenVerdict::Other,
            (_, Some(scopes)) if self.replaced => {
                return TokenVerdict::Lacks(Box::new(oauth.step_up(scopes).await));
            }
            // A new token was refused too, so its age was not the reason.
            _ if self.replaced => {
                return TokenVerdict::Lacks(Box::new(oauth.refused(challenge.as_ref())));
            }
            (StatusCode::FORBIDDEN, Some(scopes)) => {
                oauth.widen(self.bearer.as_ref(), scopes).await
            }
            _ => {
                oauth
                    .replace_token(self.bearer.as_ref(), challenge.as_ref())
                    .await
            }
        };
        self.replaced = true;
        match replaced {
            Ok(bearer) => {
                self.bearer = Some(bearer);
                if oauth.grant() != before {
                    // The user has signed in with a different account, so the tools may differ.
                    self.peer.tell(PeerEvent::AccountChanged).await;
                }
                TokenVerdict::Again
            }
            Err(needed) => TokenVerdict::Lacks(needed),
        }
    }
}
