//! The call pipeline. Every tool call of every mode, era and transport takes the same steps, each of which exists once:
//!
//! 1. resolve the tool ([`resolve`]),
//! 2. begin the operation in the event stream, which the audit log, traces and the page read,
//! 3. check consent ([`consent`]), and the arguments of a script ([`arguments`]),
//! 4. send; the server's task checks filters, scanner, pins, permissions and the consent against the definition that its
//!    instance announced, at that moment,
//! 5. offer to sign in, if the server wants that, and send again ([`oauth`]),
//! 6. apply the caller's filter ([`select`]),
//! 7. record resource links, apply the result budget ([`budget`]), end the operation and reply.
//!
//! No step waits. A call that has to wait for something (the start of a server, a consent, a sign-in, a question or a
//! task of a server, a filter) becomes a [`WaitingCall`], which is the only part that runs as a future.

pub(super) mod approvals;
mod arguments;
pub(crate) mod budget;
pub(super) mod consent;
pub(super) mod oauth;
mod observed;
mod resolve;
pub(super) mod select;
mod shared_consents;
#[cfg(test)]
pub(crate) mod test_call;
mod waiting;

use std::sync::Arc;

use ident::{ServerName, ToolIdentifier, ToolName};
use rawjson::{RawJson, Spliced};

use crate::{
    budget::Structured,
    call::{Call, CallContext, CallRequest, ClientHandle, ToolRequest},
    contain::{Panicked, contain_now},
    downstream::{
        CallEnd, CallError, CallResult, CallTicket, Outdated, ServerHandle, SignInNeeded,
    },
    era::{self, Era},
    events::{CallOutcome, CutResult, Event, OperationGuard},
    workbench::Workbench,
};
use budget::Origin;
use consent::{Consent, Permit};
pub(crate) use observed::ClientRequest;
use observed::{ObservedCall, end_with, observe};
pub(crate) use resolve::LookupError;
use resolve::{Attempt, Lookup};
pub(crate) use select::Select;
use shared_consents::record_round;
pub(crate) use waiting::WaitingCall;
use waiting::WaitingStep;

/// The number of times that a call is checked and sent again because its tool changed between the check and the
/// moment of sending.
const MAX_CHECKS: u32 = 3;
/// The number of times that a call is sent again because its server refused its headers. The list of tools is read
/// before that, so a server that refuses twice will not accept a third request.
const MAX_HEADER_REPEATS: u32 = 1;

/// The names by which a client means a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolNames<'a> {
    /// The toolbox; not used in native mode.
    pub toolbox: &'a str,
    /// The server; not used in native mode.
    pub server: &'a str,
    /// The tool, in native mode by the name that is shown.
    pub tool: &'a str,
}

impl<'a> From<&'a ToolIdentifier> for ToolNames<'a> {
    fn from(tool: &'a ToolIdentifier) -> Self {
        Self {
            toolbox: tool.toolbox.as_str(),
            server: tool.server.as_str(),
            tool: tool.tool.as_str(),
        }
    }
}

/// The way in which a client calls a tool. It decides what the reply may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By `use_tool`, or from the command line.
    UseTool,
    /// By the name that the tool is registered under in dynamic mode.
    Registered,
    /// By the name that native mode shows.
    Native,
    /// By a script. The whole result goes to the script, and only what the script returns to the client.
    Script,
}

/// A tool call as a client makes it.
pub(crate) struct ToolCall<'a> {
    pub(crate) mode: Mode,
    pub names: ToolNames<'a>,
    /// The arguments, byte for byte as the client wrote them.
    pub arguments: RawJson,
    /// All parameters, which native mode passes on.
    pub params: Option<&'a RawJson>,
    /// The request of the client; `None` from the command line and from a script.
    pub request: Option<ClientRequest<'a>>,
    /// The filter for the result.
    pub select: Select,
    /// The caller, and what it attached.
    pub context: CallContext,
}

