//! Hints for servers that fail to start, from the error and the last lines of stderr.

use super::examine::has_tilde;
use crate::downstream::{ConnectError, HttpFault, SignInNeeded, SignInRemedy, StopReason};

/// The hint for a path that begins with `~`.
pub(super) const TILDE_REMEDY: &str = "write ${userHome} in place of ~";

/// Texts in the stderr of failed servers, in lower case, with a hint. The first match counts.
const STDERR_HINTS: &[(&[&str], &str)] = &[
    (
        &["npm error 404", "npm err! 404", "code e404"],
        "package not found in the registry: correct its name in \"args\"",
    ),
    (
        &[
            "getaddrinfo",
            "econnrefused",
            "network is unreachable",
            "dns error",
        ],
        "it could not reach the network: check the connection and the proxy variables",
    ),
    (
        &["cannot find module", "err_module_not_found"],
        "one of its files or packages is missing: correct the path in \"args\", or install its packages",
    ),
    (
        &["modulenotfounderror", "no module named"],
        "a Python package is missing: install it for the Python that \"command\" names",
    ),
    (
        &["can't open file", "no such file or directory"],
        "a file that it needs does not exist: correct the path in \"args\"",
    ),
    (
        &[
            "unsupported engine",
            "ebadengine",
            "requires node",
            "syntaxerror: unexpected",
            "requires-python",
        ],
        "it requires a different version of its runtime",
    ),
    (
        &["eaddrinuse", "address already in use"],
        "its port is already in use by another process",
    ),
    (
        &["docker daemon", "docker.sock"],
        "Docker is not running: start it",
    ),
    (
        &["eacces", "permission denied"],
        "permission denied for a file that it needs: check the permissions",
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
        "it seems to need an environment variable: servers get only a safe set, so add it to \"env\" or \
         \"inheritEnv\"",
    ),
    (
        &[
            "usage:",
            "unknown option",
            "unrecognized argument",
            "invalid argument",
        ],
        "it does not accept its arguments: correct \"args\"",
    ),
];

/// Returns the hint for an error; `by_hand` is the command line or URL of the server.
pub(super) fn remedy(error: &ConnectError, by_hand: &str) -> String {
    match error {
        ConnectError::Exited { stderr, .. } => match stderr_hint(stderr) {
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
        ConnectError::DirectoryNotFound(_) => "create the directory, or correct \"cwd\"".to_owned(),
        ConnectError::EnvFile { .. } => "correct the file, or \"envFile\"".to_owned(),
        ConnectError::Timeout(_) | ConnectError::StillStarting => format!(
            "{}; a first start that fetches packages may need more time (\"connectTimeoutMs\", or --timeout)",
            run_by_hand(by_hand)
        ),
        ConnectError::GivenUp {
            why: StopReason::Nonsense | StopReason::EndlessMessage,
            ..
        } => "stdout must contain only messages; check that \"args\" start it as an MCP server \
              over stdio"
            .to_owned(),
        ConnectError::Refused { .. } | ConnectError::InvalidAnswer { .. } => {
            "check that it is an MCP server, and what it needs to start".to_owned()
        }
        ConnectError::NotApproved(_) => {
            "review the command before you approve it, and do not start it by hand".to_owned()
        }
        ConnectError::Stopped => "start it again".to_owned(),
        ConnectError::NotModern { .. } => "remove \"era\" from its entry".to_owned(),
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

fn stderr_hint(stderr: &[String]) -> Option<&'static str> {
    let text = stderr.join("\n").to_lowercase();
    let fits = |(words, _): &&(&[&str], &'static str)| words.iter().any(|it| text.contains(it));
    STDERR_HINTS.iter().find(fits).map(|(_, remedy)| *remedy)
}

fn sign_in_remedy(needed: &SignInNeeded) -> String {
    match &needed.remedy {
        SignInRemedy::Command(command) => format!("run: {command}"),
        SignInRemedy::Page(page) => format!("sign in at {page}"),
        SignInRemedy::NoUser => {
            "connect over HTTP with a token of the authorization server in \"auth\"".to_owned()
        }
        SignInRemedy::Entry => {
            "check \"clientId\" and the credentials in \"oauth\" of its entry".to_owned()
        }
    }
}

fn http_remedy(fault: &HttpFault) -> &'static str {
    match fault {
        HttpFault::Unreachable { .. } => {
            "check \"url\", the network, and whether the server runs there"
        }
        HttpFault::Unauthorized | HttpFault::Forbidden => {
            "check \"headers\" and the variables in them"
        }
        _ => "check that \"url\" is the address of its MCP endpoint, often with /mcp at the end",
    }
}

#[cfg(test)]
mod tests {
    use super::stderr_hint;

    #[test]
    fn stderr_hints_match_known_errors() {
        let cases = [
            (
                "npm error 404 Not Found - GET https://registry/x",
                Some("package not found in the registry"),
            ),
            (
                "Error: Cannot find module '/x/index.js'",
                Some("one of its files or packages"),
            ),
            (
                "ModuleNotFoundError: No module named 'mcp'",
                Some("a Python package"),
            ),
            (
                "Error: GITHUB_TOKEN environment variable is required",
                Some("it seems to need"),
            ),
            ("boom", None),
        ];
        for (line, remedy) in cases {
            let found = stderr_hint(&["at x".to_owned(), line.to_owned()]);
            match remedy {
                Some(begin) => assert!(found.is_some_and(|it| it.starts_with(begin)), "{line}"),
                None => assert_eq!(found, None),
            }
        }
    }
}
