//! The addresses under which a kept result is read, a page each: `mcp-workbench://result/ID` is the first page of its
//! text, `…/ID/2` the second, and `…/ID/json`, `…/ID/json/2` are those of the result as its server sent it.

use std::fmt;

/// What every address begins with.
const PREFIX: &str = "mcp-workbench://result/";
/// The word for the result as its server sent it.
const JSON: &str = "json";

/// How a result is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// As the text that a model reads.
    Text,
    /// As its server sent it, byte for byte.
    Json,
}

/// The address of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub id: String,
    pub view: View,
    /// The page, from 1.
    pub page: usize,
}

/// Whether a URI is one of ours, right or wrong: no server can have it.
pub(crate) fn is_address(uri: &str) -> bool {
    uri.starts_with(PREFIX)
}

impl Address {
    /// The first page of a result.
    pub(crate) fn first(id: &str, view: View) -> Self {
        Self {
            id: id.to_owned(),
            view,
            page: 1,
        }
    }

    /// Reads an address; nothing if it is none of ours.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        Self::parse_path(uri.strip_prefix(PREFIX)?)
    }

    /// Reads an address, or what stands behind the scheme in one.
    pub(crate) fn parse_loosely(text: &str) -> Option<Self> {
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

    /// The page behind this one.
    #[must_use]
    pub(crate) fn next(&self) -> Self {
        Self {
            page: self.page + 1,
            ..self.clone()
        }
    }
}

/// A page as we write it: digits without a sign or a leading zero.
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
