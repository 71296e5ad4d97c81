//! Signing in to remote servers: OAuth 2.1 as the revisions of the protocol require it.
//!
//! An [`Account`] is a server that can be signed in to. A [`SignIn`] gets its first token, with a [`Listener`] for the
//! redirect of the browser; [`Tokens`] refreshes it while the workbench serves. Both find the authorization server by
//! `discovery` and ask it as an `authority::Authority`. All requests go through `fetch`, which connects only to addresses
//! that it has checked, since servers choose them.

mod account;
mod assertion;
mod authority;
mod bearer;
mod challenge;
mod discovery;
mod error;
mod fetch;
mod listener;
mod metadata;
mod owner;
mod record;
mod resource_server;
mod sign_in;
mod store;
mod tokens;
mod user_sign_ins;

pub(crate) use self::{
    account::{Account, AccountPlace, TokenWay},
    bearer::Bearer,
    challenge::Challenge,
    error::{FetchFault, OAuthCode, SignInError, SignedOut, TokenFault},
    listener::{Listener, RedirectOutcome},
    owner::{CredentialOwner, UserCredentials},
    record::Record,
    resource_server::{METADATA_PATH, ResourceServer, TokenRefusal, User},
    sign_in::{GrantedAccess, SIGN_IN_TIMEOUT, SignIn},
    store::UserRecords,
    tokens::Tokens,
    user_sign_ins::{BROWSER_PATH, BrowserStep, CALLBACK, JourneyUser, SIGN_IN, UserSignIns},
};

#[cfg(test)]
mod tests;
