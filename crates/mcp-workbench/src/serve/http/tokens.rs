//! The tokens of clients. They are stored and compared as digests: a comparison of digests of equal length that never
//! stops early reveals nothing through its duration.

use std::{fmt, hint::black_box};

use ident::ClientName;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::call::Principal;

/// The length below which a token can be guessed.
const SHORTEST: usize = 16;

/// The tokens that are valid, each a principal's.
pub(crate) struct Tokens {
    digests: Vec<[u8; 32]>,
    /// The client of the configuration that each token belongs to.
    clients: Vec<Option<ClientName>>,
    /// The length of the shortest.
    shortest: usize,
}

/// A text without valid tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum InvalidTokens {
    #[error("it contains no token")]
    Nothing,
    #[error("a token has characters other than visible ASCII")]
    NotVisible,
}

impl Tokens {
    /// Parses tokens: one per line, with the name of a client of the configuration after it if the token is that
    /// client's. Empty lines and lines that begin with `#` are ignored.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidTokens> {
        let lines = text.lines().map(str::trim);
        let tokens = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (mut digests, mut clients) = (Vec::new(), Vec::new());
        let mut shortest = usize::MAX;
        for line in tokens {
            let (token, client) = match line.split_once(char::is_whitespace) {
                Some((token, client)) => (token, Some(client.trim().into())),
                None => (line, None),
            };
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(InvalidTokens::NotVisible);
            }
            digests.push(digest(token));
            clients.push(client);
            shortest = shortest.min(token.len());
        }
        if digests.is_empty() {
            return Err(InvalidTokens::Nothing);
        }
        Ok(Self {
            digests,
            clients,
            shortest,
        })
    }

    /// Returns the clients of the configuration that have tokens, each once.
    pub(crate) fn clients(&self) -> Vec<ClientName> {
        let mut clients: Vec<ClientName> = Vec::new();
        for client in self.clients.iter().flatten() {
            if !clients.contains(client) {
                clients.push(client.clone());
            }
        }
        clients
    }

    /// Returns for each token the position of its client among [`clients`](Self::clients), counted from 1; 0 if it has
    /// none.
    pub(super) fn client_positions(&self) -> Vec<usize> {
        let clients = self.clients();
        let position = |name: &ClientName| clients.iter().position(|it| it == name);
        let positions = self.clients.iter();
        positions
            .map(|client| client.as_ref().and_then(position).map_or(0, |at| at + 1))
            .collect()
    }

    /// Returns the length of the shortest token if it is so short that it can be guessed.
    pub(crate) fn guessable_length(&self) -> Option<usize> {
        (self.shortest < SHORTEST).then_some(self.shortest)
    }

    /// Returns the principal with this token. Takes the same time for every token.
    pub(super) fn holder(&self, token: &str) -> Option<Principal> {
        let given = digest(token);
        let mut holder = None;
        for (index, digest) in self.digests.iter().enumerate() {
            if same(digest, &given) {
                holder = Some(Principal::Holder(index));
            }
        }
        holder
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.digests.len())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Compares two digests in constant time.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let pairs = one.iter().zip(other);
    black_box(pairs.fold(0, |difference, (one, other)| difference | (one ^ other))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_token_of_its_own_principal() {
        let tokens = Tokens::parse("# of the team\nalpha\n\n  beta  \r\n").unwrap();
        assert_eq!(tokens.holder("alpha"), Some(Principal::Holder(0)));
        assert_eq!(tokens.holder("beta"), Some(Principal::Holder(1)));
        for other in ["", "alph", "alphaa", "ALPHA", "# of the team", "gamma"] {
            assert_eq!(tokens.holder(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_token_may_belong_to_a_client() {
        let tokens =
            Tokens::parse("alpha\nbeta  reviewer\ngamma the writer \ndelta\treviewer").unwrap();
        let names: Vec<String> = tokens.clients().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["reviewer", "the writer"]);
        assert_eq!(tokens.client_positions(), [0, 1, 2, 1]);
        assert_eq!(tokens.holder("beta"), Some(Principal::Holder(1)));
        assert_eq!(tokens.holder("beta reviewer"), None);
    }

    #[test]
    fn the_length_of_the_shortest_token_counts() {
        for (text, expected) in [
            ("x", Some(1)),
            ("123456789012345", Some(15)),
            ("1234567890123456", None),
            ("1234567890123456\nabc\n", Some(3)),
        ] {
            let tokens = Tokens::parse(text).unwrap();
            assert_eq!(tokens.guessable_length(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_without_usable_tokens_is_refused() {
        for (text, error) in [
            ("", InvalidTokens::Nothing),
            (" \n# x\n", InvalidTokens::Nothing),
            ("t\u{7f}", InvalidTokens::NotVisible),
            ("ü", InvalidTokens::NotVisible),
        ] {
            assert_eq!(Tokens::parse(text).unwrap_err(), error, "{text:?}");
        }
    }
}
