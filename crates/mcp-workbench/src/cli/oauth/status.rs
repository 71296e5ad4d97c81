//! `auth status`: shows the sign-in status of remote servers. No server is contacted.

use std::{path::Path, process::ExitCode};

use clap::Args;
use serde::Serialize;

use super::{
    login::until,
    target::{LoginKind, SignInTarget},
};
use crate::{
    cli::{
        CommandResult,
        configuration::load_configuration,
        output,
        terminal::{Ink, OutputStyle},
    },
    config::{Config, Environment},
    moment::moment,
    oauth::{Account, Record},
    visible::visible,
};

#[derive(Args)]
pub(super) struct StatusArguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &StatusArguments,
    environment: &Environment,
) -> CommandResult {
    let loaded = load_configuration(config, environment)?.config;
    let status = Status::of(&loaded, config);
    if arguments.json {
        output::json(&status);
    } else {
        output::data(&status.render(OutputStyle::of_stdout(environment)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The state of the sign-in to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SignInState {
    /// There is a token that is valid or can be refreshed.
    SignedIn,
    /// There was a sign-in, which is no longer valid.
    Ended,
    /// There was none, or none is needed.
    NotSignedIn,
    /// The stored sign-in cannot be read.
    Unreadable,
    /// The workbench gets tokens without a user.
    ClientCredentials,
    /// The entry has its own header or password.
    OwnCredentials,
    /// The entry switches OAuth off.
    Off,
    /// The entry refers to values that are not there.
    Unset,
}

/// The document of `auth status --json`.
#[derive(Serialize)]
struct Status {
    file: String,
    servers: Vec<ServerStatus>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerStatus {
    toolbox: String,
    server: String,
    state: SignInState,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    /// The scopes that the server has required since the sign-in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needed_scopes: Vec<String>,
    /// The expiry time of the token, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// True if the token is renewed without the user.
    renewed: bool,
    /// How many users have signed in, if every user has credentials of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<usize>,
    /// The place where it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<String>,
    /// The command that helps, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Status {
    fn of(loaded: &Config, config: Option<&Path>) -> Self {
        let targets = SignInTarget::all(loaded);
        let remote = targets.iter().filter(|target| target.is_remote());
        let servers = remote.map(|target| {
            let kind = target.login_kind(loaded.state.as_deref());
            let mut status = ServerStatus::of(target, &kind, config);
            status.users = kind.users(loaded).map(|users| users.len());
            status
        });
        Self {
            file: loaded.file.display().to_string(),
            servers: servers.collect(),
        }
    }

    fn render(&self, style: OutputStyle) -> String {
        let mut text = format!("{}\n", visible(&self.file));
        if self.servers.is_empty() {
            text.push_str("no remote servers\n");
        }
        for server in &self.servers {
            text.push_str(&server.render(style));
        }
        text
    }
}

impl ServerStatus {
    fn of(target: &SignInTarget, kind: &LoginKind<'_>, config: Option<&Path>) -> Self {
        let bare = |state| Self {
            toolbox: target.toolbox.to_string(),
            server: target.server.name.to_string(),
            state,
            issuer: None,
            scopes: Vec::new(),
            needed_scopes: Vec::new(),
            until: None,
            renewed: false,
            users: None,
            stored: None,
            remedy: None,
        };
        match kind {
            LoginKind::Own => bare(SignInState::OwnCredentials),
            LoginKind::Off | LoginKind::Program => bare(SignInState::Off),
            LoginKind::Unset(_) => bare(SignInState::Unset),
            LoginKind::Credentials(account) => Self {
                renewed: true,
                ..bare(SignInState::ClientCredentials).with(account)
            },
            LoginKind::Person(account) => {
                let mut status = bare(SignInState::NotSignedIn).with(account);
                let wants_sign_in = match status.state {
                    // Most servers without a sign-in need none, and one that does names the command in its error.
                    SignInState::NotSignedIn => account.is_configured(),
                    SignInState::SignedIn => !status.needed_scopes.is_empty(),
                    _ => true,
                };
                if wants_sign_in {
                    status.remedy = Some(target.login(config));
                }
                status
            }
        }
    }

    /// Adds the stored record.
    fn with(mut self, account: &Account) -> Self {
        let record = match account.load() {
            Ok(Some(record)) => record,
            Ok(None) => return self,
            Err(_) => {
                self.state = SignInState::Unreadable;
                return self;
            }
        };
        if self.state == SignInState::NotSignedIn {
            self.state = if record.is_signed_in() {
                SignInState::SignedIn
            } else {
                SignInState::Ended
            };
        }
        self.issuer = record.issuer().map(str::to_owned);
        self.scopes = record.scopes().to_vec();
        self.needed_scopes = record.needed_scopes().to_vec();
        self.until = Record::expires_at(&record).map(moment);
        self.renewed = record.can_refresh();
        self.stored = account.stored_in();
        self
    }

    fn render(&self, style: OutputStyle) -> String {
        let name = visible(&format!("{}/{}", self.toolbox, self.server)).into_owned();
        let name = style.paint(Ink::Strong, &name);
        let mut text = format!("\n{name}: {}\n", self.state.shown(style));
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("  {name:<7} {}\n", visible(value)));
        };
        if let Some(issuer) = &self.issuer {
            line("at", issuer);
        }
        if !self.scopes.is_empty() {
            line("scopes", &self.scopes.join(" "));
        }
        if self.state == SignInState::SignedIn {
            line("until", &until(self.until.as_deref(), self.renewed));
        }
        if !self.needed_scopes.is_empty() {
            line("needs", &self.needed_scopes.join(" "));
        }
        if let Some(users) = self.users {
            line("users", &format!("{users} signed in"));
        }
        if let Some(remedy) = &self.remedy {
            line("hint", remedy);
        }
        text
    }
}

impl SignInState {
    fn shown(self, style: OutputStyle) -> String {
        let (ink, words) = match self {
            Self::SignedIn => (Ink::Good, "signed in"),
            Self::Ended => (Ink::Bad, "the last sign-in has expired"),
            Self::NotSignedIn => (Ink::Faint, "not signed in"),
            Self::Unreadable => (Ink::Bad, "the stored sign-in cannot be read"),
            Self::ClientCredentials => (Ink::Good, "gets its tokens with its own credentials"),
            Self::OwnCredentials => (Ink::Faint, "the entry has its own credentials"),
            Self::Off => (Ink::Faint, "sign-in is off in the entry"),
            Self::Unset => (Ink::Bad, "the entry refers to values that are not set"),
        };
        style.paint(ink, words)
    }
}
