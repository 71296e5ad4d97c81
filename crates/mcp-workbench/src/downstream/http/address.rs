//! The address of a remote server, the headers of its entry, and its HTTP client. Each connection has a client of its
//! own, so that no two servers share sockets, and none is built before it is needed.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::{
    Uri,
    header::{
        AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT,
    },
};
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use super::client::Client;
use crate::{
    config::RemoteEndpoint,
    dial::{Connector, Proxies, innermost, is_this_machine},
    downstream::error::ConnectError,
    era::headers::PARAMETER_PREFIX,
};

const OUR_NAME: HeaderValue =
    HeaderValue::from_static(concat!("mcp-workbench/", env!("CARGO_PKG_VERSION")));

/// Headers that the transport sets. An entry must not change them.
const TRANSPORT_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Returns the address of an entry.
pub(super) fn url(endpoint: &RemoteEndpoint) -> Result<Url, ConnectError> {
    let mut url = Url::parse(&endpoint.url).map_err(|error| ConnectError::UnusableUrl {
        reason: error.to_string(),
    })?;
    // A fragment is not part of a request (RFC 9110, section 7.1).
    url.set_fragment(None);
    Ok(url)
}

/// Returns the headers of an entry, without those that the transport sets.
pub(super) fn headers(endpoint: &RemoteEndpoint) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let unusable = || ConnectError::UnusableHeader { name: name.clone() };
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        if is_ours(parsed.as_str()) {
            tracing::warn!("ignoring header '{parsed}' of the entry: the transport sets it");
        } else {
            // Not `insert`: names that differ only in case are one header with several values.
            headers.append(parsed, value);
        }
    }
    Ok(headers)
}

fn is_ours(name: &str) -> bool {
    TRANSPORT_HEADERS.contains(&name) || name.starts_with(PARAMETER_PREFIX)
}

/// Adds the headers that every request has besides those of the entry: `Host`, the user agent, and the credentials of
/// the address or the proxy. Headers of the entry win.
pub(super) fn add_usual(headers: &mut HeaderMap, url: &Url, client: &Client) {
    // An address has its port only if it is not that of its scheme, as in `Host`.
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let usual = [
        (HOST, HeaderValue::try_from(host).ok()),
        (USER_AGENT, Some(OUR_NAME)),
        (AUTHORIZATION, credentials(url)),
        (PROXY_AUTHORIZATION, client.proxy_credentials().cloned()),
    ];
    for (name, value) in usual {
        if let Some(value) = value {
            headers.entry(name).or_insert(value);
        }
    }
}

/// Returns the user and the password in an address as a header.
fn credentials(url: &Url) -> Option<HeaderValue> {
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
    let (user, password) = (url.username(), url.password());
    if user.is_empty() && password.is_none() {
        return None;
    }
    let both = format!(
        "{}:{}",
        decoded(user),
        decoded(password.unwrap_or_default())
    );
    let mut value =
        HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(both))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the error for an address that cannot be requested.
pub(super) fn unusable() -> ConnectError {
    ConnectError::UnusableUrl {
        reason: "it is not a valid request target".to_owned(),
    }
}

/// Creates the client for one server. The usual proxy variables are honoured, except for this machine itself.
pub(super) async fn client(url: &Url) -> Result<Arc<Client>, ConnectError> {
    let origin = Uri::try_from(origin(url)).map_err(|_| unusable())?;
    let proxies = if is_this_machine(url) {
        Proxies::None
    } else {
        Proxies::Usual
    };
    let connector =
        Connector::new(origin, proxies)
            .await
            .map_err(|error| ConnectError::NoHttpClient {
                reason: innermost(&error),
            })?;
    Ok(Client::new(connector))
}

/// Returns scheme, host and port, the parts of an address that messages may show.
pub(super) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_secrets() {
        let url = Url::parse("https://user:password@example.com:8443/path?key=1#x").unwrap();
        assert_eq!(origin(&url), "https://example.com:8443");
    }
}
