//! The tokens of clients. They are stored and compared as digests: a comparison of digests of equal length that never
//! stops early reveals nothing through its duration.

use std::{fmt, hint::black_box};

use ident::ClientName;
use thiserror::Error;

use crate::sha256::Sha256;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenHolder {
    /// The client of the configuration that the token belongs to.
    pub(super) client: Option<ClientName>,
    /// The digest of the token and its client. All processes with this token have the same, whatever other tokens they
    /// have; with another client the holder is another principal, so nothing of the former client is left.
    pub(super) digest: u128,
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

    /// Returns the client of the configuration that each token belongs to.
    pub(crate) fn clients(&self) -> &[Option<ClientName>] {
        &self.clients
    }

    /// Returns the length of the shortest token if it is so short that it can be guessed.
    pub(crate) fn guessable_length(&self) -> Option<usize> {
        (self.shortest < SHORTEST).then_some(self.shortest)
    }

    /// Returns the holder of this token. Takes the same time for every token.
    pub(super) fn holder(&self, token: &str) -> Option<TokenHolder> {
        let given = digest(token);
        let mut holder = None;
        // Not ended early, so that the time does not tell which token it is.
        for (index, digest) in self.digests.iter().enumerate() {
            if same(digest, &given) {
                holder = Some(index);
            }
        }
        let client = self.clients[holder?].clone();
        Some(TokenHolder {
            digest: holder_digest(&given, client.as_ref()),
            client,
        })
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.digests.len())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes())
}

fn holder_digest(token: &[u8; 32], client: Option<&ClientName>) -> u128 {
    let client = client.map_or("", ClientName::as_str);
    let mut digest = Sha256::new();
    digest.update(token);
    digest.update(client);
    let digest = digest.finish();
    let (first, _) = digest.split_first_chunk().expect("a digest has more bytes");
    u128::from_be_bytes(*first)
}

/// Compares two digests in constant time.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let pairs = one.iter().zip(other);
    // The compiler must not make a loop of this that ends at the first difference.
    black_box(pairs.fold(0, |difference, (one, other)| difference | (one ^ other))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_token_of_its_own_principal() {
        let tokens = Tokens::parse("# of the team\nalpha\n\n  beta  \r\n").unwrap();
        let digest = |token| tokens.holder(token).map(|it| it.digest);
        assert!(digest("alpha").is_some() && digest("beta").is_some());
        assert_ne!(digest("alpha"), digest("beta"));
        for other in ["", "alph", "alphaa", "ALPHA", "# of the team", "gamma"] {
            assert_eq!(tokens.holder(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_token_may_belong_to_a_client() {
        let tokens =
            Tokens::parse("alpha\nbeta  reviewer\ngamma the writer \ndelta\treviewer").unwrap();
        let names = tokens.clients().iter();
        let names: Vec<Option<&str>> = names
            .map(|it| it.as_ref().map(ClientName::as_str))
            .collect();
        let expected = [None, Some("reviewer"), Some("the writer"), Some("reviewer")];
        assert_eq!(names, expected);
        let beta = tokens.holder("beta").unwrap();
        assert_eq!(
            beta.client.as_ref().map(ClientName::as_str),
            Some("reviewer")
        );
        assert_eq!(tokens.holder("beta reviewer"), None);
    }

    #[test]
    fn a_holder_is_the_same_among_other_tokens_and_another_as_another_client() {
        let digest = |text: &str| {
            let holder = Tokens::parse(text).unwrap().holder("alpha");
            holder.map(|it| it.digest)
        };
        let alone = digest("alpha");
        assert_eq!(alone, digest("beta\nalpha"));
        for (one, other) in [
            ("alpha", "alpha reviewer"),
            ("alpha reviewer", "alpha writer"),
        ] {
            assert_ne!(digest(one), digest(other));
        }
        let both = Tokens::parse("alpha\nbeta").unwrap();
        assert_ne!(both.holder("beta").map(|it| it.digest), alone);
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
