//! The requests about a task: `tasks/get`, `tasks/update` and `tasks/cancel`. The sealed id of a task names its server,
//! and is valid for its client only.

use std::sync::Arc;

use rawjson::{ObjectText, RawJson};

use super::{
    exchange::Exchange,
    methods::{Reply, Requester},
    run_task,
};
use crate::{
    budget::Structured,
    call::{Call, CallRequest, ClientHandle, Recipient},
    downstream::{CallError, ServerHandle},
    era::{MISSING_CAPABILITY, TASKS_EXTENSION},
    wire::Request,
    workbench::{Origin, Workbench, fit},
};

/// The member that names a task.
pub(super) const TASK_ID: &str = "taskId";
/// The member with the result of a task that has ended.
const RESULT: &str = "result";

/// The requests about a task.
const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

/// Returns the response of the server that a task belongs to.
pub(super) async fn answer(
    workbench: &Workbench,
    client: Arc<Exchange>,
    request: &Request,
) -> Reply {
    let Some(method) = METHODS.into_iter().find(|it| *it == request.method) else {
        return Reply::method_not_found(&request.method);
    };
    if !client.knows_tasks() {
        return extension_missing();
    }
    let params = request.params.as_ref();
    let sealed = params.and_then(|params| params.member(TASK_ID));
    let sealed = sealed.as_ref().and_then(RawJson::as_text);
    let (Some(sealed), Some(params)) = (sealed, params) else {
        return Reply::invalid_params(format!("{TASK_ID}: Expected string"));
    };
    // A sealed id can be of a run in this process, of a run in another one, or of a task of a server.
    if let Some(exchange) = client.task(&sealed) {
        return run_task::answer(&exchange, method, &sealed, params);
    }
    if client.is_task_elsewhere(&sealed) {
        return run_task::lost(method, &sealed);
    }
    let Some((server, inner)) = workbench.task(&sealed, client.principal()) else {
        return Reply::invalid_params(format!("Unknown task: {sealed}"));
    };
    let recipient = client.recipient();
    let requester = Requester::Modern {
        client,
        retry: None,
    };
    let call = Call {
        request: CallRequest::Relayed {
            method,
            params: params.with_member(TASK_ID, &RawJson::of(&inner)),
        },
        context: requester.context_of(params),
    };
    match server.call(call).await {
        Ok(answer) => Reply::Result(within_budget(workbench, &server, recipient, answer)),
        Err(CallError::Refused { error, .. }) => Reply::ErrorAsSent(error),
        Err(error) => Reply::internal_error(format!("Error: {error}")),
    }
}

/// Cuts the result in the state of a task to the budget of its server. Native mode leaves it as it is.
fn within_budget(
    workbench: &Workbench,
    server: &ServerHandle,
    recipient: Recipient,
    answer: RawJson,
) -> RawJson {
    if workbench.native().is_some() || !workbench.results().could_be_over(&answer) {
        return answer;
    }
    let Some(result) = answer.member(RESULT) else {
        return answer;
    };
    let origin = Origin {
        server: server.identifier(),
        tool: None,
        structured: Structured::MayGo,
    };
    let fitted = fit(workbench, &origin, || recipient, result);
    answer.with_member(RESULT, &fitted)
}

/// Returns the refusal of a request that needs a client with the tasks extension.
pub(super) fn extension_missing() -> Reply {
    let extension = ObjectText::new().raw(TASKS_EXTENSION, &ObjectText::new().finish());
    let required = ObjectText::new().raw("extensions", &extension.finish());
    let data = ObjectText::new().raw("requiredCapabilities", &required.finish());
    let error = ObjectText::new()
        .member("code", &MISSING_CAPABILITY)
        .member(
            "message",
            &format!("Missing client capability: extensions.{TASKS_EXTENSION}"),
        )
        .raw("data", &data.finish());
    Reply::ErrorAsSent(error.finish())
}
