//! A short session with the real workbench, printed for the user.
//!
//! Every step checks the response that it shows, so a demo that succeeds also proves that the program works on this
//! machine.

use std::{path::Path, sync::Arc, time::Duration};

use ::demo::DemoServer;
use ident::{ServerName, ToolIdentifier, ToolName, ToolboxName};
use rawjson::RawJson;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::Instant;

use super::{
    config::{CLIENT_SERVER, CLIENT_TOOLBOX, TOOLBOX, client_configuration, client_snippet},
    page::{DemoStep, Page, Response, short_description},
    reading_cost::{ReadingCost, measure},
};
use crate::{
    call::{CallContext, CallReports},
    cli::{
        output,
        probe::{ShellClient, probe_servers, with_workbench},
        terminal::{Column, OutputStyle, Progress, Table, cut},
    },
    config::{Environment, parse},
    downstream::{ConnectError, ToolList},
    meta::{self, MetaTool},
    visible::visible,
    workbench::{CallReply, Mode, Select, ToolCall, ToolNames, Workbench},
};

/// The number of characters of an unexpected response that are shown.
const MAX_SHOWN_RESPONSE: usize = 300;

/// Reasons why the demo failed.
#[derive(Debug, Error)]
enum DemoError {
    #[error("cannot start the workbench of the demo")]
    Start(#[source] Arc<ConnectError>),
    /// The response is not what this step shows.
    #[error("step `{step}` expected {expected}, but the response was: {}", visible(.found))]
    Unexpected {
        step: &'static str,
        expected: String,
        /// The actual response, shortened.
        found: String,
    },
}

/// Starts `program serve --demo`, runs a session with it and prints the session.
pub(super) fn run(
    program: &str,
    environment: &Environment,
) -> Result<(), Box<dyn std::error::Error>> {
    let file = Path::new("(the client of the demo)");
    let mut config = parse(&client_configuration(program), file, environment)?.config;
    // The demo leaves no files behind.
    config.cache = None;
    config.lock = None;
    let progress = Progress::on_stderr(environment, "starting the workbench");
    let mut page = Page::new(OutputStyle::of_stdout(environment));
    output::data(&page.opening());
    let (reading, ended) = with_workbench(config, async |workbench| {
        let mut session = DemoSession {
            workbench,
            progress,
            page: &mut page,
        };
        // From here on it is the time of the shutdown.
        (session.run().await, Instant::now())
    })?;
    let reading = reading?;
    output::data(&page.step(&DemoStep {
        title: "Hang up",
        note: "The client closes the connection; the workbench stops its servers and exits.",
        sent: "end of input",
        received: Response::Text("exited"),
        took: Some(ended.elapsed()),
    }));
    output::data(&page.reading(&reading));
    output::data(&page.next_steps(&client_snippet(program)));
    Ok(())
}

/// Returns the calls that follow the opening of the toolbox.
fn uses() -> [ToolUse; 4] {
    [
        ToolUse {
            title: "Calculate",
            note: "A tool is named by three fields: toolbox, server, tool.",
            server: "calculator",
            tool: "evaluate",
            arguments: json!({ "expression": "(17 + 4) * 2^3 / 1.5" }),
            expected: Expected::Answer("\"value\":112"),
        },
        ToolUse {
            title: "Keep a note",
            note: "Another server of the same toolbox.",
            server: "notes",
            tool: "add",
            arguments: json!({ "text": "The answer was 112." }),
            expected: Expected::Answer("\"id\":1"),
        },
        ToolUse {
            title: "Read it back",
            note: "The server is still running, so the note is still there.",
            server: "notes",
            tool: "list",
            arguments: json!({}),
            expected: Expected::Answer("The answer was 112."),
        },
        ToolUse {
            title: "Misspell a tool",
            note: "Nothing is sent to the server; the error names the server that was searched.",
            server: "calculator",
            tool: "evalute",
            arguments: json!({ "expression": "1 + 1" }),
            expected: Expected::Error("Tool 'evalute' not found in server 'calculator'"),
        },
    ]
}

struct ToolUse {
    title: &'static str,
    note: &'static str,
    server: &'static str,
    tool: &'static str,
    arguments: Value,
    expected: Expected,
}

/// The text that a result must contain, as a success or as an error.
#[derive(Clone, Copy)]
enum Expected {
    Answer(&'static str),
    Error(&'static str),
}

impl Expected {
    /// Returns the response to show if the result is the expected one.
    fn check(self, result: &CallResult) -> Option<Response<'_>> {
        let CallResult { text, is_error, .. } = result;
        match self {
            Self::Answer(part) if !is_error && text.contains(part) => Some(Response::Text(text)),
            Self::Error(part) if *is_error && text.contains(part) => Some(Response::Error(text)),
            _ => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Answer(part) => format!("an answer with `{part}`"),
            Self::Error(part) => format!("an error with `{part}`"),
        }
    }
}

/// The result of a meta-tool.
struct CallResult {
    text: String,
    is_error: bool,
    took: Duration,
}

/// The session, between the start and the exit of the workbench that is shown.
struct DemoSession<'a> {
    /// The client's side.
    workbench: Arc<Workbench>,
    progress: Progress,
    page: &'a mut Page,
}

impl DemoSession<'_> {
    async fn run(&mut self) -> Result<ReadingCost, DemoError> {
        let tools = self.connect().await?;
        self.use_tool(&ToolUse {
            title: "Use a tool too early",
            note: "Nothing is running yet. The error tells the model its next step.",
            server: "calculator",
            tool: "evaluate",
            arguments: json!({ "expression": "6 * 7" }),
            expected: Expected::Error("Toolbox 'desk' is not open"),
        })
        .await?;
        let answer = self.open_toolbox().await?;
        for usage in uses() {
            self.use_tool(&usage).await?;
        }
        Ok(measure(&tools, &answer))
    }

