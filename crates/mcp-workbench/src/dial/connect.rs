//! Makes connections: directly or through the proxy that the environment names, and with TLS for https. Certificates
//! are loaded only if TLS is used.

use std::{error::Error, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Uri, header::HeaderValue, service::Service};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
    service::TowerToHyperService,
};
use rustls_platform_verifier::Verifier;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{self, ClientConfig, crypto::ring, pki_types::ServerName},
};

use crate::{alarm::timeout, offload::run_blocking};

/// The timeout for a connection, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for one of several addresses, after which the next is tried.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);
/// The idle time before the first keep-alive probe and the time between probes; a connection that misses the probes
/// is lost.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_RETRIES: u32 = 3;
/// The time that sent data may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why a connection could not be made.
pub(crate) type ConnectFault = Box<dyn Error + Send + Sync>;

/// The byte stream of a connection, plain or encrypted.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Makes connections to one origin.
pub(crate) struct Connector {
    origin: Uri,
    tcp: HttpConnector,
    /// The proxy for the origin, if any.
    proxy: Option<Intercept>,
    /// The TLS configuration; `None` if neither the origin nor the proxy uses https.
    tls: Option<Arc<ClientConfig>>,
}

/// The treatment of the proxy variables of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxies {
    Usual,
    /// The variables are ignored: the server is on this machine.
    None,
}

impl Connector {
    /// Creates a connector to the origin of an address.
    pub(crate) async fn new(origin: Uri, proxies: Proxies) -> Result<Self, rustls::Error> {
        let proxy = match proxies {
            Proxies::Usual => Matcher::from_env().intercept(&origin),
            Proxies::None => None,
        };
        let proxy_uri = proxy.as_ref().map(Intercept::uri);
        let encrypted = is_https(&origin) || proxy_uri.is_some_and(is_https);
        let tls = if encrypted { Some(tls().await?) } else { None };
        Ok(Self {
            tcp: tcp(),
            tls,
            origin,
            proxy,
        })
    }

    /// Returns whether a proxy reads and forwards each request, instead of tunnelling the connection.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.proxy.is_some() && !is_https(&self.origin)
    }

    /// Returns the credentials for such a proxy.
    pub(crate) fn proxy_credentials(&self) -> Option<&HeaderValue> {
        let proxy = self.proxy.as_ref().filter(|_| self.is_forwarded());
        proxy.and_then(Intercept::basic_auth)
    }

    /// Returns whether connections go through a proxy, which then resolves host names.
    pub(crate) fn is_proxied(&self) -> bool {
        self.proxy.is_some()
    }

    /// Returns whether writes are encrypted first, so that it is unknown which of the bytes have been sent.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Connects to one of these addresses. The name of the origin is not resolved again, because it may resolve to
    /// other addresses.
    pub(crate) async fn connect_to(
        &self,
        addresses: &[SocketAddr],
    ) -> Result<Box<dyn Stream>, ConnectFault> {
        let made = timeout(CONNECT_TIMEOUT, self.connect_to_unbounded(addresses)).await;
        made.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    async fn connect_to_unbounded(
        &self,
        addresses: &[SocketAddr],
    ) -> Result<Box<dyn Stream>, ConnectFault> {
        let tcp = first_of(addresses).await?;
        match &self.tls {
            Some(tls) => self.encrypt(tls, tcp).await,
            None => Ok(Box::new(tcp)),
        }
    }

    /// Starts TLS with the origin on a stream.
    async fn encrypt(
        &self,
        tls: &Arc<ClientConfig>,
        stream: impl Stream + 'static,
    ) -> Result<Box<dyn Stream>, ConnectFault> {
        let host = self.origin.host().unwrap_or_default();
        // A TLS server name is an IPv6 address without the brackets of a URL.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())?;
        let tls = TlsConnector::from(Arc::clone(tls));
        let stream = tls.connect(name, stream).await?;
        Ok(Box::new(stream))
    }

    pub(crate) async fn connect(&self) -> Result<Box<dyn Stream>, ConnectFault> {
        let made = timeout(CONNECT_TIMEOUT, self.connect_unbounded()).await;
        made.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    async fn connect_unbounded(&self) -> Result<Box<dyn Stream>, ConnectFault> {
        // Without TLS, the origin and a proxy that forwards requests are both reached by plain TCP.
        let Some(tls) = &self.tls else {
            let next = self.proxy.as_ref().map_or(&self.origin, Intercept::uri);
            let tcp = TowerToHyperService::new(self.tcp.clone());
            return Ok(Box::new(tcp.call(next.clone()).await?.into_inner()));
        };
        let maybe_tls = HttpsConnector::from((self.tcp.clone(), Arc::clone(tls)));
        match &self.proxy {
            Some(proxy) if is_https(&self.origin) => {
                // The TLS of the origin is inside the tunnel, whether or not the proxy itself is reached by TLS.
                let mut tunnel = Tunnel::new(proxy.uri().clone(), maybe_tls);
                if let Some(credentials) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                let tunnel = TowerToHyperService::new(tunnel);
                let tunnelled = tunnel.call(self.origin.clone()).await?;
                self.encrypt(tls, TokioIo::new(tunnelled)).await
            }
            proxy => {
                // Without a proxy this is the origin. With one, the origin is http and only the proxy has TLS.
                let next = proxy.as_ref().map_or(&self.origin, Intercept::uri);
                let maybe_tls = TowerToHyperService::new(maybe_tls);
                Ok(Box::new(TokioIo::new(maybe_tls.call(next.clone()).await?)))
            }
        }
    }
}

/// Connects to the first of several addresses that accepts.
async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        let tried = timeout(ADDRESS_TIMEOUT, TcpStream::connect(address)).await;
        match tried.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => {
                // Failure is harmless: small requests would only take longer.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_https(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    // The connector is also used for https, which it would refuse otherwise.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    tcp
}

/// Returns a TLS configuration with the certificates that the platform trusts. They are in files.
async fn tls() -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let given = Arc::clone(&provider);
    let verifier = run_blocking(move || Verifier::new(given))
        .await
        .map_err(|error| rustls::Error::General(error.to_string()))??;
    // `dangerous` means only that the verifier is not the one of rustls. The platform's checks names and chains.
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // We speak only HTTP/1.1, so a server must not choose HTTP/2.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
