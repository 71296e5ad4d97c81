//! A short session with the real workbench, printed for the user.
//!
//! This file has the steps; `process` starts the workbench, `connection` talks to it, `render` prints it. Every
//! step checks the response that it shows, so a demo that succeeds also proves that the program works on this
//! machine.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::config::{TOOLBOX, client_snippet};
use super::connection::{Connection, DemoError};
use super::process::{LogSender, Workbench};
use super::reading_cost::{ReadingCost, measure};
use super::render::{Page, Response, Step, Style};
use super::servers::DemoServer;
use super::text::shorten;

const REVISION: &str = "2025-11-25";
/// The number of characters of an unexpected response that are shown.
const MAX_SHOWN_RESPONSE: usize = 300;
/// Time limit for the log of a failed workbench, which has exited by then.
const LOG_DEADLINE: Duration = Duration::from_secs(4);

/// Starts `program serve --demo`, runs a session with it and prints it to `out`.
///
/// It never hangs: every wait has a deadline. On failure, `out` gets the error and the last log lines of the
/// workbench, and the error is returned.
pub(crate) fn run(program: &Path, out: &mut impl Write, style: Style) -> Result<(), DemoError> {
    let mut page = Page::new(out, style);
    let (log_sender, log) = mpsc::channel();
    let outcome = play(program, log_sender, &mut page);
    if let Err(error) = &outcome {
        let log = log.recv_timeout(LOG_DEADLINE).unwrap_or_default();
        // The log arrives once the workbench has exited, which it has by now.
        page.failure(&chain(error), &log)?;
    }
    outcome
}

fn play<W: Write>(program: &Path, log: LogSender, page: &mut Page<'_, W>) -> Result<(), DemoError> {
    page.opening()?;
    let mut workbench = Workbench::start(program, log)?;
    let reading = converse(&mut workbench.connection, page)?;
    let took = workbench.close()?;
    page.step(&Step {
        title: "Hang up",
        note: "The client closes the connection; the workbench stops its servers and exits.",
        sent: "end of input",
        received: Response::Text("exited with code 0"),
        took,
    })?;
    page.reading(TOOLBOX, &reading)?;
    page.next_steps(&client_snippet(&program.to_string_lossy()))?;
    Ok(())
}

/// Runs the session between the start and the exit of the workbench.
fn converse<C: Write, W: Write>(
    connection: &mut Connection<C>,
    page: &mut Page<'_, W>,
) -> Result<ReadingCost, DemoError> {
    let mut conversation = Conversation { connection, page };
    let instructions = conversation.connect()?;
    let meta_tools = conversation.list_tools()?;
    conversation.use_tool(&ToolUse {
        title: "Use a tool too early",
        note: "Nothing is running yet. The error tells the model its next step.",
        server: "calculator",
        tool: "evaluate",
        arguments: json!({"expression": "6 * 7"}),
        expected: ExpectedResult::Error("is not open"),
    })?;
    let (answer, toolbox) = conversation.open_toolbox()?;
    for usage in uses() {
        conversation.use_tool(&usage)?;
    }
    Ok(measure(&instructions, &meta_tools, &answer, &toolbox))
}

/// Returns the calls that follow the opening of the toolbox.
fn uses() -> [ToolUse; 4] {
    [
        ToolUse {
            title: "Calculate",
            note: "A tool is named by three fields: toolbox, server, tool.",
            server: "calculator",
            tool: "evaluate",
            arguments: json!({"expression": "(17 + 4) * 2^3 / 1.5"}),
            expected: ExpectedResult::Answer("\"value\":112"),
        },
        ToolUse {
            title: "Keep a note",
            note: "Another server of the same toolbox.",
            server: "notes",
            tool: "add",
            arguments: json!({"text": "The answer was 112."}),
            expected: ExpectedResult::Answer("\"id\":1"),
        },
        ToolUse {
            title: "Read it back",
            note: "The server is still running, so the note is still there.",
            server: "notes",
            tool: "list",
            arguments: json!({}),
            expected: ExpectedResult::Answer("The answer was 112."),
        },
        ToolUse {
            title: "Misspell a tool",
            note: "Nothing is sent to the server; the error names the server that was searched.",
            server: "calculator",
            tool: "evalute",
            arguments: json!({"expression": "1 + 1"}),
            expected: ExpectedResult::Error("Tool 'evalute' not found in server 'calculator'"),
        },
    ]
}

/// One call of `use_tool`.
struct ToolUse {
    title: &'static str,
    note: &'static str,
    server: &'static str,
    tool: &'static str,
    arguments: Value,
    expected: ExpectedResult,
}

