//! `serve`: the workbench itself, over stdin and stdout or over HTTP.

use std::{
    error::Error,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use ident::ClientName;
use indexmap::IndexMap;
use thiserror::Error;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    CommandResult,
    configuration::{ConfigurationError, load_configuration},
    demo::{self, program},
    host::{self, Attached},
    http::{HttpArguments, HttpError},
    output,
    part::{PartError, Served, ServedPart},
    reload::{self, ReloadSignal, Source},
    signals::Signals,
    ui::{Api, PageRecord, WorkbenchPage},
};
#[cfg(unix)]
use crate::serve::attached::{self, UnfinishedSession};
use crate::{
    config::{Environment, Loaded, parse},
    oauth::CredentialOwner,
    otel::Telemetry,
    serve::{
        http::{ENDPOINT_PATH, HttpListener, HttpOptions, Page, Tokens, Workbenches},
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

/// Printed when a user starts the workbench on a terminal and there is no usable configuration.
const ON_A_TERMINAL_WITHOUT_CONFIGURATION: &str = "without a command, mcp-workbench waits for an MCP client on stdin, and \
needs a configuration for that; `mcp-workbench --help` lists the commands";

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

    /// Serve only what this client of the configuration may use
    #[arg(long = "as", value_name = "NAME", conflicts_with = "demo")]
    client: Option<String>,

    #[command(flatten)]
    http: HttpArguments,
}

/// Serves the configuration over stdin and stdout, as one of its clients if `client` is given.
pub(super) fn run_stdio(
    config: Option<&Path>,
    client: Option<String>,
    environment: &Environment,
) -> CommandResult {
    let loaded = load(config, environment).inspect_err(|_| {
        if io::stdin().is_terminal() {
            output::remark(ON_A_TERMINAL_WITHOUT_CONFIGURATION);
        }
    })?;
    let part = ServedPart {
        client,
        native: None,
    };
    // An unknown name is refused here, before a host is asked.
    let served = Served::new(&loaded, part.clone(), Some(environment))?;
    let mut transport = Transport::Stdio;
    if loaded.config.shared {
        match serve_in_host(&loaded, environment, &part) {
            InHost::Ended(code) => return Ok(code),
            InHost::Alone(alone) => transport = alone,
        }
    }
    serve(&loaded, served, transport, environment)
}

/// The result of serving a client in the host.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum InHost {
    Ended(ExitCode),
    /// The client is to be served by this process.
    Alone(Transport),
}

fn serve_in_host(loaded: &Loaded, environment: &Environment, part: &ServedPart) -> InHost {
    match host::attach(loaded, environment, part) {
        Attached::Ended(code) => InHost::Ended(code),
        Attached::Alone => InHost::Alone(Transport::Stdio),
        #[cfg(unix)]
        Attached::Continue(session) => InHost::Alone(Transport::Continued(session)),
    }
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
    let served = Served::new(&loaded, part.clone(), source)?;
    // Checked before the workbench starts, so that a refused option leaves nothing running.
    let options = arguments.http.options(&loaded.config, environment)?;
    let mut transport = match options {
        Some(options) => Transport::Http {
            clients: token_clients(&options, &loaded, &part, source)?,
            options,
        },
        None => Transport::Stdio,
    };
    let is_shared = !arguments.alone && (arguments.shared || loaded.config.shared);
    if matches!(transport, Transport::Stdio) && source.is_some() && is_shared {
        match serve_in_host(&loaded, environment, &part) {
            InHost::Ended(code) => return Ok(code),
            InHost::Alone(alone) => transport = alone,
        }
    }
    serve(&loaded, served, transport, environment)
}

/// Returns the parts of the clients that have tokens, or that users can be.
fn token_clients(
    options: &HttpOptions,
    loaded: &Loaded,
    part: &ServedPart,
    environment: Option<&Environment>,
) -> Result<IndexMap<ClientName, Served>, PartError> {
    let mut served = IndexMap::new();
    let of_tokens = options.tokens.iter().flat_map(Tokens::clients).flatten();
    let of_users = options.users.iter().flat_map(|users| &users.clients);
    for name in of_tokens.chain(of_users.map(|(name, _)| name)) {
        let part = ServedPart {
            client: Some(name.as_str().to_owned()),
            ..part.clone()
        };
        if !served.contains_key(name) {
            served.insert(name.clone(), Served::new(loaded, part, environment)?);
        }
    }
    Ok(served)
}

