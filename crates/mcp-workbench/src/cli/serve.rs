//! `serve`: the workbench itself, over stdin and stdout or over HTTP.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use thiserror::Error;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    CommandResult,
    configuration::{ConfigurationError, UnknownName, load_configuration},
    demo::{self, program},
    http::{HttpArguments, HttpError},
    output,
    reload::{self, ReloadSignal, Source},
    signals::Signals,
};
use crate::{
    config::{ClientError, Config, Environment, Loaded, ToolMode, as_client, parse},
    serve::{
        http::{ENDPOINT_PATH, HttpListener, HttpOptions, Tokens},
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

    /// Serve only what this client of the configuration may use
    #[arg(long = "as", value_name = "NAME", conflicts_with = "demo")]
    client: Option<String>,

    #[command(flatten)]
    http: HttpArguments,
}

/// The part of a configuration that is served.
#[derive(Clone, Default)]
pub(super) struct ServedPart {
    /// The client of `--as`, or of a token.
    client: Option<String>,
    /// The toolbox of `--native`.
    native: Option<String>,
}

/// Reasons why the part is not there.
#[derive(Debug, Error)]
pub(super) enum PartError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Toolbox(#[from] UnknownName),
}

impl ServedPart {
    /// Returns the part of a configuration.
    pub(super) fn of(&self, mut config: Config) -> Result<Config, PartError> {
        if let Some(client) = &self.client {
            config = as_client(&config, client)?;
        }
        if let Some(name) = &self.native {
            let toolbox = config.toolboxes.get_key_value(name.as_str());
            let (toolbox, _) = toolbox.ok_or_else(|| UnknownName::toolbox(name, &config))?;
            config.tool_mode = ToolMode::Native(toolbox.clone());
        }
        Ok(config)
    }
}

/// A configuration that is served. The demo has no source to reload.
struct Served {
    config: Config,
    source: Option<Source>,
}

impl Served {
    /// Returns the part of a loaded configuration.
    fn new(
        loaded: &Loaded,
        part: ServedPart,
        environment: Option<&Environment>,
    ) -> Result<Self, PartError> {
        Ok(Self {
            config: part.of(loaded.config.clone())?,
            source: environment.map(|environment| Source {
                file: loaded.config.file.clone(),
                environment: environment.clone(),
                part,
                fingerprint: loaded.fingerprint,
            }),
        })
    }
}

/// Serves the configuration over stdin and stdout, as one of its clients if `client` is given.
pub(super) fn run_stdio(
    config: Option<&Path>,
    client: Option<String>,
    environment: &Environment,
) -> CommandResult {
    let loaded = load(config, environment)?;
    let part = ServedPart {
        client,
        native: None,
    };
    let served = Served::new(&loaded, part, Some(environment))?;
    serve(&loaded, vec![served], Transport::Stdio)
}

/// Serves according to the arguments; `client` is the `--as` before the command.
pub(super) fn run(
    config: Option<&Path>,
    arguments: ServeArguments,
    client: Option<String>,
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
        (load(config, environment)?, Some(environment))
    };
    let part = ServedPart {
        client: arguments.client.or(client),
        native: arguments.native,
    };
    let mut served = vec![Served::new(&loaded, part.clone(), source)?];
    // Checked before the workbench starts, so that a refused option leaves nothing running.
    let options = arguments.http.options(environment)?;
    let tokens = options.as_ref().and_then(|options| options.tokens.as_ref());
    for client in tokens.map(Tokens::clients).unwrap_or_default() {
        let client = Some(client.as_str().to_owned());
        let part = ServedPart {
            client,
            ..part.clone()
        };
        served.push(Served::new(&loaded, part, source)?);
    }
    let transport = options.map_or(Transport::Stdio, Transport::Http);
    serve(&loaded, served, transport)
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

/// Serves parts of a configuration, each by a workbench of its own: the first to every client, the others to the clients
/// of the configuration that have tokens.
fn serve(loaded: &Loaded, served: Vec<Served>, transport: Transport) -> CommandResult {
    for problem in loaded.warnings.iter().chain(&loaded.unset) {
        tracing::warn!("{problem}");
    }
    if matches!(transport, Transport::Stdio) && io::stdin().is_terminal() {
        output::remark(ON_A_TERMINAL);
    }
    // One thread: hand-offs between threads cost more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let workbenches = start(served)?;
        // The handlers are installed before any server can start, so that no signal leaves a process behind.
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        // Serving runs in a task of its own: whenever the future passed to `block_on` is woken, the runtime
        // polls all events first, which is a system call.
        let stopped = stop.clone().cancelled_owned();
        let serving = TaskTracker::new().spawn(serve_over(transport, workbenches, stopped));
        let second_signal = async {
            signals.next().await;
            stop.cancel();
            signals.next().await;
        };
        tokio::select! {
            served = serving => {
                Ok::<_, Box<dyn std::error::Error>>(served??)
            }
            // A second signal skips the orderly shutdown; the guard process ends the remaining servers.
            () = second_signal => Ok(ExitCode::FAILURE),
        }
    });
    // A thread may still be blocked reading the terminal; it ends with the process.
    runtime.shutdown_background();
    done
}

/// Creates the workbenches, and follows the changes of their configurations.
fn start(served: Vec<Served>) -> io::Result<Vec<Arc<Workbench>>> {
    let mut workbenches = Vec::new();
    for Served { config, source } in served {
        let workbench = Workbench::new(Arc::new(config));
        if let Some(source) = source {
            let signal = ReloadSignal::listen()?;
            let following = reload::follow(Arc::clone(&workbench), source, signal);
            workbench.spawn(following);
        }
        workbenches.push(workbench);
    }
    Ok(workbenches)
}

/// Serves until `stop` is ready or the only client disconnects.
async fn serve_over(
    transport: Transport,
    workbenches: Vec<Arc<Workbench>>,
    stop: impl Future<Output = ()>,
) -> Result<ExitCode, HttpError> {
    match transport {
        Transport::Stdio => {
            let workbench = workbenches.into_iter().next();
            let workbench = workbench.expect("there is always one");
            Ok(match stdio::serve(workbench, stop).await {
                ServeEnd::Closed => ExitCode::SUCCESS,
                ServeEnd::Unread => ExitCode::from(EXIT_UNREAD),
            })
        }
        Transport::Http(options) => {
            let address = options.address;
            let bound = HttpListener::bind(options).await;
            let listener = bound.map_err(|error| HttpError::Bind { address, error })?;
            let address = listener.address();
            output::remark(&format!("listening on http://{address}{ENDPOINT_PATH}"));
            listener.serve(workbenches, stop).await;
            Ok(ExitCode::SUCCESS)
        }
    }
}
