//! Calls that a modern server runs as tasks. A client with task support gets a name for the task that leads back to
//! its server; for other clients the workbench polls the task until it has a result.

use std::{collections::HashSet, sync::Arc, time::Duration};

use ident::ServerIdentifier;
use rawjson::{ObjectText, RawJson};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    call::{Call, CallContext, CallReports, CallRequest, ClientHandle, Principal},
    config::{Secrets, Transport},
    downstream::{
        error::CallError,
        link::Link,
        protocol::{
            conversation::{error_code, error_message},
            rounds::{answering, asking, result_of_task},
        },
        server::{About, FollowGuard, ServerHandle},
        session::{calls::Calls, pending::PendingRequest},
    },
    era::{Era, INPUT_RESPONSES, InputRequired, ResultType, TASKS_EXTENSION, result_type},
    seal::{SealPurpose, Sealer},
    wire::{Answer, ResultMarks},
};

/// The default interval between two polls of a task, and the bounds on the server's own interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);

const TASK_ID: &str = "taskId";
const CANCEL: &str = "tasks/cancel";

/// The content of a sealed task name.
#[derive(Serialize, Deserialize)]
struct TaskName {
    toolbox: String,
    server: String,
    /// The client, token or user that owns the task; `None` if there is one client only, or anybody may be it.
    holder: Option<String>,
    /// The server's own name of the task.
    inner: String,
}

/// Returns the server of a task and its own name for the task, from a name that this principal got.
pub(crate) fn open_task(
    sealer: &Sealer,
    sealed: &str,
    principal: Principal,
) -> Option<(ServerIdentifier, String)> {
    let content = sealer.open(SealPurpose::Task, sealed)?;
    let name: TaskName = serde_json::from_str(&content).ok()?;
    let server = ServerIdentifier {
        toolbox: name.toolbox.as_str().into(),
        server: name.server.as_str().into(),
    };
    // A sealed name proves that we issued it, not to whom.
    (name.holder == principal.holder()).then_some((server, name.inner))
}

/// Replaces the name of a task in a message of its server by a sealed one that leads back to the server.
pub(crate) fn with_sealed_name(
    about: &About,
    client: &Arc<dyn ClientHandle>,
    task: &RawJson,
) -> RawJson {
    let inner = task.member(TASK_ID);
    let Some(inner) = inner.as_ref().and_then(RawJson::as_text) else {
        return task.clone();
    };
    let name = TaskName {
        toolbox: about.identifier.toolbox.as_str().to_owned(),
        server: about.identifier.server.as_str().to_owned(),
        holder: client.principal().holder(),
        inner: inner.into_owned(),
    };
    let content = RawJson::of(&name);
    let sealed = about.sealer.seal(SealPurpose::Task, content.as_str());
    task.with_member(TASK_ID, &RawJson::of(&sealed))
}

/// Handles the task of a call: a client with task support gets it as the response, for other clients it is polled.
/// Dropping the future cancels the task.
pub(crate) async fn follow(
    server: &ServerHandle,
    call: Call,
    task: RawJson,
) -> Result<RawJson, CallError> {
    let client = &call.context.client;
    if client.era() == Era::Modern && client.capabilities().has_extension(TASKS_EXTENSION) {
        return Ok(with_sealed_name(&server.about, client, &task));
    }
    // Between two polls the server has no call, and would count as idle.
    let _followed = FollowGuard::begin(server);
    let name = task.member(TASK_ID).ok_or(CallError::UnknownAnswer)?;
    let mut follower = Follower {
        server,
        call: &call,
        name,
        asked: HashSet::new(),
        is_over: false,
    };
    follower.run(task).await
}

struct Follower<'a> {
    server: &'a ServerHandle,
    /// The call that started the task.
    call: &'a Call,
    name: RawJson,
    /// The questions asked so far: each is asked once, however often the task repeats it.
    asked: HashSet<String>,
    is_over: bool,
}

