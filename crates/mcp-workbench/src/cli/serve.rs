//! `serve`: the workbench itself, over stdin and stdout or over HTTP.

use std::{
    error::Error,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    CommandResult,
    configuration::{ConfigurationError, UnknownName, load_configuration},
    demo::{self, program},
    host,
    http::{HttpArguments, HttpError},
    output,
    reload::{self, ReloadSignal, Source},
    signals::Signals,
    ui::{Api, PageRecord, WorkbenchPage},
};
use crate::{
    config::{Environment, Loaded, ToolMode, parse},
    otel::Telemetry,
    serve::{
        http::{ENDPOINT_PATH, HttpListener, HttpOptions, Page},
        stdio::{self, ServeEnd},
    },
    workbench::Workbench,
};

/// The exit code if the client does not read stdout for too long.
const EXIT_UNREAD: u8 = 4;

/// Printed when a user starts the workbench on a terminal, where it would otherwise wait silently for a client.
const ON_A_TERMINAL: &str = "waiting for an MCP client on stdin; clients start this command themselves (Ctrl-D ends it)
  hint: `mcp-workbench demo` shows a session, `mcp-workbench init` writes a configuration, `mcp-workbench --help` lists \
 the commands";

/// Arguments of `serve`.
#[derive(Args)]
pub(super) struct ServeArguments {
    /// Serve the built-in demo toolbox instead of a configuration file
    #[arg(long, conflicts_with = "config")]
    demo: bool,

    /// Expose the tools, prompts and resources of this toolbox under their own names, without
    /// meta-tools
    #[arg(long, value_name = "TOOLBOX")]
    native: Option<String>,

    /// Share servers with the other clients of this configuration, whatever it says
    #[arg(long, conflicts_with_all = ["demo", "alone"])]
    shared: bool,

    /// Share servers with no other client, whatever the configuration says
    #[arg(long)]
    alone: bool,

    #[command(flatten)]
    http: HttpArguments,
}

/// Serves the configuration over stdin and stdout.
pub(super) fn run_stdio(config: Option<&Path>, environment: &Environment) -> CommandResult {
    let loaded = load(config, environment)?;
    if loaded.config.shared
        && let Some(done) = host::attach(&loaded, environment, None)
    {
        return done;
    }
    let source = source(&loaded, environment, None);
    serve(loaded, Some(source), Transport::Stdio, environment)
}

/// Serves according to the arguments.
pub(super) fn run(
    config: Option<&Path>,
    arguments: ServeArguments,
    environment: &Environment,
) -> CommandResult {
    let (loaded, source) = if arguments.demo {
        let text = demo::configuration(&program()?);
        let file = PathBuf::from("(the built-in demo)");
        let mut loaded = parse(&text, &file, environment)?;
        // The demo leaves no files behind.
        loaded.config.cache = None;
        loaded.config.lock = None;
        (loaded, None)
    } else {
        let loaded = load(config, environment)?;
        let source = source(&loaded, environment, arguments.native.clone());
        (loaded, Some(source))
    };
    let loaded = show_natively(loaded, arguments.native.as_deref())?;
    // Checked before the workbench starts, so that a refused option leaves nothing running.
    let options = arguments.http.options(environment)?;
    let transport = options.map_or(Transport::Stdio, Transport::Http);
    let is_shared = !arguments.alone && (arguments.shared || loaded.config.shared);
    if matches!(transport, Transport::Stdio)
        && source.is_some()
        && is_shared
        && let Some(done) = host::attach(&loaded, environment, arguments.native)
    {
        return done;
    }
    serve(loaded, source, transport, environment)
}

/// Returns the source of a configuration, for reloading it.
fn source(loaded: &Loaded, environment: &Environment, native: Option<String>) -> Source {
    Source {
        file: loaded.config.file.clone(),
        environment: environment.clone(),
        native,
        fingerprint: loaded.fingerprint,
    }
}

/// The transport that clients connect by.
enum Transport {
    Stdio,
    Http(HttpOptions),
}

