//! Kinds of networks. The tables come from the registries of special-purpose addresses and from the documentation of
//! cloud providers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Names of metadata services, which give out the credentials of a machine to its processes.
const METADATA_NAMES: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.google.internal",
    "metadata.goog",
];

/// Addresses of metadata services that are not in a range of their own.
const METADATA_ADDRESSES: &[IpAddr] = &[
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Azure.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // AWS.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    // Google Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The kind of network that an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkZone {
    Public,
    Private,
    Loopback,
    /// No server can be there: link-local addresses, where clouds have their metadata services, and reserved ones.
    Never,
}

impl NetworkZone {
    /// Returns the network of a host, if it is known without resolving its name.
    pub(crate) fn of_host(host: &Host<&str>) -> Option<Self> {
        match host {
            Host::Ipv4(address) => Some(Self::of(IpAddr::V4(*address))),
            Host::Ipv6(address) => Some(Self::of(IpAddr::V6(*address))),
            Host::Domain(name) => Self::of_name(name),
        }
    }

    /// Returns the network of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if METADATA_ADDRESSES.contains(&address) {
            return Self::Never;
        }
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                Some(inner) => Self::of(IpAddr::V4(inner)),
                None => Self::of_v6(address),
            },
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if METADATA_NAMES.contains(&name.as_str()) {
            Some(Self::Never)
        } else if name == "localhost" || name.ends_with(".localhost") {
            Some(Self::Loopback)
        } else {
            None
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            // Private networks, and the shared range of carriers, which overlay networks such as Tailscale use.
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Self::Private,
            // "This" network, link-local, protocol assignments, documentation, benchmarks, multicast, reserved.
            [0 | 224..=255, ..]
            | [169, 254, ..]
            | [192, 0, 0 | 2, _]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _] => Self::Never,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() {
            return Self::Loopback;
        }
        match address.segments() {
            [0xfc00..=0xfdff, ..] => Self::Private,
            // Unspecified, discard, documentation, link-local, site-local, multicast; local NAT64, Teredo, documentation.
            [0 | 0x100 | 0x3fff | 0xfe80..=0xffff, ..]
            | [0x64, 0xff9b, ..]
            | [0x2001, 0 | 0xdb8, ..] => Self::Never,
            _ => Self::Public,
        }
    }
}

/// Returns the IPv4 address that an IPv6 address embeds: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        // `::1` and its neighbours are not IPv4 addresses.
        [0, 0, 0, 0, 0, 0, high, low] if high > 0 => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    /// The network of an address does not depend on its spelling.
    #[test]
    fn addresses_in_every_spelling() {
        use NetworkZone::{Loopback, Never, Private, Public};
        let cases = [
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("127.1", Loopback),
            ("0x7f.1", Loopback),
            ("0x7f000001", Loopback),
            ("2130706433", Loopback),
            ("0177.0.0.1", Loopback),
            ("017700000001", Loopback),
            ("127.0.0.1.", Loopback),
            ("%31%32%37.0.0.1", Loopback),
            ("１２７.0.0.1", Loopback),
            ("[::1]", Loopback),
            ("[0:0:0:0:0:0:0:1]", Loopback),
            ("[::ffff:127.0.0.1]", Loopback),
            ("[::ffff:7f00:1]", Loopback),
            ("[::127.0.0.1]", Loopback),
            ("[64:ff9b::7f00:1]", Loopback),
            ("[2002:7f00:1::]", Loopback),
            ("localhost", Loopback),
            ("LOCALHOST.", Loopback),
            ("a.b.localhost", Loopback),
            ("10.0.0.1", Private),
            ("10.1", Private),
            ("0xa000001", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("3232235777", Private),
            ("100.64.0.1", Private),
            ("100.127.255.255", Private),
            ("[fc00::1]", Private),
            ("[fdab::1]", Private),
            ("[::ffff:10.0.0.1]", Private),
            ("[64:ff9b::10.0.0.1]", Private),
            ("[2002:a00:1::1]", Private),
            ("169.254.169.254", Never),
            ("0xa9fea9fe", Never),
            ("2852039166", Never),
            ("0251.0376.0251.0376", Never),
            ("169.254.43518", Never),
            ("[::ffff:169.254.169.254]", Never),
            ("[::ffff:a9fe:a9fe]", Never),
            ("[64:ff9b::a9fe:a9fe]", Never),
            ("[64:ff9b:1::1]", Never),
            ("[2002:a9fe:a9fe::]", Never),
            ("[::169.254.169.254]", Never),
            ("[2001:0:1::1]", Never),
            ("[fe80::1]", Never),
            ("[fec0::1]", Never),
            ("[ff02::1]", Never),
            ("[::]", Never),
            ("[fd00:ec2::254]", Never),
            ("100.100.100.200", Never),
            ("168.63.129.16", Never),
            ("0.0.0.0", Never),
            ("0", Never),
            ("255.255.255.255", Never),
            ("224.0.0.1", Never),
            ("198.18.0.1", Never),
            ("192.0.0.192", Never),
            ("metadata.google.internal", Never),
            ("METADATA.google.internal.", Never),
            ("metadata", Never),
            ("8.8.8.8", Public),
            ("172.32.0.1", Public),
            ("100.63.0.1", Public),
            ("100.128.0.1", Public),
            ("[2606:4700::1111]", Public),
            ("[::ffff:8.8.8.8]", Public),
        ];
        for (host, expected) in cases {
            let url = Url::parse(&format!("https://{host}/x")).expect(host);
            let zone = NetworkZone::of_host(&url.host().expect(host));
            assert_eq!(zone, Some(expected), "{host} {url}");
        }
    }

    #[test]
    fn other_names_have_to_be_looked_up() {
        for name in ["example.com", "localhost.example.com", "notlocalhost"] {
            assert_eq!(NetworkZone::of_host(&Host::Domain(name)), None, "{name}");
        }
    }
}