pub(crate) enum CallReply {
    /// The result of the server, within its budget and in the form of the client's era.
    Result(Spliced),
    /// A JSON-RPC error of the server that the client is to act on.
    Refused(RawJson),
    Failed {
        tool: ToolIdentifier,
        mode: Mode,
        failure: CallFailure,
    },
}

/// The reason why a call failed.
pub(crate) enum CallFailure {
    /// The tool was not found.
    NotFound {
        /// The part that is missing.
        error: LookupError,
        /// Names that the caller may have meant.
        known: Vec<String>,
    },
    /// The tool was found, and the call failed.
    Failed(CallError),
}

impl CallFailure {
    /// Returns the stable code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotFound { error, .. } => error.code(),
            Self::Failed(error) => error.code(),
        }
    }

    /// Returns whether the client used a name that native mode does not show. That is an error of the protocol, and not
    /// a result.
    pub(crate) fn is_unknown_name(&self, mode: Mode) -> bool {
        let Self::NotFound { error, .. } = self else {
            return false;
        };
        mode == Mode::Native && matches!(error, LookupError::ToolUnknown)
    }
}

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

/// A call after its first steps.
pub(crate) enum CallStart {
    Over(CallReply),
    /// It can be sent at once.
    Ready(ReadyCall),
    /// It has to wait for something.
    Waits(WaitingCall),
}

impl CallStart {
    /// Runs the call to its end. Dropping the future cancels it.
    pub(crate) async fn run(self) -> CallReply {
        match self {
            Self::Over(reply) => reply,
            Self::Ready(ready) => ready.run().await,
            Self::Waits(waiting) => waiting.run().await,
        }
    }
}

/// The part of a call that stays the same from its first step to its last.
struct Run {
    workbench: Arc<Workbench>,
    client: Arc<dyn ClientHandle>,
    mode: Mode,
    tool: ToolIdentifier,
    /// Set if the client continues a call with a state that a server issued.
    continues: bool,
    /// The operation in the event stream, while anybody listens.
    observed: Option<Box<OperationGuard>>,
    /// The number of times that the call was checked again because its definition had changed.
    checks: u32,
    /// The number of times that the call was sent again because its headers were refused.
    header_repeats: u32,
    /// Set once the workbench has offered to sign the user in for this call: once is enough.
    was_offered: bool,
    select: Select,
}

/// A call that can be sent.
pub(crate) struct ReadyCall {
    run: Run,
    server: Arc<ServerHandle>,
    call: Call,
    consent: Option<Box<Consent>>,
}

/// The outcome of sending a call: a reply, a wait, or a panic in the pipeline.
pub(crate) type Sent = Result<Settled, Panicked>;

/// The end of a call at its server, as far as the pipeline is concerned.
pub(crate) enum Settled {
    Over(CallReply),
    /// It has to wait for something.
    Waits(Box<WaitingCall>),
}

