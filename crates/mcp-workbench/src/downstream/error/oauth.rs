//! The error of a server that requires a sign-in, with the command that helps.

use std::{fmt, sync::Arc};

use crate::{
    oauth::{Challenge, SignInError, SignedOut},
    visible::visible,
};

/// Upper bound on the scopes in a message.
const MAX_SCOPES: usize = 10;

/// The error of a server that requires a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignInNeeded {
    pub lack: SignInReason,
    pub remedy: SignInRemedy,
    /// The challenge of the server. Never shown.
    pub challenge: Option<Challenge>,
}

/// The way to get a token that the server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInRemedy {
    /// The user of this machine signs in with this shell command.
    Command(Arc<str>),
    /// The user signs in at this page of the workbench.
    Page(Arc<str>),
    /// Every user has credentials of their own, and the client has no user.
    NoUser,
    /// The entry has the credentials.
    Entry,
}

/// The reason why a server does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInReason {
    /// No token that the server accepts.
    Token(SignedOut),
    /// No token, because requesting one failed.
    Trouble(SignInError),
    /// A token that lacks these scopes.
    Scopes(Vec<String>),
}

impl SignInNeeded {
    /// Returns true if a sign-in by the user helps.
    pub(crate) fn is_for_a_person(&self) -> bool {
        let passes = matches!(&self.lack, SignInReason::Trouble(why) if why.is_transient());
        matches!(
            self.remedy,
            SignInRemedy::Command(_) | SignInRemedy::Page(_)
        ) && !passes
    }
}

impl SignInReason {
    /// Returns the reason to sign in, for the user.
    pub(crate) fn for_the_user(&self) -> String {
        match self {
            Self::Token(SignedOut::Never) => "It requires you to sign in.".to_owned(),
            Self::Token(_) | Self::Trouble(_) => "The last sign-in is no longer valid.".to_owned(),
            Self::Scopes(scopes) => {
                format!("The last sign-in lacks required scopes{}.", missing(scopes))
            }
        }
    }
}

impl fmt::Display for SignInReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(why) => write!(f, "HTTP 401: not signed in ({why})"),
            Self::Trouble(why) => write!(
                f,
                "HTTP 401: no token available ({})",
                visible(&why.to_string())
            ),
            Self::Scopes(scopes) => {
                write!(
                    f,
                    "HTTP 403: the sign-in lacks the required scopes{}",
                    missing(scopes)
                )
            }
        }
    }
}

impl std::error::Error for SignInNeeded {}

impl fmt::Display for SignInNeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lack = &self.lack;
        match (&self.remedy, lack) {
            (_, SignInReason::Trouble(why)) if why.is_transient() => {
                write!(f, "{lack}; try again later")
            }
            (SignInRemedy::Command(command), _) => write!(
                f,
                "{lack}; the user must sign in with `{command}` (no restart needed)"
            ),
            (SignInRemedy::Page(page), _) => write!(
                f,
                "{lack}; the user must sign in at {page} (no restart needed)"
            ),
            (SignInRemedy::NoUser, _) => write!(
                f,
                "{lack}; every user has credentials of their own there, and this client has no user: connect over HTTP \
                 with a token of the authorization server in `auth`"
            ),
            (SignInRemedy::Entry, _) => write!(f, "{lack}; check \"oauth\" of its entry"),
        }
    }
}

/// Lists the missing scopes, up to a bound.
fn missing(scopes: &[String]) -> String {
    if scopes.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = scopes
        .iter()
        .take(MAX_SCOPES)
        .map(|it| format!("'{}'", visible(it)))
        .collect();
    let more = match scopes.len().saturating_sub(MAX_SCOPES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" (missing: {}{more})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::oauth::{FetchFault, OAuthCode};

    fn words(lack: SignInReason, command: Option<&str>) -> String {
        let needed = SignInNeeded {
            lack,
            remedy: command.map_or(SignInRemedy::Entry, |it| SignInRemedy::Command(it.into())),
            challenge: None,
        };
        needed.to_string()
    }

    #[test]
    fn every_sign_in_error_says_what_to_do() {
        let login = Some("mcp-workbench login dev gh");
        let scopes =
            |texts: &[&str]| SignInReason::Scopes(texts.iter().map(ToString::to_string).collect());
        let refused = || {
            SignInReason::Trouble(SignInError::NoToken {
                code: OAuthCode::InvalidClient,
            })
        };
        let slow = FetchFault::TooSlow {
            host: "auth.example".to_owned(),
        };
        let with_login = |lead: &str| {
            format!(
                "{lead}; the user must sign in with `mcp-workbench login dev gh` (no restart needed)"
            )
        };
        for (lack, command, expected) in [
            (
                SignInReason::Token(SignedOut::Never),
                login,
                with_login("HTTP 401: not signed in (nobody has signed in)"),
            ),
            (
                SignInReason::Token(SignedOut::Ended),
                login,
                with_login("HTTP 401: not signed in (the last sign-in has expired)"),
            ),
            (
                refused(),
                login,
                with_login(
                    "HTTP 401: no token available (the authorization server issued no token: invalid_client)",
                ),
            ),
            (
                refused(),
                None,
                "HTTP 401: no token available (the authorization server issued no token: invalid_client); \
                 check \"oauth\" of its entry"
                    .to_owned(),
            ),
            (
                SignInReason::Trouble(slow.into()),
                login,
                "HTTP 401: no token available (timed out waiting for a response from 'auth.example'); try again later"
                    .to_owned(),
            ),
            (
                scopes(&["repo:write", "x"]),
                login,
                with_login(
                    "HTTP 403: the sign-in lacks the required scopes (missing: 'repo:write', 'x')",
                ),
            ),
            (
                scopes(&[]),
                login,
                with_login("HTTP 403: the sign-in lacks the required scopes"),
            ),
        ] {
            assert_eq!(words(lack, command), expected);
        }
    }

    #[test]
    fn long_scope_lists_are_shortened() {
        let words = words(SignInReason::Scopes(vec!["x".to_owned(); 1000]), None);
        assert!(words.contains("and 990 more"), "{words}");
    }
}
