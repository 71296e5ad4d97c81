//! `logout`: removes stored sign-ins, and revokes them at the authorization server.

use std::{path::Path, process::ExitCode};

use clap::Args;
use serde::Serialize;

use super::{
    error::LoginError,
    target::{LoginKind, SignInTarget},
    until_a_signal,
};
use crate::{
    cli::{CommandResult, configuration::load_configuration, output},
    config::Environment,
    oauth::{Account, SignInError},
};

#[derive(Args)]
pub(in crate::cli) struct LogoutArguments {
    /// The toolbox
    #[arg(required_unless_present = "all", requires = "server")]
    toolbox: Option<String>,

    /// The server
    server: Option<String>,

    /// Every server of the configuration
    #[arg(long, conflicts_with = "toolbox")]
    all: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(
    config: Option<&Path>,
    arguments: &LogoutArguments,
    environment: &Environment,
) -> CommandResult {
    let mut loaded = load_configuration(config, environment)?.config;
    let targets = match (&arguments.toolbox, &arguments.server) {
        (Some(toolbox), Some(server)) => vec![SignInTarget::named(&mut loaded, toolbox, server)?],
        _ => SignInTarget::all(&loaded),
    };
    let mut accounts = Vec::new();
    for target in &targets {
        let kind = target.login_kind(loaded.state.as_deref());
        let users = kind.users(&loaded);
        match kind {
            LoginKind::Person(account) | LoginKind::Credentials(account) => {
                accounts.push(SignedInServer {
                    target,
                    account,
                    users,
                });
            }
            // `--all` skips servers without a sign-in.
            _ if arguments.all => {}
            kind => {
                LoginError::unless_person(target, kind, config)?;
            }
        }
    }
    let (ended, trouble) = until_a_signal(async { Ok(sign_out(accounts).await) })?;
    if arguments.json {
        output::json(&LogoutReport { servers: &ended });
    } else {
        output::data(&rendered(&ended));
    }
    match trouble.into_iter().next() {
        None => Ok(ExitCode::SUCCESS),
        Some(first) => Err(first.into()),
    }
}

/// A server that may have been signed in to.
struct SignedInServer<'a> {
    target: &'a SignInTarget,
    account: Account,
    /// The accounts of users, if every user has credentials of their own.
    users: Option<Vec<Account>>,
}

/// Signs out of all of them, whatever happens with one.
async fn sign_out(
    accounts: Vec<SignedInServer<'_>>,
) -> (Vec<SignedOutServer<'_>>, Vec<LoginError>) {
    let (mut ended, mut trouble) = (Vec::new(), Vec::new());
    for server in accounts {
        let target = server.target;
        match sign_out_of(&server).await {
            Ok((signed_out, users)) => ended.push(SignedOutServer {
                users,
                toolbox: target.toolbox.as_str(),
                server: target.server.name.as_str(),
                signed_out,
                shown: target.shown(),
            }),
            Err(error) => trouble.push(LoginError::Failed {
                what: "cannot sign out of",
                server: target.shown(),
                error,
            }),
        }
    }
    (ended, trouble)
}

/// Signs the user of this machine out of a server, and all other users. Returns whether the former was signed in, and how many
/// of the others were.
async fn sign_out_of(server: &SignedInServer<'_>) -> Result<(bool, Option<usize>), SignInError> {
    let signed_out = server.account.sign_out().await?;
    let Some(users) = &server.users else {
        return Ok((signed_out, None));
    };
    let mut count = 0;
    for user in users {
        count += usize::from(user.sign_out().await?);
    }
    Ok((signed_out, Some(count)))
}

fn rendered(ended: &[SignedOutServer<'_>]) -> String {
    if ended.is_empty() {
        return "there is no server to sign out of\n".to_owned();
    }
    let lines = ended.iter().map(|it| {
        if let Some(users) = it.users.filter(|_| !it.signed_out) {
            format!("signed {users} users out of {}\n", it.shown)
        } else if it.signed_out {
            format!("signed out of {}\n", it.shown)
        } else {
            format!("was not signed in to {}\n", it.shown)
        }
    });
    lines.collect()
}

/// The result of the command.
#[derive(Serialize)]
struct LogoutReport<'a> {
    servers: &'a [SignedOutServer<'a>],
}

/// The result for one server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignedOutServer<'a> {
    toolbox: &'a str,
    server: &'a str,
    /// True if the user was signed in before.
    signed_out: bool,
    /// How many users were signed in before, if every user has credentials of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<usize>,
    /// The name of the server for messages.
    #[serde(skip)]
    shown: String,
}
