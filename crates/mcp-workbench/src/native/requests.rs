//! The requests of native mode: lists are merged, everything else goes to the one server that it
//! concerns, with its own name for the thing and everything else as the client wrote it.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    Kept, Native,
    error::NativeError,
    merged::{Family, Listed, Merged, Route},
    subscriptions::{Resource, SUBSCRIBE, Subscriber, UNSUBSCRIBE},
};
use crate::{
    call::{Call, CallContext, CallRequest, ClientHandle, ToldProgress},
    downstream::{CallError, ListWalk, ServerFamily, ServerHandle, Step},
    era::{CacheHints, Era},
    ident::ServerName,
    wire::{Kind, ObjectText, RawJson},
};

pub(super) type Answered = Result<RawJson, NativeError>;

impl Native {
    /// Answers a request of a client.
    pub async fn answer(&self, method: &str, params: &RawJson, context: CallContext) -> Answered {
        let era = context.client.era();
        match method {
            "tools/list" => self.list_tools(params, era),
            "prompts/list" => self.list(Family::Prompts, params, &context).await,
            "prompts/get" => self.get_prompt(params, context).await,
            "resources/list" => self.list(Family::Resources, params, &context).await,
            "resources/templates/list" => self.list(Family::Templates, params, &context).await,
            "resources/read" => self.read_resource(params, context).await,
            "completion/complete" => self.complete(params, context).await,
            _ if era == Era::Legacy => self.answer_legacy(method, params, context).await,
            _ => Err(NativeError::NotOffered),
        }
    }

    /// Answers a request that only the legacy era has.
    async fn answer_legacy(
        &self,
        method: &str,
        params: &RawJson,
        context: CallContext,
    ) -> Answered {
        match method {
            SUBSCRIBE => self.subscribe(params, context).await,
            UNSUBSCRIBE => self.unsubscribe(params, context).await,
            "logging/setLevel" => self.set_level(params, &context).await,
            _ => Err(NativeError::NotOffered),
        }
    }

