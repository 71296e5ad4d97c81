//! `tools/call`: parses its parameters, hands the call to the pipeline and responds to the client. A call that waits
//! only for its server has no task: the server's task responds to the client.

use std::{borrow::Cow, sync::Arc};

use ident::ServerIdentifier;
use rawjson::{ObjectText, RawJson};
use tokio_util::sync::CancellationToken;

use super::{
    batch::ReplyPlace,
    connection::{Connection, ReplyFuture, too_many},
    in_flight::{RunningKey, Runs},
    known_client::KnownMeta,
    methods::{Reply, Requester},
    modern::ModernClient,
    operations,
};
use crate::{
    call::{CallContext, Retry},
    contain::{contain, contain_now},
    era::{INPUT_RESPONSES, REQUEST_STATE, RequestMeta},
    events::{EventClient, OperationGuard, OperationStart},
    meta::{self, MetaTool, UseToolParams},
    wire::{CallOutline, Level, Outlined, RequestId},
    workbench::{
        CallReply, CallStart, ClientRequest, Mode, NamedTool, ReadyCall, Select, Sent, Settled,
        ToolCall, ToolNames, WaitingCall, Workbench,
    },
};

/// The refusal of answers to questions of a run that does not exist.
const RUN_GONE: &str = "requestState: unknown, already used or expired. The script was not run again, because that would \
                        repeat its calls: find out what they have done first";

pub(super) struct CallParams<'a> {
    all: &'a RawJson,
    name: Cow<'a, str>,
    /// The arguments, if there is no outline.
    arguments: Option<RawJson>,
    /// True if there are members that not every call has.
    has_others: bool,
    pub(super) meta: CallMeta,
    /// The client's responses to the questions of an `input_required` result.
    pub(super) retry: Option<Box<Retry>>,
    outline: Option<&'a CallOutline<'a>>,
}

/// The `_meta` of a call.
pub(super) enum CallMeta {
    None,
    Read(Box<RequestMeta>),
    /// The text of an earlier call, which describes this client and nothing else.
    Known(Arc<ModernClient>),
}

impl From<Option<RequestMeta>> for CallMeta {
    fn from(meta: Option<RequestMeta>) -> Self {
        meta.map_or(Self::None, |meta| Self::Read(Box::new(meta)))
    }
}

impl<'a> CallParams<'a> {
    /// Parses the parameters. The error names the invalid one. `known` is the `_meta` that the outline expects.
    pub(super) fn read(
        params: Option<&'a RawJson>,
        outline: &'a CallOutline<'a>,
        known: Option<&KnownMeta>,
    ) -> Result<Self, &'static str> {
        let params = params.ok_or("params: Expected object")?;
        match Self::read_outlined(params, outline, known) {
            Some(read) => Ok(read),
            None => Self::read_any(params),
        }
    }

    /// Reads parameters as they are almost always written.
    fn read_outlined(
        params: &'a RawJson,
        outline: &'a CallOutline<'a>,
        known: Option<&KnownMeta>,
    ) -> Option<Self> {
        if !outline.is_usual() {
            return None;
        }
        let get = |member| outline.get(params, member);
        let meta = match known.filter(|_| outline.has_expected_meta()) {
            Some(known) => CallMeta::Known(Arc::clone(&known.client)),
            None => RequestMeta::of_call(params, outline).into(),
        };
        let retry = Retry {
            responses: get(Outlined::InputResponses),
            state: get(Outlined::RequestState),
        };
        Some(Self {
            all: params,
            name: Cow::Borrowed(outline.text(params, Outlined::Name)?),
            arguments: None,
            has_others: outline.has_others(Level::Params),
            meta,
            retry: boxed(retry),
            outline: Some(outline),
        })
    }

    fn read_any(params: &'a RawJson) -> Result<Self, &'static str> {
        let members = params.members().ok_or("params: Expected object")?;
        let (mut name, mut arguments, mut meta) = (None, None, None);
        let (mut retry, mut has_others) = (Retry::default(), false);
        for member in members {
            let slot = match member.key.as_ref() {
                "name" => &mut name,
                "arguments" => &mut arguments,
                "_meta" => &mut meta,
                INPUT_RESPONSES => &mut retry.responses,
                REQUEST_STATE => &mut retry.state,
                _ => {
                    has_others = true;
                    continue;
                }
            };
            // The server may read a different one than we have checked.
            if slot.replace(member.value).is_some() {
                return Err("params: duplicate key");
            }
        }
        let name = name.ok_or("name: Required")?;
        let name = name.as_text().ok_or("name: Expected string")?.into_owned();
        Ok(Self {
            all: params,
            name: name.into(),
            arguments,
            has_others,
            meta: meta.map(|meta| RequestMeta::read(&meta)).into(),
            retry: boxed(retry),
            outline: None,
        })
    }
}

