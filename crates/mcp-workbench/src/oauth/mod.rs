//! Signing in to remote servers: OAuth 2.1 as the protocol's revisions ask for it. `rmcp` does the protocol; what is ours
//! is the way to the network (only to addresses that are checked when they are dialled), where tokens are kept, the
//! browser's way back, one refresh at a time for all, and what is refused.
//!
//! An [`Account`] is a server that can be signed in to. A [`SignIn`] gets its first token, with a [`Listener`] for the
//! browser; [`Tokens`] keeps it fresh while the workbench serves.

mod account;
mod assertion;
mod authority;
mod bearer;
mod challenge;
mod error;
mod fetch;
mod listener;
mod record;
mod sign_in;
mod store;
mod tokens;

pub(crate) use self::{
    account::Account,
    bearer::Bearer,
    challenge::Challenge,
    error::{FetchFault, OAuthCode, SignInError, SignedOut, TokenFault},
    listener::{Listener, Outcome},
    record::Record,
    sign_in::{Granted, SignIn},
    tokens::Tokens,
};

#[cfg(test)]
mod tests;
