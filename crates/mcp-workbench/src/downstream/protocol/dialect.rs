//! The form of requests for a server: the members that the era of the server requires, and the caller's parameters
//! that are passed on.

use std::sync::Arc;

use rawjson::{Kind, ObjectText, RawJson};
use serde_json::json;

use crate::{
    call::{Call, CallRequest, ClientHandle, Declaration, Question, Retry, ToolRequest},
    downstream::error::CallError,
    era::{
        CLIENT_CAPABILITIES, CLIENT_INFO, EXTENSIONS, Era, INPUT_RESPONSES, LOG_LEVEL,
        MODERN_REVISION, PROTOCOL_VERSION, REQUEST_STATE, TASKS_EXTENSION,
    },
    wire::{MetaText, Params, code},
};

const META: &str = "_meta";

/// The form of requests for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) era: Era,
    /// Set if the configuration answers `roots/list`.
    has_roots: bool,
    /// Set if the server may run calls as tasks. The workbench then polls them for clients without task support.
    has_tasks: bool,
}

impl Dialect {
    pub(crate) const LEGACY: Self = Self {
        era: Era::Legacy,
        has_roots: false,
        has_tasks: false,
    };

    /// Creates the form for a modern server; `said` is the server's description of itself, if known.
    pub(crate) fn modern(said: Option<&RawJson>, has_roots: bool) -> Self {
        let capabilities = said.and_then(|said| said.member("capabilities"));
        let extensions = capabilities.and_then(|it| it.member(EXTENSIONS));
        Self {
            era: Era::Modern,
            has_roots,
            has_tasks: extensions.is_some_and(|it| it.member(TASKS_EXTENSION).is_some()),
        }
    }

    /// Returns the parameters of a request by the workbench, with or without a client.
    pub(crate) fn own_params(
        self,
        params: &RawJson,
        client: Option<&Arc<dyn ClientHandle>>,
    ) -> RawJson {
        match self.era {
            Era::Legacy => params.clone(),
            Era::Modern => {
                let client = client.map(|client| (client.era(), client.declaration()));
                let client = client.as_ref().map(|(era, declared)| (*era, &**declared));
                params.with_member(META, &self.meta(client).finish())
            }
        }
    }

    /// Refuses a call that continues one of a different server: a legacy server issues no `requestState`.
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

    /// Returns the parameters of a call: exactly the caller's, with our progress token in `_meta` in place of its
    /// own. `own` are the members of `_meta` that a modern server gets.
    pub(crate) fn call_params<'a>(self, call: &'a Call, id: u64, own: &'a [u8]) -> Params<'a> {
        let context = &call.context;
        let meta = MetaText {
            own,
            relayed: context.meta.as_ref(),
            progress: context.client.progress_token().map(|_| id),
        };
        let params = match &call.request {
            CallRequest::Tool(ToolRequest {
                name,
                arguments,
                params: None,
                ..
            }) => {
                // The usual call: name and arguments go straight into the message, without a value in between.
                let params = Params::tool(name.as_str(), arguments, meta);
                return match &context.retry {
                    Some(retry) => with_answers(params.into_json(), retry).into(),
                    None => params,
                };
            }
            CallRequest::Tool(ToolRequest {
                params: Some(params),
                ..
            }) => &**params,
            CallRequest::Relayed { params, .. } => params,
        };
        let is_traced = context.reports.span().is_some_and(|it| it.trace.is_some());
        let is_same_era = self.era == Era::Legacy && context.client.era() == Era::Legacy;
        // Nothing differs, so the text of the client is passed on without a copy.
        if is_same_era && meta.progress.is_none() && !is_traced {
            return params.into();
        }
        // The server answers to what the client wrote, valid or not.
        if params.kind() != Kind::Object {
            return params.into();
        }
        let is_for_legacy = self.era == Era::Legacy && context.client.era() == Era::Modern;
        let mut params = if is_for_legacy || context.retry.is_some() {
            params.without_members(&[INPUT_RESPONSES, REQUEST_STATE, META])
        } else {
            params.without_members(&[META])
        };
        if let Some(retry) = context.retry.as_ref().filter(|_| self.era == Era::Modern) {
            params = with_answers(params, retry);
        }
        match meta.to_json() {
            Some(meta) => params.with_member(META, &meta).into(),
            None => params.into(),
        }
    }