/// Takes the first steps of a call, up to where it can be sent or has to wait.
pub(super) fn start(workbench: &Arc<Workbench>, call: ToolCall<'_>) -> CallStart {
    let ToolCall {
        mode,
        names,
        arguments,
        params,
        request,
        select,
        mut context,
    } = call;
    let found = resolve::look_up(workbench, mode, names, Attempt::First, &context.client);
    // In native mode the tools of a toolbox are unknown until it is open: the operation begins then.
    let is_known = !(mode == Mode::Native && matches!(found, Ok(Lookup::Unopened(_))));
    let (tool, found) = match found {
        Ok(Lookup::Found {
            server,
            tool,
            may_ask,
        }) => (tool, Ok(Some((server, may_ask)))),
        Ok(Lookup::Unopened(_) | Lookup::Unlisted(_)) => (named(workbench, mode, names), Ok(None)),
        Err(error) => (named(workbench, mode, names), Err(error)),
    };
    let retry = context.retry.as_ref();
    let continues = retry.is_some_and(|retry| retry.state.is_some());
    let observed = if is_known && workbench.observed().is_listened() {
        let start = ObservedCall {
            tool: &tool,
            arguments: &arguments,
            request,
        };
        Some(Box::new(observe(workbench, &start, &mut context)))
    } else {
        None
    };
    let run = Run {
        continues,
        observed,
        client: Arc::clone(&context.client),
        workbench: Arc::clone(workbench),
        mode,
        tool,
        checks: 0,
        header_repeats: 0,
        was_offered: false,
        select,
    };
    let request = ToolRequest {
        name: run.tool.tool.clone(),
        arguments,
        params: params.map(|params| Box::new(renamed(params, names.tool, &run.tool.tool))),
        consent: None,
    };
    // A model reads the complaint of the server and corrects the call. A script cannot.
    if let (Mode::Script, Ok(Some((server, _)))) = (mode, &found)
        && let Err(error) = arguments::check(server, &request)
    {
        return CallStart::Over(run.finish(None, Err(error.into())));
    }
    let call = Call {
        request: CallRequest::Tool(request),
        context,
    };
    run.begin(found, call, names.tool)
}

/// Returns the identifier that names stand for, whether or not there is such a tool.
fn named(workbench: &Workbench, mode: Mode, names: ToolNames<'_>) -> ToolIdentifier {
    let tool = ToolName::from(names.tool);
    let (toolbox, server) = match (mode, workbench.native()) {
        (Mode::Native, Some(native)) => {
            let server = native
                .missing(names.tool)
                .map_or_else(|| ServerName::from(""), |(server, _)| server);
            (native.toolbox().name().clone(), server)
        }
        _ => (names.toolbox.into(), names.server.into()),
    };
    ToolIdentifier {
        toolbox,
        server,
        tool,
    }
}

/// Returns parameters with the server's own name for the tool.
fn renamed(params: &RawJson, shown: &str, original: &ToolName) -> RawJson {
    if shown == original.as_str() {
        params.clone()
    } else {
        params.with_member("name", &RawJson::of(&original.as_str()))
    }
}

impl Run {
    /// Runs the call as far as it gets without waiting. `found` is the server of its tool and whether it has permission
    /// rules, or `None` if that is not known yet; `shown` is the name of the tool as the client wrote it.
    fn begin(
        self,
        found: Result<Option<(Arc<ServerHandle>, bool)>, LookupError>,
        call: Call,
        shown: &str,
    ) -> CallStart {
        match found {
            Ok(Some((server, true))) => self.check(server, call),
            // The fast path: without permission rules no call of this server can need consent.
            Ok(Some((server, false))) => CallStart::Ready(ReadyCall {
                run: self,
                server,
                call,
                consent: None,
            }),
            Ok(None) => {
                let shown = (self.mode == Mode::Native).then(|| shown.to_owned());
                CallStart::Waits(WaitingCall {
                    run: self,
                    step: WaitingStep::Resolve { call, shown },
                })
            }
            Err(error) => {
                let known = resolve::known_names(&self.workbench, &self.tool, &error);
                let failure = CallFailure::NotFound { error, known };
                CallStart::Over(self.finish(None, Err(failure)))
            }
        }
    }

    fn check(self, server: Arc<ServerHandle>, mut call: Call) -> CallStart {
        let CallRequest::Tool(request) = &mut call.request else {
            // The pipeline makes no other requests.
            return CallStart::Over(self.finish(None, Err(CallError::Internal.into())));
        };
        match self
            .workbench
            .consents
            .check(&server, request, &call.context)
        {
            Ok(Permit::Granted(consent)) => {
                request.consent = consent.as_deref().map(|it| Box::new(it.definition));
                CallStart::Ready(ReadyCall {
                    run: self,
                    server,
                    call,
                    consent,
                })
            }
            Ok(Permit::Ask(_)) => CallStart::Waits(WaitingCall {
                run: self,
                step: WaitingStep::Check { server, call },
            }),
            Err(refusal) => {
                CallStart::Over(self.finish(None, Err(CallError::from(refusal).into())))
            }
        }
    }

