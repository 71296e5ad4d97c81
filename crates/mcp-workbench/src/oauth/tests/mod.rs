//! Signing in against an authorization server over real sockets, which can be made to do wrong.

mod authority;
mod listener;
mod sign_in;
mod tokens;
mod trust;

use std::path::Path;

use indexmap::IndexMap;
use url::Url;

use self::authority::TestAuthority;
use super::{Account, GrantedAccess, SignIn, SignInError};
use crate::config::{OAuth, OAuthSettings, RemoteEndpoint, RemoteProtocol, Secrets};

const REDIRECT: &str = "http://127.0.0.1:1/callback";

fn account_with(authority: &TestAuthority, state: &Path, settings: OAuthSettings) -> Account {
    let endpoint = RemoteEndpoint {
        url: authority.server(),
        headers: IndexMap::new(),
        oauth: OAuth::On(Box::new(settings)),
        protocol: RemoteProtocol::Http,
        secrets: Secrets::default(),
    };
    Account::of_machine(&endpoint, Some(state)).unwrap()
}

fn account(authority: &TestAuthority, state: &Path) -> Account {
    account_with(authority, state, OAuthSettings::default())
}

/// Returns the value of a parameter of an address.
fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// Returns the address that the browser would be redirected to.
fn redirect(sign_in: &SignIn, rest: &str) -> String {
    let state = parameter(sign_in.address(), "state").unwrap();
    format!("{REDIRECT}?state={state}&{rest}")
}

/// Signs in, as a person would who says yes.
async fn sign_in(account: &Account) -> Result<GrantedAccess, SignInError> {
    let sign_in = SignIn::begin(account, REDIRECT, None).await?;
    sign_in.finish(&redirect(&sign_in, "code=good")).await
}
