//! Tools that run as tasks (the extension `io.modelcontextprotocol/tasks`).

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CreateTaskResult, JsonObject, Tool,
    },
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    fixture::Fixture,
    interview::{Outcome, Retry},
    questions::{ask_whether, user_name},
    tools::{plain, text_argument, tool, with_text},
};

/// How often a client should look after its task.
const POLL_INTERVAL_MS: u64 = 100;

/// How long a tool works before it fails.
const BEFORE_FAILING: Duration = Duration::from_secs(1);

/// The work of a tool.
enum Job {
    /// Sleeps, and then returns a text.
    Compute {
        pause: Duration,
        label: String,
    },
    Fail,
    Break,
    /// Asks the user for a confirmation.
    Confirm {
        filename: String,
    },
    /// Asks the user two things at once.
    AskTwice,
    /// Greets the user, whose name was asked before the task started.
    Greet {
        name: String,
    },
}

/// The tools of this module.
pub(crate) fn list() -> Vec<Tool> {
    let seconds = json!({
        "type": "object",
        "properties": { "seconds": { "type": "number" }, "label": { "type": "string" } },
        "required": ["seconds"],
    });
    vec![
        with_text("greet", "Greets at once", "name"),
        tool(
            "slow_compute",
            "Takes its time, as a task if it may",
            seconds,
        ),
        plain("failing_job", "Fails as a tool, as a task only"),
        plain(
            "protocol_error_job",
            "Fails as a request, as a task if it may",
        ),
        with_text(
            "confirm_delete",
            "Asks before it goes on, as a task only",
            "filename",
        ),
        plain("multi_input", "Asks two things at once, as a task only"),
        plain(
            "test_tool_with_task",
            "Asks for a name, and goes on as a task only",
        ),
    ]
}

/// Calls a tool of this module. `None` for other tools.
pub(crate) async fn call(
    fixture: &Fixture,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let name = request.name.as_ref();
    if name == "test_tool_with_task" {
        return Some(greet_later(fixture, request, context).await);
    }
    let arguments = request.arguments.as_ref();
    if name == "greet" {
        let greeting =
            text_argument(arguments, "name").map(|name| says(&format!("Hello, {name}!")));
        return Some(greeting.map(Into::into));
    }
    Some(match job(name, arguments).transpose()? {
        Ok(job) => run(fixture.tasks(), job, context).await,
        Err(error) => Err(error),
    })
}

fn job(name: &str, arguments: Option<&JsonObject>) -> Result<Option<Job>, ErrorData> {
    Ok(Some(match name {
        "slow_compute" => Job::Compute {
            pause: pause(arguments)?,
            label: text_argument(arguments, "label")
                .unwrap_or("unlabelled")
                .to_owned(),
        },
        "failing_job" => Job::Fail,
        "protocol_error_job" => Job::Break,
        "confirm_delete" => Job::Confirm {
            filename: text_argument(arguments, "filename")?.to_owned(),
        },
        "multi_input" => Job::AskTwice,
        _ => return Ok(None),
    }))
}

fn pause(arguments: Option<&JsonObject>) -> Result<Duration, ErrorData> {
    arguments
        .and_then(|arguments| arguments.get("seconds"))
        .and_then(Value::as_f64)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| ErrorData::invalid_params("Missing argument: seconds", None))
}

/// Runs a job as a task, or at once for a client that knows no tasks, if the job can do without.
async fn run(
    tasks: &TaskManager,
    job: Job,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if knows_tasks(context) {
        return Ok(start(tasks, job).into());
    }
    match job {
        Job::Compute { pause, label } => {
            sleep(pause).await;
            Ok(computed(&label).into())
        }
        Job::Break => Err(broken()),
        _ => Err(tasks_are_required()),
    }
}

fn start(tasks: &TaskManager, job: Job) -> CreateTaskResult {
    let options = TaskOptions::new().with_poll_interval_ms(POLL_INTERVAL_MS);
    let task = tasks.spawn(options, |task| -> TaskFuture { Box::pin(work(task, job)) });
    CreateTaskResult::new(task)
}

async fn work(task: TaskContext, job: Job) -> Result<CallToolResult, TaskExit> {
    match job {
        Job::Compute { pause, label } => tokio::select! {
            () = sleep(pause) => Ok(computed(&label)),
            () = task.cancelled() => Err(TaskExit::Cancelled),
        },
        Job::Fail => {
            sleep(BEFORE_FAILING).await;
            let words = "This job always fails";
            Ok(CallToolResult::error(vec![ContentBlock::text(words)]))
        }
        Job::Break => Err(broken().into()),
        Job::Confirm { filename } => {
            let question = ask_whether(&format!("Delete {filename}?"), "confirm");
            let answer = task.request_input("confirm", question).await?;
            Ok(says(&format!("Asked about {filename}: {answer}")))
        }
        Job::AskTwice => {
            let first = task.request_input("first", ask_whether("The first?", "confirm"));
            let second = task.request_input("second", ask_whether("The second?", "confirm"));
            let (first, second) = tokio::join!(first, second);
            Ok(says(&format!("Asked twice: {}, {}", first?, second?)))
        }
        Job::Greet { name } => Ok(says(&format!("Hello, {name}!"))),
    }
}

/// Asks for a name as any tool does, and then goes on as a task.
async fn greet_later(
    fixture: &Fixture,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if !knows_tasks(context) {
        return Err(tasks_are_required());
    }
    let retry = Retry {
        name: &request.name,
        responses: request.input_responses.as_ref(),
        state: request.request_state.as_deref(),
    };
    Ok(
        match user_name().hold(retry, fixture.seals(), context).await? {
            Outcome::Answered(responses) => {
                let answer = responses.get("user_name");
                let name = answer
                    .and_then(|answer| answer["content"]["name"].as_str())
                    .unwrap_or("whoever you are")
                    .to_owned();
                start(fixture.tasks(), Job::Greet { name }).into()
            }
            Outcome::Asks(questions) => questions.into(),
            Outcome::Failed(words) => CallToolResult::error(vec![ContentBlock::text(words)]).into(),
        },
    )
}

fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    context
        .client_capabilities()
        .is_some_and(|capabilities| capabilities.supports_tasks())
}

fn tasks_are_required() -> ErrorData {
    let required = ClientCapabilities::builder().enable_tasks().build();
    ErrorData::missing_required_client_capability(required)
}

fn broken() -> ErrorData {
    ErrorData::internal_error("This job always breaks", None)
}

fn computed(label: &str) -> CallToolResult {
    says(&format!("Computed: {label}"))
}

fn says(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
