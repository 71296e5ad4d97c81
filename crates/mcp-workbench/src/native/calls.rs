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
    wire::{Cursor, RawJson, once},
};

impl Native {
    pub(super) fn tools(&self) -> Arc<Merged> {
        let mut known = self.known();
        match &known.tools {
            Some(tools) if tools.is_current() => Arc::clone(tools.merged()),
            old => {
                let catalogue = self.toolbox.catalogue();
                let tools = ShownTools::merge(catalogue, old.as_ref(), self.name_limit);
                Arc::clone(known.tools.insert(tools).merged())
            }
        }
    }

    /// The definition of a tool as a client sees it.
    pub fn shown_tool(&self, name: &str) -> Option<RawJson> {
        self.tools().item(name).cloned()
    }

    /// Finds the server for a call of a tool.
    fn route_call(&self, params: &RawJson) -> Result<RoutedCall, NativeError> {
        let name = required(params, "name")?;
        let tools = self.tools();
        let Some(route) = tools.route(&name) else {
            return Err(NativeError::invalid(format!("Unknown tool: {name}")));
        };
        // A name that stands twice becomes twice the same, whichever of them the server reads.
        Ok(RoutedCall {
            params: params.with_member("name", &RawJson::of(&route.original)),
            route: route.clone(),
        })
    }

    /// The call that parameters of `tools/call` ask for, if they have nothing special about them and it can be sent
    /// without waiting for anything. They are read in one go.
    pub fn ready_call(&self, params: &RawJson) -> Option<ReadyCall> {
        self.toolbox.opened()?;
        let (mut name, mut meta) = (None, None);
        Cursor::new(params).members(|cursor, key| match key {
            b"name" => once(&mut name, cursor.text()?),
            b"_meta" => once(&mut meta, cursor.value()?),
            _ => cursor.value().map(drop),
        })?;
        let tools = self.tools();
        let route = tools.route(name?)?;
        let params = if name? == route.original {
            params.clone()
        } else {
            params.with_member("name", &RawJson::of(&route.original))
        };
        Some(ReadyCall {
            server: self.toolbox.server(&route.server)?,
            meta,
            call: RoutedCall {
                params,
                route: route.clone(),
            },
        })
    }

    pub(super) async fn call_tool(&self, params: &RawJson, context: CallContext) -> Answered {
        let RoutedCall { params, route } = self.route_call(params)?;
        self.relay("tools/call", &params, &route, context).await
    }
}

/// A call that can be sent at once.
pub struct ReadyCall {
    /// The server that has the tool.
    pub server: Arc<ServerHandle>,
    /// The `_meta` of the client's request.
    pub meta: Option<RawJson>,
    /// The call.
    pub call: RoutedCall,
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
