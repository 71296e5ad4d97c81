//! Makes outgoing connections: directly or through a proxy, with TLS for https. Addresses that a third party named
//! are checked at the moment of connecting.

mod connect;
mod guard;
mod network_zone;

use std::net::IpAddr;

use url::Url;

pub(crate) use self::{
    connect::{ConnectFault, Connector, Proxies, Stream},
    guard::{DialFault, Guard},
    network_zone::NetworkZone,
};

/// Returns whether an address names this machine.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// Returns the innermost cause of an error, which is the specific one. The outer ones only name the address.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
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
    fn loopback_names_and_addresses_are_recognized() {
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
    fn international_domain_names_are_encoded() {
        let host = |url| Url::parse(url).unwrap().host_str().map(str::to_owned);
        let encoded = host("https://Bücher.example/mcp");
        assert_eq!(encoded.as_deref(), Some("xn--bcher-kva.example"));
        assert!(Url::parse("https://a\u{2f0f}\u{fffd}.example/").is_err());
    }
}
