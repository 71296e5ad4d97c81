//! Connections to addresses that a third party named, such as the metadata of a server. They may lead to the public
//! internet, or to the kind of network that the configured server is in itself, and nowhere else. The check is made
//! on the addresses that are then dialled, so that a name that resolves differently the second time cannot bypass it.

use std::net::{SocketAddr, ToSocketAddrs};

use hyper::Uri;
use thiserror::Error;
use url::{Host, Url};

use crate::offload::run_blocking;

use super::{Connector, NetworkZone, Proxies, Stream, innermost, is_this_machine};

/// The reason why a connection was not made.
#[derive(Debug, Error)]
pub(crate) enum DialFault {
    /// The address is neither https, nor http on this machine for a server on this machine.
    #[error("not https")]
    Insecure,
    /// The address is in a network that the server must not name.
    #[error("an internal address")]
    Internal,
    #[error("{0}")]
    Unreachable(String),
}

/// Decides which addresses may be dialled on behalf of a configured server.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// The address of that server.
    own: Url,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    Local,
    /// The proxy resolves names, so the addresses are unknown here.
    ByProxy,
}

impl Guard {
    /// Creates the guard for a server.
    pub(crate) fn new(own: &Url) -> Self {
        Self { own: own.clone() }
    }

    /// Checks the text of an address, without resolving its name.
    pub(crate) fn check(&self, url: &Url) -> Result<(), DialFault> {
        match url.scheme() {
            "https" => {}
            // A server under development on this machine has no certificate.
            "http" if is_this_machine(&self.own) && is_this_machine(url) => {}
            _ => return Err(DialFault::Insecure),
        }
        let host = url.host().ok_or(DialFault::Internal)?;
        let own = self.own.host().and_then(|host| NetworkZone::of_host(&host));
        match (NetworkZone::of_host(&host), own) {
            (Some(NetworkZone::Never), _) => Err(DialFault::Internal),
            // If the server's own name has to be resolved, `connect` decides.
            (Some(zone), Some(own)) if !permits(own, zone) => Err(DialFault::Internal),
            _ => Ok(()),
        }
    }

    /// Connects to the host of an address.
    pub(crate) async fn connect(&self, url: &Url) -> Result<Box<dyn Stream>, DialFault> {
        self.check(url)?;
        let unreachable = |error: &dyn std::error::Error| DialFault::Unreachable(innermost(error));
        // A proxy would look for this name on its own machine.
        let proxies = if is_this_machine(url) {
            Proxies::None
        } else {
            Proxies::Usual
        };
        let origin = Uri::try_from(url.origin().ascii_serialization())
            .map_err(|error| unreachable(&error))?;
        let connector = Connector::new(origin, proxies)
            .await
            .map_err(|error| unreachable(&error))?;
        let connected = if connector.is_proxied() {
            // The proxy resolves the name, so only the text of the address can be checked.
            self.check_host(url, Lookup::ByProxy).await?;
            connector.connect().await
        } else {
            let addresses = self.check_host(url, Lookup::Local).await?;
            // Exactly the addresses that were checked.
            connector.connect_to(&addresses).await
        };
        connected.map_err(|error| unreachable(error.as_ref()))
    }

    /// Returns the addresses of a host if they may be dialled.
    async fn check_host(&self, url: &Url, lookup: Lookup) -> Result<Vec<SocketAddr>, DialFault> {
        let addresses = addresses(url, lookup).await?;
        let known = addresses.iter().map(|it| NetworkZone::of(it.ip()));
        let by_text = url.host().and_then(|host| NetworkZone::of_host(&host));
        let zones: Vec<NetworkZone> = known.chain(by_text).collect();
        if zones.iter().all(|zone| *zone == NetworkZone::Public) {
            return Ok(addresses);
        }
        // Only now, since it may take a lookup.
        let own = self.own_zone(lookup).await;
        if zones.iter().all(|zone| permits(own, *zone)) {
            Ok(addresses)
        } else {
            Err(DialFault::Internal)
        }
    }

