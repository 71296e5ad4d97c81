//! The server itself: what it announces, what it keeps for one session, and who answers which request.

#![expect(
    deprecated,
    reason = "2025-11-25 has log levels and subscriptions; rmcp marks what 2026-07-28 dropped"
)]

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Mutex, MutexGuard},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
        UnsubscribeRequestParams,
    },
    service::RequestContext,
};

use crate::{completions, http::Streams, prompts, resources, tools};

/// The newest revision whose scenarios the fixture can answer. Those of 2026-07-28 call further tools.
const NEWEST_REVISION: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// The server of one session.
pub(crate) struct Fixture {
    /// The least level of the log messages that the client wants.
    log_level: Mutex<LoggingLevel>,
    /// The resources that the client wants to hear of.
    subscriptions: Mutex<BTreeSet<String>>,
    /// The response streams, over HTTP.
    streams: Option<Streams>,
}

impl Fixture {
    /// A fixture whose client is on stdin and stdout.
    pub(crate) fn over_stdio() -> Self {
        Self::new(None)
    }

    /// A fixture for one session over HTTP.
    pub(crate) fn over_http(streams: Streams) -> Self {
        Self::new(Some(streams))
    }

    fn new(streams: Option<Streams>) -> Self {
        Self {
            log_level: Mutex::new(LoggingLevel::Info),
            subscriptions: Mutex::default(),
            streams,
        }
    }

    /// Whether the client wants log messages of this level.
    pub(crate) fn wants_log(&self, level: LoggingLevel) -> bool {
        level as u8 >= *locked(&self.log_level) as u8
    }

    /// Whether the client has subscribed to the resource.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        locked(&self.subscriptions).contains(uri)
    }

    /// The response streams, over HTTP.
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
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
        ))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST_REVISION))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(tools::list())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let result = tools::call(self, &request, &context).await?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(prompts::get(&request.name, &arguments)?.into())
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
