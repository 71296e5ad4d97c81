//! The limits of a client hold in every mode, over every transport and in both eras.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{setup, tokens};
use crate::harness::{
    Message, ModernClient, ModernRequest, Served, Setup, ToolResult, Workbench, call_params,
    initialize_params, request_text, use_arguments,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Proxy,
    Dynamic,
    Native,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Host,
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// The client `reviewer`, over some transport.
enum Connected {
    Pipe(Box<Workbench>),
    Http {
        served: Box<Served>,
        session: Option<String>,
    },
}

struct Reviewer {
    era: Era,
    connected: Connected,
}

impl Reviewer {
    fn connect(mode: Mode, transport: Transport, era: Era) -> Self {
        let setup = with_mode(setup(), mode).top(
            "metaTools",
            json!([
                "open_toolbox",
                "use_tool",
                "search_tools",
                "read_result",
                "run_code"
            ]),
        );
        let connected = match transport {
            Transport::Stdio => pipe(setup),
            Transport::Host => {
                let runtime = setup.path("run");
                std::fs::create_dir(&runtime).unwrap();
                let setup = setup.env("XDG_RUNTIME_DIR", runtime.to_str().unwrap());
                pipe(setup.top("shared", json!(true)))
            }
            Transport::Http => Connected::Http {
                served: Box::new(tokens::serve(setup)),
                session: None,
            },
        };
        let mut reviewer = Self { era, connected };
        if era == Era::Legacy {
            reviewer.initialize();
        }
        reviewer
    }

    fn initialize(&mut self) {
        match &mut self.connected {
            Connected::Pipe(workbench) => {
                workbench.initialize();
            }
            Connected::Http { served, session } => {
                let body = request_text("0", "initialize", &initialize_params("2025-11-25"));
                let post = tokens::as_reviewer(served.post(&body));
                let response = served.connection().ask(&post);
                *session = response.head.header("mcp-session-id").map(str::to_owned);
                assert!(session.is_some(), "{}", response.body);
            }
        }
    }

    fn ask(&mut self, modern: &ModernRequest, params: &str) -> Message {
        match (&mut self.connected, self.era) {
            (Connected::Pipe(workbench), Era::Legacy) => workbench.ask(&modern.method, params),
            (Connected::Pipe(workbench), Era::Modern) => workbench.ask_modern(modern),
            (Connected::Http { served, session }, Era::Legacy) => {
                let post = served.post(&request_text("1", &modern.method, params));
                let session = session.as_deref().unwrap();
                let post = tokens::as_reviewer(post).header("mcp-session-id", session);
                tokens::answer(&served.connection().ask(&post))
            }
            (Connected::Http { served, .. }, Era::Modern) => {
                let post = tokens::as_reviewer(served.modern_post("1", modern));
                tokens::answer(&served.connection().ask(&post))
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &str) -> ToolResult {
        let modern = ModernRequest::call(tool, arguments);
        ToolResult::of(&self.ask(&modern, &call_params(tool, arguments)))
    }

    fn use_tool(&mut self, tool: [&str; 3]) -> ToolResult {
        self.call("use_tool", &use_arguments(tool, Some("{}")))
    }

    fn list(&mut self) -> Value {
        let list = self.ask(&ModernRequest::new("tools/list"), "{}").result();
        assert!(!list.to_string().contains("ops"), "{list}");
        list
    }
}

impl Drop for Reviewer {
    /// A host continues without its client.
    fn drop(&mut self) {
        if let Connected::Pipe(workbench) = &self.connected {
            let setup = &workbench.setup;
            let mut stop = setup.command();
            let _stopped = stop
                .arg("--config")
                .arg(setup.config())
                .arg("stop")
                .output();
        }
    }
}

fn pipe(setup: Setup) -> Connected {
    setup.write_config();
    let config = setup.config();
    let workbench = setup.start_with(&["--config", config.to_str().unwrap(), "--as", "reviewer"]);
    Connected::Pipe(Box::new(workbench))
}

fn with_mode(setup: Setup, mode: Mode) -> Setup {
    match mode {
        Mode::Proxy => setup,
        Mode::Dynamic => setup.top("toolMode", json!("dynamic")),
        Mode::Native => setup
            .top("toolMode", json!("native"))
            .top("nativeToolbox", json!("dev")),
    }
}

const NOT_FOUND: &str = "Error: Toolbox 'ops' not found. Available toolboxes: dev";

/// Checks the meta-tools of proxy and dynamic mode.
fn check_meta_tools(reviewer: &mut Reviewer) {
    let ops = json!({ "toolbox": "ops" }).to_string();
    assert_eq!(reviewer.call("open_toolbox", &ops).error(), NOT_FOUND);
    assert_eq!(reviewer.use_tool(["ops", "db", "read"]).error(), NOT_FOUND);
    let dev = json!({ "toolbox": "dev" }).to_string();
    assert_eq!(reviewer.call("open_toolbox", &dev).tool_names(), ["read"]);
    let found = reviewer.call(
        "search_tools",
        &json!({ "query": "read write" }).to_string(),
    );
    let found = found.text();
    assert!(found.contains("dev fs read"), "{found}");
    assert!(
        !found.contains("write") && !found.contains("ops"),
        "{found}"
    );
    let denied = reviewer.use_tool(["dev", "fs", "write"]);
    assert_eq!(denied.failure()["code"], "permission_denied");
    let cut = reviewer.use_tool(["dev", "fs", "read"]);
    assert!(cut.raw.contains("[Cut by mcp-workbench"), "{}", cut.raw);
    let code = "const seen = [];
        for (const server of ['fs', 'db']) {
          try { await tools[server].write({}); seen.push('ran') } catch (e) { seen.push(e.code ?? 'none') }
        }
        return seen";
    let ran = reviewer.call("run_code", &json!({ "code": code }).to_string());
    assert!(ran.raw.contains("permission_denied"), "{}", ran.raw);
    assert!(!ran.raw.contains("ran"), "{}", ran.raw);
}

/// Checks names that a client calls by themselves.
fn check_names(reviewer: &mut Reviewer, mode: Mode) {
    let (read, write) = match mode {
        Mode::Native => ("read", "write"),
        Mode::Dynamic => ("dev__fs__read", "dev__fs__write"),
        Mode::Proxy => return,
    };
    let denied = reviewer.call(write, "{}");
    assert_eq!(denied.failure()["code"], "permission_denied");
    let result = reviewer.call(read, "{}");
    // Native mode has no budget.
    let is_cut = result.raw.contains("[Cut by mcp-workbench");
    assert_eq!(is_cut, mode == Mode::Dynamic, "{}", result.raw);
    if mode == Mode::Dynamic {
        assert!(reviewer.call("ops__db__read", "{}").failed());
    }
}

#[test]
fn the_limits_of_a_client_hold_everywhere() {
    for mode in [Mode::Proxy, Mode::Dynamic, Mode::Native] {
        for transport in [Transport::Stdio, Transport::Host, Transport::Http] {
            for era in [Era::Legacy, Era::Modern] {
                let mut reviewer = Reviewer::connect(mode, transport, era);
                let list = reviewer.list();
                if mode == Mode::Native {
                    let names = list["tools"].as_array().unwrap().iter();
                    let names: Vec<&Value> = names.map(|tool| &tool["name"]).collect();
                    assert_eq!(names, ["read"], "{transport:?} {era:?}");
                } else {
                    check_meta_tools(&mut reviewer);
                }
                check_names(&mut reviewer, mode);
            }
        }
    }
}
