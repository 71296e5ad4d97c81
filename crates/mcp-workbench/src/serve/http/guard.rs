//! Access control for every request, whatever its path and method, before its body is read. A page in a browser can
//! make requests to any address, but not with one of our hosts or origins.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hyper::{
    HeaderMap, Method, Request,
    header::{self, HeaderValue},
    http::uri::Authority,
};
use ident::ClientName;
use url::Url;

use super::{
    browser_pages::BrowserPage,
    forward::{self, is_forwarded},
    is_probe,
    refusal::Refusal,
    response::Response,
    tokens::{TokenHolder, Tokens},
};
use crate::{
    call::Principal,
    oauth::{METADATA_PATH, ResourceServer, TokenRefusal, User},
    seal::Sealer,
};

/// The checks that every request has to pass.
pub(super) struct Guard {
    /// The address that we listen on.
    pub(super) address: SocketAddr,
    /// Further hosts by which we may be reached.
    pub(super) hosts: Vec<AllowedHost>,
    /// The tokens of the workbench, one of which is required unless the authorization server issued the token.
    pub(super) tokens: Option<Tokens>,
    /// Checks the tokens of the authorization server.
    pub(super) resource_server: Option<ResourceServer>,
    /// Opens the senders of requests that replicas forward; `None` if there are no replicas.
    pub(super) sealer: Option<Sealer>,
}

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sender {
    /// Anybody, where no token is required.
    Anybody,
    Holder(TokenHolder),
    /// The token is absent in a request that another replica has forwarded.
    User(User, Option<UserToken>),
}

/// The token of a user, which only the authorization server that issued it may get.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UserToken(Arc<str>);

impl UserToken {
    pub(super) fn text(&self) -> &Arc<str> {
        &self.0
    }
}

/// Hides the token.
impl fmt::Debug for UserToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserToken")
    }
}

impl Sender {
    pub(super) fn principal(&self) -> Principal {
        match self {
            Self::Anybody => Principal::Anybody,
            Self::Holder(holder) => Principal::Holder(holder.digest),
            Self::User(user, _) => Principal::User(user.digest),
        }
    }

    /// Returns the client of the configuration that the sender is.
    pub(super) fn client(&self) -> Option<&ClientName> {
        match self {
            Self::Anybody => None,
            Self::Holder(holder) => holder.client.as_ref(),
            Self::User(user, _) => user.client.as_ref(),
        }
    }
}

/// The sender of a request, as far as it is known without waiting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    Known(Sender),
    /// A token that may be the authorization server's.
    Token(String),
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

