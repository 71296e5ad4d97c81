//! `subscriptions/listen`: a request that receives notifications of changes, and a response when it ends. It receives
//! the changes that it asked for and that can happen; each notification names its request.

use std::{sync::Arc, time::Duration};

use rawjson::{Kind, ObjectText, RawJson};
use tokio::{
    sync::{broadcast::error::RecvError, watch},
    time::sleep,
};

use super::{exchange::Exchange, methods::Reply, native, output::ClientOutput, tasks};
use crate::{
    call::ClientHandle,
    downstream::{Change, ServerEvent},
    era::{SUBSCRIPTION_ID, TASKS_EXTENSION, UI_EXTENSION},
    events::{CallOutcome, OperationGuard, OperationReply},
    native::{Changes, Native, Watch},
    wire::{self, Frame, Request, RequestId},
    workbench::Workbench,
};

/// The first message to a request that listens.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
const RESOURCE_UPDATED: &str = "notifications/resources/updated";

/// The members of a filter.
const TOOLS: &str = "toolsListChanged";
const PROMPTS: &str = "promptsListChanged";
const RESOURCES: &str = "resourcesListChanged";
const URIS: &str = "resourceSubscriptions";
const TASK_IDS: &str = "taskIds";

/// How often to check if a slow client has read enough.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);

/// Notifies a client of changes until the workbench ends. Dropping the future ends the subscription too. Its operation in
/// the event stream ends with the acknowledgement, because a subscription lasts as long as its client.
pub(super) async fn listen(
    workbench: &Workbench,
    client: Arc<Exchange>,
    request: &Request,
    observed: &mut Option<OperationGuard>,
) -> Reply {
    let filter = match Filter::read(request.params.as_ref()) {
        Ok(filter) => filter,
        Err(message) => return Reply::invalid_params(message),
    };
    if filter.names_tasks && !client.capabilities().has_extension(TASKS_EXTENSION) {
        return tasks::extension_missing();
    }
    // A request without a client was abandoned.
    let Some(output) = client.output() else {
        return Reply::internal_error("the client disconnected");
    };
    let mut stream = Subscription {
        id: request.id.clone(),
        output,
        missed: false,
        observed: observed.take(),
    };
    match workbench.native() {
        Some(native) => {
            let client: Arc<dyn ClientHandle> = client;
            tell_changes(workbench, native, &client, &filter.changes, &mut stream).await;
        }
        None => {
            let knows_apps = client.capabilities().has_extension(UI_EXTENSION);
            let mut apps = knows_apps.then(|| workbench.apps_changed());
            tell_own_changes(workbench, &filter.changes, &mut stream, &mut apps).await;
        }
    }
    Reply::Result(stream.ending())
}

/// Notifies of changes of our own tool list, which changes with the configuration, and for a client with MCP Apps with the
/// tools that have user interfaces. Our other lists never change.
async fn tell_own_changes(
    workbench: &Workbench,
    wanted: &Changes,
    stream: &mut Subscription,
    apps: &mut Option<watch::Receiver<u64>>,
) {
    let announced = Changes {
        tools: wanted.tools,
        ..Changes::default()
    };
    let mut definitions = workbench.definitions_changed();
    stream.acknowledge(&announced);
    loop {
        stream.catch_up(&announced);
        tokio::select! {
            () = workbench.announcing_stopped() => return,
            () = sleep(CATCH_UP_INTERVAL), if stream.missed => {}
            Ok(()) = definitions.changed(), if announced.tools => stream.tell(TOOLS_CHANGED, None),
            Ok(()) = changed(apps), if announced.tools => stream.tell(TOOLS_CHANGED, None),
        }
    }
}

/// Waits for the next change that a counter counts; without a counter there is none. Cancel-safe.
async fn changed(counter: &mut Option<watch::Receiver<u64>>) -> Result<(), RecvError> {
    match counter {
        Some(counter) => counter.changed().await.map_err(|_| RecvError::Closed),
        None => std::future::pending().await,
    }
}

