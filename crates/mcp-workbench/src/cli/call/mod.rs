//! `call`: calls one tool from the shell, as `use_tool` does. Only its server is started.

mod arguments;
#[cfg(unix)]
mod hosted;
mod result;
mod save;

use std::{
    fmt,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use ident::{ServerName, ToolIdentifier, ToolName, ToolboxName};
use rawjson::RawJson;
use serde_json::{Value, json};
use thiserror::Error;

use self::{
    arguments::{ArgumentError, ArgumentInput},
    save::{OutputFile, SaveError},
};
use super::{
    CommandResult,
    configuration::{choose_server, load_configuration},
    output,
    part::ServedPart,
    probe::{ProbeError, ShellClient, wait_for_cancellation, with_workbench},
    terminal::{OutputStyle, Progress},
};
use crate::{
    alarm::timeout,
    budget::SelectableResult,
    call::{CallContext, CallReports, ClientHandle},
    config::{Config, Environment, Purpose, ToolMode},
    downstream::{Phase, ServerHandle, Urgency},
    jq::{Filter, FilterError},
    meta::{self, MetaTool},
    visible::{escaped, visible},
    workbench::{CallReply, Mode, Select, ToolCall, ToolNames, Workbench},
};

/// The exit code for a result with `isError`.
const EXIT_TOOL_ERROR: u8 = 3;

#[derive(Args)]
pub(super) struct CallArguments {
    /// The toolbox
    toolbox: String,

    /// The server
    server: String,

    /// The tool
    tool: String,

    /// The arguments: one JSON object, or `-` to read it from stdin, or `key=value` (typed as the tool's schema
    /// says) and `key:=JSON`
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// Print the result as JSON, as the server sent it
    #[arg(long)]
    json: bool,

    /// Print what this jq filter selects from the result: from its structured content, or from its text if that is JSON
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["json", "output"])]
    select: Option<String>,

    /// Save the first image, audio clip or file of the result here and further ones beside it; without any, the text
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Call as this client of the configuration
    #[arg(long = "as", value_name = "NAME")]
    client: Option<String>,

    /// Time limit for the start of the server and the call together
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

/// Reasons why there is no result.
#[derive(Debug, Error)]
enum CallCommandError {
    #[error(
        "timed out after {0} s waiting for the result\n  hint: allow more time with --timeout, or omit it"
    )]
    Timeout(u64),
    #[error("cannot read stdin")]
    Stdin(#[source] io::Error),
    /// The server answered with a JSON-RPC error.
    #[error("the server refused the call: {}", visible(.0.as_str()))]
    Refused(RawJson),
    #[error("--select: {0}")]
    Filter(#[from] FilterError),
}

pub(in crate::cli) enum CallOutcome {
    /// The result of the tool.
    Result(RawJson),
    /// An error of the workbench, in the form of a result.
    Failure(RawJson),
    /// A JSON-RPC error of the server.
    Refused(RawJson),
    /// The arguments are invalid; the call was not made.
    Arguments(ArgumentError),
}

/// The part of an outcome that is printed.
enum Printed {
    Whole(CallOutcome),
    /// The part of the result that a filter selects.
    Selected(String),
    /// The whole result, and the reason why the filter selects nothing.
    NotSelected {
        result: RawJson,
        reason: String,
    },
}

/// Calls the tool and prints its result.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &CallArguments,
    environment: &Environment,
) -> CommandResult {
    let input = match ArgumentInput::read(&arguments.arguments, read_stdin) {
        Ok(input) => input?,
        Err(error) => return Ok(wrong_arguments(&error)),
    };
    // Everything that can fail is checked before the call, which may have side effects.
    let filter = arguments
        .select
        .as_deref()
        .map(Filter::new)
        .transpose()
        .map_err(CallCommandError::from)?;
    let target = arguments
        .output
        .as_deref()
        .map(|file| OutputFile::new(&environment.absolute(file)))
        .transpose()?;
    let mut loaded = load_configuration(config, environment)?;
    let tool = identifier(arguments);
    let progress = Progress::on_stderr(environment, &format!("calling {}", ShownTool(&tool)));
    // If stdin held the arguments, it cannot also answer questions of the server.
    let shell = Arc::new(ShellClient::caller(progress.clone(), !input.took_stdin()));
    let limit = arguments.timeout.map(Duration::from_secs);
    let wanted = WantedCall {
        tool,
        input,
        shell,
        limit,
        progress,
    };
    let part = ServedPart {
        client: arguments.client.clone(),
        native: None,
    };
    loaded.config = part.of(loaded.config)?;
    // Only the server of the call is started.
    choose_server(&mut loaded.config, &arguments.toolbox, &arguments.server)?;
    #[cfg(unix)]
    let ended = match hosted::find(&loaded, environment, &part, &wanted.tool) {
        Some(host) => hosted::call(host, wanted, &loaded.config)?,
        None => call_alone(wanted, loaded.config.clone())?,
    };
    #[cfg(not(unix))]
    let ended = call_alone(wanted, loaded.config.clone())?;
    for notice in ended.notices {
        output::remark(&notice);
    }
    let Some(outcome) = ended.outcome else {
        let seconds = arguments.timeout.unwrap_or_default();
        return Err(CallCommandError::Timeout(seconds).into());
    };
    let printed = match filter {
        // A filter runs in a process of its own, which a workbench starts and ends.
        Some(filter) => with_workbench(loaded.config, async |workbench| {
            select(&workbench, &filter, outcome).await
        })?,
        None => Printed::Whole(outcome),
    };
    show(printed, arguments.json, target, environment)
}