    /// Connects and shows the instructions and the meta-tools.
    async fn connect(&mut self) -> Result<Arc<ToolList>, DemoError> {
        let mut probed = probe_servers(&self.workbench, None, &self.progress).await;
        let probed = probed.pop().expect("the configuration has a server");
        let tools = probed.tools.map_err(DemoError::Start)?;
        let introduction = &tools.introduction;
        let instructions = introduction.instructions.as_deref().unwrap_or_default();
        let summary = format!(
            "{}, protocol revision {}, with instructions for the model:",
            introduction.product.as_deref().unwrap_or_default(),
            introduction.revision
        );
        self.show(&DemoStep {
            title: "Connect",
            note: "The client introduces itself. The time includes the start of the workbench; \
                   none of its servers is started for this.",
            sent: "initialize",
            received: Response::Quote(&summary, instructions),
            took: Some(probed.took),
        });
        let mut table = Table::new([Column::Text(""), Column::Text("")]);
        for tool in tools.tools() {
            table.row(cells(&json_of(&tool.definition), &["name"]));
        }
        self.show(&DemoStep {
            title: "See the tools",
            note: "However many servers there are, these are all the tools a model is shown.",
            sent: "tools/list",
            received: Response::Tools(&format!("{} tools", tools.tools().len()), table),
            took: None,
        });
        // The calls below go through the client's own toolbox. Its only server is up, so this does not wait.
        let open = RawJson::of(&json!({ "toolbox": CLIENT_TOOLBOX }));
        let context = self.context();
        let opened = meta::run(MetaTool::OpenToolbox, &self.workbench, &open, &context);
        opened.await;
        Ok(tools)
    }

    /// Opens the toolbox; returns the text of the result.
    async fn open_toolbox(&mut self) -> Result<String, DemoError> {
        let title = "Open the toolbox";
        let arguments = json!({ "toolbox": TOOLBOX });
        let result = self.call("open_toolbox", &arguments).await;
        let toolbox: Value = serde_json::from_str(&result.text).unwrap_or_default();
        let tools = toolbox["tools"].as_array().map_or(&[][..], Vec::as_slice);
        if toolbox["servers_connected"] != DemoServer::ALL.len() || tools.is_empty() {
            return Err(unexpected(title, "three servers with tools", &result));
        }
        let columns = [Column::Text(""), Column::Text(""), Column::Text("")];
        let mut table = Table::new(columns);
        for tool in tools {
            table.row(cells(tool, &["server", "name"]));
        }
        let summary = format!(
            "{} servers started and connected, {} tools with their definitions:",
            toolbox["servers_connected"],
            tools.len()
        );
        self.show(&DemoStep {
            title,
            note: "Now all servers are started in parallel, and their tools are listed.",
            sent: &format!("open_toolbox {arguments}"),
            received: Response::Tools(&summary, table),
            took: Some(result.took),
        });
        Ok(result.text)
    }

