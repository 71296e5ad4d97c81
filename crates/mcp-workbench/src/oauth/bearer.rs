//! An access token, as requests carry it.

use std::fmt;

use hyper::header::HeaderValue;

/// The value of an `Authorization` header. Its `Debug` output is constant.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bearer(HeaderValue);

impl Bearer {
    /// Returns `None` if the token has characters that a header cannot have.
    pub(super) fn new(token: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        (!token.is_empty()).then_some(Self(value))
    }

    /// Returns the value of the header.
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(hidden)")
    }
}