impl AllowedHost {
    /// Returns the host of an address.
    pub(super) fn of(url: &Url) -> Option<Self> {
        Some(Self {
            name: url.host_str()?.to_owned(),
            port: url.port(),
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
            // The last colon of `[::1]` belongs to the address.
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
    /// Checks a request that came to the address `local`. Returns the credentials of its sender.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        local: SocketAddr,
    ) -> Result<Credentials, Refusal> {
        // Host and origin come first: a web page in a browser on this machine is refused whatever it presents.
        self.check_host(request, local)?;
        let headers = request.headers();
        self.check_origin(headers, local)?;
        let is_open = self.tokens.is_none() && self.resource_server.is_none();
        let is_public = is_probe(request.uri().path())
            || self.metadata(request).is_some()
            || self.browser_page(request).is_some();
        // Another replica has checked the token of the sender and has sealed who it is.
        if let Some(sealer) = self.sealer.as_ref().filter(|_| is_forwarded(headers)) {
            return Ok(Credentials::Known(forward::sender(sealer, headers)?));
        }
        if is_open || is_public {
            return Ok(Credentials::Known(Sender::Anybody));
        }
        let token = bearer_token(headers)?;
        if let Some(holder) = self.tokens.as_ref().and_then(|it| it.holder(token)) {
            return Ok(Credentials::Known(Sender::Holder(holder)));
        }
        match &self.resource_server {
            Some(_) => Ok(Credentials::Token(token.to_owned())),
            None => Err(Refusal::WrongToken),
        }
    }

    /// Returns the sender with these credentials. Waits if the authorization server has to be asked.
    pub(super) async fn sender(&self, credentials: Credentials) -> Result<Sender, Refusal> {
        match (credentials, &self.resource_server) {
            (Credentials::Known(sender), _) => Ok(sender),
            (Credentials::Token(token), Some(server)) => {
                let user = Box::pin(server.check(&token)).await?;
                Ok(Sender::User(user, Some(UserToken(token.into()))))
            }
            (Credentials::Token(_), None) => Err(Refusal::WrongToken),
        }
    }

    /// Returns the metadata of the workbench as a protected resource, if a request is for it.
    pub(super) fn metadata<B>(&self, request: &Request<B>) -> Option<String> {
        let server = self.resource_server.as_ref()?;
        let path = request.uri().path();
        let is_metadata = path == METADATA_PATH || path == server.metadata_url().path();
        (request.method() == Method::GET && is_metadata).then(|| server.metadata())
    }

    /// Returns the page for a browser that a request is for.
    pub(super) fn browser_page<B>(&self, request: &Request<B>) -> Option<BrowserPage> {
        let server = self.resource_server.as_ref()?;
        BrowserPage::of(request, server.public_path())
    }

    /// Returns a refusal as a response. It names the metadata by which a client gets another token.
    pub(super) fn refuse(&self, refusal: Refusal) -> Response {
        let needed = match &refusal {
            Refusal::Token(TokenRefusal::MissingScopes(scopes)) => scopes.clone(),
            _ => Vec::new(),
        };
        let mut response = refusal.into_response();
        let challenge = response.headers().get(header::WWW_AUTHENTICATE);
        if let (Some(server), Some(challenge)) = (&self.resource_server, challenge) {
            let challenge = challenge.to_str().unwrap_or_default();
            let metadata = server.metadata_url();
            let mut text = format!("{challenge}, resource_metadata=\"{metadata}\"");
            // Those of every token too, or the next one would lack them.
            let mut scopes = server.scopes().to_vec();
            scopes.extend(
                needed
                    .into_iter()
                    .filter(|it| !server.scopes().contains(it)),
            );
            if !scopes.is_empty() {
                text.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
            }
            // A scope of the configuration with other characters than a header may have is left out.
            if let Ok(value) = HeaderValue::try_from(text) {
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, value);
            }
        }
        response
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
        // Without the names of proxies: the page is for browsers on this machine only.
        let own = Self {
            address: self.address,
            hosts: Vec::new(),
            tokens: None,
            resource_server: None,
            sealer: None,
        };
        own.check(request, local).map(drop)
    }

    fn check_host<B>(&self, request: &Request<B>, local: SocketAddr) -> Result<(), Refusal> {
        let named = only(request.headers(), header::HOST)
            .map_err(|()| Refusal::ForeignHost)?
            .ok_or(Refusal::ForeignHost)?;
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
        // Only browsers send it, and they cannot leave it out.
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
        // A socket for both versions of IP shows clients of version 4 under mapped addresses.
        let local = local.ip().to_canonical();
        let by_address = match host.address() {
            Some(address) => {
                // All loopback addresses mean this machine, whichever of them the client has used.
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

/// Returns the token of a request.
fn bearer_token(headers: &HeaderMap) -> Result<&str, Refusal> {
    let credentials = only(headers, header::AUTHORIZATION)
        .map_err(|()| Refusal::WrongToken)?
        .ok_or(Refusal::NoToken)?;
    let (scheme, token) = credentials.split_once(' ').ok_or(Refusal::WrongToken)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        // Not `WrongToken`: for another scheme the challenge has no error code (RFC 6750, section 3.1).
        return Err(Refusal::NoToken);
    }
    Ok(token.trim())
}

/// Returns the value of a header. Duplicates are an error.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        // With two values, a proxy and we might believe different ones.
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(()),
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
