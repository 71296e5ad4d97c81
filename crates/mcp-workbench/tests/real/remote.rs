//! The everything server over HTTP, in its two modes, behind the workbench: what comes through is what the
//! same server says over stdio.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::packages::Entry;
use crate::process::LIMIT;
use crate::session::Session;
use crate::workbench::{Workbench, use_tool};

/// A server that listens on a port of this machine; it ends with the value.
struct Listening {
    mode: &'static str,
    port: u16,
    child: Child,
}

impl Listening {
    fn start(mode: &'static str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        Self {
            mode,
            port,
            child: listen(mode, port),
        }
    }

    /// Ends the process and starts another on the same port, which knows nothing of the first.
    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = listen(self.mode, self.port);
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the server and waits until it takes connections.
fn listen(mode: &str, port: u16) -> Child {
    let mut command = Entry::everything().command();
    command
        .arg(mode)
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let end = Instant::now() + LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "{mode} does not listen");
        thread::park_timeout(Duration::from_millis(20));
    }
    child
}

/// Uses the server through a workbench with this entry and compares with the same server over stdio.
fn compare(entry: Value) -> Workbench {
    let mut workbench = Workbench::start(&[("everything", entry)]);
    let mut direct = Session::start(Entry::everything().command());
    let opened = workbench.open();
    assert_eq!(opened.servers_connected, 1);
    assert!(opened.tools.len() > 5);
    for (tool, arguments) in [
        ("echo", json!({ "message": "Grüße, \u{1f44b}\n" })),
        ("get-sum", json!({ "a": 2, "b": 40 })),
        ("get-tiny-image", json!({})),
        ("get-structured-content", json!({ "location": "New York" })),
        ("get-annotated-message", json!({ "messageType": "error" })),
        ("get-sum", json!({ "a": "two" })),
    ] {
        let through = workbench.use_tool("everything", tool, &arguments);
        let alone = direct.call(tool, &arguments);
        assert_eq!(through.result.get(), alone.result.get(), "{tool}");
    }
    direct.finish();
    workbench
}

/// Calls a tool that takes a while and returns the progress that it reported.
fn progress(workbench: &mut Workbench) -> Vec<Value> {
    let arguments = json!({ "duration": 0.2, "steps": 4 });
    let arguments = use_tool("everything", "trigger-long-running-operation", &arguments);
    let meta = json!({ "progressToken": "mine" });
    let params = json!({ "name": "use_tool", "arguments": arguments, "_meta": meta });
    let answer = workbench.session.request("tools/call", &params);
    let reports = answer.notifications.into_iter();
    let reports = reports.filter(|it| it["method"] == "notifications/progress");
    reports.map(|it| it["params"]["progress"].clone()).collect()
}

#[test]
fn everything_server_over_streamable_http() {
    let mut server = Listening::start("streamableHttp");
    let mut workbench = compare(json!({ "type": "http", "url": server.url("/mcp") }));
    assert_eq!(progress(&mut workbench), [1, 2, 3, 4]);

    // Another process on the same port does not know the session; the caller does not notice.
    server.restart();
    let echo = workbench.use_tool("everything", "echo", &json!({ "message": "again" }));
    assert_eq!(echo.value()["content"][0]["text"], "Echo: again");
    workbench.session.finish();
}

#[test]
fn everything_server_over_sse_by_its_entry_and_by_falling_back() {
    let server = Listening::start("sse");
    for kind in ["sse", "http"] {
        let mut workbench = compare(json!({ "type": kind, "url": server.url("/sse") }));
        assert_eq!(progress(&mut workbench), [1, 2, 3, 4], "{kind}");
        workbench.session.finish();
    }
}