    /// Returns the network of the configured server. If its addresses are in different networks, it counts as public.
    async fn own_zone(&self, lookup: Lookup) -> NetworkZone {
        let by_text = self.own.host().and_then(|host| NetworkZone::of_host(&host));
        if let Some(zone) = by_text {
            return zone;
        }
        let addresses = addresses(&self.own, lookup).await.unwrap_or_default();
        let mut zones = addresses.iter().map(|it| NetworkZone::of(it.ip()));
        match zones.next() {
            Some(first) if zones.all(|zone| zone == first) => first,
            _ => NetworkZone::Public,
        }
    }
}

/// Returns whether a server in one network may name an address in another.
fn permits(own: NetworkZone, named: NetworkZone) -> bool {
    match named {
        NetworkZone::Public => true,
        NetworkZone::Private | NetworkZone::Loopback => own == named,
        NetworkZone::Never => false,
    }
}

/// Resolves a host; returns no addresses for a name that a proxy resolves.
async fn addresses(url: &Url, lookup: Lookup) -> Result<Vec<SocketAddr>, DialFault> {
    let port = url.port_or_known_default().unwrap_or(443);
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => Ok(vec![(address, port).into()]),
        Some(Host::Domain(_)) if lookup == Lookup::ByProxy => Ok(Vec::new()),
        Some(Host::Domain(name)) => {
            let name = name.to_owned();
            let look_up = move || (name.as_str(), port).to_socket_addrs();
            let found = run_blocking(look_up)
                .await
                .flatten()
                .map_err(|error| DialFault::Unreachable(error.to_string()))?;
            Ok(found.collect())
        }
        None => Err(DialFault::Internal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(own: &str) -> Guard {
        Guard::new(&Url::parse(own).unwrap())
    }

    /// Returns the result of a check as a letter: yes, insecure (h), internal.
    fn letter(own: &str, url: &str) -> char {
        match guard(own).check(&Url::parse(url).unwrap()) {
            Ok(()) => 'y',
            Err(DialFault::Insecure) => 'h',
            Err(_) => 'i',
        }
    }

    #[test]
    fn a_server_may_name_public_addresses_and_its_own_network() {
        let own = [
            "https://mcp.example.com/mcp",
            "http://127.0.0.1:1/mcp",
            "https://10.0.0.1/mcp",
        ];
        let cases = [
            ("https://as.example.com/", "yyy"),
            ("http://as.example.com/", "hhh"),
            ("http://127.0.0.1:9/", "hyh"),
            ("http://localhost:9/", "hyh"),
            ("https://169.254.169.254/", "iii"),
            ("https://metadata.google.internal/", "iii"),
            ("https://8.8.8.8/", "yyy"),
            ("ftp://as.example.com/", "hhh"),
            ("file:///etc/passwd", "hhh"),
            ("javascript:alert(1)", "hhh"),
        ];
        for (url, expected) in cases {
            let found: String = own.iter().map(|own| letter(own, url)).collect();
            assert_eq!(found, expected, "{url}");
        }
        assert_eq!(letter(own[1], "https://10.0.0.1/"), 'i');
        assert_eq!(letter(own[2], "https://10.9.9.9/"), 'y');
        assert_eq!(letter(own[2], "https://127.0.0.1/"), 'i');
    }

    /// Host names are resolved and checked when they are dialled.
    #[tokio::test]
    async fn dialled_addresses_are_checked() {
        for url in [
            "https://localhost/",
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00::1]/",
        ] {
            let url = Url::parse(url).unwrap();
            let public = guard("https://8.8.8.8/mcp");
            let checked = public.check_host(&url, Lookup::Local).await;
            assert!(matches!(checked, Err(DialFault::Internal)), "{url}");
            let proxied = public.check_host(&url, Lookup::ByProxy).await;
            assert!(matches!(proxied, Err(DialFault::Internal)), "{url}");
        }
        let own = guard("http://localhost:1/mcp");
        let url = Url::parse("http://127.0.0.1:9/").unwrap();
        let checked = own.check_host(&url, Lookup::Local).await.unwrap();
        assert_eq!(checked, ["127.0.0.1:9".parse().unwrap()]);
    }
}
