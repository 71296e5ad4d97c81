//! Decides the transport of a server from its `type`, `transport`, `command` and `url`.

use super::{
    problems::{Fault, TransportFault, ValueFault},
    resolved::RemoteProtocol,
};
use crate::near::nearest;

/// The words for `type` and `transport`.
const WORDS: &[&str] = &["stdio", "http", "sse", "streamable-http", "local", "remote"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Remote(RemoteProtocol),
}

/// The keys of an entry that decide the transport.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hints<'a> {
    /// `type`.
    pub(super) kind: Option<&'a str>,
    pub(super) transport: Option<&'a str>,
    pub(super) has_command: bool,
    pub(super) has_url: bool,
}

/// Decides the transport of a server.
pub(super) fn decide(hints: Hints<'_>) -> Result<TransportKind, Fault> {
    let Some((word, kind)) = named(hints)? else {
        return match (hints.has_command, hints.has_url) {
            (true, false) => Ok(TransportKind::Stdio),
            (false, true) => Ok(TransportKind::Remote(RemoteProtocol::Http)),
            (true, true) => Err(TransportFault::Both.into()),
            (false, false) => Err(TransportFault::Neither.into()),
        };
    };
    let (present, key) = match kind {
        TransportKind::Stdio => (hints.has_command, "command"),
        TransportKind::Remote(_) => (hints.has_url, "url"),
    };
    if present {
        Ok(kind)
    } else {
        let word = word.into();
        Err(TransportFault::Needs { word, key }.into())
    }
}

/// Returns the transport that the entry names. The more specific of two words counts.
fn named(hints: Hints<'_>) -> Result<Option<(&str, TransportKind)>, Fault> {
    let read = |word: Option<&'_ str>| word.map(kind_of).transpose();
    match (read(hints.kind)?, read(hints.transport)?) {
        (Some(kind), Some(transport)) => match (kind, transport) {
            (TransportKind::Stdio, TransportKind::Stdio)
            | (TransportKind::Remote(RemoteProtocol::Sse), TransportKind::Remote(_)) => {
                Ok(hints.kind.map(|word| (word, kind)))
            }
            (TransportKind::Remote(RemoteProtocol::Http), TransportKind::Remote(_)) => {
                Ok(hints.transport.map(|word| (word, transport)))
            }
            _ => Err(TransportFault::Contradiction {
                kind: hints.kind.unwrap_or_default().into(),
                transport: hints.transport.unwrap_or_default().into(),
            }
            .into()),
        },
        (Some(kind), None) => Ok(hints.kind.map(|word| (word, kind))),
        (None, Some(kind)) => Ok(hints.transport.map(|word| (word, kind))),
        (None, None) => Ok(None),
    }
}

/// Returns the transport for a word. Clients differ in case and separators.
fn kind_of(word: &str) -> Result<TransportKind, Fault> {
    let folded: String = word
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    match folded.as_str() {
        "stdio" | "local" => Ok(TransportKind::Stdio),
        "http" | "https" | "streamablehttp" | "httpstream" | "streamable" | "remote" => {
            Ok(TransportKind::Remote(RemoteProtocol::Http))
        }
        "sse" | "httpsse" => Ok(TransportKind::Remote(RemoteProtocol::Sse)),
        "ws" | "websocket" => Err(ValueFault::NotAvailable {
            word: word.into(),
            instead: WORDS,
        }
        .into()),
        _ => Err(ValueFault::UnknownWord {
            found: word.into(),
            known: WORDS,
            near: nearest(word, WORDS.iter().copied()),
        }
        .into()),
    }
}

/// Returns whether a URL can be that of a remote server.
pub(super) fn is_http_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    is_http && !host.is_empty() && !url.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: TransportKind = TransportKind::Remote(RemoteProtocol::Http);
    const SSE: TransportKind = TransportKind::Remote(RemoteProtocol::Sse);

    fn hints<'a>(kind: &'a str, transport: &'a str, keys: &str) -> Hints<'a> {
        Hints {
            kind: Some(kind).filter(|word| !word.is_empty()),
            transport: Some(transport).filter(|word| !word.is_empty()),
            has_command: keys.contains('c'),
            has_url: keys.contains('u'),
        }
    }

    #[test]
    fn the_transport_follows_from_the_entry() {
        let cases = [
            ("", "", "c", TransportKind::Stdio),
            ("", "", "u", HTTP),
            ("stdio", "", "cu", TransportKind::Stdio),
            ("local", "", "c", TransportKind::Stdio),
            ("http", "", "cu", HTTP),
            ("remote", "", "u", HTTP),
            ("sse", "", "u", SSE),
            ("streamable-http", "", "u", HTTP),
            ("streamable_http", "", "u", HTTP),
            ("streamableHttp", "", "u", HTTP),
            ("", "sse", "u", SSE),
            ("", "stdio", "c", TransportKind::Stdio),
            ("remote", "sse", "u", SSE),
            ("sse", "http", "u", SSE),
            ("stdio", "stdio", "c", TransportKind::Stdio),
        ];
        for (kind, transport, keys, expected) in cases {
            assert_eq!(
                decide(hints(kind, transport, keys)),
                Ok(expected),
                "{kind} {transport} {keys}"
            );
        }
    }

    #[test]
    fn unclear_entries_are_refused() {
        let needs = |word: &str, key| TransportFault::Needs {
            word: word.into(),
            key,
        };
        let contradiction = TransportFault::Contradiction {
            kind: "stdio".into(),
            transport: "sse".into(),
        };
        let cases = [
            ("", "", "", TransportFault::Neither),
            ("", "", "cu", TransportFault::Both),
            ("stdio", "", "u", needs("stdio", "command")),
            ("http", "", "c", needs("http", "url")),
            ("stdio", "sse", "cu", contradiction),
        ];
        for (kind, transport, keys, expected) in cases {
            assert_eq!(
                decide(hints(kind, transport, keys)),
                Err(expected.into()),
                "{kind} {transport} {keys}"
            );
        }
    }

    #[test]
    fn unknown_words_are_refused() {
        let fault = decide(hints("studio", "", "c")).expect_err("no such type");
        assert_eq!(fault.to_string(), "unknown value `studio`");
        assert_eq!(fault.remedy(), "did you mean `stdio`?");
        let fault = decide(hints("ws", "", "u")).expect_err("not yet");
        assert_eq!(fault.to_string(), "`ws` is not available yet");
    }

    #[test]
    fn addresses() {
        for good in ["http://x", "https://x.y/mcp?z#a", "HTTP://[::1]:8080/"] {
            assert!(is_http_url(good), "{good}");
        }
        for bad in ["", "x", "ftp://x", "http://", "https:///mcp", "http://a b"] {
            assert!(!is_http_url(bad), "{bad}");
        }
    }
}