impl Follower<'_> {
    async fn run(&mut self, mut task: RawJson) -> Result<RawJson, CallError> {
        loop {
            let status = task.member("status");
            let status = status.as_ref().and_then(RawJson::as_text);
            match status.as_deref() {
                Some("working") => {}
                Some("input_required") => self.answer_questions(&task).await?,
                Some("completed") => {
                    self.is_over = true;
                    let result = task.member("result").ok_or(CallError::UnknownAnswer)?;
                    // A completed task has nothing to ask. Questions in its result have passed no check.
                    if !ResultMarks::of(&result).is_complete() {
                        return Err(CallError::UnknownAnswer);
                    }
                    return Ok(result_of_task(self.call, &result));
                }
                Some("failed") => {
                    self.is_over = true;
                    return Err(self.failure(&task));
                }
                Some("cancelled") => {
                    self.is_over = true;
                    return Err(CallError::TaskCancelled);
                }
                _ => return Err(CallError::UnknownAnswer),
            }
            sleep(pause(&task)).await;
            task = self.send("tasks/get", None).await?;
        }
    }

    async fn answer_questions(&mut self, task: &RawJson) -> Result<(), CallError> {
        let task = asking(self.server).result(task)?;
        let Some(wanted) = InputRequired::read(&task) else {
            return Ok(());
        };
        let mut fresh = wanted.requests;
        // A task repeats its questions in every status until it has processed the answers.
        fresh.retain(|request| !self.asked.contains(&request.key));
        if fresh.is_empty() {
            return Ok(());
        }
        let responses = answering(self.server, self.call).ask(&fresh).await?;
        self.asked.extend(fresh.into_iter().map(|it| it.key));
        self.send("tasks/update", Some(&responses)).await?;
        Ok(())
    }

    /// Sends a request about the task. If the server is gone or does not know the task, there is nothing to cancel.
    async fn send(
        &mut self,
        method: &'static str,
        responses: Option<&RawJson>,
    ) -> Result<RawJson, CallError> {
        let request = self.request(method, responses);
        let answer = self
            .server
            .call_once(request)
            .await
            .and_then(|answered| answered.answer);
        // After any other error the task may still run, and is cancelled when this is dropped.
        self.is_over = matches!(&answer, Err(error) if is_gone(error));
        answer.map_err(|error| match error {
            // An error about the task is not the server's response to the call.
            CallError::Refused { .. } => CallError::BrokenOff {
                cause: Box::new(error),
            },
            error => error.after_it_began(),
        })
    }

    fn request(&self, method: &'static str, responses: Option<&RawJson>) -> Call {
        let params = ObjectText::new().raw(TASK_ID, &self.name);
        let params = match responses {
            Some(responses) => params.raw(INPUT_RESPONSES, responses),
            None => params,
        };
        let context = &self.call.context;
        Call {
            request: CallRequest::Relayed {
                method,
                params: params.finish(),
            },
            context: CallContext {
                client: Arc::clone(&context.client),
                meta: context.meta.clone(),
                // Answers to questions are in the parameters of `tasks/update`.
                retry: None,
                reports: CallReports::of(context.reports.span().cloned()),
            },
        }
    }

    fn failure(&self, task: &RawJson) -> CallError {
        let Some(error) = task.member("error") else {
            return CallError::UnknownAnswer;
        };
        let error = match asking(self.server).error(&error) {
            Ok(error) => error,
            Err(reason) => return reason.into(),
        };
        let nothing = Secrets::default();
        let entry = self.server.about.entry();
        let secrets = match &entry.server.transport {
            Transport::Stdio(launch) => &launch.secrets,
            Transport::Remote(endpoint) => &endpoint.secrets,
            Transport::Unset(_) => &nothing,
        };
        CallError::Refused {
            code: error_code(&error),
            message: error_message(&error, secrets),
            error,
        }
    }
}

impl Drop for Follower<'_> {
    /// Cancels a task whose caller stopped waiting.
    fn drop(&mut self) {
        if !self.is_over {
            // The result of the cancellation does not matter.
            let ticket = self.server.ticket();
            self.server
                .call_then(ticket, self.request(CANCEL, None), |_| {});
        }
    }
}

/// Returns true if the error means that the task no longer exists.
fn is_gone(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Refused { .. }
            | CallError::Connect(_)
            | CallError::Exited { .. }
            | CallError::GivenUp { .. }
            | CallError::ShuttingDown { .. }
            | CallError::Internal
    )
}

/// Cancels a task that was started by a call after the call was cancelled. Only the server knows of it.
pub(crate) fn cancel_late(calls: &mut Calls, answer: &Answer, link: &mut Link) {
    let Answer::Result(task) = answer else { return };
    if calls.era() == Era::Modern
        && result_type(task) == ResultType::Task
        && let Some(name) = task.member(TASK_ID)
    {
        let params = ObjectText::new().raw(TASK_ID, &name).finish();
        calls.ask(link, PendingRequest::Again, CANCEL, &params);
    }
}

/// Returns the time until the next poll: the server's interval within bounds, plus jitter, so that many tasks do not
/// poll at once.
fn pause(task: &RawJson) -> Duration {
    let said = task.member("pollIntervalMs");
    let said = said.and_then(|said| said.as_str().parse().ok());
    let pause = said
        .map_or(POLL_INTERVAL, Duration::from_millis)
        .clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
    let mut jitter = [0];
    // Without random bytes there is no jitter, which is harmless.
    let _ = getrandom::fill(&mut jitter);
    pause + pause / 10 * u32::from(jitter[0]) / 256
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_poll_interval_of_the_server_is_bounded() {
        let cases = [
            ("{}", POLL_INTERVAL),
            (r#"{"pollIntervalMs":2000}"#, Duration::from_secs(2)),
            (r#"{"pollIntervalMs":1}"#, MIN_POLL_INTERVAL),
            (r#"{"pollIntervalMs":999999999}"#, MAX_POLL_INTERVAL),
            (r#"{"pollIntervalMs":-5}"#, POLL_INTERVAL),
            (r#"{"pollIntervalMs":"x"}"#, POLL_INTERVAL),
        ];
        for (task, expected) in cases {
            let task = RawJson::parse(&Bytes::copy_from_slice(task.as_bytes())).unwrap();
            let pause = pause(&task);
            assert!(pause >= expected && pause <= expected + expected / 10);
        }
    }

    #[test]
    fn sealed_task_names_open_only_for_their_principal() {
        let sealer = Sealer::default();
        let name = TaskName {
            toolbox: "dev".into(),
            server: "fs".into(),
            holder: Principal::Holder(1).holder(),
            inner: "task-1".into(),
        };
        let sealed = sealer.seal(SealPurpose::Task, RawJson::of(&name).as_str());
        let open = |principal| open_task(&sealer, &sealed, principal);
        let server = ServerIdentifier {
            toolbox: "dev".into(),
            server: "fs".into(),
        };
        assert_eq!(open(Principal::Holder(1)), Some((server, "task-1".into())));
        assert_eq!(open(Principal::Holder(2)), None);
        assert_eq!(open(Principal::Anybody), None);
        assert_eq!(open_task(&sealer, "task-1", Principal::Anybody), None);
    }
}
