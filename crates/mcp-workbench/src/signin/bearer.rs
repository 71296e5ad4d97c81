//! An access token, as requests carry it.

use std::fmt;

use hyper::header::HeaderValue;

use crate::config::Secrets;

/// The value of an `Authorization` header. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer(HeaderValue);

impl Bearer {
    /// The bearer of a token; none where it cannot stand in a header.
    pub(super) fn new(token: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        (!token.is_empty()).then_some(Self(value))
    }

    /// The value of the header.
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// What must not appear in any text, since the server may say it back.
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let value = self.0.to_str().unwrap_or_default();
        secrets.add("token", value.trim_start_matches("Bearer "));
        secrets
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(hidden)")
    }
}
