//! Connections to the store: to one server, to the primary that Sentinels name, or to the nodes of a cluster.

use std::{pin::Pin, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError,
    RedisResult, ServerErrorKind, TlsMode, Value,
    aio::MultiplexedConnection,
    cluster::ClusterClientBuilder,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType},
};
use tokio::time::timeout;

use super::{CONNECT_TIMEOUT, OPERATION_TIMEOUT};
use crate::config::{SentinelAddress, StoreAddress};

/// How long it may take to find the primary, or the nodes of a cluster, and to connect. Each of the servers that are asked may
/// take the time of a connection.
const FIND_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a cluster is asked again within an operation, because a key has moved or a node is away.
const CLUSTER_RETRIES: u32 = 3;

/// A connection. Cheap to clone. Its type is hidden: it is part of the type of nearly every future, and the compiler
/// follows all parts.
#[derive(Clone)]
pub(super) struct StoreConnection(Arc<dyn Commands>);

/// A result of the store that is under way.
type Pending<'a, T> = Pin<Box<dyn Future<Output = RedisResult<T>> + Send + 'a>>;

/// A connection of any kind.
trait Commands: Send + Sync {
    fn run<'a>(&self, command: &'a Cmd) -> Pending<'a, Value>;
}

impl Commands for MultiplexedConnection {
    fn run<'a>(&self, command: &'a Cmd) -> Pending<'a, Value> {
        let mut connection = self.clone();
        Box::pin(async move { command.query_async(&mut connection).await })
    }
}

impl Commands for ClusterConnection {
    fn run<'a>(&self, command: &'a Cmd) -> Pending<'a, Value> {
        let mut connection = self.clone();
        Box::pin(async move { command.query_async(&mut connection).await })
    }
}

/// The reason why a command gave no value.
pub(super) enum QueryError {
    /// The connection is lost, or leads to a server that is no longer the primary.
    Lost(Arc<str>),
    Failed(Arc<str>),
}

impl StoreConnection {
    pub(super) async fn open(address: &StoreAddress) -> Result<Self, Arc<str>> {
        let opened: Pending<'_, Self> = match address {
            StoreAddress::Server(url) => Box::pin(server(url)),
            StoreAddress::Sentinel(address) => Box::pin(primary(address)),
            StoreAddress::Cluster(nodes) => Box::pin(cluster(nodes)),
        };
        let opened = timeout(FIND_TIMEOUT, opened)
            .await
            .map_err(|_| "timed out")?;
        opened.map_err(|error| text(&error))
    }

    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, QueryError> {
        let failed = |error: &dyn std::fmt::Display| QueryError::Failed(error.to_string().into());
        match timeout(OPERATION_TIMEOUT, self.0.run(command)).await {
            Ok(Ok(value)) => T::from_redis_value(value).map_err(|error| failed(&error)),
            Ok(Err(error)) if is_lost(&error) => Err(QueryError::Lost(text(&error))),
            Ok(Err(error)) => Err(failed(&error)),
            // A server that vanished without closing the connection looks like a slow one.
            Err(_) => Err(QueryError::Lost("timed out".into())),
        }
    }
}

fn settings() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(OPERATION_TIMEOUT))
}

async fn server(url: &str) -> RedisResult<StoreConnection> {
    let client = Client::open(url)?;
    let settings = settings();
    let connection = client.get_multiplexed_async_connection_with_config(&settings);
    Ok(StoreConnection(Arc::new(connection.await?)))
}

/// Connects to the primary that the Sentinels name now.
async fn primary(address: &SentinelAddress) -> RedisResult<StoreConnection> {
    let server = address.server.as_str().into_connection_info()?;
    let mut node = SentinelNodeConnectionInfo::default()
        .set_redis_connection_info(server.redis_settings().clone());
    // The Sentinels name only a host and a port. TLS is as in the configured address.
    if address.server.starts_with("rediss") {
        node = node.set_tls_mode(TlsMode::Secure);
    }
    let mut client = SentinelClient::build(
        address.sentinels.clone(),
        address.primary.clone(),
        Some(node),
        SentinelServerType::Master,
    )?;
    let settings = settings();
    let connection = client.get_async_connection_with_config(&settings);
    Ok(StoreConnection(Arc::new(connection.await?)))
}

async fn cluster(nodes: &[String]) -> RedisResult<StoreConnection> {
    let client = ClusterClientBuilder::new(nodes.iter().map(String::as_str))
        .connection_timeout(CONNECT_TIMEOUT)
        .response_timeout(OPERATION_TIMEOUT)
        .retries(CLUSTER_RETRIES)
        .build()?;
    Ok(StoreConnection(Arc::new(
        client.get_async_connection().await?,
    )))
}

fn is_lost(error: &RedisError) -> bool {
    // After a failover the former primary refuses writes. A new connection leads to the current one.
    let is_no_primary = matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    );
    is_no_primary || error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}

fn text(error: &RedisError) -> Arc<str> {
    error.to_string().into()
}