    /// Returns the `_meta` of a modern request, which describes the client: its era, and what it declares.
    fn meta(self, client: Option<(Era, &Declaration)>) -> ObjectText {
        let meta = ObjectText::new()
            .member(PROTOCOL_VERSION, MODERN_REVISION)
            .raw(CLIENT_CAPABILITIES, &self.capabilities(client))
            .raw(CLIENT_INFO, &own_identity());
        match client.and_then(|(_, declared)| declared.log_level) {
            Some(level) => meta.member(LOG_LEVEL, level),
            None => meta,
        }
    }

    /// Returns the client's capabilities, with those that the workbench adds.
    fn capabilities(self, client: Option<(Era, &Declaration)>) -> RawJson {
        let nothing = || ObjectText::new().finish();
        let is_modern = client.is_some_and(|(era, _)| era == Era::Modern);
        let declared = client.map(|(_, declared)| declared.capabilities.clone());
        let declared = declared.unwrap_or_default();
        // Of a legacy client's declaration only the part that means the same in both eras is passed on.
        let mut capabilities = if is_modern {
            declared.clone().into_declared()
        } else {
            declared.common()
        };
        // The workbench follows tasks for clients that cannot, so a server may start one for them too.
        if self.has_tasks && !(is_modern && declared.has_extension(TASKS_EXTENSION)) {
            let extensions = capabilities
                .member(EXTENSIONS)
                .filter(|it| it.kind() == Kind::Object)
                .unwrap_or_else(nothing)
                .with_member(TASKS_EXTENSION, &nothing());
            capabilities = capabilities.with_member(EXTENSIONS, &extensions);
        }
        if self.has_roots && declared.get(Question::Roots).is_none() {
            capabilities = capabilities.with_member(Question::Roots.capability(), &nothing());
        }
        capabilities
    }
}

/// The members of `_meta` that describe a client to a modern server. They are the same for most calls.
#[derive(Default)]
pub(crate) struct ClientMeta {
    of: Option<(Era, Arc<Declaration>)>,
    members: Vec<u8>,
}

impl ClientMeta {
    /// Returns the members, without braces; none for a legacy server.
    pub(crate) fn of(&mut self, dialect: Dialect, client: &dyn ClientHandle) -> &[u8] {
        if dialect.era == Era::Legacy {
            return &[];
        }
        let of = (client.era(), client.declaration());
        let is_same = |known: &(Era, Arc<Declaration>)| {
            // Almost always the same value, which needs no comparison of texts.
            known.0 == of.0 && (Arc::ptr_eq(&known.1, &of.1) || known.1 == of.1)
        };
        if !self.of.as_ref().is_some_and(is_same) {
            let meta = dialect.meta(Some((of.0, &of.1))).finish();
            let members = meta.as_bytes();
            self.members = members[1..members.len() - 1].to_vec();
            self.of = Some(of);
        }
        &self.members
    }
}

pub(crate) fn own_identity() -> RawJson {
    RawJson::of(&json!({ "name": "mcp-workbench", "version": env!("CARGO_PKG_VERSION") }))
}

/// Returns the parameters with the client's answers to the server's questions.
fn with_answers(mut params: RawJson, retry: &Retry) -> RawJson {
    if let Some(responses) = &retry.responses {
        params = params.with_member(INPUT_RESPONSES, responses);
    }
    if let Some(state) = &retry.state {
        params = params.with_member(REQUEST_STATE, state);
    }
    params
}

#[cfg(test)]
mod tests;
