//! Calls that have to wait for something: the only part of the pipeline that runs as a future.

use std::sync::Arc;

use super::{
    CallFailure, CallReply, Mode, Run, Settled, ToolNames, arguments,
    consent::{Consent, Permit},
    oauth,
    observed::{ObservedCall, observe},
    renamed,
    resolve::{self, Attempt, Lookup, LookupError},
    select,
    shared_consents::SharedConsents,
};
use crate::{
    call::{Call, CallRequest},
    downstream::{CallError, CallResult, ServerHandle, Unfinished},
    jq::Filter,
    policy::permissions::{Approval, NotPermitted},
    workbench::Workbench,
};

/// A call that has to wait for something.
pub(crate) struct WaitingCall {
    pub(super) run: Run,
    pub(super) step: WaitingStep,
}

/// The step that a call waits at.
pub(super) enum WaitingStep {
    /// The tool has to be found.
    Resolve { call: Call, shown: Option<String> },
    /// The call has to be checked and sent.
    Check {
        server: Arc<ServerHandle>,
        call: Call,
    },
    /// The server has answered with a question or a task.
    Follow {
        server: Arc<ServerHandle>,
        call: Box<Unfinished>,
        consent: Option<Box<Consent>>,
    },
    /// The server wants its user to sign in.
    SignIn {
        server: Arc<ServerHandle>,
        call: Call,
        error: CallError,
    },
    /// The server has answered, and a filter has to be applied to the result.
    Select { filter: Filter, result: CallResult },
}

impl WaitingCall {
    /// Runs the call to its end. Dropping the future cancels it.
    pub(crate) async fn run(self) -> CallReply {
        // A call can pass through several of these steps: its tool is found, it is permitted and sent, and it may
        // come back because the tool has changed or the server wants a sign-in. `settle` counts the repetitions, so
        // the loop ends.
        let Self { mut run, mut step } = self;
        loop {
            let (server, call) = match step {
                WaitingStep::Resolve { call, shown } => {
                    match resolve(&mut run, call, shown).await {
                        Ok(found) => found,
                        Err(failure) => return run.finish(None, Err(failure)),
                    }
                }
                WaitingStep::Check { server, call } => (server, call),
                WaitingStep::SignIn {
                    server,
                    call,
                    error,
                } => {
                    run.was_offered = true;
                    let is_signed_in = match error.sign_in() {
                        Some(needed) => oauth::offer_sign_in(&server, needed, &run.client).await,
                        None => false,
                    };
                    if !is_signed_in {
                        return run.finish(None, Err(error.into()));
                    }
                    (server, call)
                }
                WaitingStep::Follow {
                    server,
                    call,
                    consent,
                } => {
                    // The result is translated already: `follow` has done it for the client's era.
                    let result = call
                        .follow(&server)
                        .await
                        .map(|json| CallResult::new(json, run.client.era()));
                    match run.over(consent.as_deref(), result) {
                        Settled::Over(reply) => return reply,
                        Settled::Waits(waiting) => Self { run, step } = *waiting,
                    }
                    continue;
                }
                WaitingStep::Select { filter, result } => {
                    return select::reply(&run, &filter, result).await;
                }
            };
            let (consent, call) = match permit(&run, &server, call).await {
                Ok(permitted) => permitted,
                Err(refusal) => return run.finish(None, Err(CallError::from(refusal).into())),
            };
            let end = match server.send(call).await {
                Ok(end) => end,
                Err(error) => return run.finish(consent.as_deref(), Err(error.into())),
            };
            match run.settle(server, consent, end) {
                Settled::Over(reply) => return reply,
                Settled::Waits(waiting) => Self { run, step } = *waiting,
            }
        }
    }
}

