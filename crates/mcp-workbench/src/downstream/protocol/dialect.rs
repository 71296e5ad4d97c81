//! How requests are written for a server: what the era of the server wants in them, and what of the caller's is
//! passed on.

use std::{borrow::Cow, sync::Arc};

use serde_json::json;

use crate::{
    call::{Call, CallRequest, ClientHandle, Question, ToolRequest},
    downstream::error::CallError,
    era::{
        CLIENT_CAPABILITIES, CLIENT_INFO, Era, INPUT_RESPONSES, LOG_LEVEL, MODERN_REVISION,
        PROTOCOL_VERSION, REQUEST_STATE, TASKS_EXTENSION, without_modern_keys,
    },
    wire::{Kind, ObjectText, Params, RawJson, code},
};

const META: &str = "_meta";
const PROGRESS_TOKEN: &str = "progressToken";
const EXTENSIONS: &str = "extensions";

/// How requests are written for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// How the server speaks.
    pub(crate) era: Era,
    /// Whether the configuration answers questions for roots.
    has_roots: bool,
    /// Whether the server may run calls as tasks: then we follow them for clients that cannot.
    has_tasks: bool,
}

impl Dialect {
    /// For a legacy server.
    pub(crate) const LEGACY: Self = Self {
        era: Era::Legacy,
        has_roots: false,
        has_tasks: false,
    };

    /// For a modern server; `said` is what it says of itself, as far as that is known.
    pub(crate) fn modern(said: Option<&RawJson>, has_roots: bool) -> Self {
        let capabilities = said.and_then(|said| said.member("capabilities"));
        let extensions = capabilities.and_then(|it| it.member(EXTENSIONS));
        Self {
            era: Era::Modern,
            has_roots,
            has_tasks: extensions.is_some_and(|it| it.member(TASKS_EXTENSION).is_some()),
        }
    }

    /// The parameters of a request of our own, made for a client or for nobody.
    pub(crate) fn own_params(
        self,
        params: &RawJson,
        client: Option<&Arc<dyn ClientHandle>>,
    ) -> RawJson {
        match self.era {
            Era::Legacy => params.clone(),
            Era::Modern => params.with_member(META, &self.meta(client).finish()),
        }
    }

    /// Refuses a call that continues one of another server: a legacy server gives out no `requestState`.
    pub(crate) fn check(self, call: &Call) -> Result<(), CallError> {
        let retry = call.context.retry.as_ref();
        let has_state = retry.is_some_and(|retry| retry.state.is_some());
        if has_state && self.era == Era::Legacy {
            return Err(CallError::refusal(
                code::INVALID_PARAMS,
                "requestState is not known",
                None,
            ));
        }
        Ok(())
    }

