//! A scriptable MCP server over stdio and HTTP for the tests of `mcp-workbench`; never shipped.
//!
//! `fixture-server SCRIPT.json [ARG…]` or `fixture-server --script JSON [ARG…]`; with `http --port PORT`
//! before that it serves over HTTP instead, and says on stderr where. The script says what
//! it answers, which tools it lists and what each call does ([`script`]); without a word about a
//! tool the built-in of that name runs ([`builtin`]). What it saw goes to a journal ([`journal`]),
//! which is how a test observes the server's side.

mod actions;
mod builtin;
mod catalogue;
mod children;
mod executions;
mod http;
mod journal;
mod listens;
mod message;
mod modern;
mod output;
mod pending;
mod rounds;
mod script;
mod server;
mod tasks;

use std::{process::ExitCode, sync::Arc};

use crate::{script::Script, server::Server};

/// Appended to the arguments when the process has been restarted with SIGTERM ignored.
const TERM_IGNORED: &str = "--term-ignored";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (script, port) = match Script::from_arguments(&arguments) {
        Ok(read) => read,
        Err(reason) => {
            output::stderr_line(&format!("fixture-server: {reason}"));
            return ExitCode::from(64);
        }
    };
    if script.ignore_term && !arguments.iter().any(|argument| argument == TERM_IGNORED) {
        let error = children::become_deaf_to_term(&arguments, TERM_IGNORED);
        output::stderr_line(&format!("fixture-server: cannot restart: {error}"));
        return ExitCode::from(71);
    }
    let server = Arc::new(Server::new(script, arguments));
    match port {
        None => ExitCode::from(server.run()),
        Some(port) => {
            let error = http::serve(&server, port);
            output::stderr_line(&format!("fixture-server: cannot listen: {error}"));
            ExitCode::from(71)
        }
    }
}
