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

use crate::{
    cli::{
        CommandResult,
        configuration::load_file_again,
        output,
        reload::{Following, ReloadSignal, Source, follow_all},
        serve::{log_problems, show_natively},
        signals::Signals,
    },
    config::{Environment, Loaded},
    host::{self, Attach, AttachError, HostOptions, InheritedHost, Place, Waiting},
    serve::standard_streams,
};

/// Arguments of `host-process`.
#[derive(Args)]
pub(in crate::cli) struct HostArguments {
    /// The folder of the host
    folder: PathBuf,

    /// Set if the process has a session of its own
    #[arg(long)]
    detached: bool,
}

/// Attaches the client of this process to the host, and waits for its end. Returns `None` if the client is to be served alone.
pub(super) fn attach(
    loaded: &Loaded,
    environment: &Environment,
    native: Option<String>,
) -> Option<CommandResult> {
    let waiting = match waiting(loaded, environment, native) {
        Ok(waiting) => waiting,
        Err(reason) => {
            output::remark(&format!("serving alone: {reason}"));
            return None;
        }
    };
    log_problems(loaded);
    let mut has_begun = false;
    match waiting.run(&mut has_begun) {
        Ok(code) => Some(Ok(ExitCode::from(code))),
        Err(error) if has_begun => Some(Err(error.into())),
        Err(error) => {
            output::remark(&format!("serving alone: {error}{}", hint(&error)));
            None
        }
    }
}

fn hint(error: &AttachError) -> &'static str {
    match error {
        AttachError::Silent => " (`mcp-workbench ps` shows it, `mcp-workbench stop` ends it)",
        _ => "",
    }
}

/// Collects what the host has to know, or returns the reason why the client cannot be passed on.
fn waiting(
    loaded: &Loaded,
    environment: &Environment,
    native: Option<String>,
) -> Result<Waiting, String> {
    if !standard_streams::can_be_passed() {
        return Err("stdin and stdout are neither pipes nor sockets".into());
    }
    let config = environment.absolute(&loaded.config.file);
    if !config.is_file() {
        return Err("the configuration is not a regular file".into());
    }
    let config = std::fs::canonicalize(&config).unwrap_or(config);
    let place = Place::of(&config, environment).map_err(|error| error.to_string())?;
    let needed = environment.needed_by(loaded);
    let fingerprint = loaded.fingerprint.to_text();
    let attach = Attach::of_process(&config, &needed, fingerprint, native);
    let attach = attach.ok_or("a path or a variable is not UTF-8 text")?;
    Ok(Waiting {
        place,
        config,
        environment: needed,
        attach,
    })
}

/// Runs the host.
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
    let place = Place::at(arguments.folder.clone())?;
    let inherited = InheritedHost::of_process()?;
    let config = environment.absolute(config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let (following, followed) = mpsc::unbounded_channel();
        let tasks = TaskTracker::new();
        tasks.spawn(follow_all(followed, ReloadSignal::listen()?));
        let options = options(config, place, following);
        // In a task of its own, like serving without a host.
        let running = tasks.spawn(async move {
            let signal = async move { signals.next().await };
            host::run(options, inherited, signal).await
        });
        running.await??;
        Ok::<_, Box<dyn Error>>(ExitCode::SUCCESS)
    });
    runtime.shutdown_background();
    done
}

fn options(
    config: PathBuf,
    place: Place,
    following: mpsc::UnboundedSender<Following>,
) -> HostOptions {
    let file = config.clone();
    let followed = config.clone();
    let forgetting = following.clone();
    HostOptions {
        place,
        config,
        load: Box::new(move |attach| {
            let loaded = load_file_again(&file, &attach.environment());
            let loaded = loaded.map_err(|error| error.to_string())?;
            show_natively(loaded, attach.native.as_deref()).map_err(|error| error.to_string())
        }),
        follow: Box::new(move |workbench, attach, fingerprint| {
            let source = Source {
                file: followed.clone(),
                environment: attach.environment(),
                native: attach.native.clone(),
                fingerprint,
            };
            // The task lives as long as the host.
            let _ = following.send(Following::Begin(Arc::clone(workbench), source));
        }),
        forget: Box::new(move |view| {
            let _ = forgetting.send(Following::End(view));
        }),
    }
}
