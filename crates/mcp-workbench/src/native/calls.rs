//! Calls of tools in native mode: found by the names that clients see, and sent with their servers' own.

use std::sync::Arc;

use super::{
    Native,
    error::NativeError,
    merged::{Merged, Route},
    requests::{Answered, required},
    shown_tools::ShownTools,
};
use crate::{
    call::{CallContext, CallRequest},
    downstream::{CallError, ServerHandle},
    wire::RawJson,
};

impl Native {
    pub(super) fn tools(&self) -> Arc<Merged> {
        let catalogue = self.toolbox.catalogue();
        let mut known = self.known();
        let kept = known.tools.as_ref().and_then(|tools| tools.of(&catalogue));
        kept.unwrap_or_else(|| {
            let tools = ShownTools::merge(catalogue, self.name_limit);
            Arc::clone(known.tools.insert(tools).merged())
        })
    }

    /// The definition of a tool as a client sees it.
    pub fn shown_tool(&self, name: &str) -> Option<RawJson> {
        self.tools().item(name).cloned()
    }

    /// Finds the server for a call of a tool.
    pub fn route_call(&self, params: &RawJson) -> Result<RoutedCall, NativeError> {
        let name = required(params, "name")?;
        let tools = self.tools();
        let Some(route) = tools.route(&name) else {
            return Err(NativeError::invalid(format!("Unknown tool: {name}")));
        };
        // A name that stands twice must not reach a server that may read the other one.
        let members = params.members().unwrap_or_default();
        let is_as_sent =
            route.original == name && members.iter().filter(|it| it.key == "name").count() == 1;
        let params = if is_as_sent {
            params.clone()
        } else {
            params.with_member("name", &RawJson::of(&route.original))
        };
        Ok(RoutedCall {
            params,
            route: route.clone(),
        })
    }

    /// The server of a call.
    pub fn server_of(&self, call: &RoutedCall) -> Option<Arc<ServerHandle>> {
        self.toolbox.server(&call.route.server)
    }

    pub(super) async fn call_tool(&self, params: &RawJson, context: CallContext) -> Answered {
        let RoutedCall { params, route } = self.route_call(params)?;
        self.relay("tools/call", &params, &route, context).await
    }
}

/// A call of a tool, and the server that it goes to.
pub struct RoutedCall {
    params: RawJson,
    route: Route,
}

impl RoutedCall {
    /// What is asked of the server.
    pub fn request(&self) -> CallRequest {
        CallRequest::Relayed {
            method: "tools/call",
            params: self.params.clone(),
        }
    }

    /// What has come of it.
    pub fn ended(&self, result: Result<RawJson, CallError>) -> Answered {
        ended(&self.route, result)
    }
}

/// What has come of a request to a server.
pub(super) fn ended(route: &Route, result: Result<RawJson, CallError>) -> Answered {
    result.map_err(|error| match error {
        CallError::Refused { error, .. } => NativeError::Refused(error),
        error => NativeError::Failed {
            server: route.server.clone(),
            what: route.original.clone(),
            error,
        },
    })
}
