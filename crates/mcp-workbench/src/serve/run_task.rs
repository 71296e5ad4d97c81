//! Runs as tasks of the modern era: a run that takes long is answered with a task, and the client asks for its state, answers
//! its questions and cancels it by the id of the task.

use std::{sync::Arc, time::SystemTime};

use rawjson::{ObjectText, RawJson};

use super::{exchange::Exchange, methods::Reply};
use crate::{
    era::{INPUT_REQUESTS, INPUT_RESPONSES, InputRequest, InputRequired, to_modern_result},
    meta,
    moment::moment,
    wire::code,
};

/// How long a task is stored after the last request about it, in milliseconds.
const TTL_MS: u64 = 600_000;
/// How often a client is to ask, in milliseconds.
const POLL_INTERVAL_MS: u64 = 1000;

pub(super) enum RunState {
    Working,
    InputRequired(Vec<InputRequest>),
    Completed(RawJson),
    Failed(RawJson),
    Cancelled,
}

/// A run as its client sees it.
pub(super) struct RunTask<'a> {
    pub(super) id: &'a str,
    pub(super) created: SystemTime,
    pub(super) state: RunState,
}

impl RunTask<'_> {
    /// Returns the response to the call that became a task.
    pub(super) fn created(&self) -> RawJson {
        self.write(ObjectText::new().member("resultType", "task"))
    }

    fn write(&self, text: ObjectText) -> RawJson {
        let status = match self.state {
            RunState::Working => "working",
            RunState::InputRequired(_) => "input_required",
            RunState::Completed(_) => "completed",
            RunState::Failed(_) => "failed",
            RunState::Cancelled => "cancelled",
        };
        let text = text
            .member("taskId", self.id)
            .member("status", status)
            .member("createdAt", &moment(self.created))
            .member("lastUpdatedAt", &moment(SystemTime::now()))
            .member("ttlMs", &TTL_MS)
            .member("pollIntervalMs", &POLL_INTERVAL_MS);
        let text = match &self.state {
            RunState::Completed(result) => {
                text.raw("result", &to_modern_result("tools/call", result))
            }
            RunState::Failed(error) => text.raw("error", error),
            RunState::InputRequired(requests) => {
                let asked = InputRequired {
                    requests: requests.clone(),
                    state: None,
                };
                match asked.to_result().member(INPUT_REQUESTS) {
                    Some(requests) => text.raw(INPUT_REQUESTS, &requests),
                    None => text,
                }
            }
            RunState::Working | RunState::Cancelled => text,
        };
        text.finish()
    }
}

/// Answers a request about a task whose process cannot be reached.
pub(super) fn lost(method: &str, id: &str) -> Reply {
    if method != "tasks/get" {
        return Reply::internal_error(meta::REPLICA_GONE);
    }
    let error = ObjectText::new()
        .member("code", &code::INTERNAL_ERROR)
        .member("message", meta::REPLICA_GONE)
        .raw("data", &meta::replica_gone_data());
    let task = RunTask {
        id,
        created: SystemTime::now(),
        state: RunState::Failed(error.finish()),
    };
    Reply::Result(task.write(ObjectText::new()))
}

/// Answers a request about a task of the workbench.
pub(super) fn answer(exchange: &Arc<Exchange>, method: &str, id: &str, params: &RawJson) -> Reply {
    match method {
        "tasks/get" => {
            let task = exchange.run_task(id);
            Reply::Result(task.write(ObjectText::new()))
        }
        "tasks/update" => {
            exchange.resume(params.member(INPUT_RESPONSES).as_ref());
            Reply::Result(ObjectText::new().finish())
        }
        _ => {
            exchange.cancel();
            Reply::Result(ObjectText::new().finish())
        }
    }
}
