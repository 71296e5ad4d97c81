//! The server itself: its capabilities, the state of a session, and the dispatch of requests.

#![expect(
    deprecated,
    reason = "2025-11-25 has log levels and subscriptions; rmcp marks what 2026-07-28 dropped"
)]

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
        CompleteResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, LoggingLevel, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
    task_manager::TaskManager,
};

use crate::{
    changes::{self, Changes},
    completions,
    era::Era,
    http::Streams,
    interview::Seals,
    prompts, resources, tools,
};

/// The state that all sessions of the process share. Without sessions nothing else outlives a request.
pub(crate) struct Process {
    era: Era,
    changes: Changes,
    seals: Seals,
    tasks: TaskManager,
}

impl Process {
    /// The beginning of a process that speaks this era.
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            changes: Changes::default(),
            seals: Seals::default(),
            tasks: TaskManager::new(),
        }
    }
}

/// The server of one session, or of one request if there are no sessions.
pub(crate) struct Fixture {
    /// The state that it shares with the others.
    process: Arc<Process>,
    /// The least level of the log messages that the client wants.
    log_level: Mutex<LoggingLevel>,
    /// The resources that the client wants to hear of.
    subscriptions: Mutex<BTreeSet<String>>,
    /// The response streams, over HTTP.
    streams: Option<Streams>,
}

impl Fixture {
    /// Creates a fixture for a client on stdin and stdout.
    pub(crate) fn over_stdio(process: Arc<Process>) -> Self {
        Self::new(process, None)
    }

    /// Creates a fixture for one session, or one request, over HTTP.
    pub(crate) fn over_http(process: Arc<Process>, streams: Streams) -> Self {
        Self::new(process, Some(streams))
    }

    fn new(process: Arc<Process>, streams: Option<Streams>) -> Self {
        Self {
            process,
            log_level: Mutex::new(LoggingLevel::Info),
            subscriptions: Mutex::default(),
            streams,
        }
    }

    /// The least level of the log messages that the client of the session wants.
    pub(crate) fn log_level(&self) -> LoggingLevel {
        *locked(&self.log_level)
    }

    /// Returns the changes of the process.
    pub(crate) fn changes(&self) -> &Changes {
        &self.process.changes
    }

    /// The seals of states that clients bring back.
    pub(crate) fn seals(&self) -> &Seals {
        &self.process.seals
    }

    /// The tasks of the process.
    pub(crate) fn tasks(&self) -> &TaskManager {
        &self.process.tasks
    }

    /// Returns true if the client has subscribed to the resource.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        locked(&self.subscriptions).contains(uri)
    }

    /// Returns the response streams, over HTTP.
    pub(crate) fn streams(&self) -> Option<&Streams> {
        self.streams.as_ref()
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed();
        let capabilities = match self.process.era {
            Era::Legacy => capabilities.build(),
            Era::Modern | Era::Both => capabilities.enable_tasks().build(),
        };
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
        ))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.process.era.versions()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list(self)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, &request, &context).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list(self).into_iter().find(|tool| tool.name == name)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list(self))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(self, &request, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(resources::list())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::list_templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::read(&request.uri)?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri)?;
        locked(&self.subscriptions).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        locked(&self.subscriptions).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(changes::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes().tell(&context).await;
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.tasks().get_task(&request.task_id)?;
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks()
            .update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks().cancel_task(&request.task_id)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        completions::complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *locked(&self.log_level) = request.level;
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds a lock")
}
