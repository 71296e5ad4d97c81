//! The tokens of clients. They are stored and compared as digests: a comparison of digests of equal length that never
//! stops early reveals nothing through its duration.

use std::{fmt, hint::black_box};

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::call::Principal;

/// The length below which a token can be guessed.
const SHORTEST: usize = 16;

/// The tokens that are valid, each a principal's.
pub(crate) struct Tokens {
    digests: Vec<[u8; 32]>,
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
    /// Parses tokens: one per line. Empty lines and lines that begin with `#` are ignored.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidTokens> {
        let lines = text.lines().map(str::trim);
        let tokens = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut digests = Vec::new();
        let mut shortest = usize::MAX;
        for token in tokens {
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(InvalidTokens::NotVisible);
            }
            digests.push(digest(token));
            shortest = shortest.min(token.len());
        }
        if digests.is_empty() {
            return Err(InvalidTokens::Nothing);
        }
        Ok(Self { digests, shortest })
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
            ("two words", InvalidTokens::NotVisible),
            ("ü", InvalidTokens::NotVisible),
        ] {
            assert_eq!(Tokens::parse(text).unwrap_err(), error, "{text:?}");
        }
    }
}
