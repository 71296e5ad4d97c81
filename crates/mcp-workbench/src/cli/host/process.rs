//! The two processes of a shared configuration: the one that a client starts, which waits, and the host.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::Attached;
use crate::{
    cli::{
        CommandResult,
        configuration::{UnknownName, choose_server, load_configuration, load_file_again},
        output,
        part::ServedPart,
        reload::{Following, ReloadSignal, Source, follow_all},
        serve::log_problems,
        signals::Signals,
        ui::serve_host,
    },
    config::{Config, Environment, Fingerprint, Loaded, ToolMode},
    host::{
        self, Attach, AttachError, Demand, Followed, HostAnswer, HostFolder, HostOptions,
        InheritedHost, NotAttached, PageAddress, Selection, Waiting,
    },
    otel::Telemetry,
    serve::{attached::UnfinishedSession, standard_streams},
    workbench::Observation,
};

#[derive(Args)]
pub(in crate::cli) struct HostArguments {
    /// The folder of the host
    folder: PathBuf,

    /// Set if the process is detached from the client
    #[arg(long)]
    detached: bool,
}

/// Attaches the client of this process to the host, and waits for its end.
pub(super) fn attach(loaded: &Loaded, environment: &Environment, part: &ServedPart) -> Attached {
    let mut waiting = match streams().and_then(|()| waiting(loaded, environment, part)) {
        Ok(waiting) => waiting,
        Err(reason) => {
            output::remark(&format!("serving alone: {reason}"));
            return Attached::Alone;
        }
    };
    log_problems(loaded);
    match waiting.run() {
        Ok(code) => Attached::Ended(ExitCode::from(code)),
        Err(NotAttached { error, journal }) => {
            output::remark(&format!("serving alone: {error}{}", hint(&error)));
            match journal {
                Some(files) => Attached::Continue(UnfinishedSession {
                    files,
                    make: Box::new(move || waiting.place.nameless_file()),
                }),
                None => Attached::Alone,
            }
        }
    }
}

fn hint(error: &AttachError) -> &'static str {
    match error {
        AttachError::Silent => " (`mcp-workbench ps` shows it, `mcp-workbench stop` ends it)",
        _ => "",
    }
}

/// Checks that stdin and stdout can be passed on.
fn streams() -> Result<(), String> {
    if standard_streams::can_be_passed() {
        Ok(())
    } else {
        Err("stdin and stdout are neither pipes nor sockets".into())
    }
}

/// Collects what the host has to know, or returns the reason why there can be none.
pub(super) fn waiting(
    loaded: &Loaded,
    environment: &Environment,
    part: &ServedPart,
) -> Result<Waiting, String> {
    let config = environment.absolute(&loaded.config.file);
    if !config.is_file() {
        return Err("the configuration is not a regular file".into());
    }
    // Paths that lead to the same file have the same host.
    let config = std::fs::canonicalize(&config).unwrap_or(config);
    let place = HostFolder::of(&config, environment).map_err(|error| error.to_string())?;
    let attach = context(&config, loaded, environment, part);
    let attach = attach.ok_or("a path or a variable is not UTF-8 text")?;
    let describe = {
        let (config, environment, part) = (config.clone(), environment.clone(), part.clone());
        move || {
            let loaded = load_file_again(&config, &environment).ok()?;
            context(&config, &loaded, &environment, &part)
        }
    };
    Ok(Waiting {
        place,
        config,
        environment: environment.clone(),
        attach,
        describe: Box::new(describe),
    })
}

/// Describes the client of this process. Returns `None` if a part is not UTF-8 text.
fn context(
    config: &Path,
    loaded: &Loaded,
    environment: &Environment,
    part: &ServedPart,
) -> Option<Attach> {
    let needed = environment.needed_by(loaded);
    let fingerprint = loaded.fingerprint.to_text();
    let attach = Attach::of_process(config, &needed, fingerprint)?;
    let ServedPart { client, native } = part.clone();
    Some(Attach {
        client,
        native,
        ..attach
    })
}

