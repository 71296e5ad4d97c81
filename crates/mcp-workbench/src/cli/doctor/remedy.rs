//! Hints for servers that fail to start, from the error and the last lines of stderr.

use super::examine::has_tilde;
use crate::downstream::{ConnectError, GiveUp, HttpFault, SignInNeeded};

/// The hint for a path that begins with `~`.
pub(super) const TILDE_REMEDY: &str = "write ${userHome} in place of ~";

/// Texts in the stderr of failed servers, in lower case, with a hint. The first match counts.
const LAST_WORDS: &[(&[&str], &str)] = &[
    (
        &["npm error 404", "npm err! 404", "code e404"],
        "the registry has no such package: correct its name in \"args\"",
    ),
    (
        &[
            "getaddrinfo",
            "econnrefused",
            "network is unreachable",
            "dns error",
        ],
        "it could not reach the network: check the connection, and the proxy variables",
    ),
    (
        &["cannot find module", "err_module_not_found"],
        "a file or package of it is missing: correct the path in \"args\", or install its packages",
    ),
    (
        &["modulenotfounderror", "no module named"],
        "a Python package is missing: install it for the Python that \"command\" names",
    ),
    (
        &["can't open file", "no such file or directory"],
        "a file that it needs is not there: correct the path in \"args\"",
    ),
    (
        &[
            "unsupported engine",
            "ebadengine",
            "requires node",
            "syntaxerror: unexpected",
            "requires-python",
        ],
        "it wants another version of its runtime",
    ),
    (
        &["eaddrinuse", "address already in use"],
        "another process has its port",
    ),
    (
        &["docker daemon", "docker.sock"],
        "Docker is not running: start it",
    ),
    (
        &["eacces", "permission denied"],
        "it may not open a file that it needs: check the permissions",
    ),
    (
        &[
            "api key",
            "api_key",
            "_token",
            "access token",
            "environment variable",
            "credential",
            "must be set",
            "env var",
        ],
        "it seems to want a variable: servers get only a safe set of them, so name it in \"env\" or \
         \"inheritEnv\"",
    ),
    (
        &[
            "usage:",
            "unknown option",
            "unrecognized argument",
            "invalid argument",
        ],
        "it does not take its arguments: correct \"args\"",
    ),
];

/// Returns the hint for an error; `by_hand` is the command line or URL of the server.
pub(super) fn remedy(error: &ConnectError, by_hand: &str) -> String {
    match error {
        ConnectError::Exited { stderr, .. } => match last_words(stderr) {
            Some(remedy) => remedy.to_owned(),
            None => run_by_hand(by_hand),
        },
        ConnectError::NotStarted { error, .. }
            if error.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            "make the file executable, or correct \"command\"".to_owned()
        }
        ConnectError::DirectoryNotFound(directory) if has_tilde(directory) => {
            TILDE_REMEDY.to_owned()
        }
        ConnectError::DirectoryNotFound(_) => {
            "make the directory, or correct \"cwd\"".to_owned()
        }
        ConnectError::EnvFile { .. } => "correct the file, or \"envFile\"".to_owned(),
        ConnectError::Timeout(_) | ConnectError::StillStarting => format!(
            "{}; a first start that fetches packages may need more time (\"connectTimeoutMs\", or --timeout)",
            run_by_hand(by_hand)
        ),
        ConnectError::GivenUp {
            why: GiveUp::Nonsense | GiveUp::EndlessMessage,
            ..
        } => "its stdout may hold nothing but messages; check that \"args\" start it as an MCP server \
              over stdio"
            .to_owned(),
        ConnectError::Refused { .. } | ConnectError::InvalidAnswer { .. } => {
            "check that it is an MCP server, and what it needs at its start".to_owned()
        }
        ConnectError::NotApproved(_) => {
            "look at what is started before you approve it, and do not start it by hand".to_owned()
        }
        ConnectError::NotModern { .. } => "take \"era\" out of its entry".to_owned(),
        ConnectError::UnusableUrl { .. } => "correct \"url\"".to_owned(),
        ConnectError::UnusableHeader { .. } => "correct \"headers\"".to_owned(),
        ConnectError::Http { fault } => match fault.sign_in() {
            Some(needed) => sign_in_remedy(needed),
            None => http_remedy(fault).to_owned(),
        },
        _ => run_by_hand(by_hand),
    }
}

fn run_by_hand(by_hand: &str) -> String {
    format!("run it by hand to see more: {by_hand}")
}

fn last_words(stderr: &[String]) -> Option<&'static str> {
    let said = stderr.join("\n").to_lowercase();
    let fits = |(words, _): &&(&[&str], &'static str)| words.iter().any(|it| said.contains(it));
    LAST_WORDS.iter().find(fits).map(|(_, remedy)| *remedy)
}

fn sign_in_remedy(needed: &SignInNeeded) -> String {
    match &needed.command {
        Some(command) => format!("run: {command}"),
        None => "check \"clientId\" and the credentials in \"oauth\" of its entry".to_owned(),
    }
}

fn http_remedy(fault: &HttpFault) -> &'static str {
    match fault {
        HttpFault::Unreachable { .. } => {
            "check \"url\", the network, and whether the server runs there"
        }
        HttpFault::Unauthorized | HttpFault::Forbidden => {
            "check \"headers\", and the variables that they are made of"
        }
        _ => "check that \"url\" is the address of its MCP endpoint, often with /mcp at the end",
    }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn last_words_tell_what_helps() {
        let cases = [
            (
                "npm error 404 Not Found - GET https://registry/x",
                Some("the registry has no such"),
            ),
            (
                "Error: Cannot find module '/x/index.js'",
                Some("a file or package of it"),
            ),
            (
                "ModuleNotFoundError: No module named 'mcp'",
                Some("a Python package"),
            ),
            (
                "Error: GITHUB_TOKEN environment variable is required",
                Some("it seems to want"),
            ),
            ("boom", None),
        ];
        for (line, remedy) in cases {
            let found = last_words(&["at x".to_owned(), line.to_owned()]);
            match remedy {
                Some(begin) => assert!(found.is_some_and(|it| it.starts_with(begin)), "{line}"),
                None => assert_eq!(found, None),
            }
        }
    }
}
