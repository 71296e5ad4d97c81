//! Tasks: calls of the modern era with a later result.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{message::Request, modern, script::TaskScript};

const TIME: &str = "2026-07-28T00:00:00Z";

/// All tasks by their ids.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tasks: Mutex<HashMap<String, Task>>,
}

#[derive(Debug)]
struct Task {
    /// The members that all steps share, raw.
    head: Vec<String>,
    steps: Vec<String>,
    /// The step that was last reported; `None` at the start.
    at: Option<usize>,
    answers: Vec<String>,
    answered: BTreeSet<String>,
    cancelled: bool,
}

/// The part of a step that the server reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Known<'a> {
    status: String,
    #[serde(borrow)]
    input_requests: BTreeMap<String, &'a RawValue>,
}

impl Tasks {
    /// Makes a task and gives the raw result that names it.
    pub(crate) fn create(&self, script: &TaskScript) -> String {
        let mut tasks = self.lock();
        let id = format!("task-{}", tasks.len() + 1);
        let ttl = json!(script.ttl_ms);
        let poll = script.poll_interval_ms;
        let head = vec![
            format!(r#""taskId":"{id}","createdAt":"{TIME}","lastUpdatedAt":"{TIME}""#),
            format!(r#""ttlMs":{ttl},"pollIntervalMs":{poll}"#),
        ];
        let result = modern::with_members(r#"{"resultType":"task","status":"working"}"#, &head);
        let task = Task {
            head,
            steps: script
                .steps
                .iter()
                .map(|step| step.get().to_owned())
                .collect(),
            at: None,
            answers: Vec::new(),
            answered: BTreeSet::new(),
            cancelled: false,
        };
        tasks.insert(id, task);
        result
    }

    /// The raw result of a request about a task, or the raw error.
    pub(crate) fn handle(&self, request: &Request) -> Result<String, String> {
        let mut tasks = self.lock();
        let id = request.known.task_id.as_deref().unwrap_or_default();
        let task = tasks.get_mut(id);
        let unknown = || json!({"code": -32602, "message": "Unknown task"}).to_string();
        let task = task.ok_or_else(unknown)?;
        match request.method.as_str() {
            "tasks/get" => Ok(task.look()),
            "tasks/update" => {
                task.update(request);
                Ok("{}".to_owned())
            }
            _ => {
                task.cancelled = true;
                Ok("{}".to_owned())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    /// Advances one step, unless the task waits or has ended. Returns the whole task.
    fn look(&mut self) -> String {
        if self.cancelled {
            return modern::with_members(r#"{"status":"cancelled"}"#, &self.head);
        }
        let at = match self.at {
            None => 0,
            Some(at) if self.stays(at) => at,
            Some(at) => (at + 1).min(self.steps.len().saturating_sub(1)),
        };
        self.at = Some(at);
        let step = self.steps.get(at).map_or("{}", String::as_str);
        let answers = format!("[{}]", self.answers.join(","));
        modern::with_members(&step.replace(r#""$TOLD""#, &answers), &self.head)
    }

    fn stays(&self, at: usize) -> bool {
        let known: Known<'_> = serde_json::from_str(&self.steps[at]).unwrap_or_default();
        let mut asked = known.input_requests.keys();
        match known.status.as_str() {
            "input_required" => asked.any(|key| !self.answered.contains(key)),
            "working" => false,
            _ => true,
        }
    }

    fn update(&mut self, request: &Request) {
        let Some(responses) = request.known.input_responses.as_deref() else {
            return;
        };
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(responses.get()).unwrap_or_default();
        self.answered.extend(members.into_keys());
        self.answers.push(responses.get().to_owned());
    }
}