    /// Handles the end of a call at its server.
    fn settle(
        mut self,
        server: Arc<ServerHandle>,
        consent: Option<Box<Consent>>,
        end: CallEnd,
    ) -> Settled {
        let step = match end {
            CallEnd::Unfinished(call) => WaitingStep::Follow {
                server,
                call,
                consent,
            },
            // The call did not run: the tool is not what it was when the call was checked.
            CallEnd::Over {
                call,
                outdated: Some(Outdated::Consent),
                ..
            } if self.checks < MAX_CHECKS => {
                self.checks += 1;
                WaitingStep::Check { server, call }
            }
            CallEnd::Over {
                call,
                outdated: Some(Outdated::Headers),
                ..
            } if self.header_repeats < MAX_HEADER_REPEATS => {
                self.header_repeats += 1;
                WaitingStep::Check { server, call }
            }
            CallEnd::Over {
                call,
                result: Err(error),
                ..
            } if error
                .sign_in()
                .is_some_and(|it| self.can_sign_in(&server, it)) =>
            {
                WaitingStep::SignIn {
                    server,
                    call,
                    error,
                }
            }
            CallEnd::Dropped => {
                // An operation without an end counts as cancelled.
                self.observed = None;
                return Settled::Over(self.finish(None, Err(CallError::Internal.into())));
            }
            CallEnd::Over { result, .. } => return self.over(consent.as_deref(), result),
        };
        Settled::Waits(Box::new(WaitingCall { run: self, step }))
    }

    /// Handles the outcome of a call. A result with a filter waits for the filter.
    fn over(mut self, consent: Option<&Consent>, result: Result<CallResult, CallError>) -> Settled {
        match (self.filter(), result) {
            (Some(filter), Ok(result)) => {
                // The call is over, even if the client goes away while its filter runs.
                self.record_end(consent, &result);
                let step = WaitingStep::Select { filter, result };
                Settled::Waits(Box::new(WaitingCall { run: self, step }))
            }
            (_, result) => {
                let result = result.map_err(CallFailure::Failed);
                Settled::Over(self.finish(consent, result))
            }
        }
    }

    /// Returns whether the user can be offered to sign in for this call.
    fn can_sign_in(&self, server: &ServerHandle, needed: &SignInNeeded) -> bool {
        let may_offer = self.mode != Mode::Native && !self.was_offered;
        may_offer && oauth::can_offer(server, needed, &self.client)
    }

    /// Ends the operation before the reply is made, and records a round of questions that a consent covers.
    fn record_end(&mut self, consent: Option<&Consent>, result: &CallResult) {
        if let Some(consent) = consent {
            record_round(&self.workbench, &*self.client, consent, &result.json);
        }
        if let Some(observed) = self.observed.take() {
            observed.end(CallOutcome::with(&result.json, result.marks), None);
        }
    }

    /// Takes the last steps: records links, applies the budget, ends the operation and replies.
    fn finish(
        mut self,
        consent: Option<&Consent>,
        result: Result<CallResult, CallFailure>,
    ) -> CallReply {
        if let (Some(consent), Ok(result)) = (consent, &result) {
            record_round(&self.workbench, &*self.client, consent, &result.json);
        }
        let observed = self.observed.take();
        // Before the budget is applied: it has the size that the server sent.
        let outcome = observed.as_ref().map(|_| match &result {
            Ok(result) => CallOutcome::with(&result.json, result.marks),
            Err(failure) => CallOutcome::failed(failure.code()),
        });
        let reply = self.into_reply(result, observed.as_deref());
        if let (Some(observed), Some(outcome)) = (observed, outcome) {
            end_with(*observed, outcome, &reply);
        }
        reply
    }

