//! `run`: runs a script that calls tools, as `run_code` does, from a file. Servers start when the script calls them.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use rawjson::RawJson;
use thiserror::Error;

use super::{
    CommandResult,
    configuration::{choose_toolbox, load_configuration},
    host::Sharing,
    output,
    probe::{ShellClient, probe_others, with_workbench},
    terminal::Progress,
};
use crate::{
    call::{CallContext, CallReports},
    config::{Environment, Purpose, ToolMode},
    meta::{DEFAULT_TIMEOUT_S, MAX_CODE_CHARACTERS, MAX_TIMEOUT_S, declarations, run_script},
    scripts::StartError,
    visible::escaped,
    workbench::count,
};

/// The exit code for a script that failed.
const EXIT_SCRIPT_ERROR: u8 = 3;
/// The name that stands for stdin.
const STDIN: &str = "-";

#[derive(Args)]
pub(super) struct RunArguments {
    /// The script, or `-` to read it from stdin: the body of an async JavaScript function
    #[arg(value_name = "FILE", required_unless_present = "types")]
    file: Option<PathBuf>,

    /// Use only this toolbox
    #[arg(long, value_name = "TOOLBOX")]
    toolbox: Option<String>,

    /// Print TypeScript declarations of everything that a script may call, and run nothing
    #[arg(long, conflicts_with = "file")]
    types: bool,

    /// Print the whole result of the run as JSON
    #[arg(long)]
    json: bool,

    /// Time limit of the run, without the time in which you are asked
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = DEFAULT_TIMEOUT_S as u64,
        value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT_S as u64)
    )]
    timeout: u64,
}

/// Reasons why a script was not run.
#[derive(Debug, Error)]
enum RunCommandError {
    #[error("cannot read {}", .file.display())]
    File {
        file: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("the script has {0} characters; the limit is {MAX_CODE_CHARACTERS}")]
    TooLong(usize),
    #[error(transparent)]
    NotStarted(#[from] StartError),
}

/// Runs the script, or prints the declarations.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &RunArguments,
    environment: &Environment,
) -> CommandResult {
    let code = arguments
        .file
        .as_deref()
        .map(|file| read(file, environment))
        .transpose()?;
    let mut config = load_configuration(config, environment)?.config;
    choose_toolbox(&mut config, arguments.toolbox.as_deref())?;
    config.tool_mode = ToolMode::Proxy;
    // Nobody opens a toolbox for a script: what it calls is opened.
    config.auto_open = true;
    let Some(code) = code else {
        let progress = Progress::on_stderr(environment, "starting servers");
        let sharing = Sharing::of(&config, environment);
        let text = with_workbench(config, async |workbench| {
            probe_others(&workbench, None, sharing.as_ref(), &progress).await;
            declarations(&workbench)
        })?;
        output::data(&text);
        return Ok(ExitCode::SUCCESS);
    };
    let progress = Progress::on_stderr(environment, "running the script");
    let has_stdin = arguments.file.as_deref() == Some(Path::new(STDIN));
    let context = CallContext {
        client: Arc::new(ShellClient::caller(progress.clone(), !has_stdin)),
        meta: None,
        retry: None,
        reports: CallReports::default(),
    };
    config.purpose = Purpose::Call;
    let limit = Duration::from_secs(arguments.timeout);
    let report = with_workbench(config, async |workbench| {
        let run = run_script(&workbench, &code, limit, &context);
        progress.during(run).await
    })?;
    let report = report.map_err(RunCommandError::NotStarted)?;
    let value = report.value();
    if arguments.json {
        let result = report.to_result(&code);
        output::raw(&format!("{}\n", escaped(result.as_str())));
    } else if let Some(value) = value {
        for line in &report.logs {
            output::remark(line);
        }
        if let Some(hint) = report.unfinished() {
            output::remark(&hint);
        }
        if !report.emitted.is_empty() {
            let parts = count(report.emitted.len(), "emitted part");
            output::remark(&format!("{parts} not shown here: use --json"));
        }
        output::raw(&format!("{}\n", escaped(&shown(value))));
    } else {
        output::remark(&report.text(&code));
    }
    Ok(match value {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(EXIT_SCRIPT_ERROR),
    })
}

/// Returns a value for a shell: a text without quotes, anything else as JSON.
fn shown(value: &str) -> String {
    let json = RawJson::parse(&value.to_owned().into());
    let text = json.as_ref().ok().and_then(RawJson::as_text);
    text.map_or_else(|| value.to_owned(), std::borrow::Cow::into_owned)
}

fn read(file: &Path, environment: &Environment) -> Result<String, RunCommandError> {
    let read = if file == Path::new(STDIN) {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(environment.absolute(file))
    };
    let code = read.map_err(|error| RunCommandError::File {
        file: file.to_owned(),
        error,
    })?;
    match code.chars().count() {
        characters if characters > MAX_CODE_CHARACTERS => Err(RunCommandError::TooLong(characters)),
        _ => Ok(code),
    }
}
