//! The address of the store that replicas share.

use std::fmt;

use url::{Url, form_urlencoded};

/// The port of a Sentinel that names none.
const SENTINEL_PORT: u16 = 26379;

/// The address, which may contain passwords.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// One server, by its URL.
    Server(String),
    /// The nodes of a cluster that are asked for the others, by their URLs.
    Cluster(Vec<String>),
    /// The primary that Sentinels name.
    Sentinel(SentinelAddress),
}

/// The address of a primary that Sentinels name.
#[derive(Clone, PartialEq, Eq)]
pub struct SentinelAddress {
    /// The URLs of the Sentinels.
    pub(crate) sentinels: Vec<String>,
    /// The name that they have for the primary.
    pub(crate) primary: String,
    /// A URL with the user, the password and the database at the primary. Its host means nothing.
    pub(crate) server: String,
}

impl StoreAddress {
    /// Parses a URL: `redis`, `rediss` and `redis+unix` as usual,
    /// `redis+cluster://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]`, and
    /// `redis+sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]/PRIMARY[/DATABASE]` with `sentinelUser` and
    /// `sentinelPassword` as its query; `rediss+…` with TLS.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        match scheme {
            "redis" | "rediss" | "redis+unix" => {
                Url::parse(url).ok().map(|_| Self::Server(url.to_owned()))
            }
            "redis+cluster" | "rediss+cluster" => cluster(base_of(scheme), rest),
            "redis+sentinel" | "rediss+sentinel" => sentinel(base_of(scheme), rest),
            _ => None,
        }
    }
}

/// Hides the passwords.
impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAddress").finish_non_exhaustive()
    }
}

/// Returns the scheme of one server.
fn base_of(scheme: &str) -> &str {
    scheme.split('+').next().unwrap_or(scheme)
}

fn cluster(scheme: &str, rest: &str) -> Option<StoreAddress> {
    let (user, hosts) = authority(rest.trim_end_matches('/'));
    let nodes = hosts.split(',').map(|host| node(scheme, user, host, None));
    Some(StoreAddress::Cluster(nodes.collect::<Option<_>>()?))
}

fn sentinel(scheme: &str, rest: &str) -> Option<StoreAddress> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (rest, path) = rest.split_once('/')?;
    let (primary, database) = path.split_once('/').unwrap_or((path, ""));
    let (user, hosts) = authority(rest);
    let own = sentinel_user(query)?;
    let sentinels = hosts
        .split(',')
        .map(|host| node(scheme, &own, host, Some(SENTINEL_PORT)));
    // The host is a placeholder. The Sentinels name the real one.
    let server = format!("{scheme}://{user}primary/{database}");
    Url::parse(&server).ok()?;
    (!primary.is_empty()).then_some(())?;
    Some(StoreAddress::Sentinel(SentinelAddress {
        sentinels: sentinels.collect::<Option<_>>()?,
        primary: primary.to_owned(),
        server,
    }))
}

/// Splits the user with its `@` from the hosts.
fn authority(text: &str) -> (&str, &str) {
    // The last `@`, since a password may contain one.
    text.split_at(text.rfind('@').map_or(0, |at| at + 1))
}

/// Returns the user of the Sentinels as it is written in a URL; `None` if the query has anything else.
fn sentinel_user(query: &str) -> Option<String> {
    let (mut name, mut password) = (String::new(), None);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "sentinelUser" => name = encoded(&value),
            "sentinelPassword" => password = Some(encoded(&value)),
            _ => return None,
        }
    }
    Some(match password {
        Some(password) => format!("{name}:{password}@"),
        None if name.is_empty() => String::new(),
        None => format!("{name}@"),
    })
}

fn encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    // In a form a space is a plus sign, which elsewhere means itself.
    encoded.replace('+', "%20")
}

/// Returns the URL of one server, or `None` if its host is invalid.
fn node(scheme: &str, user: &str, host: &str, port: Option<u16>) -> Option<String> {
    let mut url = Url::parse(&format!("{scheme}://{user}{host}")).ok()?;
    let is_host = url.has_host() && matches!(url.path(), "" | "/") && url.query().is_none();
    is_host.then_some(())?;
    if url.port().is_none() && port.is_some() {
        url.set_port(port).ok()?;
    }
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_nodes_of_a_cluster_share_a_user() {
        let cluster = |url: &str| match StoreAddress::parse(url) {
            Some(StoreAddress::Cluster(nodes)) => nodes.join(" "),
            _ => "none".to_owned(),
        };
        for (url, nodes) in [
            ("redis+cluster://a:1", "redis://a:1"),
            ("rediss+cluster://a,b:2/", "rediss://a rediss://b:2"),
            (
                "redis+cluster://u:p%40@[::1]:1,b:2",
                "redis://u:p%40@[::1]:1 redis://u:p%40@b:2",
            ),
            ("redis+cluster://", "none"),
            ("redis+cluster://a:1,", "none"),
            ("redis+cluster://a:x", "none"),
            ("redis+cluster://a/3", "none"),
        ] {
            assert_eq!(cluster(url), nodes, "{url}");
        }
    }

    #[test]
    fn sentinels_have_a_user_of_their_own_and_the_name_of_the_primary() {
        let sentinel = |url: &str| match StoreAddress::parse(url) {
            Some(StoreAddress::Sentinel(it)) => {
                format!("{} {} {}", it.sentinels.join(" "), it.primary, it.server)
            }
            _ => "none".to_owned(),
        };
        for (url, expected) in [
            (
                "redis+sentinel://a,b:2/main",
                "redis://a:26379 redis://b:2 main redis://primary/",
            ),
            (
                "rediss+sentinel://u:p@a:1/main/3",
                "rediss://a:1 main rediss://u:p@primary/3",
            ),
            (
                "redis+sentinel://:p@a:1/main?sentinelUser=s&sentinelPassword=q%20%2B",
                "redis://s:q%20%2B@a:1 main redis://:p@primary/",
            ),
            ("redis+sentinel://a:1", "none"),
            ("redis+sentinel://a:1/", "none"),
            ("redis+sentinel://a:1/main?password=x", "none"),
        ] {
            assert_eq!(sentinel(url), expected, "{url}");
        }
    }

    #[test]
    fn other_addresses_are_none() {
        let is_server = |url| matches!(StoreAddress::parse(url), Some(StoreAddress::Server(_)));
        assert!(is_server("rediss://u:p@a:1/2"));
        assert!(is_server("redis+unix:///run/redis.sock"));
        for url in ["", "redis", "redis://:x:", "http://a", "redis+other://a"] {
            assert_eq!(StoreAddress::parse(url), None, "{url}");
        }
    }
}