/// The call that the command line asks for.
struct WantedCall {
    tool: ToolIdentifier,
    input: ArgumentInput,
    shell: Arc<ShellClient>,
    limit: Option<Duration>,
    progress: Progress,
}

struct EndedCall {
    /// `None` if it timed out.
    outcome: Option<CallOutcome>,
    /// The notices about the tool list of the server.
    notices: Vec<String>,
}

/// Calls the tool with a server of this process.
fn call_alone(wanted: WantedCall, mut config: Config) -> Result<EndedCall, ProbeError> {
    // The call goes through `use_tool`, whatever the mode of the file is.
    config.tool_mode = ToolMode::Proxy;
    config.purpose = Purpose::Call;
    let WantedCall {
        tool,
        input,
        shell,
        limit,
        progress,
    } = wanted;
    with_workbench(config, async |workbench| {
        let place = tool.clone();
        let call = progress.during(call(&workbench, tool, input, shell));
        let outcome = match limit {
            Some(limit) => timeout(limit, call).await.ok(),
            None => Some(call.await),
        };
        if outcome.is_none() {
            // Gives the server time to receive the cancellation.
            wait_for_cancellation().await;
        }
        let notices = notices_of(&workbench, &place).unwrap_or_default();
        EndedCall { outcome, notices }
    })
}

fn identifier(arguments: &CallArguments) -> ToolIdentifier {
    ToolIdentifier {
        toolbox: ToolboxName::from(arguments.toolbox.as_str()),
        server: ServerName::from(arguments.server.as_str()),
        tool: ToolName::from(arguments.tool.as_str()),
    }
}

/// A tool as a path, for messages.
struct ShownTool<'a>(&'a ToolIdentifier);

impl fmt::Display for ShownTool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToolIdentifier {
            toolbox,
            server,
            tool,
        } = self.0;
        let path = format!("{toolbox}/{server}/{tool}");
        f.write_str(&visible(&path))
    }
}

/// Returns the server of a tool if it is still starting.
fn starting_server(workbench: &Workbench, tool: &ToolIdentifier) -> Option<Arc<ServerHandle>> {
    let toolbox = workbench.toolbox(tool.toolbox.as_str())?;
    let server = toolbox.server(&tool.server)?;
    matches!(server.status().phase, Phase::Starting).then_some(server)
}

fn read_stdin() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(CallCommandError::Stdin)?;
    Ok(bytes)
}

/// Calls a tool with an object of arguments for a client.
pub(in crate::cli) async fn call_object(
    workbench: &Arc<Workbench>,
    tool: ToolIdentifier,
    object: RawJson,
    client: Arc<dyn ClientHandle>,
) -> CallOutcome {
    let input = ArgumentInput::Object {
        object,
        from_stdin: false,
    };
    call(workbench, tool, input, client).await
}

/// Starts the server, converts the arguments by the tool's schema, and calls the tool.
async fn call(
    workbench: &Arc<Workbench>,
    tool: ToolIdentifier,
    input: ArgumentInput,
    client: Arc<dyn ClientHandle>,
) -> CallOutcome {
    let context = || CallContext {
        client: Arc::clone(&client),
        meta: None,
        retry: None,
        reports: CallReports::default(),
    };
    let open = RawJson::of(&json!({ "toolbox": tool.toolbox.as_str() }));
    let mut opened = meta::run(MetaTool::OpenToolbox, workbench, &open, &context()).await;
    if let Some(server) = starting_server(workbench, &tool) {
        // `open_toolbox` stops waiting because clients give up. A shell does not: the server gets its whole
        // `connectTimeoutMs`.
        let _ = server.connect(Urgency::ForCall, Arc::clone(&client)).await;
        opened = meta::run(MetaTool::OpenToolbox, workbench, &open, &context()).await;
    }
    if is_error(&opened) {
        return CallOutcome::Failure(opened);
    }
    let arguments = match input.typed(&schema(workbench, &tool)) {
        Ok(arguments) => arguments,
        Err(error) => return CallOutcome::Arguments(error),
    };
    let call = workbench.start_call(ToolCall {
        mode: Mode::UseTool,
        names: ToolNames::from(&tool),
        arguments,
        params: None,
        request: None,
        select: Select::Whole,
        context: context(),
    });
    match call.run().await {
        CallReply::Result(result) => CallOutcome::Result(result.to_json()),
        CallReply::Refused(error) => CallOutcome::Refused(error),
        CallReply::Failed { tool, failure, .. } => {
            CallOutcome::Failure(meta::failed_call(tool, failure))
        }
    }
}