/// The text that a result must contain, as a success or as an error.
#[derive(Clone, Copy)]
enum ExpectedResult {
    Answer(&'static str),
    Error(&'static str),
}

struct Conversation<'a, 'p, C, W> {
    connection: &'a mut Connection<C>,
    page: &'a mut Page<'p, W>,
}

impl<C: Write, W: Write> Conversation<'_, '_, C, W> {
    /// Initializes the connection; returns the instructions.
    fn connect(&mut self) -> Result<String, DemoError> {
        let title = "Connect";
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": { "name": "mcp-workbench-demo", "version": env!("CARGO_PKG_VERSION") }
        });
        let exchange = self.connection.request("initialize", &params)?;
        self.connection.notify("notifications/initialized")?;
        let result = &exchange.result;
        let Some(instructions) = result["instructions"].as_str() else {
            return Err(unexpected(title, "instructions", result));
        };
        let server = &result["serverInfo"];
        let summary = format!(
            "{} {}, protocol revision {}, with instructions for the model:",
            plain(&server["name"]),
            plain(&server["version"]),
            plain(&result["protocolVersion"])
        );
        self.page.step(&Step {
            title,
            note: "The client introduces itself. The time includes the start of the workbench; \
                   none of its servers is started for this.",
            sent: &format!("initialize {params}"),
            received: Response::Quote(summary, instructions),
            took: exchange.took,
        })?;
        Ok(instructions.to_owned())
    }

    /// Lists the meta-tools; returns their definitions.
    fn list_tools(&mut self) -> Result<Vec<Value>, DemoError> {
        let title = "See the tools";
        let exchange = self.connection.request("tools/list", &json!({}))?;
        let tools = exchange.result["tools"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        if !has("open_toolbox") || !has("use_tool") {
            return Err(unexpected(title, "the meta-tools", &exchange.result));
        }
        let rows = tools
            .iter()
            .map(|tool| row(tool, &["name", "description"]))
            .collect();
        self.page.step(&Step {
            title,
            note: "However many servers there are, these are all the tools a model is shown.",
            sent: "tools/list",
            received: Response::Table(format!("{} tools", tools.len()), rows),
            took: exchange.took,
        })?;
        Ok(tools)
    }

    /// Opens the toolbox; returns the result as text and as JSON.
    fn open_toolbox(&mut self) -> Result<(String, Value), DemoError> {
        let title = "Open the toolbox";
        let arguments = json!({ "toolbox": TOOLBOX });
        let params = json!({ "name": "open_toolbox", "arguments": arguments });
        let exchange = self.connection.request("tools/call", &params)?;
        let text = result_text(&exchange.result);
        let toolbox: Value = serde_json::from_str(text).unwrap_or_default();
        let tools = toolbox["tools"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if toolbox["servers_connected"] != DemoServer::ALL.len() || tools.is_empty() {
            return Err(unexpected(
                title,
                "three servers with tools",
                &exchange.result,
            ));
        }
        let rows = tools
            .iter()
            .map(|tool| row(tool, &["server", "name", "description"]));
        let summary = format!(
            "{} servers started and connected, {} tools with their definitions:",
            toolbox["servers_connected"],
            tools.len()
        );
        self.page.step(&Step {
            title,
            note: "Now all servers are started in parallel, and their tools are listed.",
            sent: &format!("open_toolbox {arguments}"),
            received: Response::Table(summary, rows.collect()),
            took: exchange.took,
        })?;
        Ok((text.to_owned(), toolbox))
    }

    /// Calls a tool of the toolbox.
    fn use_tool(&mut self, usage: &ToolUse) -> Result<(), DemoError> {
        let arguments = json!({
            "tool": { "toolbox": TOOLBOX, "server": usage.server, "tool": usage.tool },
            "arguments": usage.arguments
        });
        let params = json!({ "name": "use_tool", "arguments": arguments });
        let exchange = self.connection.request("tools/call", &params)?;
        let text = result_text(&exchange.result);
        let is_error = exchange.result["isError"] == true;
        let received = match usage.expected {
            ExpectedResult::Answer(part) if !is_error && text.contains(part) => {
                Response::Text(text)
            }
            ExpectedResult::Error(part) if is_error && text.contains(part) => Response::Error(text),
            ExpectedResult::Answer(part) => {
                let expected = format!("an answer with `{part}`");
                return Err(unexpected(usage.title, expected, &exchange.result));
            }
            ExpectedResult::Error(part) => {
                let expected = format!("an error with `{part}`");
                return Err(unexpected(usage.title, expected, &exchange.result));
            }
        };
        self.page.step(&Step {
            title: usage.title,
            note: usage.note,
            sent: &format!("use_tool {arguments}"),
            received,
            took: exchange.took,
        })?;
        Ok(())
    }
}

/// Returns the first text of a call's result.
fn result_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn row(tool: &Value, members: &[&str]) -> Vec<String> {
    members
        .iter()
        .map(|member| plain(&tool[*member]).to_owned())
        .collect()
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn unexpected(step: &'static str, expected: impl Into<String>, result: &Value) -> DemoError {
    DemoError::Unexpected {
        step,
        expected: expected.into(),
        found: shorten(&result.to_string(), MAX_SHOWN_RESPONSE),
    }
}

/// Formats an error with its causes, on one line.
fn chain(error: &DemoError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
