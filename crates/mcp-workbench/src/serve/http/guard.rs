//! Access control for every request, whatever its path and method, before its body is read. A page in a browser can
//! make requests to any address, but not with one of our hosts or origins.

use std::net::{IpAddr, SocketAddr};

use hyper::{HeaderMap, Request, header, http::uri::Authority};

use super::{HEALTH_PATH, refusal::Refusal, tokens::Tokens};
use crate::call::Principal;

/// The checks that every request has to pass.
pub(super) struct Guard {
    /// The address that we listen on.
    pub(super) address: SocketAddr,
    /// Further hosts by which we may be reached.
    pub(super) hosts: Vec<AllowedHost>,
    /// The tokens, one of which is required; none if no token is.
    pub(super) tokens: Option<Tokens>,
}

/// A host by which the workbench may be reached, for instance the name that a proxy passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedHost {
    name: String,
    port: Option<u16>,
}

/// A text that is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST or HOST:PORT")]
pub(crate) struct InvalidHost;

impl std::str::FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let Host { name, port } = Host::parse(text).ok_or(InvalidHost)?;
        Ok(Self {
            name: name.to_owned(),
            port,
        })
    }
}

/// A host as a client names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Host<'a> {
    /// The name, an address of version 6 with its brackets.
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Host<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (text, None),
        };
        let whole = name.starts_with('[') == name.ends_with(']')
            && (name.starts_with('[') || !name.contains(':'));
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte));
        if name.is_empty() || !whole || !plain {
            return None;
        }
        let port = match port {
            Some(digits) if digits.bytes().all(|it| it.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
            None => None,
        };
        Some(Self { name, port })
    }

    fn address(self) -> Option<IpAddr> {
        let bare = self.name.strip_prefix('[');
        let bare = bare.and_then(|name| name.strip_suffix(']'));
        bare.unwrap_or(self.name).parse().ok()
    }
}

impl Guard {
    /// Checks a request that came to the address `local`. Returns its principal.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        local: SocketAddr,
    ) -> Result<Principal, Refusal> {
        self.check_host(request, local)?;
        self.check_origin(request.headers(), local)?;
        match &self.tokens {
            Some(tokens) if request.uri().path() != HEALTH_PATH => {
                check_token(tokens, request.headers())
            }
            _ => Ok(Principal::Anybody),
        }
    }

    /// Checks a request for the page: only this machine may see it, by its own names.
    pub(super) fn check_page<B>(
        &self,
        request: &Request<B>,
        local: SocketAddr,
    ) -> Result<(), Refusal> {
        if !self.address.ip().is_loopback() {
            return Err(Refusal::NotFound);
        }
        let own = Self {
            address: self.address,
            hosts: Vec::new(),
            tokens: None,
        };
        own.check(request, local).map(drop)
    }

    fn check_host<B>(&self, request: &Request<B>, local: SocketAddr) -> Result<(), Refusal> {
        let named = only(request.headers(), header::HOST).map_err(|()| Refusal::ForeignHost)?;
        let named = named.ok_or(Refusal::ForeignHost)?;
        let target = request.uri().authority().map(Authority::as_str);
        // A request for a whole address names the host twice.
        for host in [Some(named), target].into_iter().flatten() {
            let host = Host::parse(host).ok_or(Refusal::ForeignHost)?;
            if !self.is_ours(host, DEFAULT_PORT, local) {
                return Err(Refusal::ForeignHost);
            }
        }
        Ok(())
    }

    fn check_origin(&self, headers: &HeaderMap, local: SocketAddr) -> Result<(), Refusal> {
        let origin = only(headers, header::ORIGIN).map_err(|()| Refusal::ForeignOrigin)?;
        let Some(origin) = origin else {
            return Ok(());
        };
        let (host, port) = if let Some(host) = origin.strip_prefix("http://") {
            (host, DEFAULT_PORT)
        } else if let Some(host) = origin.strip_prefix("https://") {
            (host, DEFAULT_SECURE_PORT)
        } else {
            return Err(Refusal::ForeignOrigin);
        };
        match Host::parse(host) {
            Some(host) if self.is_ours(host, port, local) => Ok(()),
            _ => Err(Refusal::ForeignOrigin),
        }
    }

    /// Returns true if a host is one that we serve. Without a port it has the default one.
    fn is_ours(&self, host: Host<'_>, default_port: u16, local: SocketAddr) -> bool {
        let our_port = host.port.unwrap_or(default_port) == self.address.port();
        let local = local.ip().to_canonical();
        let by_address = match host.address() {
            Some(address) => {
                address == local || (address.is_loopback() && self.address.ip().is_loopback())
            }
            None => host.name.eq_ignore_ascii_case("localhost") && local.is_loopback(),
        };
        let by_name = |allowed: &AllowedHost| {
            let same_port = match allowed.port {
                Some(port) => host.port.unwrap_or(default_port) == port,
                None => host.port.is_none() || our_port,
            };
            allowed.name.eq_ignore_ascii_case(host.name) && same_port
        };
        (our_port && by_address) || self.hosts.iter().any(by_name)
    }
}

const DEFAULT_PORT: u16 = 80;
const DEFAULT_SECURE_PORT: u16 = 443;

fn check_token(tokens: &Tokens, headers: &HeaderMap) -> Result<Principal, Refusal> {
    let credentials = only(headers, header::AUTHORIZATION).map_err(|()| Refusal::WrongToken)?;
    let credentials = credentials.ok_or(Refusal::NoToken)?;
    let (scheme, token) = credentials.split_once(' ').ok_or(Refusal::WrongToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::NoToken);
    }
    tokens.holder(token.trim()).ok_or(Refusal::WrongToken)
}

/// Returns the value of a header. Duplicates are an error.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(()),
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
