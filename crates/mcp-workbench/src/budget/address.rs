//! The addresses under which the pages of a stored result are read: `mcp-workbench://result/ID` is the first page of
//! its text, `…/ID/2` the second; `…/ID/json` and `…/ID/json/2` are pages of the result as its server sent it.

use std::fmt;

/// The prefix of every address.
const PREFIX: &str = "mcp-workbench://result/";
/// The path segment for the result as its server sent it.
const JSON: &str = "json";

/// The form in which a result is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The text that a model reads.
    Text,
    /// The result as its server sent it, byte for byte.
    Json,
}

/// The address of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub id: String,
    pub view: View,
    pub page: usize,
}

/// Returns whether a URI has our scheme, valid or not. No server can own such a URI.
pub(crate) fn is_address(uri: &str) -> bool {
    uri.starts_with(PREFIX)
}

impl Address {
    /// Returns the first page of a result.
    pub(crate) fn first(id: &str, view: View) -> Self {
        Self {
            id: id.to_owned(),
            view,
            page: 1,
        }
    }

    /// Parses an address; `None` if the workbench did not make it.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        Self::parse_path(uri.strip_prefix(PREFIX)?)
    }

    /// Parses an address, or the part of one after the scheme.
    pub(crate) fn parse_loosely(text: &str) -> Option<Self> {
        // A model may pass only the id, or copy white space with the address.
        let text = text.trim();
        Self::parse_path(text.strip_prefix(PREFIX).unwrap_or(text))
    }

    fn parse_path(path: &str) -> Option<Self> {
        let mut parts = path.split('/');
        let id = parts.next().filter(|id| !id.is_empty())?;
        let mut next = parts.next();
        let view = if next == Some(JSON) {
            next = parts.next();
            View::Json
        } else {
            View::Text
        };
        let page = match next {
            Some(page) => number(page)?,
            None => 1,
        };
        parts.next().is_none().then(|| Self {
            id: id.to_owned(),
            view,
            page,
        })
    }

    #[must_use]
    pub(crate) fn next(&self) -> Self {
        Self {
            page: self.page + 1,
            ..self.clone()
        }
    }
}

/// Parses a page number as we write it: digits without a sign or a leading zero.
fn number(page: &str) -> Option<usize> {
    let is_plain = page.bytes().all(|byte| byte.is_ascii_digit()) && !page.starts_with('0');
    page.parse().ok().filter(|_| is_plain)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.id)?;
        if self.view == View::Json {
            write!(f, "/{JSON}")?;
        }
        if self.page > 1 {
            write!(f, "/{}", self.page)?;
        }
        Ok(())
    }
}
