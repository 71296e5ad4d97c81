//! Traces and metrics at a published OTLP receiver.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use serde_json::json;

use crate::packages::{self, Entry};
use crate::process::LIMIT;
use crate::session::Session;
use crate::workbench::{ConfigFile, TOOLBOX, use_tool};

/// Rotel, a collector for OpenTelemetry that prints what it receives.
struct Collector {
    child: Child,
    lines: Receiver<String>,
    seen: String,
    endpoint: String,
}

impl Collector {
    fn start() -> Self {
        let free = || {
            TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let (http, grpc) = (free(), free());
        let mut child = Command::new(packages::collector())
            .args([
                "start",
                "--exporter",
                "blackhole",
                "--debug-log-verbosity",
                "detailed",
            ])
            .args(["--debug-log", "traces", "--debug-log", "metrics"])
            .args(["--otlp-http-endpoint", &http.to_string()])
            .args(["--otlp-grpc-endpoint", &grpc.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let endpoint = format!("http://{http}");
        // It listens a moment after its start.
        let began = Instant::now();
        while std::net::TcpStream::connect(http).is_err() {
            assert!(began.elapsed() < LIMIT, "the collector does not listen");
            std::thread::yield_now();
        }
        Self {
            child,
            lines,
            seen: String::new(),
            endpoint,
        }
    }

    /// Waits until the collector has printed all of these texts.
    fn wait_for(&mut self, texts: &[String]) {
        while !texts.iter().all(|text| self.seen.contains(text.as_str())) {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => self.seen.push_str(&format!("{line}\n")),
                Err(_) => {
                    let missing: Vec<_> = texts
                        .iter()
                        .filter(|it| !self.seen.contains(it.as_str()))
                        .collect();
                    panic!("the collector did not get {missing:?}:\n{}", self.seen);
                }
            }
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

#[test]
fn a_collector_gets_the_spans_and_metrics_of_a_call() {
    let mut collector = Collector::start();
    let config = ConfigFile::new(&json!({
        "audit": true,
        "metaTools": ["open_toolbox", "use_tool", "run_code"],
        "toolboxes": { TOOLBOX: {
            "description": "d", "mcpServers": { "everything": Entry::everything().config() },
        } },
    }));
    let mut command = config.command();
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "200")
        .env("OTEL_SERVICE_NAME", "tested-workbench");
    let mut session = Session::start(command);
    session.call("open_toolbox", &json!({ "toolbox": TOOLBOX }));
    let mut params = json!({
        "name": "use_tool",
        "arguments": use_tool("everything", "echo", &json!({ "message": "hi" })),
    });
    params["_meta"] = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-01") });
    let answer = session.request("tools/call", &params).value();
    assert_eq!(answer["content"][0]["text"], "Echo: hi");
    // A call of a script has the id of its run.
    let code = "return await tools.everything.echo({ message: 'hi' })";
    session.call("run_code", &json!({ "code": code }));
    let wanted = [
        "mcp_workbench.run",
        "tools/call echo",
        TRACE,
        PARENT,
        "tested-workbench",
        "gen_ai.tool.name",
        "mcp.method.name",
        "mcp.protocol.version",
        "jsonrpc.request.id",
        "network.transport",
        "mcp_workbench.server",
        "mcp.server.operation.duration",
        "mcp.client.operation.duration",
    ];
    collector.wait_for(&wanted.map(str::to_owned));
    // Sessions are measured when they end, and the last metrics are exported at the shutdown.
    session.finish();
    let sessions = ["mcp.server.session.duration", "mcp.client.session.duration"];
    collector.wait_for(&sessions.map(str::to_owned));
    let log = std::fs::read_to_string(config.state().join("mcp-workbench/audit.jsonl")).unwrap();
    assert!(log.contains(&format!("\"trace_id\":\"{TRACE}\"")), "{log}");
}
