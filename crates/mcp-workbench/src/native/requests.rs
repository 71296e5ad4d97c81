//! The requests of native mode: lists are merged, everything else goes to the one server that it
//! concerns, with its own name for the thing and everything else as the client wrote it.

use std::sync::Arc;

use super::{
    Native,
    error::{NativeError, RESOURCE_NOT_FOUND},
    merged::{Family, Merged, Route},
};
use crate::{
    call::{Call, CallContext, CallRequest, ClientHandle},
    downstream::{CallError, ListWalk, ServerFamily, ServerHandle, Step},
    ident::ServerName,
    wire::{ObjectText, RawJson},
};

type Answered = Result<RawJson, NativeError>;

impl Native {
    /// Answers a request of a client.
    pub async fn answer(&self, method: &str, params: &RawJson, context: CallContext) -> Answered {
        match method {
            "tools/list" => Ok(list_result("tools", &self.tools().shown)),
            "tools/call" => self.call_tool(params, context).await,
            "prompts/list" => self.list(Family::Prompts, &context).await,
            "prompts/get" => self.get_prompt(params, context).await,
            "resources/list" => self.list(Family::Resources, &context).await,
            "resources/templates/list" => self.list(Family::Templates, &context).await,
            "resources/read" => self.on_resource("resources/read", params, context).await,
            "resources/subscribe" => self.subscribe(params, context).await,
            "resources/unsubscribe" => self.unsubscribe(params, context).await,
            "completion/complete" => self.complete(params, context).await,
            "logging/setLevel" => self.set_level(params, &context).await,
            _ => Err(NativeError::NotOffered),
        }
    }

    fn tools(&self) -> Merged {
        let lists = self.toolbox.catalogue().into_iter().map(|(server, list)| {
            let tools = list
                .tools()
                .iter()
                .map(|tool| tool.definition.clone())
                .collect();
            (server, tools)
        });
        Merged::by_name(lists.collect(), self.name_limit)
    }

    /// The definition of a tool as a client sees it.
    pub fn shown_tool(&self, name: &str) -> Option<RawJson> {
        let mut shown = self.tools().shown.into_iter();
        shown.find(|tool| {
            let shown = tool.member("name");
            shown.as_ref().and_then(RawJson::as_text).as_deref() == Some(name)
        })
    }

    async fn call_tool(&self, params: &RawJson, context: CallContext) -> Answered {
        let name = required(params, "name")?;
        let tools = self.tools();
        let Some(route) = tools.route(&name) else {
            return Err(NativeError::invalid(format!("Unknown tool: {name}")));
        };
        let params = params.with_member("name", &RawJson::of(&route.original));
        self.relay("tools/call", &params, route, context).await
    }

    async fn get_prompt(&self, params: &RawJson, context: CallContext) -> Answered {
        self.require(ServerFamily::Prompts)?;
        let name = required(params, "name")?;
        let prompts = self.merged(Family::Prompts, &context.client).await;
        let Some(route) = prompts.route(&name) else {
            return Err(NativeError::invalid(format!("Unknown prompt: {name}")));
        };
        let params = params.with_member("name", &RawJson::of(&route.original));
        self.relay("prompts/get", &params, route, context).await
    }

    async fn on_resource(
        &self,
        method: &'static str,
        params: &RawJson,
        context: CallContext,
    ) -> Answered {
        self.require(ServerFamily::Resources)?;
        let uri = required(params, "uri")?;
        let route = self.resource_route(&uri, &context.client).await?;
        self.relay(method, params, &route, context).await
    }

    async fn subscribe(&self, params: &RawJson, context: CallContext) -> Answered {
        let client = context.client.id();
        let uri = required(params, "uri")?;
        // Noted first: the server may tell of a change before its answer has come back.
        self.subscriptions.add(client, &uri);
        let answer = self
            .on_resource("resources/subscribe", params, context)
            .await;
        if answer.is_err() {
            self.subscriptions.remove(client, &uri);
        }
        answer
    }

    async fn unsubscribe(&self, params: &RawJson, context: CallContext) -> Answered {
        let uri = required(params, "uri")?;
        if self.subscriptions.remove(context.client.id(), &uri) {
            return self
                .on_resource("resources/unsubscribe", params, context)
                .await;
        }
        Ok(ObjectText::new().finish())
    }

    async fn complete(&self, params: &RawJson, context: CallContext) -> Answered {
        self.require(ServerFamily::Completions)?;
        let reference = params.member("ref");
        let reference = reference.ok_or_else(|| NativeError::invalid("ref: Required"))?;
        if let Ok(uri) = required(&reference, "uri") {
            let templates = self.merged(Family::Templates, &context.client).await;
            let route = match templates.route(&uri) {
                Some(route) => route.clone(),
                None => self.resource_route(&uri, &context.client).await?,
            };
            return self
                .relay("completion/complete", params, &route, context)
                .await;
        }
        let name = required(&reference, "name")?;
        let prompts = self.merged(Family::Prompts, &context.client).await;
        let Some(route) = prompts.route(&name) else {
            return Err(NativeError::invalid(format!("Unknown prompt: {name}")));
        };
        let reference = reference.with_member("name", &RawJson::of(&route.original));
        let params = params.with_member("ref", &reference);
        self.relay("completion/complete", &params, route, context)
            .await
    }