/// Finds the tool, and waits as needed. Offers the user to sign in if the server requires it.
async fn resolve(
    run: &mut Run,
    mut call: Call,
    shown: Option<String>,
) -> Result<(Arc<ServerHandle>, Call), CallFailure> {
    let workbench = Arc::clone(&run.workbench);
    let mut attempt = Attempt::First;
    loop {
        let mut names = ToolNames::from(&run.tool);
        if let Some(shown) = &shown {
            // In native mode the client knows the tool by a different name than its server.
            names.tool = shown;
        }
        let found = resolve::look_up(&workbench, run.mode, names, attempt, &run.client);
        let waited = match found {
            Ok(Lookup::Found { server, tool, .. }) => {
                if let CallRequest::Tool(request) = &mut call.request {
                    let params = request.params.take();
                    request.params =
                        params.map(|it| Box::new(renamed(&it, names.tool, &tool.tool)));
                    request.name = tool.tool.clone();
                }
                run.tool = tool;
                begin_operation(run, &mut call);
                // After the operation has begun, so that a refusal is in the event stream too.
                if let (Mode::Script, CallRequest::Tool(request)) = (run.mode, &call.request) {
                    arguments::check(&server, request)?;
                }
                return Ok((server, call));
            }
            Ok(lookup) => wait_with_sign_in(run, &workbench, lookup).await,
            Err(error) => Err(error),
        };
        if let Err(error) = waited {
            begin_operation(run, &mut call);
            let known = resolve::known_names(&workbench, &run.tool, &error);
            return Err(CallFailure::NotFound { error, known });
        }
        // The second lookup decides with the tools that are known then, so that no call waits forever.
        attempt = Attempt::Again;
    }
}

/// Begins the operation in the event stream, if the tool was not known before.
fn begin_operation(run: &mut Run, call: &mut Call) {
    if let (None, CallRequest::Tool(request)) = (&run.observed, &call.request)
        && run.workbench.observed().is_listened()
    {
        let start = ObservedCall {
            tool: &run.tool,
            arguments: &request.arguments,
            // It is borrowed from the client's message, which is gone by now.
            request: None,
        };
        run.observed = Some(Box::new(observe(&run.workbench, &start, &mut call.context)));
    }
}

async fn wait_with_sign_in(
    run: &mut Run,
    workbench: &Workbench,
    lookup: Lookup,
) -> Result<(), LookupError> {
    let server = match &lookup {
        Lookup::Unlisted(server) => Some(Arc::clone(server)),
        Lookup::Found { .. } | Lookup::Unopened(_) => None,
    };
    let waited = resolve::wait(workbench, lookup, &run.client).await;
    if let (Err(LookupError::NotConnected(error)), Some(server)) = (&waited, server)
        && let Some(needed) = error.sign_in()
        && run.can_sign_in(&server, needed)
    {
        run.was_offered = true;
        if Box::pin(oauth::offer_sign_in(&server, needed, &run.client)).await {
            // Once more, because only the missing sign-in made the start fail.
            return resolve::wait(workbench, Lookup::Unlisted(server), &run.client).await;
        }
    }
    waited
}

/// Waits until a call is permitted, and asks the user if needed.
async fn permit(
    run: &Run,
    server: &Arc<ServerHandle>,
    mut call: Call,
) -> Result<(Option<Box<Consent>>, Call), NotPermitted> {
    let CallRequest::Tool(request) = &mut call.request else {
        return Ok((None, call));
    };
    let consents = &run.workbench.consents;
    let consent = match consents.check(server, request, &call.context)? {
        Permit::Granted(consent) => consent,
        Permit::Ask(asked) => {
            // The store is asked only where the user would be, so no other call waits for it.
            let shared = SharedConsents::of(&run.workbench, &*run.client);
            let found = match &shared {
                Some(shared) => shared.find(server, &asked, request, &call.context).await,
                None => None,
            };
            let consent = if let Some(consent) = found {
                consents.remember_shared(server, &asked, &*run.client, &consent);
                consent
            } else {
                let ask = consents.ask(server, &asked, request, &run.client);
                let (consent, approval) = ask.await?;
                if let (Some(shared), Approval::Session) = (&shared, approval) {
                    shared.grant(server, &asked).await;
                }
                consent
            };
            Some(Box::new(consent))
        }
    };
    // The server compares this digest at the moment of sending, since the tool may change until then.
    request.consent = consent.as_deref().map(|it| Box::new(it.definition));
    Ok((consent, call))
}