    fn into_reply(
        self,
        result: Result<CallResult, CallFailure>,
        observed: Option<&OperationGuard>,
    ) -> CallReply {
        match result {
            Ok(result) => {
                let result = self.prepare(result, observed);
                CallReply::Result(result.into_client(self.client.era()))
            }
            Err(CallFailure::Failed(CallError::Refused { error, .. }))
                if self.passes_on(&error) =>
            {
                CallReply::Refused(error)
            }
            Err(failure) => CallReply::Failed {
                tool: self.tool,
                mode: self.mode,
                failure,
            },
        }
    }

    /// Records the links of a result and applies the budget. Native mode passes results on as they are.
    fn prepare(&self, mut result: CallResult, observed: Option<&OperationGuard>) -> CallResult {
        if self.mode != Mode::Native {
            if result.marks.has_links {
                let owner = self.client.recipient().owner;
                let lists = &self.workbench.open_lists;
                let links = &self.workbench.links;
                let is_shown = |uri: &str| lists.was_shown(owner, uri);
                links.record(owner, &self.tool, &result.json, is_shown);
            }
            // Compares one length with the smallest budget, so that ordinary results are not parsed.
            if self.mode != Mode::Script && self.workbench.results().could_be_over(&result.json) {
                let bytes = result.json.as_bytes().len();
                result = CallResult::new(self.within_budget(result.json), result.era);
                self.report_cut(observed, bytes, result.json.as_bytes().len());
            }
        }
        result
    }

    /// Reports a result that was cut to its budget.
    fn report_cut(&self, observed: Option<&OperationGuard>, bytes: usize, kept_bytes: usize) {
        if let Some(observed) = observed.filter(|_| kept_bytes < bytes) {
            self.workbench.observed().emit(&Event::Budget(CutResult {
                operation: observed.operation().id,
                tool: self.tool.clone(),
                bytes,
                kept_bytes,
            }));
        }
    }

    fn within_budget(&self, result: RawJson) -> RawJson {
        let origin = Origin {
            server: &self.tool.server_identifier(),
            tool: Some(&self.tool.tool),
            structured: match self.mode {
                // The client was shown the tool's `outputSchema`, if it has one.
                Mode::Registered => Structured::Stays,
                Mode::UseTool | Mode::Native | Mode::Script => Structured::MayGo,
            },
        };
        let recipient = || self.client.recipient();
        budget::fit(&self.workbench, &origin, recipient, result)
    }

    /// Returns whether an error of the server goes to the client unchanged. Errors that a client can act on are not
    /// turned into words for a model: a missing capability, or a rejected continuation.
    fn passes_on(&self, error: &RawJson) -> bool {
        let is_modern = self.client.era() == Era::Modern;
        self.mode == Mode::Native || (is_modern && (self.continues || era::is_modern_code(error)))
    }
}

impl ReadyCall {
    /// Returns the server that the call goes to.
    pub(crate) fn server(&self) -> &Arc<ServerHandle> {
        &self.server
    }

    /// Sends the call. `then` is called once, by the task of the server, and must not take long.
    pub(crate) fn send(self, ticket: CallTicket, then: impl FnOnce(Sent) + Send + 'static) {
        let Self {
            run,
            server,
            call,
            consent,
        } = self;
        let handle = Arc::clone(&server);
        handle.call_then(ticket, call, move |end| {
            // A bug in the last steps fails this call, and not the server's task.
            then(contain_now(|| run.settle(server, consent, end)));
        });
    }

    /// Runs the call to its end. Dropping the future cancels it.
    async fn run(self) -> CallReply {
        let Self {
            run,
            server,
            call,
            consent,
        } = self;
        let sent = match server.send(call).await {
            Ok(end) => run.settle(server, consent, end),
            Err(error) => return run.finish(consent.as_deref(), Err(error.into())),
        };
        match sent {
            Settled::Over(reply) => reply,
            Settled::Waits(waiting) => Box::pin(waiting.run()).await,
        }
    }
}