    fn list_tools(&self, params: &RawJson, era: Era) -> Answered {
        refuse_cursor(params)?;
        let tools = self.tools();
        // A server that is not up will change the list when it is.
        let all_known =
            self.toolbox.catalogue().lists().len() == self.toolbox.contents().servers().len();
        let hints = if all_known {
            tools.hints
        } else {
            CacheHints::NONE
        };
        Ok(list_result("tools", &tools.shown, hints, era))
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

    async fn read_resource(&self, params: &RawJson, context: CallContext) -> Answered {
        self.require(ServerFamily::Resources)?;
        let uri = required(params, "uri")?;
        let route = self.resource_route(&uri, &context.client).await?;
        self.relay("resources/read", params, &route, context).await
    }

    async fn subscribe(&self, params: &RawJson, context: CallContext) -> Answered {
        self.require(ServerFamily::Resources)?;
        let uri = required(params, "uri")?;
        let client = Subscriber::Client(context.client.id());
        let route = self.resource_route(&uri, &context.client).await?;
        let resource = resource(&route, uri);
        // Noted first: the server may tell of a change before its answer has come back.
        self.subscriptions.add(client, &resource);
        let answer = self.relay(SUBSCRIBE, params, &route, context).await;
        if answer.is_err() {
            self.subscriptions.remove(client, &resource);
        }
        answer
    }

    async fn unsubscribe(&self, params: &RawJson, context: CallContext) -> Answered {
        self.require(ServerFamily::Resources)?;
        let uri = required(params, "uri")?;
        let client = Arc::clone(&context.client);
        let subscriber = Subscriber::Client(client.id());
        let route = match self.subscriptions.of(subscriber, &uri) {
            // Its server is the one that it was made at, whoever lists the resource by now.
            Some(subscribed) => Route::unchanged(&uri, subscribed.server),
            None => self.resource_route(&uri, &client).await?,
        };
        let resource = resource(&route, uri);
        if !self.subscriptions.remove(subscriber, &resource) {
            return Ok(ObjectText::new().finish());
        }
        let answer = self.relay(UNSUBSCRIBE, params, &route, context).await;
        self.subscriptions.renew_if_wanted(&resource, &client).await;
        answer
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

    async fn list(&self, family: Family, params: &RawJson, context: &CallContext) -> Answered {
        self.require(family.declared_by())?;
        refuse_cursor(params)?;
        let client = &context.client;
        let merged = self.merged(family, client).await;
        let items = family.items();
        Ok(list_result(
            items,
            &merged.shown,
            merged.hints,
            client.era(),
        ))
    }

    /// The merged list of all servers, read from them if it is not known.
    async fn merged(&self, family: Family, client: &Arc<dyn ClientHandle>) -> Arc<Merged> {
        let generation = {
            let mut known = self.known();
            known.take_events();
            if let Some(merged) = known.get(family) {
                return merged;
            }
            known.generation
        };
        let mut lists = Vec::new();
        let mut complete = true;
        for (name, server) in self.servers_with(family.declared_by()) {
            let list = read_list(&server, family, client).await;
            complete &= list.is_some();
            let (items, hints) = list.unwrap_or((Vec::new(), CacheHints::NONE));
            lists.push(Listed {
                server: name,
                items,
                hints,
            });
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
            let kept = Kept::new(Arc::clone(&merged), Instant::now());
            known.lists.insert(family, kept);
        }
        drop(known);
        merged
    }

    /// Whose a resource is: the first server that lists it, then the first with a template that it
    /// matches, then the only one that has resources at all.
    pub(super) async fn resource_route(
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
            [(server, _)] => Ok(Route::unchanged(uri, server.clone())),
            _ => Err(NativeError::ResourceNotFound(uri.to_owned())),
        }
    }

    pub(super) async fn relay(
        &self,
        method: &'static str,
        params: &RawJson,
        route: &Route,
        context: CallContext,
    ) -> Answered {
        let Some(server) = self.toolbox.server(&route.server) else {
            return Err(NativeError::NotOffered);
        };
        let call = Call {
            request: CallRequest::Relayed {
                method,
                params: params.clone(),
            },
            context,
        };
        ended(route, server.call(call).await)
    }

    /// The servers that have declared a family, in the order of the file.
    pub(super) fn servers_with(
        &self,
        family: ServerFamily,
    ) -> Vec<(ServerName, Arc<ServerHandle>)> {
        let contents = self.toolbox.contents();
        let servers = contents.servers().iter().filter(|(_, server)| {
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

/// Returns the answer to a request that a server has answered.
fn ended(route: &Route, result: Result<RawJson, CallError>) -> Answered {
    result.map_err(|error| match error {
        CallError::Refused { error, .. } => NativeError::Refused(error),
        error => NativeError::Failed {
            server: route.server.clone(),
            what: route.original.clone(),
            error,
        },
    })
}

/// All items of a server's list and how long it may be kept; nothing if it cannot be read.
async fn read_list(
    server: &ServerHandle,
    family: Family,
    client: &Arc<dyn ClientHandle>,
) -> Option<(Vec<RawJson>, CacheHints)> {
    let mut walk = ListWalk::new(family.items());
    loop {
        let page = server
            .call(relayed(family.method(), &walk.params(), client))
            .await;
        match page.ok().and_then(|page| walk.accept(&page)) {
            Some(Step::Next) => {}
            Some(Step::Done) => {
                let hints = walk.hints();
                return Some((walk.into_items(), hints));
            }
            None => {
                tracing::warn!("a server's answer to {} cannot be read", family.method());
                return None;
            }
        }
    }
}

/// A request of our own for a client.
pub(super) fn relayed(
    method: &'static str,
    params: &RawJson,
    client: &Arc<dyn ClientHandle>,
) -> Call {
    Call {
        request: CallRequest::Relayed {
            method,
            params: params.clone(),
        },
        context: CallContext {
            client: Arc::clone(client),
            meta: None,
            retry: None,
            progress: ToldProgress::default(),
        },
    }
}

/// A list as a client of an era gets it: only modern ones are told how long it may be kept.
fn list_result(items: &str, shown: &[RawJson], hints: CacheHints, era: Era) -> RawJson {
    let list = ObjectText::new()
        .raw(items, &RawJson::array(shown))
        .finish();
    match era {
        Era::Legacy => list,
        Era::Modern => hints.put_on(&list),
    }
}

/// Our lists have one page, so we have given no cursor to anybody.
fn refuse_cursor(params: &RawJson) -> Result<(), NativeError> {
    match params.member("cursor") {
        Some(cursor) if cursor.kind() != Kind::Null => Err(NativeError::invalid(
            "cursor: unknown, the list has one page",
        )),
        _ => Ok(()),
    }
}

fn resource(route: &Route, uri: String) -> Resource {
    Resource {
        server: route.server.clone(),
        uri,
    }
}

pub(super) fn required(params: &RawJson, key: &str) -> Result<String, NativeError> {
    let value = params.member(key);
    let text = value.as_ref().and_then(RawJson::as_text);
    match text {
        Some(text) => Ok(text.into_owned()),
        None => Err(NativeError::invalid(format!("{key}: Expected string"))),
    }
}