impl CallParams<'_> {
    /// Returns the text of `_meta`.
    pub(super) fn meta_text(&self) -> Option<RawJson> {
        self.outline?.get(self.all, Outlined::Meta)
    }

    /// Returns `_meta`, except a known one, of which an exchange with the client has all that is needed.
    fn take_meta(&mut self) -> Option<RequestMeta> {
        match std::mem::replace(&mut self.meta, CallMeta::None) {
            CallMeta::Read(meta) => Some(*meta),
            CallMeta::None | CallMeta::Known(_) => None,
        }
    }

    fn has_arguments(&self) -> bool {
        match self.outline {
            Some(outline) => outline.has(Outlined::Arguments),
            None => self.arguments.is_some(),
        }
    }

    /// Returns the arguments; an empty object if there are none. `use_tool` almost never needs them as one value: its
    /// outline has their members.
    fn take_arguments(&mut self) -> RawJson {
        let arguments = match self.outline {
            Some(outline) => outline.get(self.all, Outlined::Arguments),
            None => self.arguments.take(),
        };
        arguments.unwrap_or_else(|| ObjectText::new().finish())
    }
}

/// Returns the answers, if there are any.
fn boxed(retry: Retry) -> Option<Box<Retry>> {
    let is_there = retry.responses.is_some() || retry.state.is_some();
    is_there.then(|| Box::new(retry))
}

/// A `tools/call` that was read.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Begun {
    Over(Reply),
    /// It calls a tool of a server.
    Call(CallStart),
    /// It runs a meta-tool that calls no server.
    Meta(MetaRun),
}

/// A meta-tool that is to be run.
pub(super) struct MetaRun {
    tool: MetaTool,
    arguments: RawJson,
    context: CallContext,
    /// The operation in the event stream, if anybody listens.
    observed: Option<OperationGuard>,
}

impl MetaRun {
    /// Returns whether the tool may take longer than clients wait.
    pub(super) fn may_take_long(&self) -> bool {
        self.tool == MetaTool::RunCode
    }

    pub(super) fn into_reply(self, workbench: Arc<Workbench>) -> ReplyFuture {
        Box::pin(async move {
            let result = meta::run(self.tool, &workbench, &self.arguments, &self.context);
            let reply = Reply::Own(result.await);
            operations::end(self.observed, &reply);
            reply
        })
    }
}

/// A `tools/call` on its way to a tool.
struct IncomingCall<'a> {
    workbench: &'a Arc<Workbench>,
    request: ClientRequest<'a>,
    params: CallParams<'a>,
    context: CallContext,
}

/// Starts the call that the parameters of a `tools/call` request describe.
pub(super) fn begin<'a>(
    workbench: &'a Arc<Workbench>,
    id: &'a RequestId,
    mut params: CallParams<'a>,
    requester: Requester,
) -> Begun {
    let context = requester.into_context(params.take_meta());
    let call = IncomingCall {
        workbench,
        request: ClientRequest {
            id,
            params: params.all,
        },
        params,
        context,
    };
    if workbench.native().is_some() {
        return call.start_shown();
    }
    // Meta-tools first: no server can take their names.
    match MetaTool::named(&call.params.name).filter(|tool| workbench.has(*tool)) {
        Some(MetaTool::UseTool) => call.start_used(),
        // Only the run itself can be continued. Starting it again would repeat its calls.
        Some(MetaTool::RunCode) if call.context.retry.is_some() => {
            call.refuse(Reply::invalid_params(RUN_GONE))
        }
        Some(tool) => call.start_meta_tool(tool),
        None => call.start_named(),
    }
}