    /// Tells every server that logs which messages are wanted. One that refuses does not matter: what
    /// it sends is held against the level here too.
    async fn set_level(&self, params: &RawJson, context: &CallContext) -> Answered {
        self.require(ServerFamily::Logging)?;
        for (_, server) in self.servers_with(ServerFamily::Logging) {
            let _ = server
                .call(relayed("logging/setLevel", params, &context.client))
                .await;
        }
        Ok(ObjectText::new().finish())
    }

    async fn list(&self, family: Family, context: &CallContext) -> Answered {
        self.require(family.declared_by())?;
        let merged = self.merged(family, &context.client).await;
        Ok(list_result(family.items(), &merged.shown))
    }

    /// The merged list of all servers, read from them if it is not known.
    async fn merged(&self, family: Family, client: &Arc<dyn ClientHandle>) -> Arc<Merged> {
        let generation = {
            let mut known = self.known();
            known.take_events();
            if let Some(merged) = known.lists.get(&family) {
                return Arc::clone(merged);
            }
            known.generation
        };
        let mut lists = Vec::new();
        let mut complete = true;
        for (name, server) in self.servers_with(family.declared_by()) {
            let list = read_list(&server, family, client).await;
            complete &= list.is_some();
            lists.push((name, list.unwrap_or_default()));
        }
        let merged = Arc::new(match family {
            Family::Prompts => Merged::by_name(lists, self.name_limit),
            Family::Resources => Merged::by_key(lists, "uri"),
            Family::Templates => Merged::by_key(lists, "uriTemplate"),
        });
        let mut known = self.known();
        known.take_events();
        // What changed while it was read, or could not be read, is read again the next time.
        if complete && known.generation == generation {
            known.lists.insert(family, Arc::clone(&merged));
        }
        drop(known);
        merged
    }

    /// Whose a resource is: the first server that lists it, then the first with a template that it
    /// matches, then the only one that has resources at all.
    async fn resource_route(
        &self,
        uri: &str,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Route, NativeError> {
        if let Some(route) = self.merged(Family::Resources, client).await.route(uri) {
            return Ok(route.clone());
        }
        if let Some(route) = self.merged(Family::Templates, client).await.matching(uri) {
            return Ok(route.clone());
        }
        match &self.servers_with(ServerFamily::Resources)[..] {
            [(server, _)] => Ok(Route {
                shown: uri.to_owned(),
                original: uri.to_owned(),
                server: server.clone(),
            }),
            _ => Err(NativeError::Invalid {
                code: RESOURCE_NOT_FOUND,
                message: format!("Resource not found: {uri}"),
            }),
        }
    }

    async fn relay(
        &self,
        method: &'static str,
        params: &RawJson,
        route: &Route,
        context: CallContext,
    ) -> Answered {
        let Some(server) = self.toolbox.servers().get(&route.server) else {
            return Err(NativeError::NotOffered);
        };
        let call = Call {
            request: CallRequest::Relayed {
                method,
                params: params.clone(),
            },
            context,
        };
        server.call(call).await.map_err(|error| match error {
            CallError::Refused { error, .. } => NativeError::Refused(error),
            error => NativeError::Failed {
                server: route.server.clone(),
                what: route.original.clone(),
                error,
            },
        })
    }

    /// The servers that have declared a family, in the order of the file.
    fn servers_with(&self, family: ServerFamily) -> Vec<(ServerName, ServerHandle)> {
        let servers = self.toolbox.servers().iter().filter(|(_, server)| {
            let tools = server.status().tools;
            tools.is_some_and(|list| list.introduction.has(family))
        });
        servers
            .map(|(name, server)| (name.clone(), server.clone()))
            .collect()
    }

    fn require(&self, family: ServerFamily) -> Result<(), NativeError> {
        if self.servers_with(family).is_empty() {
            return Err(NativeError::NotOffered);
        }
        Ok(())
    }
}

/// All items of a server's list; nothing if it cannot be read.
async fn read_list(
    server: &ServerHandle,
    family: Family,
    client: &Arc<dyn ClientHandle>,
) -> Option<Vec<RawJson>> {
    let mut walk = ListWalk::new(family.items());
    loop {
        let page = server
            .call(relayed(family.method(), &walk.params(), client))
            .await;
        match page.ok().and_then(|page| walk.accept(&page)) {
            Some(Step::Next) => {}
            Some(Step::Done) => return Some(walk.into_items()),
            None => {
                tracing::warn!("a server's answer to {} cannot be read", family.method());
                return None;
            }
        }
    }
}

/// A request of our own for a client.
fn relayed(method: &'static str, params: &RawJson, client: &Arc<dyn ClientHandle>) -> Call {
    Call {
        request: CallRequest::Relayed {
            method,
            params: params.clone(),
        },
        context: CallContext {
            client: Arc::clone(client),
            meta: None,
            retry: None,
        },
    }
}

fn list_result(items: &str, shown: &[RawJson]) -> RawJson {
    ObjectText::new()
        .raw(items, &RawJson::array(shown))
        .finish()
}

fn required(params: &RawJson, key: &str) -> Result<String, NativeError> {
    let value = params.member(key);
    let text = value.as_ref().and_then(RawJson::as_text);
    match text {
        Some(text) => Ok(text.into_owned()),
        None => Err(NativeError::invalid(format!("{key}: Expected string"))),
    }
}