fn load(config: Option<&Path>, environment: &Environment) -> Result<Loaded, ConfigurationError> {
    let loaded = load_configuration(config, environment)?;
    tracing::info!("using {}", loaded.config.file.display());
    Ok(loaded)
}

/// Selects native mode for the toolbox that the command line names.
pub(super) fn show_natively(
    mut loaded: Loaded,
    toolbox: Option<&str>,
) -> Result<Loaded, UnknownName> {
    let Some(name) = toolbox else {
        return Ok(loaded);
    };
    let Some((name, _)) = loaded.config.toolboxes.get_key_value(name) else {
        return Err(UnknownName::toolbox(name, &loaded.config));
    };
    loaded.config.tool_mode = ToolMode::Native(name.clone());
    Ok(loaded)
}

fn serve(
    loaded: Loaded,
    source: Option<Source>,
    transport: Transport,
    environment: &Environment,
) -> CommandResult {
    log_problems(&loaded);
    if matches!(transport, Transport::Stdio) && io::stdin().is_terminal() {
        output::remark(ON_A_TERMINAL);
    }
    // One thread: hand-offs between threads cost more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let workbench = Workbench::new(Arc::new(loaded.config));
        let telemetry = Telemetry::start(environment, workbench.observed())?;
        // The demo has no file to reload.
        if let Some(source) = source {
            let signal = ReloadSignal::listen()?;
            let following = reload::follow(Arc::clone(&workbench), source, signal);
            workbench.spawn(following);
        }
        // The handlers are installed before any server can start, so that no signal leaves a process behind.
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        // Serving runs in a task of its own: whenever the future passed to `block_on` is woken, the runtime
        // polls all events first, which is a system call.
        let stopped = stop.clone().cancelled_owned();
        let serving = TaskTracker::new().spawn(serve_over(
            transport,
            workbench,
            environment.clone(),
            stopped,
        ));
        let second_signal = async {
            signals.next().await;
            stop.cancel();
            signals.next().await;
        };
        tokio::select! {
            served = serving => {
                if let Some(telemetry) = telemetry {
                    telemetry.close().await;
                }
                Ok::<_, Box<dyn Error>>(served??)
            }
            // A second signal skips the orderly shutdown; the guard process ends the remaining servers.
            () = second_signal => Ok(ExitCode::FAILURE),
        }
    });
    // A thread may still be blocked reading the terminal; it ends with the process.
    runtime.shutdown_background();
    done
}

/// Logs the probable mistakes of a configuration.
pub(super) fn log_problems(loaded: &Loaded) {
    for problem in loaded.warnings.iter().chain(&loaded.unset) {
        tracing::warn!("{problem}");
    }
}

/// Serves until `stop` is ready or the only client disconnects.
async fn serve_over(
    transport: Transport,
    workbench: Arc<Workbench>,
    environment: Environment,
    stop: impl Future<Output = ()>,
) -> Result<ExitCode, HttpError> {
    match transport {
        Transport::Stdio => Ok(match stdio::serve(workbench, stop).await {
            ServeEnd::Closed => ExitCode::SUCCESS,
            ServeEnd::Unread => ExitCode::from(EXIT_UNREAD),
        }),
        Transport::Http(options) => {
            let address = options.address;
            let bound = HttpListener::bind(options).await;
            let listener = bound.map_err(|error| HttpError::Bind { address, error })?;
            let address = listener.address();
            // Only this machine may see the page.
            let record = address
                .ip()
                .is_loopback()
                .then(|| PageRecord::write(address, &environment));
            let page = record.as_ref().map(|record| {
                let api = Api::new(Arc::clone(&workbench), &environment);
                Arc::new(WorkbenchPage::new(record.key(), api)) as Arc<dyn Page>
            });
            output::remark(&format!("listening on http://{address}{ENDPOINT_PATH}"));
            listener.serve(workbench, page, stop).await;
            Ok(ExitCode::SUCCESS)
        }
    }
}
