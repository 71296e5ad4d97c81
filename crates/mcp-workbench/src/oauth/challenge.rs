//! The `WWW-Authenticate` header of a refused request: the address of the resource metadata, and the required scopes.

use url::Url;

use crate::dial::Guard;

/// The longest header that is parsed.
const MOST_BYTES: usize = 8 * 1024;
/// How many scopes are read from one header, and how long each may be.
const MOST_SCOPES: usize = 100;
const MOST_SCOPE_BYTES: usize = 256;

/// The value of a `WWW-Authenticate` header, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge(String);

impl Challenge {
    /// Returns `None` if the header does not mention bearer tokens or is too long.
    pub(crate) fn new(header: &str) -> Option<Self> {
        let is_bearer = header.to_ascii_lowercase().contains("bearer");
        (is_bearer && header.len() <= MOST_BYTES).then(|| Self(header.to_owned()))
    }

    /// Returns the challenge of a response, from all of its headers of this name. If there are several, the one that
    /// names the resource metadata wins.
    pub(crate) fn of<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let challenges: Vec<Self> = headers.filter_map(Self::new).collect();
        let is_pointed = |it: &&Self| it.parameter("resource_metadata").is_some();
        let pointed = challenges.iter().find(is_pointed);
        pointed.or(challenges.first()).cloned()
    }

    /// Returns true if the token is valid but lacks scopes for this request.
    pub(crate) fn is_insufficient_scope(&self) -> bool {
        self.parameter("error").as_deref() == Some("insufficient_scope")
    }

    /// Returns the scopes that the server asks for. Texts that cannot be scopes are left out.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let scope = self.parameter("scope").unwrap_or_default();
        let scopes = scope.split_ascii_whitespace().filter(|it| is_scope(it));
        scopes.take(MOST_SCOPES).map(str::to_owned).collect()
    }

    /// Returns the address of the resource metadata, if the server names one that it is allowed to name.
    pub(super) fn resource_metadata(&self, server: &Url) -> Option<Url> {
        let named = parameters(&self.0)
            .into_iter()
            .filter(|(name, _)| name == "resource_metadata");
        let mut urls = named.filter_map(|(_, value)| server.join(value.trim()).ok());
        urls.find(|url| Guard::new(server).check(url).is_ok())
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let mut all = parameters(&self.0).into_iter();
        all.find(|(found, _)| found == name).map(|(_, value)| value)
    }
}

/// Splits a header into its parameters, with their names in lower case. Other words, such as the scheme, are skipped.
fn parameters(header: &str) -> Vec<(String, String)> {
    // One header may have several challenges, with commas between them and between their parameters. Only a name with
    // `=` is a parameter, so the words for schemes can be skipped without knowing them.
    let is_separator = |it: char| it.is_whitespace() || matches!(it, ',' | ';');
    let mut found = Vec::new();
    let mut rest = header.trim_start_matches(is_separator);
    while !rest.is_empty() {
        let end = rest.find(|it| it == '=' || is_separator(it));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if let Some(text) = after.trim_start().strip_prefix('=') {
            let (value, after) = value(text.trim_start());
            found.push((name.to_ascii_lowercase(), value));
            rest = after;
        }
        rest = rest.trim_start_matches(is_separator);
    }
    found
}

/// Reads a token or a quoted string at the beginning of a text. Returns it with the text that follows.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|it: char| it.is_whitespace() || matches!(it, ',' | ';'));
        let (token, after) = text.split_at(end.unwrap_or(text.len()));
        return (token.to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next()),
            character => value.push(character),
        }
    }
    (value, characters.as_str())
}

/// Returns true if a text has only the characters that RFC 6749 allows in a scope.
pub(super) fn is_scope(text: &str) -> bool {
    // All printable characters except for space, quotation mark and backslash.
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.len() <= MOST_SCOPE_BYTES && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_has_an_error_and_scopes() {
        let challenge = Challenge::new(
            r#"Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="https://x/y""#,
        );
        let challenge = challenge.unwrap();
        assert!(challenge.is_insufficient_scope());
        assert_eq!(challenge.scopes(), ["files:read", "files:write"]);
        assert_eq!(Challenge::new("Basic realm=x"), None);
        assert_eq!(
            Challenge::new(&format!("Bearer {}", "x".repeat(9000))),
            None
        );
    }

    #[test]
    fn scopes_with_control_characters_are_left_out() {
        let challenge = Challenge::new("Bearer scope=\"a \u{1b}[2J b\"").unwrap();
        assert_eq!(challenge.scopes(), ["a", "b"]);
    }

    #[test]
    fn parameters_are_split_as_in_rfc_9110() {
        let cases: [(&str, &[(&str, &str)]); 7] = [
            ("Bearer", &[]),
            ("Bearer a=b", &[("a", "b")]),
            (
                r#"Basic realm="x, y", Bearer SCOPE = "a b" ; error=c"#,
                &[("realm", "x, y"), ("scope", "a b"), ("error", "c")],
            ),
            (
                r#"Bearer error_description="scope=\"no\"", scope=yes"#,
                &[("error_description", "scope=\"no\""), ("scope", "yes")],
            ),
            (r#"Bearer a="b"c="d"#, &[("a", "b"), ("c", "d")]),
            ("Basic eHl6==", &[("ehl6", "=")]),
            (", ;= =", &[("", "=")]),
        ];
        for (header, expected) in cases {
            let found = parameters(header);
            let found: Vec<(&str, &str)> = found.iter().map(|(n, v)| (&**n, &**v)).collect();
            assert_eq!(found, expected, "{header}");
        }
    }

    #[test]
    fn resource_metadata_is_relative_or_at_an_allowed_address() {
        let server = Url::parse("https://mcp.example.com/mcp").unwrap();
        for (value, expected) in [
            ("/about", Some("https://mcp.example.com/about")),
            ("https://other.example/x", Some("https://other.example/x")),
            ("http://mcp.example.com/x", None),
            ("https://169.254.169.254/x", None),
            ("javascript:alert(1)", None),
        ] {
            let challenge = Challenge(format!("Bearer resource_metadata=\"{value}\""));
            let found = challenge.resource_metadata(&server);
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{value}");
        }
    }
}
