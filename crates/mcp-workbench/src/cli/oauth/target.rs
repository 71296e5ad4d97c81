//! The remote servers of a configuration, and their ways of authentication.

use std::{path::Path, sync::Arc};

use ident::ToolboxName;
use url::Url;

use crate::{
    cli::{
        PROGRAM,
        configuration::{UnknownName, choose_server},
        shell::quoted,
    },
    config::{Config, RemoteEndpoint, Server, Transport, Unset},
    oauth::Account,
    seal::Sealer,
    visible::visible,
};

/// A server of a toolbox.
pub(super) struct SignInTarget {
    pub(super) toolbox: ToolboxName,
    pub(super) server: Arc<Server>,
}

/// The way in which the workbench authenticates to a server.
pub(super) enum LoginKind<'a> {
    Person(Account),
    /// It gets tokens by itself, with credentials of the entry.
    Credentials(Account),
    /// The entry has its own header or password.
    Own,
    /// The entry switches OAuth off.
    Off,
    /// The entry refers to values that are not there.
    Unset(&'a [Unset]),
    /// It is a program of this machine.
    Program,
}

impl LoginKind<'_> {
    /// Returns the accounts of all users with a sign-in on this machine; `None` if users do not sign in by themselves, or if
    /// they are in the store of replicas, which has no list of them.
    pub(super) fn users(&self, config: &Config) -> Option<Vec<Account>> {
        match self {
            Self::Person(account) if account.is_per_user() && config.store.is_none() => {
                let sealer = Sealer::new(config.seal.as_ref());
                Some(account.of_users(config.state.as_deref(), &sealer))
            }
            _ => None,
        }
    }
}

impl SignInTarget {
    /// Returns all servers, in the order of the file.
    pub(super) fn all(config: &Config) -> Vec<Self> {
        let toolboxes = config.toolboxes.iter();
        let targets = toolboxes.flat_map(|(name, toolbox)| {
            let servers = toolbox.servers.values();
            servers.map(|server| Self {
                toolbox: name.clone(),
                server: Arc::clone(server),
            })
        });
        targets.collect()
    }

    /// Returns the server of this name.
    pub(super) fn named(
        config: &mut Config,
        toolbox: &str,
        server: &str,
    ) -> Result<Self, UnknownName> {
        choose_server(config, toolbox, server)?;
        let mut chosen = Self::all(config);
        Ok(chosen.pop().expect("a server was chosen"))
    }

    /// Returns the way in which the workbench authenticates to the server.
    pub(super) fn login_kind(&self, state: Option<&Path>) -> LoginKind<'_> {
        let endpoint = match &self.server.transport {
            Transport::Stdio(_) => return LoginKind::Program,
            Transport::Unset(unset) => return LoginKind::Unset(unset),
            Transport::Remote(endpoint) => endpoint,
        };
        match Account::of_machine(endpoint, state) {
            Some(account) if account.needs_person() => LoginKind::Person(account),
            Some(account) => LoginKind::Credentials(account),
            None if has_own(endpoint) => LoginKind::Own,
            None => LoginKind::Off,
        }
    }

    /// Returns true if it is not a program on this machine.
    pub(super) fn is_remote(&self) -> bool {
        // An entry with unset values is known only as it is written.
        match &self.server.transport {
            Transport::Stdio(_) => false,
            Transport::Remote(_) => true,
            Transport::Unset(_) => self.server.written.url.is_some(),
        }
    }

    /// Returns the name of the server for messages.
    pub(super) fn shown(&self) -> String {
        let name = format!("{}/{}", self.toolbox, self.server.name);
        visible(&name).into_owned()
    }

    /// Returns the command that signs in to it, ready to be pasted. `config` is the value of `--config`.
    pub(super) fn login(&self, config: Option<&Path>) -> String {
        let names = [self.toolbox.as_str(), self.server.name.as_str()];
        command("login", &names, config)
    }

    /// Returns the command that tries its toolbox.
    pub(super) fn doctor(&self, config: Option<&Path>) -> String {
        command("doctor", &[self.toolbox.as_str()], config)
    }
}

/// Returns a command line that can be pasted into a shell.
fn command(command: &str, names: &[&str], config: Option<&Path>) -> String {
    let mut words = vec![PROGRAM.to_owned(), command.to_owned()];
    words.extend(names.iter().map(|name| quoted(name)));
    if let Some(file) = config {
        words.extend(["--config".to_owned(), quoted(&file.display().to_string())]);
    }
    words.join(" ")
}

/// Returns true if an entry has its own credentials.
fn has_own(endpoint: &RemoteEndpoint) -> bool {
    let mut names = endpoint.headers.keys();
    let has_user = |url: Url| !url.username().is_empty() || url.password().is_some();
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
        || Url::parse(&endpoint.url).is_ok_and(has_user)
}
