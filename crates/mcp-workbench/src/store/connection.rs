//! Connections to the store: to one server, to the primary that Sentinels name, or to the nodes of a cluster.

use std::{sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError,
    RedisResult, ServerErrorKind, TlsMode,
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

/// A connection. Cheap to clone.
#[derive(Clone)]
pub(super) enum Connection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The reason why a command gave no value.
pub(super) enum QueryError {
    /// The connection is lost, or leads to a server that is no longer the primary.
    Lost(Arc<str>),
    Failed(Arc<str>),
}

impl Connection {
    /// Connects to a store.
    pub(super) async fn open(address: &StoreAddress) -> Result<Self, Arc<str>> {
        let opened = timeout(FIND_TIMEOUT, async {
            match address {
                StoreAddress::Server(url) => server(url).await,
                StoreAddress::Sentinel(address) => primary(address).await,
                StoreAddress::Cluster(nodes) => cluster(nodes).await,
            }
        });
        let opened = opened.await.map_err(|_| "timed out")?;
        opened.map_err(|error| text(&error))
    }

    /// Runs a command.
    pub(super) async fn query<T: FromRedisValue>(mut self, command: &Cmd) -> Result<T, QueryError> {
        let answered = timeout(OPERATION_TIMEOUT, async {
            match &mut self {
                Self::Server(connection) => command.query_async(connection).await,
                Self::Cluster(connection) => command.query_async(connection).await,
            }
        });
        match answered.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if is_lost(&error) => Err(QueryError::Lost(text(&error))),
            Ok(Err(error)) => Err(QueryError::Failed(text(&error))),
            Err(_) => Err(QueryError::Lost("timed out".into())),
        }
    }
}

fn settings() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(OPERATION_TIMEOUT))
}

async fn server(url: &str) -> RedisResult<Connection> {
    let client = Client::open(url)?;
    let settings = settings();
    let connection = client.get_multiplexed_async_connection_with_config(&settings);
    Ok(Connection::Server(connection.await?))
}

/// Connects to the primary that the Sentinels name now.
async fn primary(address: &SentinelAddress) -> RedisResult<Connection> {
    let server = address.server.as_str().into_connection_info()?;
    let mut node = SentinelNodeConnectionInfo::default()
        .set_redis_connection_info(server.redis_settings().clone());
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
    Ok(Connection::Server(connection.await?))
}

async fn cluster(nodes: &[String]) -> RedisResult<Connection> {
    let client = ClusterClientBuilder::new(nodes.iter().map(String::as_str))
        .connection_timeout(CONNECT_TIMEOUT)
        .response_timeout(OPERATION_TIMEOUT)
        .retries(CLUSTER_RETRIES)
        .build()?;
    Ok(Connection::Cluster(client.get_async_connection().await?))
}

fn is_lost(error: &RedisError) -> bool {
    let is_no_primary = matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    );
    is_no_primary || error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}

fn text(error: &RedisError) -> Arc<str> {
    error.to_string().into()
}