/// Applies a filter to the result of a call that succeeded.
async fn select(workbench: &Workbench, filter: &Filter, outcome: CallOutcome) -> Printed {
    let result = match outcome {
        CallOutcome::Result(result) if !is_error(&result) => result,
        outcome => return Printed::Whole(outcome),
    };
    let selected = match SelectableResult::of(&result) {
        Ok(selection) => workbench.select(filter, selection.input()).await,
        Err(error) => {
            let reason = error.to_string();
            return Printed::NotSelected { result, reason };
        }
    };
    match selected {
        Ok(text) => Printed::Selected(text),
        Err(error) => Printed::NotSelected {
            reason: error.to_string(),
            result,
        },
    }
}

/// Returns the notices about the tool list of the server.
fn notices_of(workbench: &Workbench, tool: &ToolIdentifier) -> Option<Vec<String>> {
    let toolbox = workbench.toolbox(tool.toolbox.as_str())?;
    let tools = toolbox.server(&tool.server)?.status().tools?;
    let server = visible(tool.server.as_str());
    let notices = tools.notices.iter();
    Some(
        notices
            .map(|it| format!("server '{server}': {it}"))
            .collect(),
    )
}

/// Returns the schema of the tool's arguments; empty if it is unknown.
fn schema(workbench: &Workbench, tool: &ToolIdentifier) -> Value {
    let schema = || {
        let toolbox = workbench.toolbox(tool.toolbox.as_str())?;
        let tools = toolbox.server(&tool.server)?.status().tools?;
        let schema = tools
            .get(tool.tool.as_str())?
            .definition
            .member("inputSchema")?;
        serde_json::from_str(schema.as_str()).ok()
    };
    schema().unwrap_or_default()
}

fn is_error(result: &RawJson) -> bool {
    result.member("isError").is_some_and(|it| it.is_true())
}

/// Prints the outcome of the call.
fn show(
    printed: Printed,
    as_json: bool,
    target: Option<OutputFile>,
    environment: &Environment,
) -> CommandResult {
    let outcome = match printed {
        Printed::Whole(outcome) => outcome,
        Printed::Selected(text) => {
            output::data(&text);
            return Ok(ExitCode::SUCCESS);
        }
        Printed::NotSelected { result, reason } => {
            let reason = visible(&reason);
            output::remark(&format!(
                "--select was not applied: {reason}. This is the whole result"
            ));
            CallOutcome::Failure(result)
        }
    };
    let (result, code) = match outcome {
        CallOutcome::Arguments(error) => return Ok(wrong_arguments(&error)),
        CallOutcome::Refused(error) => return Err(CallCommandError::Refused(error).into()),
        CallOutcome::Failure(result) => (result, ExitCode::FAILURE),
        CallOutcome::Result(result) if is_error(&result) => {
            (result, ExitCode::from(EXIT_TOOL_ERROR))
        }
        CallOutcome::Result(result) => (result, ExitCode::SUCCESS),
    };
    let failed = is_error(&result);
    if as_json {
        output::raw(&format!("{}\n", escaped(result.as_str())));
    } else if failed {
        // On stderr, so that a program that reads stdout gets results only.
        output::remark(result::render(&result, result::ResultReader::Person).trim_end());
    }
    if failed {
        return Ok(code);
    }
    match target {
        Some(target) => save(&result, &target)?,
        None if as_json => {}
        None => match OutputStyle::of_stdout(environment).width() {
            // A width means a terminal, where control characters are escaped; a pipe gets the text as it is.
            Some(_) => output::data(&result::render(&result, result::ResultReader::Person)),
            None => output::raw(&result::render(&result, result::ResultReader::Program)),
        },
    }
    Ok(code)
}

fn save(result: &RawJson, target: &OutputFile) -> Result<(), SaveError> {
    for (file, bytes) in target.save(result)? {
        output::remark(&format!("saved {}, {bytes} bytes", file.display()));
    }
    Ok(())
}

fn wrong_arguments(error: &ArgumentError) -> ExitCode {
    output::remark(&format!("error: {error}"));
    ExitCode::from(output::EXIT_USAGE)
}
