//! The HTTP options of `serve`, and the checks between them.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use thiserror::Error;

use super::token::{self, TokenError};
use crate::{
    config::{Auth, Config, Environment},
    serve::http::{AllowedHost, HttpOptions, Offer, Tokens, Users},
};

/// HTTP options of `serve`.
#[derive(Args)]
pub(super) struct HttpArguments {
    /// Serve MCP over HTTP at this address instead, for instance 127.0.0.1:8700 (port 0: any)
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,

    /// A file with the tokens that clients may use, one per line [default: the token in
    /// `$WORKBENCH_TOKEN`, or a generated one in your state directory]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,

    /// Require no token; only at a loopback address
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    no_auth: bool,

    /// A further host name by which clients reach the workbench, for instance behind a proxy
    #[arg(long, value_name = "HOST[:PORT]", requires = "http")]
    allow_host: Vec<AllowedHost>,

    /// End a session that is idle for this long
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "http",
        default_value_t = 3600,
        value_parser = clap::value_parser!(u64).range(1..=31_536_000)
    )]
    session_timeout: u64,

    /// At a signal to end, serve on for up to this long: `/ready` says no, and the end comes when no request runs
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "http",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(0..=3600)
    )]
    drain_timeout: u64,
}

/// Reasons for refusing to serve over HTTP.
#[derive(Debug, Error)]
pub(super) enum HttpError {
    /// Without tokens, everybody in the network could use the servers.
    #[error(
        "--no-auth is refused at {0}, which others can reach\n  \
         hint: remove --no-auth, or listen at 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// Everybody, and only the users of the authorization server.
    #[error("--no-auth contradicts `auth` of the configuration\n  hint: remove one of the two")]
    Contradiction,
    /// The token is short enough to be guessed.
    #[error(
        "refusing a token of length {length} at {address}, which others can reach: it can be guessed\n  \
         hint: use at least 16 random characters, for instance from `openssl rand -hex 32`"
    )]
    Guessable {
        address: SocketAddr,
        /// The length of the token.
        length: usize,
    },
    /// No valid token is available.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The address cannot be bound.
    #[error(
        "cannot listen at {address}: {error}\n  hint: choose another port; port 0 takes any that is free"
    )]
    Bind {
        address: SocketAddr,
        error: std::io::Error,
    },
}

impl HttpArguments {
    /// Returns the options for HTTP, or `None` if `--http` is not given.
    pub(super) fn options(
        self,
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<HttpOptions>, HttpError> {
        let Some(address) = self.http else {
            return Ok(None);
        };
        let users = config
            .auth
            .as_ref()
            .map(|auth| Box::new(users(auth, config)));
        // Without a token, everybody who can reach the address could use the servers.
        let tokens = if self.no_auth {
            if users.is_some() {
                return Err(HttpError::Contradiction);
            }
            if !address.ip().is_loopback() {
                return Err(HttpError::Exposed(address));
            }
            None
        } else if users.is_some() {
            // The users have their own tokens, so none is generated.
            token::given(self.token_file.as_deref(), environment)?
        } else {
            Some(token::tokens(self.token_file.as_deref(), environment)?)
        };
        if let Some(tokens) = &tokens {
            check_length(tokens, address)?;
        }
        Ok(Some(HttpOptions {
            address,
            hosts: self.allow_host,
            tokens,
            users,
            session_timeout: Duration::from_secs(self.session_timeout),
            drain_timeout: Duration::from_secs(self.drain_timeout),
            offer: Offer::Mcp,
        }))
    }
}

/// Returns the users of an authorization server, and the clients of the configuration that they can be.
fn users(auth: &Auth, config: &Config) -> Users {
    let clients = config
        .clients
        .iter()
        .filter_map(|(name, it)| Some((name.clone(), it.claims.clone()?)));
    Users {
        auth: auth.clone(),
        clients: clients.collect(),
    }
}

/// Refuses a token that can be guessed; at a loopback address it only warns.
fn check_length(tokens: &Tokens, address: SocketAddr) -> Result<(), HttpError> {
    let Some(length) = tokens.guessable_length() else {
        return Ok(());
    };
    if !address.ip().is_loopback() {
        return Err(HttpError::Guessable { address, length });
    }
    tracing::warn!(
        "a token of length {length} can be guessed; use at least 16 random characters, for instance from \
         `openssl rand -hex 32`"
    );
    Ok(())
}

/// Parses an address. `localhost:PORT` is accepted too.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").map(str::parse);
    if let Some(Ok(port)) = port {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let expected = "expected ADDRESS:PORT, for instance 127.0.0.1:8700 or [::1]:8700";
    text.parse().map_err(|_| expected.to_owned())
}
