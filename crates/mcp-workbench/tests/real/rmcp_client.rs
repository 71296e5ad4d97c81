//! The client of rmcp, the official Rust SDK, in front of the workbench. It goes the way of the
//! scripts in `clients/` and sums up what it saw in the same form.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RoleClient, RunningService,
};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::clients::expected;
use crate::process::LIMIT;
use crate::workbench::ConfigFile;

#[tokio::test]
async fn rmcp_with_the_handshake() {
    check(ClientLifecycleMode::Initialize).await;
}

#[tokio::test]
async fn rmcp_that_probes_for_newer_revisions() {
    check(ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: None,
    })
    .await;
}

/// Hands the progress notifications on to the test.
struct Handler {
    progress: UnboundedSender<ProgressNotificationParam>,
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // Nobody listens any more once the test is over.
        let _ = self.progress.send(params);
    }
}

struct Client {
    service: RunningService<RoleClient, Handler>,
    progress: UnboundedReceiver<ProgressNotificationParam>,
}

async fn check(lifecycle: ClientLifecycleMode) {
    let config = ConfigFile::for_clients();
    let command = tokio::process::Command::from(config.command());
    let (sender, progress) = unbounded_channel();
    let session = async {
        // Its log would stand between the lines of the test runner.
        let (transport, _) = TokioChildProcess::builder(command)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let handler = Handler { progress: sender };
        let service = handler
            .serve_with_lifecycle(transport, lifecycle)
            .await
            .unwrap();
        let mut client = Client { service, progress };
        let seen = client.session().await;
        client.service.cancel().await.unwrap();
        seen
    };
    let seen = tokio::time::timeout(LIMIT, session)
        .await
        .expect("the session hangs");
    assert_eq!(seen, expected());
}

impl Client {
    async fn session(&mut self) -> Value {
        let greeting = self.service.peer_info().unwrap();
        let tools = self.service.list_all_tools().await.unwrap();
        let mut meta_tools: Vec<_> = tools.into_iter().map(|tool| tool.name).collect();
        meta_tools.retain(|name| ["open_toolbox", "use_tool"].contains(&name.as_ref()));

        let not_open = self
            .use_tool("echo", json!({ "message": "too early" }))
            .await;
        let unknown_toolbox = self.open("nowhere").await;
        let opened = self.open("dev").await;
        let echo = self.use_tool("echo", json!({ "message": "Grüße" })).await;
        let structured = self
            .use_tool("get-structured-content", json!({ "location": "New York" }))
            .await;
        let image = self.use_tool("get-tiny-image", json!({})).await;
        let image = image.content.iter().filter_map(ContentBlock::as_image);
        let image: Vec<_> = image.map(|image| image.mime_type.clone()).collect();
        let slow = self
            .use_tool(
                "trigger-long-running-operation",
                json!({ "duration": 0.4, "steps": 4 }),
            )
            .await;
        let unknown_tool = self.use_tool("frobnicate", json!({})).await;

        json!({
            "server": greeting.server_info.as_ref().map(|server| &server.name),
            "instructions": greeting.instructions,
            "meta_tools": meta_tools,
            "not_open": seen(&not_open),
            "unknown_toolbox": seen(&unknown_toolbox),
            "opened": seen_toolbox(&opened),
            "echo": seen(&echo),
            "structured": structured.structured_content,
            "image": image,
            "progress": self.seen_progress().await,
            "slow": seen(&slow),
            "unknown_tool": seen(&unknown_tool),
        })
    }

    async fn open(&self, toolbox: &str) -> CallToolResult {
        self.call("open_toolbox", &json!({ "toolbox": toolbox }))
            .await
    }

    async fn use_tool(&self, tool: &str, arguments: Value) -> CallToolResult {
        let identifier = json!({ "toolbox": "dev", "server": "everything", "tool": tool });
        self.call(
            "use_tool",
            &json!({ "tool": identifier, "arguments": arguments }),
        )
        .await
    }

    async fn call(&self, meta_tool: &'static str, arguments: &Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let params = CallToolRequestParams::new(meta_tool).with_arguments(arguments);
        self.service.call_tool(params).await.unwrap()
    }

    /// The progress of the one slow call. rmcp runs the handler of each notification as a task of
    /// its own, so they may come after the answer and in any order.
    async fn seen_progress(&mut self) -> Value {
        let mut seen = Vec::new();
        for _ in 1..=4 {
            let it = self.progress.recv().await.unwrap();
            seen.push((it.progress, it.total.unwrap()));
        }
        seen.sort_by(|left, right| left.0.total_cmp(&right.0));
        // The last one is left out, as `typescript.mjs` explains.
        assert_eq!(seen.pop(), Some((4.0, 4.0)));
        seen.into_iter()
            .map(|(done, total)| format!("{done}/{total}"))
            .collect()
    }
}

fn seen(result: &CallToolResult) -> Value {
    let text = result
        .content
        .iter()
        .map(|block| block.as_text().map(|text| text.text.clone()));
    json!({ "is_error": result.is_error.unwrap_or(false), "text": text.collect::<Vec<_>>() })
}

fn seen_toolbox(result: &CallToolResult) -> Value {
    let text = &result.content[0].as_text().unwrap().text;
    let opened: Value = serde_json::from_str(text).unwrap();
    let tools = opened["tools"].as_array().unwrap().iter();
    let echo = tools.filter(|tool| tool["name"] == "echo").map(|tool| {
        json!({ "title": tool["title"], "server": tool["server"], "toolbox": tool["toolbox"] })
    });
    json!({
        "toolbox": opened["toolbox"],
        "description": opened["description"],
        "servers_connected": opened["servers_connected"],
        "echo": echo.collect::<Vec<_>>(),
    })
}