/// The transport that clients connect by.
enum Transport {
    Stdio,
    /// Stdin and stdout, from where a host has left them.
    #[cfg(unix)]
    Continued(UnfinishedSession),
    Http {
        options: HttpOptions,
        /// The parts of the clients that have tokens.
        clients: IndexMap<ClientName, Served>,
    },
}

fn load(config: Option<&Path>, environment: &Environment) -> Result<Loaded, ConfigurationError> {
    let loaded = load_configuration(config, environment)?;
    tracing::info!("using {}", loaded.config.file.display());
    Ok(loaded)
}

fn serve(
    loaded: &Loaded,
    served: Served,
    transport: Transport,
    environment: &Environment,
) -> CommandResult {
    log_problems(loaded);
    if matches!(transport, Transport::Stdio) && io::stdin().is_terminal() {
        output::remark(ON_A_TERMINAL);
    }
    // One thread: hand-offs between threads cost more than the work.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        // A client over HTTP may be anybody; users get workbenches of their own.
        let owner = match &transport {
            Transport::Http { .. } => CredentialOwner::Nobody,
            _ => CredentialOwner::Machine,
        };
        let workbench = Workbench::new(Arc::new(served.config), owner);
        let telemetry = Telemetry::start(environment, workbench.observed())?;
        let mut following = Vec::new();
        if let Some(source) = served.source {
            following.push((Arc::clone(&workbench), source));
        }
        let serving = match transport {
            Transport::Stdio => Serving::Stdio(Arc::clone(&workbench)),
            #[cfg(unix)]
            Transport::Continued(session) => Serving::Continued(Arc::clone(&workbench), session),
            Transport::Http { options, clients } => {
                let everybody = Arc::clone(&workbench);
                let workbenches = beside(everybody, clients, &mut following);
                Serving::Http(options, workbenches)
            }
        };
        let signal = ReloadSignal::listen()?;
        workbench.spawn(reload::follow(following, signal));
        // The handlers are installed before any server can start, so that no signal leaves a process behind.
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        // Serving runs in a task of its own: whenever the future passed to `block_on` is woken, the runtime
        // polls all events first, which is a system call.
        let stopped = stop.clone().cancelled_owned();
        let serving = TaskTracker::new().spawn(serve_over(serving, environment.clone(), stopped));
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

fn exit_code(end: ServeEnd) -> ExitCode {
    match end {
        ServeEnd::Closed => ExitCode::SUCCESS,
        ServeEnd::Unread => ExitCode::from(EXIT_UNREAD),
    }
}

/// Reasons why nothing is served.
#[derive(Debug, Error)]
enum ServeError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[cfg(unix)]
    #[error("the session cannot be continued without a host: {0}")]
    NotContinued(io::Error),
}

/// Creates the workbenches of the clients that have tokens, next to the common one.
fn beside(
    everybody: Arc<Workbench>,
    clients: IndexMap<ClientName, Served>,
    following: &mut Vec<(Arc<Workbench>, Source)>,
) -> Workbenches {
    let clients = clients.into_iter().map(|(name, served)| {
        let workbench = everybody.beside(Arc::new(served.config));
        if let Some(source) = served.source {
            following.push((Arc::clone(&workbench), source));
        }
        (name, workbench)
    });
    Workbenches {
        clients: clients.collect(),
        others: None,
        everybody,
    }
}

/// The workbenches with their transport.
enum Serving {
    Stdio(Arc<Workbench>),
    #[cfg(unix)]
    Continued(Arc<Workbench>, UnfinishedSession),
    Http(HttpOptions, Workbenches),
}

/// Serves until `stop` is ready or the only client disconnects.
async fn serve_over(
    serving: Serving,
    environment: Environment,
    stop: impl Future<Output = ()>,
) -> Result<ExitCode, ServeError> {
    match serving {
        Serving::Stdio(workbench) => Ok(exit_code(stdio::serve(workbench, stop).await)),
        #[cfg(unix)]
        Serving::Continued(workbench, session) => {
            let ended = attached::serve_alone(workbench, session, stop).await;
            Ok(exit_code(ended.map_err(ServeError::NotContinued)?))
        }
        Serving::Http(options, workbenches) => {
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
                let api = Api::new(&workbenches, &environment);
                Arc::new(WorkbenchPage::new(record.key(), api)) as Arc<dyn Page>
            });
            output::remark(&format!("listening on http://{address}{ENDPOINT_PATH}"));
            listener.serve(workbenches, page, stop).await;
            Ok(ExitCode::SUCCESS)
        }
    }
}