impl IncomingCall<'_> {
    /// Starts a call by a name that native mode shows.
    fn start_shown(mut self) -> Begun {
        let name = std::mem::take(&mut self.params.name);
        let names = ToolNames {
            toolbox: "",
            server: "",
            tool: &name,
        };
        // The parameters are passed on as the client wrote them, even without arguments.
        let is_rewritten = self.params.has_arguments() && !self.params.has_others;
        let passed_on = (!is_rewritten).then_some(self.params.all);
        let arguments = self.params.take_arguments();
        Begun::Call(self.workbench.start_call(ToolCall {
            mode: Mode::Native,
            names,
            arguments,
            params: passed_on,
            request: Some(self.request),
            select: Select::Whole,
            context: self.context,
        }))
    }

    fn start(self, mode: Mode, names: ToolNames<'_>, arguments: RawJson, select: Select) -> Begun {
        Begun::Call(self.workbench.start_call(ToolCall {
            mode,
            names,
            arguments,
            params: None,
            request: Some(self.request),
            select,
            context: self.context,
        }))
    }

    fn start_used(mut self) -> Begun {
        let CallParams { all, outline, .. } = self.params;
        let outlined = outline.map(|outline| (all, outline));
        let read = UseToolParams::read(outlined, || self.params.take_arguments(), self.workbench);
        match read {
            Ok(UseToolParams {
                tool,
                arguments,
                select,
            }) => {
                let select = select.map_or(Select::Default, Select::Filter);
                self.start(Mode::UseTool, tool.names(), arguments, select)
            }
            Err(failure) => self.refuse(Reply::Own(failure)),
        }
    }

    /// Starts a call by a name in the list of tools.
    fn start_named(mut self) -> Begun {
        let name = &*self.params.name;
        let (tool, select) = match self.workbench.named(name, &*self.context.client) {
            NamedTool::Registered(tool) => (tool, Select::Default),
            // An interface needs the whole result: filters are made for models.
            NamedTool::Own(tool) => (tool, Select::Whole),
            NamedTool::Shared(servers) => {
                let reply = Reply::invalid_params(ambiguous(name, &servers));
                return self.refuse_unknown(reply);
            }
            NamedTool::Unknown => {
                let reply = unknown_tool(self.workbench, name);
                return self.refuse_unknown(reply);
            }
        };
        let arguments = self.params.take_arguments();
        self.start(Mode::Registered, ToolNames::from(&tool), arguments, select)
    }

    fn start_meta_tool(mut self, tool: MetaTool) -> Begun {
        let observed = self.observe();
        if let Some(observed) = &observed {
            self.context.reports.set_span(observed.span());
        }
        Begun::Meta(MetaRun {
            tool,
            arguments: self.params.take_arguments(),
            context: self.context,
            observed,
        })
    }

    fn refuse(self, reply: Reply) -> Begun {
        operations::end(self.observe(), &reply);
        Begun::Over(reply)
    }

    fn refuse_unknown(self, reply: Reply) -> Begun {
        operations::end_unknown(self.observe(), &reply);
        Begun::Over(reply)
    }

    /// Begins the operation of a call that reaches no server, if anybody listens.
    fn observe(&self) -> Option<OperationGuard> {
        let observed = self.workbench.observed();
        let begin = || OperationStart {
            request_id: Some(self.request.id),
            method: "tools/call".into(),
            target: Some(operations::cut(&self.params.name)),
            tool: None,
            arguments: Some(self.request.params),
            params: Some(self.request.params),
            meta: self.context.meta.as_ref(),
            client: EventClient::of(&*self.context.client, self.workbench.client_name()),
        };
        observed.is_listened().then(|| observed.begin(begin()))
    }
}

/// Returns the refusal of a name that no tool has.
fn unknown_tool(workbench: &Workbench, name: &str) -> Reply {
    if workbench.is_dynamic() {
        Reply::Own(meta::not_registered(name))
    } else {
        Reply::invalid_params(format!("Unknown tool: {name}"))
    }
}

/// Returns the refusal of a name that several servers use.
fn ambiguous(name: &str, servers: &[ServerIdentifier]) -> String {
    let servers = servers
        .iter()
        .map(|it| format!("server '{}' (toolbox '{}')", it.server, it.toolbox));
    format!(
        "Ambiguous tool: {name} is a tool of {}; call it by its name in tools/list",
        servers.collect::<Vec<_>>().join(" and ")
    )
}

