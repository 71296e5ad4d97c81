//! The eras of the protocol: a fixture that is pinned to one era refuses the requests of the other.

use std::{borrow::Cow, pin::Pin};

use clap::ValueEnum;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientJsonRpcMessage, ClientRequest, DiscoverRequestMethod, ErrorCode, GetMeta as _,
        ProtocolVersion, ServerJsonRpcMessage,
    },
    transport::Transport,
};

/// The revisions of a modern-only server.
const MODERN: &[ProtocolVersion] = &[ProtocolVersion::V_2026_07_28];

/// The revisions that the fixture speaks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// The revisions with `initialize`. Newer methods are unknown.
    Legacy,
    /// The revision without `initialize`, which is refused.
    Modern,
    /// All of them.
    Both,
}

impl Era {
    /// The revisions of this era.
    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(match self {
            Self::Legacy => ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25),
            Self::Modern => MODERN,
            Self::Both => ProtocolVersion::KNOWN_VERSIONS,
        })
    }

    /// Returns the refusal of a request of the other era. For most of them rmcp would respond as a server of both eras.
    pub(crate) fn refusal(self, message: &ClientJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return None;
        };
        let error = match (self, &request.request) {
            (Self::Both, _) | (Self::Legacy, ClientRequest::InitializeRequest(_)) => None,
            (Self::Legacy, ClientRequest::DiscoverRequest(_)) => {
                Some(ErrorData::method_not_found::<DiscoverRequestMethod>())
            }
            (Self::Legacy, request) => request
                .get_meta()
                .protocol_version()
                .filter(|version| !version.has_initialize())
                .map(|_| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None)),
            (Self::Modern, ClientRequest::InitializeRequest(request)) => {
                let requested = request.params.protocol_version.clone();
                Some(ErrorData::unsupported_protocol_version(requested, MODERN))
            }
            (Self::Modern, _) => None,
        };
        error.map(|error| ServerJsonRpcMessage::error(error, Some(request.id.clone())))
    }
}

/// A message on its way out.
type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// A transport that refuses the requests of the other era before the server sees them.
pub(crate) struct Pinned<T: Transport<RoleServer>> {
    era: Era,
    transport: T,
    /// The refusal that is being sent. It is stored here because `receive` may be dropped and called again.
    refusing: Option<Sending<T::Error>>,
}

impl<T: Transport<RoleServer>> Pinned<T> {
    /// Pins a transport to an era.
    pub(crate) fn new(era: Era, transport: T) -> Self {
        Self {
            era,
            transport,
            refusing: None,
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Pinned<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                let outcome = refusing.await;
                self.refusing = None;
                outcome.ok()?;
            }
            let message = self.transport.receive().await?;
            let Some(refusal) = self.era.refusal(&message) else {
                return Some(message);
            };
            self.refusing = Some(Box::pin(self.transport.send(refusal)));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_pinned_era_refuses_the_requests_of_the_other() {
        let modern = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let initialize = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let cases = [
            ("initialize", initialize, None, Some(-32022)),
            (
                "server/discover",
                json!({ "_meta": modern }),
                Some(-32601),
                None,
            ),
            ("tools/list", json!({ "_meta": modern }), Some(-32601), None),
            ("tools/list", json!({}), None, None),
        ];
        for (method, params, legacy, modern) in cases {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            assert_eq!(refused(Era::Legacy, &message), legacy, "{message}");
            assert_eq!(refused(Era::Modern, &message), modern, "{message}");
            assert_eq!(refused(Era::Both, &message), None, "{message}");
        }
    }

    fn refused(era: Era, message: &Value) -> Option<i64> {
        let message = serde_json::from_value(message.clone()).unwrap();
        let refusal = json!(era.refusal(&message)?);
        refusal["error"]["code"].as_i64()
    }
}