/// Asks the host of a configuration for its page. Returns `None` if no host runs.
pub(in crate::cli) fn page(
    config: Option<&Path>,
    environment: &Environment,
) -> Option<PageAddress> {
    let loaded = load_configuration(config, environment).ok()?;
    let waiting = waiting(&loaded, environment, &ServedPart::default()).ok()?;
    let mut connected = host::connect(&waiting.place, &waiting.place.socket()).ok()?;
    match connected.ask(&Demand::Page(Box::new(waiting.attach))) {
        Ok(HostAnswer::Page(page)) => Some(page),
        Ok(HostAnswer::Refused { reason }) => {
            output::remark(&format!("the host does not serve a page: {reason}"));
            None
        }
        Ok(_) | Err(_) => None,
    }
}

pub(in crate::cli) fn run(
    config: Option<&Path>,
    arguments: &HostArguments,
    environment: &Environment,
) -> CommandResult {
    let config = config.ok_or("the host needs --config")?;
    if !arguments.detached {
        let own: [&std::ffi::OsStr; 4] = [
            "--config".as_ref(),
            config.as_os_str(),
            host::HOST_COMMAND.as_ref(),
            arguments.folder.as_os_str(),
        ];
        host::relaunch(own.map(Into::into))?;
        return Ok(ExitCode::SUCCESS);
    }
    let place = HostFolder::at(arguments.folder.clone())?;
    let inherited = InheritedHost::of_process()?;
    let config = environment.absolute(config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        // Listened for first, so that a signal during the start ends the host in order.
        let mut signals = Signals::listen()?;
        let (following, followed) = mpsc::unbounded_channel();
        let tasks = TaskTracker::new();
        tasks.spawn(follow_all(followed, ReloadSignal::listen()?));
        let observation = Observation::default();
        let telemetry = Telemetry::start(environment, observation.events())?;
        let options = options(config, place, following, observation);
        // In a task of its own, like serving without a host.
        let running = tasks.spawn(async move {
            let signal = async move { signals.next().await };
            host::run(options, inherited, signal).await
        });
        running.await??;
        if let Some(telemetry) = telemetry {
            telemetry.close().await;
        }
        Ok::<_, Box<dyn Error>>(ExitCode::SUCCESS)
    });
    runtime.shutdown_background();
    done
}

/// Returns the part of the configuration that a client gets.
fn part(attach: &Attach) -> ServedPart {
    ServedPart {
        client: attach.client.clone(),
        native: attach.native.clone(),
    }
}

fn options(
    config: PathBuf,
    place: HostFolder,
    following: mpsc::UnboundedSender<Following>,
    observation: Observation,
) -> HostOptions {
    let file = config.clone();
    let followed = config.clone();
    let forgetting = following.clone();
    HostOptions {
        place,
        config,
        load: Box::new(move |attach| {
            let mut loaded =
                load_file_again(&file, &attach.environment()).map_err(|error| error.to_string())?;
            let config = part(attach).of(loaded.config);
            loaded.config = config.map_err(|error| error.to_string())?;
            if let Some(only) = &attach.only {
                narrow(&mut loaded.config, only).map_err(|error| error.to_string())?;
            }
            Ok(loaded)
        }),
        follow: Box::new(move |workbench, client| {
            // A command ends soon, and has a part of the configuration only.
            if client.attach.only.is_some() {
                return;
            }
            let source = source(followed.clone(), client);
            // The task lives as long as the host.
            let _ = following.send(Following::Begin(Arc::clone(workbench), source));
        }),
        forget: Box::new(move |view| {
            let _ = forgetting.send(Following::End(view));
        }),
        observation,
        serve_page: Box::new(|view| Box::pin(serve_host(view))),
    }
}

/// Returns the origin of a client's configuration.
fn source(file: PathBuf, client: Followed) -> Source {
    let Followed {
        attach,
        fingerprint,
        process,
    } = client;
    // The process has named the variables of the file that it has read. If the host has read another, the file counts as
    // changed, so that the process names them again.
    let is_same = attach.fingerprint == fingerprint.to_text();
    Source {
        file,
        environment: attach.environment(),
        process,
        part: part(&attach),
        fingerprint: if is_same {
            fingerprint
        } else {
            Fingerprint::UNKNOWN
        },
    }
}

/// Removes everything that a command does not use.
fn narrow(config: &mut Config, only: &Selection) -> Result<(), UnknownName> {
    if let (Some(toolbox), Some(server)) = (&only.toolbox, &only.server) {
        choose_server(config, toolbox, server)?;
    }
    // Commands call the meta-tools, which native mode does not have.
    config.tool_mode = ToolMode::Proxy;
    Ok(())
}