impl From<CallReply> for Reply {
    fn from(reply: CallReply) -> Self {
        match reply {
            CallReply::Result(result) => Self::Called(result),
            CallReply::Refused(error) => Self::ErrorAsSent(error),
            CallReply::Failed {
                tool,
                mode,
                failure,
            } if failure.is_unknown_name(mode) => {
                Self::invalid_params(format!("Unknown tool: {}", tool.tool))
            }
            CallReply::Failed { tool, failure, .. } => {
                // A model can read and act on a result, but it may never see a protocol error.
                Self::Own(meta::failed_call(tool, failure))
            }
        }
    }
}

struct SentRequest {
    connection: Arc<Connection>,
    place: ReplyPlace,
    running: RunningKey,
}

/// Handles a parsed `tools/call` of a legacy client, whose request has `size` bytes.
pub(super) fn take_begun(
    connection: &Arc<Connection>,
    begun: Begun,
    id: RequestId,
    place: ReplyPlace,
    size: usize,
) {
    match begun {
        Begun::Over(reply) => place.answer(reply.to(&id)),
        Begun::Call(CallStart::Over(reply)) => place.answer(Reply::from(reply).to(&id)),
        Begun::Call(CallStart::Ready(call)) => send_call(connection, call, id, place, size),
        Begun::Call(CallStart::Waits(call)) => {
            let answer = Box::pin(async move { call.run().await.into() });
            connection.answer_in_task(answer, id, place, size);
        }
        Begun::Meta(run) => {
            let answer = run.into_reply(Arc::clone(connection.workbench()));
            connection.answer_in_task(answer, id, place, size);
        }
    }
}

/// Sends a call of a legacy client, whose request has `size` bytes.
fn send_call(
    connection: &Arc<Connection>,
    call: ReadyCall,
    id: RequestId,
    place: ReplyPlace,
    size: usize,
) {
    let server = Arc::clone(call.server());
    let ticket = server.ticket();
    // Registered before the call is sent, so that its end finds the entry.
    let running = match connection
        .in_flight()
        .begin(id, Runs::AtServer(server, ticket), size)
    {
        Ok(running) => running,
        Err(id) => return place.answer(too_many().to(&id)),
    };
    let request = SentRequest {
        connection: Arc::clone(connection),
        place,
        running,
    };
    call.send(ticket, |sent| request.take(sent));
}

impl SentRequest {
    fn take(self, sent: Sent) {
        match sent {
            Ok(Settled::Over(reply)) => {
                // This runs in the task of the server, which a panic would end together with the calls of other
                // clients.
                let reply = contain_now(|| Reply::from(reply));
                self.answer(&reply.unwrap_or_else(Reply::panicked));
            }
            Ok(Settled::Waits(call)) => self.wait(call),
            Err(panicked) => self.answer(&Reply::panicked(panicked)),
        }
    }

    /// Answers the client, unless it has cancelled the request.
    fn answer(self, reply: &Reply) {
        match self.connection.in_flight().end(self.running) {
            Some(id) => self.place.answer(reply.to(&id)),
            None => self.place.withhold(),
        }
    }

    /// Continues the call in a task, unless the client has cancelled the request.
    fn wait(self, call: Box<WaitingCall>) {
        let cancelled = CancellationToken::new();
        let in_flight = self.connection.in_flight();
        if !in_flight.move_to_task(&self.running, cancelled.clone()) {
            in_flight.end(self.running);
            return self.place.withhold();
        }
        let tasks = self.connection.tasks().clone();
        tasks.spawn(async move {
            let reply = Box::pin(async move { Reply::from(call.run().await) });
            match cancelled.run_until_cancelled(contain(reply)).await {
                Some(Ok(reply)) => self.answer(&reply),
                Some(Err(panicked)) => self.answer(&Reply::panicked(panicked)),
                // The client has cancelled the request, so `answer` withholds this text.
                None => self.answer(&Reply::internal_error("cancelled")),
            }
        });
    }
}

#[cfg(test)]
mod tests;
