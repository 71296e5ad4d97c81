//! Reloads the configuration while the workbench serves: when its file or an `envFile` changes, and on a signal.

use std::{collections::HashMap, io, path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;
#[cfg(unix)]
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{
    configuration::{ConfigurationError, load_file_again},
    part::{PartError, ServedPart},
};
use crate::{
    config::{Environment, FileWatch, Fingerprint, Loaded, wait_for_writer},
    offload::run_blocking,
    toolbox::ChangedFiles,
    workbench::{ApplyConfigError, Workbench},
};
#[cfg(unix)]
use crate::{downstream::ViewId, host::ClientProcess};

/// Delay before the first check of the files, so that it does not slow the start down. A change in between is
/// found by that check.
const FIRST_CHECK_DELAY: Duration = Duration::from_millis(250);

/// The origin of a configuration, for loading it again.
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) environment: Environment,
    /// The process that knows the rest of the environment, if this one is the host of several clients.
    #[cfg(unix)]
    pub(super) process: Option<ClientProcess>,
    /// The part of the file that is served.
    pub(super) part: ServedPart,
    /// The fingerprint of the file content that was loaded.
    pub(super) fingerprint: Fingerprint,
}

/// Reasons for keeping the old configuration.
#[derive(Debug, Error)]
enum ReloadError {
    /// No thread is available to read the file.
    #[error(
        "cannot read the configuration, because no thread could be started: {0}\n  hint: raise the limit of processes and threads (`ulimit -u`)"
    )]
    NoThread(#[from] io::Error),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The client or the toolbox that is served is not in it.
    #[error(transparent)]
    Part(#[from] PartError),
    /// It is valid, but cannot be applied to the running workbench.
    #[error(transparent)]
    Apply(#[from] ApplyConfigError),
}

impl Source {
    /// Loads the file again, with the files it refers to, on a blocking thread.
    async fn load(self: &Arc<Self>) -> Result<Loaded, ReloadError> {
        let source = Arc::clone(self);
        run_blocking(move || {
            let mut loaded = load_file_again(&source.file, &source.environment)?;
            loaded.config = source.part.of(loaded.config)?;
            Ok(loaded)
        })
        .await?
    }
}

/// A change of the set of workbenches that a host keeps up to date.
#[cfg(unix)]
pub(super) enum Following {
    Begin(Arc<Workbench>, Source),
    End(ViewId),
}

/// Applies changes to the workbenches of a host, which all have one configuration file, until `following` is closed. One
/// watch serves all of them.
#[cfg(unix)]
pub(super) async fn follow_all(
    mut following: mpsc::UnboundedReceiver<Following>,
    mut signal: ReloadSignal,
) {
    let mut reloaders: Vec<Reloader> = Vec::new();
    loop {
        // As in `follow`, the watch starts before the check.
        let mut watch = watch_all(&mut reloaders);
        check_all(&mut reloaders).await;
        tokio::select! {
            change = following.recv() => {
                let Some(change) = change else { return };
                take_following(change, &mut reloaders).await;
                // The check must not slow down the start of the client. Others may attach meanwhile.
                sleep(FIRST_CHECK_DELAY).await;
                while let Ok(change) = following.try_recv() {
                    take_following(change, &mut reloaders).await;
                }
            }
            () = changed(watch.as_mut()) => {}
            () = signal.next() => reload_all(&mut reloaders).await,
        }
    }
}

#[cfg(unix)]
async fn take_following(change: Following, reloaders: &mut Vec<Reloader>) {
    match change {
        Following::Begin(workbench, source) => {
            let mut reloader = Reloader::new(workbench, source);
            reloader.record_env_files().await;
            reloaders.push(reloader);
        }
        Following::End(view) => reloaders.retain(|it| it.workbench.view() != view),
    }
}

/// Watches the files of several workbenches, as far as watching is on.
fn watch_all(reloaders: &mut [Reloader]) -> Option<FileWatch> {
    let watching = reloaders.iter().filter(|it| it.is_watching());
    let mut files: Vec<PathBuf> = watching.flat_map(Reloader::watched_files).collect();
    files.sort_unstable();
    files.dedup();
    if files.is_empty() {
        return None;
    }
    let watch = FileWatch::new(files);
    if watch.is_polled() && cfg!(target_os = "linux") {
        let first = reloaders.first_mut();
        if first.is_some_and(|it| !std::mem::replace(&mut it.is_polling_reported, true)) {
            tracing::warn!(
                "file change notifications are not available; checking files every 2 s instead"
            );
        }
    }
    Some(watch)
}

async fn check_all(reloaders: &mut [Reloader]) {
    for reloader in reloaders {
        reloader.check().await;
    }
}

async fn reload_all(reloaders: &mut [Reloader]) {
    for reloader in reloaders {
        reloader.reload_all().await;
    }
}

/// Applies changes to workbenches with one configuration file until they shut down, which they do together.
pub(super) async fn follow(following: Vec<(Arc<Workbench>, Source)>, mut signal: ReloadSignal) {
    let Some((workbench, _)) = following.first() else {
        return;
    };
    let workbench = Arc::clone(workbench);
    let reloaders = following.into_iter();
    let mut reloaders: Vec<Reloader> = reloaders
        .map(|(workbench, source)| Reloader::new(workbench, source))
        .collect();
    tokio::select! {
        () = workbench.announcing_stopped() => return,
        () = async {
            for reloader in &mut reloaders {
                reloader.record_env_files().await;
            }
            sleep(FIRST_CHECK_DELAY).await;
        } => {}
    }
    loop {
        // The watch starts before the check, so that no change falls between the two.
        // A new watch per round, because the set of files may have changed with the configuration.
        let mut watch = watch_all(&mut reloaders);
        tokio::select! {
            () = workbench.announcing_stopped() => return,
            () = check_all(&mut reloaders) => {}
        }
        let is_requested = tokio::select! {
            () = workbench.announcing_stopped() => return,
            () = changed(watch.as_mut()) => false,
            () = signal.next() => true,
        };
        if is_requested {
            tokio::select! {
                () = workbench.announcing_stopped() => return,
                () = reload_all(&mut reloaders) => {}
            }
        }
    }
}

/// Waits for a change; waits forever if nothing is watched.
async fn changed(watch: Option<&mut FileWatch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

struct Reloader {
    workbench: Arc<Workbench>,
    source: Arc<Source>,
    #[cfg(unix)]
    process: Option<ClientProcess>,
    /// The absolute path of the configuration file.
    file: PathBuf,
    /// Fingerprints of the files when they were last applied or rejected.
    seen: HashMap<PathBuf, Fingerprint>,
    /// False for a pipe, which can be read only once.
    is_plain: bool,
    /// The warning about polling is logged once.
    is_polling_reported: bool,
}

impl Reloader {
    #[cfg_attr(
        not(unix),
        expect(unused_mut, reason = "only a host has processes of clients")
    )]
    fn new(workbench: Arc<Workbench>, mut source: Source) -> Self {
        let file = source.environment.absolute(&source.file);
        Self {
            workbench,
            #[cfg(unix)]
            process: source.process.take(),
            // A file that is missing now may be a plain one when it is back.
            is_plain: !file.metadata().is_ok_and(|it| !it.is_file()),
            seen: HashMap::from([(file.clone(), source.fingerprint)]),
            file,
            source: Arc::new(source),
            is_polling_reported: false,
        }
    }

    /// Records the fingerprints of the `envFile`s. Servers read them when they start, which is later.
    async fn record_env_files(&mut self) {
        // The configuration file itself is left out: its fingerprint is from the load, and a change since
        // then must be seen.
        let mut files = self.files();
        files.remove(0);
        self.record_fingerprints(files).await;
    }

    /// Returns the files of the running configuration, its own file first.
    fn files(&self) -> Vec<PathBuf> {
        let config = self.workbench.config();
        let servers = config.toolboxes.values().flat_map(|it| it.servers.values());
        let mut files: Vec<PathBuf> = servers
            .filter_map(|server| server.env_file())
            .map(PathBuf::from)
            .collect();
        files.sort_unstable();
        files.dedup();
        files.insert(0, self.file.clone());
        files
    }

    /// Returns true if changes are detected without a signal.
    fn is_watching(&self) -> bool {
        self.is_plain && self.workbench.config().watch
    }

    /// Returns the files that are watched: those of the configuration, and the lock file.
    fn watched_files(&self) -> Vec<PathBuf> {
        let lock = self.workbench.pins().file().map(PathBuf::from);
        self.files().into_iter().chain(lock).collect()
    }

    /// Checks the files and applies changes.
    async fn check(&mut self) {
        let mut changed = self.changed_files().await;
        if !self.is_watching() {
            return;
        }
        self.workbench.apply_lock_file().await;
        if changed.contains(&self.file) && self.source.load().await.is_err() {
            // An editor may still be writing the file.
            wait_for_writer().await;
            changed = self.changed_files().await;
        }
        if !changed.is_empty() {
            self.reload(changed).await;
        }
    }

    /// Returns the files that changed. A file that appears for the first time counts as unchanged.
    async fn changed_files(&mut self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for (file, fingerprint) in fingerprints(self.files()).await {
            let seen = *self.seen.entry(file.clone()).or_insert(fingerprint);
            if seen != fingerprint {
                changed.push(file);
            }
        }
        changed
    }

    /// Applies the lock file and the configuration as they are now.
    async fn reload_all(&mut self) {
        let changed = self.changed_files().await;
        self.workbench.apply_lock_file().await;
        self.reload(changed).await;
    }

    /// Loads and applies the configuration; keeps the old one if that fails.
    async fn reload(&mut self, changed: Vec<PathBuf>) {
        // Recorded before loading: a file that cannot be used is reported once, not at every check.
        self.record_fingerprints(vec![self.file.clone()]).await;
        if let Err(error) = self.apply(changed).await {
            tracing::warn!(
                "cannot apply the changed configuration; the previous one stays in use\n{error}"
            );
        }
    }

    /// Updates the environment of a host's client: the file may name different variables now.
    #[cfg(unix)]
    async fn refresh_environment(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        if let Some(context) = process.context().await {
            let source = &self.source;
            self.source = Arc::new(Source {
                file: source.file.clone(),
                environment: context.environment(),
                process: None,
                part: source.part.clone(),
                fingerprint: source.fingerprint,
            });
        }
    }

    async fn apply(&mut self, changed: Vec<PathBuf>) -> Result<(), ReloadError> {
        #[cfg(unix)]
        self.refresh_environment().await;
        let loaded = self.source.load().await?;
        // Recorded only after a successful load, so that servers are restarted for a changed `envFile` even
        // if the configuration was invalid at first.
        self.record_fingerprints(changed.clone()).await;
        for problem in loaded.warnings.iter().chain(&loaded.unset) {
            tracing::warn!("{problem}");
        }
        let files = ChangedFiles::new(changed);
        let changes = self.workbench.reload(loaded.config, &files)?;
        tracing::info!("configuration reloaded: {changes}");
        for key in changes.needs_restart {
            tracing::warn!("`{key}` changed: restart the workbench to apply it");
        }
        Ok(())
    }

    async fn record_fingerprints(&mut self, files: Vec<PathBuf>) {
        self.seen.extend(fingerprints(files).await);
    }
}

/// Fingerprints files on a blocking thread. Without a thread, no file counts as changed.
async fn fingerprints(files: Vec<PathBuf>) -> Vec<(PathBuf, Fingerprint)> {
    if files.is_empty() {
        return Vec::new();
    }
    let read = run_blocking(move || {
        let read = |file: PathBuf| {
            let fingerprint = Fingerprint::of_file(&file);
            (file, fingerprint)
        };
        files.into_iter().map(read).collect()
    });
    read.await.unwrap_or_default()
}

/// The signal that asks for a reload (SIGUSR1).
#[cfg(unix)]
pub(super) struct ReloadSignal(tokio::signal::unix::Signal);

#[cfg(unix)]
impl ReloadSignal {
    /// Installs the handler, after which the signal no longer ends the process.
    pub(super) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::user_defined1())?))
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Other systems have no such signal.
#[cfg(not(unix))]
pub(super) struct ReloadSignal;

#[cfg(not(unix))]
impl ReloadSignal {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}
