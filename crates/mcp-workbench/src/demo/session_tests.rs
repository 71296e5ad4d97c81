use std::io::{self, Cursor};
use std::sync::mpsc::SyncSender;

use pretty_assertions::assert_eq;

use super::*;
use crate::demo::servers;

/// A stand-in for the workbench's side of the connection: every line written to it is answered.
struct Stub {
    answers: SyncSender<io::Result<Vec<u8>>>,
    buffered: Vec<u8>,
    is_open: bool,
    spoils: Option<&'static str>,
}

impl Write for Stub {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffered.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let message: Value = serde_json::from_slice(&std::mem::take(&mut self.buffered)).unwrap();
        if message.get("id").is_some() {
            let result = self.result(&message);
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            self.answers
                .send(Ok(answer.to_string().into_bytes()))
                .unwrap();
        }
        Ok(())
    }
}

impl Stub {
    fn result(&mut self, message: &Value) -> Value {
        let params = &message["params"];
        let arguments = &params["arguments"];
        let kind = params["name"]
            .as_str()
            .unwrap_or(message["method"].as_str().unwrap());
        if self.spoils == Some(kind) {
            return json!({"content": [{"type": "text", "text": "spoilt"}]});
        }
        match kind {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "serverInfo": {"name": "mcp-workbench", "version": "1.2.3"},
                "instructions": "## Available Toolboxes"
            }),
            "tools/list" => json!({"tools": [
                {"name": "open_toolbox", "description": "Open it"},
                {"name": "use_tool", "description": "Use it"}
            ]}),
            "open_toolbox" => {
                self.is_open = true;
                text_result(&toolbox().to_string())
            }
            _ if !self.is_open => error_result("Error: Toolbox 'desk' is not open."),
            _ => match arguments["tool"]["tool"].as_str().unwrap() {
                "evaluate" => text_result(r#"{"value":112}"#),
                "add" => text_result(r#"{"id":1,"count":1}"#),
                "list" => text_result("The answer was 112."),
                _ => {
                    error_result("Tool 'evalute' not found in server 'calculator' (toolbox 'desk')")
                }
            },
        }
    }
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn error_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// Returns the result of `open_toolbox`, with the real definitions of the servers.
fn toolbox() -> Value {
    let mut tools = Vec::new();
    for server in DemoServer::ALL {
        let mut output = Vec::new();
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        servers::run(server, Cursor::new(list), &mut output).unwrap();
        let mut answer: Value = serde_json::from_slice(&output).unwrap();
        for tool in answer["result"]["tools"].as_array_mut().unwrap() {
            tool["server"] = json!(server.name());
            tool["toolbox"] = json!(TOOLBOX);
            tools.push(tool.take());
        }
    }
    json!({"toolbox": TOOLBOX, "servers_connected": 3, "tools": tools})
}

/// The session with the stub: how it ended, and what a person saw.
fn session(spoils: Option<&'static str>) -> (Result<ReadingCost, DemoError>, String) {
    let (answers, incoming) = mpsc::sync_channel(4);
    let stub = Stub {
        answers,
        buffered: Vec::new(),
        is_open: false,
        spoils,
    };
    let mut connection = Connection::new(stub, incoming, Duration::from_secs(5));
    let mut out = Vec::new();
    let outcome = converse(
        &mut connection,
        &mut Page::new(&mut out, Style { colour: false }),
    );
    (outcome, String::from_utf8(out).unwrap())
}

#[test]
fn the_session_shows_every_step_within_the_page() {
    let (outcome, shown) = session(None);
    let reading = outcome.unwrap();
    assert_eq!((reading.tools, reading.meta_tools), (8, 2));
    assert!(reading.at_start < reading.direct && reading.direct < reading.opened);
    for (number, title) in (1..).zip([
        "Connect",
        "See the tools",
        "Use a tool too early",
        "Open the toolbox",
        "Calculate",
        "Keep a note",
        "Read it back",
        "Misspell a tool",
    ]) {
        assert!(
            shown.contains(&format!("\n{number}. {title} ")),
            "{title}\n{shown}"
        );
    }
    assert!(shown.contains("| ## Available Toolboxes"), "{shown}");
    assert!(
        shown.contains("error   Error: Toolbox 'desk' is not open."),
        "{shown}"
    );
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn an_answer_that_is_not_what_a_step_shows_is_an_error() {
    for (spoils, expected) in [
        (
            "initialize",
            "step `Connect` expected instructions, but the response was: ",
        ),
        (
            "tools/list",
            "step `See the tools` expected the meta-tools, but the response was: ",
        ),
        (
            "use_tool",
            "step `Use a tool too early` expected an error with `is not open`, but the response was: ",
        ),
        (
            "open_toolbox",
            "step `Open the toolbox` expected three servers with tools, but the response was: ",
        ),
    ] {
        let error = session(Some(spoils)).0.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Runs the demonstration with some other program in the workbench's place.
#[cfg(unix)]
fn run_with(program: &str) -> (String, String) {
    let mut out = Vec::new();
    let error = run(Path::new(program), &mut out, Style { colour: false }).unwrap_err();
    (error.to_string(), String::from_utf8(out).unwrap())
}

#[cfg(unix)]
#[test]
fn a_program_that_is_not_a_workbench_fails_the_demo() {
    let (error, shown) = run_with("/no/such/program");
    assert_eq!(error, "cannot start `/no/such/program`");
    assert!(
        shown.contains("The demo stopped\n   cannot start `/no/such/program`: "),
        "{shown}"
    );

    // Both end at once; whether the first message can still be written is up to the system.
    let (error, _) = run_with("echo");
    let reasons = ["not JSON: `serve --demo`", "cannot send `initialize`"];
    assert!(
        reasons.iter().any(|reason| error.contains(reason)),
        "{error}"
    );
    let (_, shown) = run_with("ls");
    assert!(
        shown.contains("The last log lines of the workbench:\n   | "),
        "{shown}"
    );
}