    /// Calls a tool of the toolbox.
    async fn use_tool(&mut self, usage: &ToolUse) -> Result<(), DemoError> {
        let arguments = json!({
            "tool": { "toolbox": TOOLBOX, "server": usage.server, "tool": usage.tool },
            "arguments": usage.arguments
        });
        let result = self.call("use_tool", &arguments).await;
        let Some(received) = usage.expected.check(&result) else {
            return Err(unexpected(usage.title, &usage.expected.words(), &result));
        };
        self.show(&DemoStep {
            title: usage.title,
            note: usage.note,
            sent: &format!("use_tool {arguments}"),
            received,
            took: Some(result.took),
        });
        Ok(())
    }

    /// Calls a meta-tool of the workbench that is shown.
    async fn call(&self, tool: &str, arguments: &Value) -> CallResult {
        let tool = ToolIdentifier {
            toolbox: ToolboxName::from(CLIENT_TOOLBOX),
            server: ServerName::from(CLIENT_SERVER),
            tool: ToolName::from(tool),
        };
        let began = Instant::now();
        let call = self.workbench.start_call(ToolCall {
            mode: Mode::UseTool,
            names: ToolNames::from(&tool),
            arguments: RawJson::of(arguments),
            params: None,
            request: None,
            select: Select::Whole,
            context: self.context(),
        });
        let reply = call.run().await;
        let took = began.elapsed();
        let result = match reply {
            CallReply::Result(result) => result.to_json(),
            CallReply::Refused(error) => error,
            CallReply::Failed { tool, failure, .. } => meta::failed_call(tool, failure),
        };
        let result = json_of(&result);
        let text = result["content"][0]["text"].as_str();
        CallResult {
            text: text.map_or_else(|| result.to_string(), str::to_owned),
            is_error: result["isError"] == true,
            took,
        }
    }

    fn context(&self) -> CallContext {
        CallContext {
            client: Arc::new(ShellClient::caller(self.progress.clone(), false)),
            meta: None,
            retry: None,
            reports: CallReports::default(),
        }
    }

    fn show(&mut self, step: &DemoStep<'_>) {
        output::data(&self.page.step(step));
    }
}

fn json_of(json: &RawJson) -> Value {
    serde_json::from_str(json.as_str()).unwrap_or_default()
}

/// Returns a row of a table of tools: these members, and the start of the description.
fn cells(tool: &Value, members: &[&str]) -> Vec<String> {
    let text = |member: &str| tool[member].as_str().unwrap_or_default();
    let members = members.iter().map(|member| text(member).to_owned());
    members
        .chain([short_description(text("description"))])
        .collect()
}

fn unexpected(step: &'static str, expected: &str, result: &CallResult) -> DemoError {
    DemoError::Unexpected {
        step,
        expected: expected.to_owned(),
        found: cut(&result.text, MAX_SHOWN_RESPONSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_expected_result_passes() {
        let result = |text: &str, is_error| CallResult {
            text: text.to_owned(),
            is_error,
            took: Duration::ZERO,
        };
        for (expected, found, passes) in [
            (Expected::Answer("42"), result("is 42", false), true),
            (Expected::Answer("42"), result("is 42", true), false),
            (Expected::Answer("42"), result("is 43", false), false),
            (Expected::Error("no"), result("no tool", true), true),
            (Expected::Error("no"), result("no tool", false), false),
        ] {
            assert_eq!(expected.check(&found).is_some(), passes, "{}", found.text);
        }
        let error = unexpected("Calculate", "an answer", &result("it\u{1b}broke", true));
        assert_eq!(
            error.to_string(),
            "step `Calculate` expected an answer, but the response was: it⟦U+001B⟧broke"
        );
    }
}