/// Notifies of changes of the servers, until the workbench ends.
async fn tell_changes(
    workbench: &Workbench,
    native: &Native,
    client: &Arc<dyn ClientHandle>,
    wanted: &Changes,
    stream: &mut Subscription,
) {
    native::open_if_closed(workbench, native, client).await;
    // Changes count from here on. Opening the toolbox is not a change.
    let mut tools = workbench.tools_changed();
    let mut events = workbench.events();
    let watch = Watch::begin(native, wanted, client).await;
    // Not what the client wanted, but what the servers report.
    stream.acknowledge(&watch.changes);
    loop {
        stream.catch_up(&watch.changes);
        tokio::select! {
            () = workbench.announcing_stopped() => return,
            () = sleep(CATCH_UP_INTERVAL), if stream.missed => {}
            Ok(()) = tools.changed(), if watch.changes.tools => stream.tell(TOOLS_CHANGED, None),
            event = events.recv() => match event {
                Ok(event) => stream.tell_event(&watch, &event),
                Err(RecvError::Lagged(_)) => stream.tell_all(&watch.changes),
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// The changes that a client subscribes to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filter {
    changes: Changes,
    /// True if it also names tasks.
    names_tasks: bool,
}

impl Filter {
    fn read(params: Option<&RawJson>) -> Result<Self, String> {
        let wanted = params
            .and_then(|params| params.member("notifications"))
            .filter(|it| it.kind() == Kind::Object);
        let Some(wanted) = wanted else {
            return Err("notifications: Expected object".to_owned());
        };
        Ok(Self {
            changes: Changes {
                tools: flag(&wanted, TOOLS)?,
                prompts: flag(&wanted, PROMPTS)?,
                resources: flag(&wanted, RESOURCES)?,
                uris: texts(&wanted, URIS)?.unwrap_or_default(),
            },
            names_tasks: texts(&wanted, TASK_IDS)?.is_some(),
        })
    }
}

fn flag(wanted: &RawJson, name: &str) -> Result<bool, String> {
    match wanted.member(name) {
        None => Ok(false),
        Some(value) if value.kind() == Kind::Boolean => Ok(value.is_true()),
        Some(_) => Err(format!("notifications.{name}: Expected boolean")),
    }
}

fn texts(wanted: &RawJson, name: &str) -> Result<Option<Vec<String>>, String> {
    let Some(value) = wanted.member(name) else {
        return Ok(None);
    };
    let text = |it: &RawJson| Some(it.as_text()?.into_owned());
    let texts = value
        .elements()
        .and_then(|it| it.iter().map(text).collect::<Option<_>>());
    match texts {
        Some(texts) => Ok(Some(texts)),
        None => Err(format!("notifications.{name}: Expected array of strings")),
    }
}

/// Returns a filter with the changes that the client will receive.
fn filter_of(changes: &Changes) -> RawJson {
    let flags = [
        (TOOLS, changes.tools),
        (PROMPTS, changes.prompts),
        (RESOURCES, changes.resources),
    ];
    let announced = flags.into_iter().filter(|(_, announced)| *announced);
    let filter = announced.fold(ObjectText::new(), |text, (name, announced)| {
        text.member(name, &announced)
    });
    if changes.uris.is_empty() {
        filter.finish()
    } else {
        filter.member(URIS, &changes.uris).finish()
    }
}

/// The output to one subscription.
struct Subscription {
    id: RequestId,
    output: ClientOutput,
    /// True if the client was too slow and missed a notification.
    missed: bool,
    /// The operation, until the client gets the acknowledgement.
    observed: Option<OperationGuard>,
}

impl Subscription {
    /// Acknowledges the changes that the client will receive.
    fn acknowledge(&mut self, changes: &Changes) {
        let params = ObjectText::new()
            .raw("notifications", &filter_of(changes))
            .finish();
        self.output.send(self.tagged(ACKNOWLEDGED, Some(&params)));
        if let Some(observed) = self.observed.take() {
            let outcome = CallOutcome::Ok(params.as_bytes().len());
            observed.end(outcome, Some(OperationReply::Result(&params)));
        }
    }

    fn tell(&mut self, method: &str, params: Option<&RawJson>) {
        // Not queued: which lists have changed can be said in one go when the client has read.
        if self.output.is_full() {
            self.missed = true;
        } else {
            self.output.send(self.tagged(method, params));
        }
    }

    /// Sends the missed notifications once the client has read enough.
    fn catch_up(&mut self, changes: &Changes) {
        if self.missed && !self.output.is_full() {
            self.missed = false;
            if changes.tools {
                self.tell(TOOLS_CHANGED, None);
            }
            self.tell_all(changes);
        }
    }

    fn tell_event(&mut self, watch: &Watch, event: &ServerEvent) {
        if watch.concerns(event) {
            match &event.change {
                Change::Prompts => self.tell(PROMPTS_CHANGED, None),
                Change::Resources => self.tell(RESOURCES_CHANGED, None),
                Change::Resource(params) => self.tell(RESOURCE_UPDATED, Some(params)),
            }
        }
    }

    /// Reports all watched lists and resources as changed, because the missed changes are unknown. Changes of tools are
    /// never missed: they come through a different channel.
    fn tell_all(&mut self, changes: &Changes) {
        if changes.prompts {
            self.tell(PROMPTS_CHANGED, None);
        }
        if changes.resources {
            self.tell(RESOURCES_CHANGED, None);
        }
        for uri in &changes.uris {
            let params = ObjectText::new().member("uri", uri).finish();
            self.tell(RESOURCE_UPDATED, Some(&params));
        }
    }

    /// Returns the response to a subscription that has ended.
    fn ending(&self) -> RawJson {
        ObjectText::new()
            .member("resultType", "complete")
            .raw("_meta", &self.meta(None))
            .finish()
    }

    /// Returns a notification that names its request.
    fn tagged(&self, method: &str, params: Option<&RawJson>) -> Frame {
        let nothing = ObjectText::new().finish();
        let params = params.unwrap_or(&nothing);
        let meta = self.meta(params.member("_meta"));
        wire::notification(method, Some(&params.with_member("_meta", &meta)))
    }

    /// Adds the id of the request to a `_meta`.
    fn meta(&self, meta: Option<RawJson>) -> RawJson {
        let meta = meta
            .filter(|meta| meta.kind() == Kind::Object)
            .unwrap_or_else(|| ObjectText::new().finish());
        meta.with_member(SUBSCRIPTION_ID, &self.id.to_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::output::{PipeOutput, write_frames};

    fn subscription(output: ClientOutput) -> Subscription {
        Subscription {
            id: RequestId::from_json(RawJson::of(&7)).unwrap(),
            output,
            missed: false,
            observed: None,
        }
    }

    #[tokio::test]
    async fn missed_notifications_are_sent_when_a_slow_client_has_read() {
        let (output, frames) = PipeOutput::channel();
        let output = ClientOutput::Pipe(output);
        let mut listener = subscription(output.clone());
        let changes = Changes {
            tools: true,
            ..Changes::default()
        };
        let large = RawJson::of(&"x".repeat(65 * 1024 * 1024));
        output.send(wire::notification("large", Some(&large)));
        listener.tell(TOOLS_CHANGED, None);
        listener.catch_up(&changes);
        let mut written = Vec::new();
        let mut writer = Box::pin(write_frames(frames, &mut written));
        tokio::select! {
            biased;
            () = output.has_room() => {}
            _ = &mut writer => panic!("the client has gone"),
        }
        for _ in 0..2 {
            listener.catch_up(&changes);
        }
        drop((listener, output));
        writer.await.unwrap();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text.matches(TOOLS_CHANGED).count(), 1);
    }

    /// Returns the frames that are written to a client whose request has the id 7.
    async fn said(speak: impl FnOnce(&mut Subscription)) -> Vec<String> {
        let (output, frames) = PipeOutput::channel();
        let mut subscription = subscription(ClientOutput::Pipe(output));
        speak(&mut subscription);
        drop(subscription);
        let mut written = Vec::new();
        write_frames(frames, &mut written).await.unwrap();
        let text = String::from_utf8(written).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn after_a_gap_everything_subscribed_is_announced() {
        let changes = Changes {
            tools: true,
            resources: true,
            uris: vec!["u:1".to_owned()],
            ..Changes::default()
        };
        let tag = r#""_meta":{"io.modelcontextprotocol/subscriptionId":7}"#;
        assert_eq!(
            said(|subscription| subscription.tell_all(&changes)).await,
            [
                format!(r#"{{"jsonrpc":"2.0","method":"{RESOURCES_CHANGED}","params":{{{tag}}}}}"#),
                format!(
                    r#"{{"jsonrpc":"2.0","method":"{RESOURCE_UPDATED}","params":{{"uri":"u:1",{tag}}}}}"#
                ),
            ]
        );
    }

    #[tokio::test]
    async fn the_tag_of_a_server_is_replaced_and_the_rest_stays() {
        let params = r#"{"uri":"u:1","_meta":{"io.modelcontextprotocol/subscriptionId":"x","n":1e400},"z":1}"#;
        let params = RawJson::parse(&params.into()).unwrap();
        assert_eq!(
            said(|subscription| subscription.tell(RESOURCE_UPDATED, Some(&params))).await,
            [format!(
                r#"{{"jsonrpc":"2.0","method":"{RESOURCE_UPDATED}","params":{{"uri":"u:1","_meta":{{"io.modelcontextprotocol/subscriptionId":7,"n":1e400}},"z":1}}}}"#
            )]
        );
    }
}
