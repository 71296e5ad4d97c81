//! Where a remote server is: its address, the headers of its entry, and the client that reaches it. Each
//! connection has a client of its own, so that no two servers share sockets, and none is built before it
//! is needed.

use std::time::Duration;

use reqwest::{
    Client, ClientBuilder, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect, retry,
};

use crate::{
    config::RemoteEndpoint, downstream::error::ConnectError, era::headers::PARAMETER_PREFIX,
};

/// How long a connection may take to be made, encryption included.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How many connections are kept for the next request, and how long: a little less than servers keep them
/// (5 s is common), since a call that meets the end of its connection cannot be sent again.
const IDLE_CONNECTIONS: usize = 8;
const IDLE_PATIENCE: Duration = Duration::from_secs(4);

/// Headers that are ours to write: they carry the transport, and an entry must not change them.
const OURS: &[&str] = &[
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

/// The address of an entry.
pub(super) fn url(endpoint: &RemoteEndpoint) -> Result<Url, ConnectError> {
    let mut url = Url::parse(&endpoint.url).map_err(|error| ConnectError::UnusableUrl {
        reason: error.to_string(),
    })?;
    url.set_fragment(None);
    Ok(url)
}

/// The headers of an entry, without those that are ours.
pub(super) fn headers(endpoint: &RemoteEndpoint) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let unusable = || ConnectError::UnusableHeader { name: name.clone() };
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        if is_ours(parsed.as_str()) {
            tracing::warn!("header '{parsed}' of the entry is not sent: it is the transport's own");
        } else {
            headers.append(parsed, value);
        }
    }
    Ok(headers)
}

fn is_ours(name: &str) -> bool {
    OURS.contains(&name) || name.starts_with(PARAMETER_PREFIX)
}

/// A client for one server. It follows no redirects, keeps no cookies and never sends anything twice by
/// itself. The usual variables for proxies are honoured, but not for this machine itself.
pub(super) fn client(url: &Url) -> Result<Client, ConnectError> {
    let built = builder(url).build();
    let built = match built {
        // Certificates may be missing on a machine; what is not encrypted does not need them.
        Err(_) if url.scheme() == "http" => builder(url).tls_certs_only([]).build(),
        built => built,
    };
    built.map_err(|error| ConnectError::NoHttpClient {
        reason: innermost(&error),
    })
}

fn builder(url: &Url) -> ClientBuilder {
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(CONNECT_PATIENCE)
        .pool_idle_timeout(IDLE_PATIENCE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .user_agent(concat!("mcp-workbench/", env!("CARGO_PKG_VERSION")));
    if is_this_machine(url) {
        builder.no_proxy()
    } else {
        builder
    }
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|it| it.is_loopback())
}

/// Scheme, host and port: what may be named in messages.
pub(super) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The last cause of an error, which is the one that says something. The others name the address.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names() {
        for (url, expected) in [
            ("http://localhost:1/x", true),
            ("http://a.localhost/", true),
            ("http://127.0.0.2/", true),
            ("http://[::1]:80/", true),
            ("http://127.0.0.1.example.com/", false),
            ("http://10.0.0.1/", false),
            ("https://example.com/localhost", false),
        ] {
            assert_eq!(
                is_this_machine(&Url::parse(url).unwrap()),
                expected,
                "{url}"
            );
        }
    }

    #[test]
    fn an_origin_has_no_secrets() {
        let url = Url::parse("https://user:password@example.com:8443/path?key=1#x").unwrap();
        assert_eq!(origin(&url), "https://example.com:8443");
    }
}
