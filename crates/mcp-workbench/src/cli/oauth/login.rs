//! `login`: signs in to a remote server, in a browser on this or another machine.

use std::{
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use super::{browser, error::LoginError, paste::Paste, target::SignInTarget, until_a_signal};
use crate::{
    alarm::timeout,
    cli::{
        CommandResult,
        configuration::load_configuration,
        output,
        terminal::{Ink, OutputStyle},
    },
    config::Environment,
    moment::moment,
    oauth::{Account, GrantedAccess, Listener, Record, RedirectOutcome, SignIn, SignInError},
    visible::visible,
};
use clap::Args;
use serde::Serialize;

/// How long the user may take in the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);

#[derive(Args)]
pub(in crate::cli) struct LoginArguments {
    /// The toolbox
    toolbox: String,

    /// The server
    server: String,

    /// Only print the address, to be opened anywhere
    #[arg(long)]
    no_browser: bool,

    /// Ask for this scope too; may be given several times
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn run(
    config: Option<&Path>,
    arguments: &LoginArguments,
    environment: &Environment,
) -> CommandResult {
    let mut loaded = load_configuration(config, environment)?.config;
    let target = SignInTarget::named(&mut loaded, &arguments.toolbox, &arguments.server)?;
    let kind = target.login_kind(loaded.state.as_deref());
    let account = LoginError::unless_person(&target, kind, config)?
        .asking_for(&arguments.scope)
        .ok_or(LoginError::Scope)?;
    let server = target.shown();
    let granted = until_a_signal(sign_in(&account, &server, arguments, environment))?;
    let record = account.load().ok().flatten();
    let report = LoginReport::of(&target, &account, &granted, record.as_ref());
    if arguments.json {
        output::json(&report);
    } else {
        output::data(&report.render(&server, OutputStyle::of_stdout(environment)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the browser and waits for the redirect.
async fn sign_in(
    account: &Account,
    server: &str,
    arguments: &LoginArguments,
    environment: &Environment,
) -> Result<GrantedAccess, LoginError> {
    let failed = |error| match error {
        SignInError::Over => LoginError::TooLate(server.to_owned()),
        error => LoginError::Failed {
            what: "cannot sign in to",
            server: server.to_owned(),
            error,
        },
    };
    // The port is part of the redirect address, so it is opened before the sign-in begins.
    let port = account.callback_port();
    let mut listener = Listener::bind(port)
        .await
        .map_err(|error| LoginError::Port { port, error })?;
    output::remark(&format!("looking up how to sign in to {server}"));
    let begun = SignIn::begin(account, listener.redirect_uri(), None).await;
    let attempt = begun.map_err(failed)?;
    show_address(&attempt, arguments, environment).await;
    let waited = timeout(LOGIN_TIMEOUT, wait_for_redirect(&attempt, &mut listener)).await;
    match waited {
        Ok(done) => done.map_err(failed),
        Err(_) => Err(LoginError::TooLate(server.to_owned())),
    }
}

/// Opens the browser, or prints the address to open.
async fn show_address(attempt: &SignIn, arguments: &LoginArguments, environment: &Environment) {
    let address = browser::shell_safe(attempt.address());
    let at = attempt.address().host_str().unwrap_or_default();
    let at = visible(at).into_owned();
    let has_terminal = io::stderr().is_terminal();
    let is_open = !arguments.no_browser && browser::open(&address, environment, has_terminal).await;
    let words = if is_open {
        format!("your browser opens {at}; agree there. If it does not open, this is the address:")
    } else {
        format!("open this address in a browser, and agree at {at}:")
    };
    output::remark(&format!(
        "{words}\n\n  {address}\n\n\
         waiting for you to come back from the browser (Ctrl-C ends it). If the browser is on another machine, its last \
         page cannot be shown: paste the address of that page here."
    ));
}

/// Waits for the redirect of the browser, or for its pasted address. An address of a different sign-in is reported, and
/// the wait continues.
async fn wait_for_redirect(
    attempt: &SignIn,
    listener: &mut Listener,
) -> Result<GrantedAccess, SignInError> {
    let mut paste = Paste::start();
    loop {
        let (finished, advice) = tokio::select! {
            redirected = listener.next() => {
                // The browser waits for its page until the outcome is known.
                let finished = attempt.finish(&redirected.address).await;
                redirected.say(RedirectOutcome::of(&finished)).await;
                (finished, "still waiting for the browser")
            }
            line = paste.next() => {
                let finished = attempt.finish(&line).await;
                (finished, "paste the whole address, which begins with http://127.0.0.1:")
            }
        };
        match finished {
            Err(error @ (SignInError::NotARedirect | SignInError::WrongState)) => {
                output::remark(&format!("{error}; {advice}"));
            }
            done => return done,
        }
    }
}

/// The result of a sign-in.
#[derive(Serialize)]
struct LoginReport<'a> {
    toolbox: &'a str,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    scopes: &'a [String],
    /// The expiry time of the token, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// True if the token is renewed without the user.
    renewed: bool,
    /// The place where it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<String>,
}

impl<'a> LoginReport<'a> {
    fn of(
        target: &'a SignInTarget,
        account: &Account,
        granted: &'a GrantedAccess,
        record: Option<&Record>,
    ) -> Self {
        Self {
            toolbox: target.toolbox.as_str(),
            server: target.server.name.as_str(),
            issuer: granted.issuer.as_deref(),
            scopes: &granted.scopes,
            until: record.and_then(Record::expires_at).map(moment),
            renewed: record.is_some_and(Record::can_refresh),
            stored: account.stored_in(),
        }
    }

    fn render(&self, server: &str, style: OutputStyle) -> String {
        let mut text = format!("{} to {server}\n", style.paint(Ink::Good, "signed in"));
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("  {name:<7} {}\n", visible(value)));
        };
        line(
            "at",
            self.issuer.unwrap_or("an unnamed authorization server"),
        );
        let scopes = self.scopes.join(" ");
        line(
            "scopes",
            if scopes.is_empty() {
                "the default scopes of the server"
            } else {
                &scopes
            },
        );
        line("until", &until(self.until.as_deref(), self.renewed));
        if let Some(stored) = &self.stored {
            line("stored", stored);
        }
        text
    }
}

/// Describes how long a sign-in lasts.
pub(super) fn until(moment: Option<&str>, is_renewed: bool) -> String {
    match (moment, is_renewed) {
        (Some(moment), true) => format!("{moment}, then renewed automatically"),
        (Some(moment), false) => format!("{moment}, then sign in again"),
        (None, true) => "the server rejects it, then renewed automatically".to_owned(),
        (None, false) => "the server rejects it, then sign in again".to_owned(),
    }
}
