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
    audit::Ended,
    call::{CallContext, CallRequest},
    downstream::{CallError, Consent, ServerHandle},
    ident::{ToolIdentifier, ToolName},
    wire::{Cursor, ObjectText, RawJson, once},
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
        let route = tools.route(&name).cloned();
        let Some(route) = route.or_else(|| self.denied(&name)) else {
            return Err(NativeError::invalid(format!("Unknown tool: {name}")));
        };
        // A name that stands twice becomes twice the same, whichever of them the server reads.
        Ok(RoutedCall {
            params: params.with_member("name", &RawJson::of(&route.original)),
            route,
        })
    }

    /// The call that parameters of `tools/call` ask for, if they have nothing special about them and it can be sent
    /// without waiting for anything. They are read in one go.
    pub fn ready_call(&self, params: &RawJson) -> Option<ReadyCall> {
        self.toolbox.opened().filter(|_| !self.audit.is_on())?;
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
        let server = self.toolbox.server(&route.server)?;
        if server.is_guarded(&route.original) {
            return None;
        }
        Some(ReadyCall {
            server,
            meta,
            call: RoutedCall {
                params,
                route: route.clone(),
            },
        })
    }

    pub(super) async fn call_tool(&self, params: &RawJson, context: CallContext) -> Answered {
        let RoutedCall { params, route } = self.route_call(params)?;
        let server = self.toolbox.server(&route.server);
        let is_guarded = server.is_some_and(|it| it.is_guarded(&route.original));
        if (is_guarded || self.audit.is_on()) && has_arguments_twice(&params) {
            // The server may read others than the user is shown, or than are noted.
            return Err(NativeError::invalid("arguments: stands twice"));
        }
        let nothing = || ObjectText::new().finish();
        let arguments = params.member("arguments").unwrap_or_else(nothing);
        let tool = self.identifier(&route);
        let noted = self.audit.begin(&tool, &arguments, &*context.client);
        let answered = match self.permit(&route, &arguments, &context).await {
            Ok(consent) => {
                let answered = self.relay("tools/call", &params, &route, context).await;
                if let (Some((server, consent)), Ok(result)) = (&consent, &answered) {
                    server.note_round(consent, result);
                }
                answered
            }
            Err(refusal) => ended(&route, Err(refusal)),
        };
        if let Some(noted) = noted {
            noted.end(match &answered {
                Ok(result) => Ended::with(result),
                Err(error) => Ended::failed(error.code()),
            });
        }
        answered
    }

    async fn permit(
        &self,
        route: &Route,
        arguments: &RawJson,
        context: &CallContext,
    ) -> Result<Option<(Arc<ServerHandle>, Consent)>, CallError> {
        let Some(server) = self.toolbox.server(&route.server) else {
            return Ok(None);
        };
        let consent = server.permit(&route.original, arguments, context).await?;
        Ok(consent.map(|consent| (server, consent)))
    }

    fn identifier(&self, route: &Route) -> ToolIdentifier {
        ToolIdentifier {
            toolbox: self.toolbox.name().clone(),
            server: route.server.clone(),
            tool: ToolName::from(route.original.as_str()),
        }
    }

    /// The server that has a tool of this name which is denied, and so has no name that clients see.
    fn denied(&self, name: &str) -> Option<Route> {
        let catalogue = self.toolbox.catalogue();
        let mut lists = catalogue.lists().iter();
        let (server, _) = lists.find(|(_, list)| list.denied(name).is_some())?;
        Some(Route::unchanged(name, server.clone()))
    }
}

fn has_arguments_twice(params: &RawJson) -> bool {
    let members = params.members().unwrap_or_default();
    members.iter().filter(|it| it.key == "arguments").count() > 1
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