    /// The parameters of a call: exactly the caller's, and its `_meta` with a progress token of ours in place of
    /// its own.
    pub(crate) fn call_params(self, call: &Call, id: u64) -> Params<'_> {
        match self.era {
            Era::Legacy => legacy_params(call, id),
            Era::Modern => self.modern_params(call, id).into(),
        }
    }

    fn modern_params(self, call: &Call, id: u64) -> RawJson {
        let context = &call.context;
        let rest = context.meta.as_ref().and_then(without_modern_keys);
        let rest = rest.as_ref().and_then(RawJson::members).unwrap_or_default();
        let rest = rest.iter().filter(|member| member.key != PROGRESS_TOKEN);
        let mut meta = rest.fold(self.meta(Some(&context.client)), |meta, member| {
            meta.relay(member)
        });
        if context.client.progress_token().is_some() {
            meta = meta.member(PROGRESS_TOKEN, &id);
        }
        let mut params = match (&call.request, &context.retry) {
            (
                CallRequest::Tool(ToolRequest {
                    name,
                    arguments,
                    params: None,
                    ..
                }),
                _,
            ) => ObjectText::new()
                .member("name", name.as_str())
                .raw("arguments", arguments)
                .finish(),
            (
                CallRequest::Tool(ToolRequest {
                    params: Some(params),
                    ..
                })
                | CallRequest::Relayed { params, .. },
                None,
            ) => params.clone(),
            (
                CallRequest::Tool(ToolRequest {
                    params: Some(params),
                    ..
                })
                | CallRequest::Relayed { params, .. },
                Some(_),
            ) => params.without_members(&[INPUT_RESPONSES, REQUEST_STATE]),
        };
        let retry = context.retry.as_ref();
        if let Some(responses) = retry.and_then(|retry| retry.responses.as_ref()) {
            params = params.with_member(INPUT_RESPONSES, responses);
        }
        if let Some(state) = retry.and_then(|retry| retry.state.as_ref()) {
            params = params.with_member(REQUEST_STATE, state);
        }
        params.with_member(META, &meta.finish())
    }

    /// What every modern request says of its client.
    fn meta(self, client: Option<&Arc<dyn ClientHandle>>) -> ObjectText {
        let meta = ObjectText::new()
            .member(PROTOCOL_VERSION, MODERN_REVISION)
            .raw(CLIENT_CAPABILITIES, &self.capabilities(client))
            .raw(CLIENT_INFO, &own_identity());
        match client.and_then(|client| client.log_level()) {
            Some(level) => meta.member(LOG_LEVEL, level),
            None => meta,
        }
    }

    /// What the client can do, with what we can do for it.
    fn capabilities(self, client: Option<&Arc<dyn ClientHandle>>) -> RawJson {
        let nothing = || ObjectText::new().finish();
        let is_modern = client.is_some_and(|client| client.era() == Era::Modern);
        let declared = client.map(|client| client.capabilities());
        let declared = declared.unwrap_or_default();
        let mut capabilities = if is_modern {
            declared.declared()
        } else {
            declared.questions()
        };
        let extensions = capabilities.member(EXTENSIONS);
        let tasks = extensions
            .as_ref()
            .and_then(|it| it.member(TASKS_EXTENSION));
        let tasks = tasks.or_else(|| self.has_tasks.then(nothing));
        if let Some(tasks) = tasks {
            let carried = ObjectText::new().raw(TASKS_EXTENSION, &tasks).finish();
            capabilities = capabilities.with_member(EXTENSIONS, &carried);
        } else if extensions.is_some() {
            capabilities = capabilities.without_members(&[EXTENSIONS]);
        }
        if self.has_roots && declared.get(Question::Roots).is_none() {
            capabilities = capabilities.with_member(Question::Roots.capability(), &nothing());
        }
        capabilities
    }
}

/// What we call ourselves.
pub(crate) fn own_identity() -> RawJson {
    RawJson::of(&json!({ "name": "mcp-workbench", "version": env!("CARGO_PKG_VERSION") }))
}

/// The parameters of a call to a legacy server: of a modern caller's, without what only the modern era has.
fn legacy_params(call: &Call, id: u64) -> Params<'_> {
    let context = &call.context;
    let is_modern = context.client.era() == Era::Modern;
    let meta = match &context.meta {
        Some(meta) if is_modern => without_modern_keys(meta),
        meta => meta.clone(),
    };
    let meta = match (meta, context.client.progress_token()) {
        (Some(meta), Some(_)) => Some(meta.with_member(PROGRESS_TOKEN, &RawJson::of(&id))),
        (meta, _) => meta,
    };
    match (&call.request, meta) {
        (
            CallRequest::Tool(ToolRequest {
                name,
                arguments,
                params: None,
                ..
            }),
            None,
        ) => Params::tool(name.as_str(), arguments),
        (
            CallRequest::Tool(ToolRequest {
                name,
                arguments,
                params: None,
                ..
            }),
            Some(meta),
        ) => ObjectText::new()
            .member("name", name.as_str())
            .raw("arguments", arguments)
            .raw(META, &meta)
            .finish()
            .into(),
        (
            CallRequest::Tool(ToolRequest {
                params: Some(params),
                ..
            })
            | CallRequest::Relayed { params, .. },
            meta,
        ) => {
            let modern = [INPUT_RESPONSES, REQUEST_STATE, META];
            let params = if is_modern && params.kind() == Kind::Object {
                Cow::Owned(params.without_members(&modern))
            } else {
                Cow::Borrowed(params)
            };
            match meta {
                Some(meta) => params.with_member(META, &meta).into(),
                None => Params::Value(params),
            }
        }
    }
}

#[cfg(test)]
mod tests;
