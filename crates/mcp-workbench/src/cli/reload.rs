//! Taking up changes of the configuration while the workbench serves: when its file, or an `envFile` that it names, has
//! changed, and when somebody asks for it by a signal.

use std::{collections::HashMap, io, path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::sleep;

use super::{
    configuration::{ConfigurationError, UnknownName, load_file_again},
    serve::show_natively,
};
use crate::{
    config::{Environment, FileWatch, Fingerprint, Loaded, wait_for_writer},
    offload::run_blocking,
    toolbox::ChangedFiles,
    workbench::{ApplyConfigError, Workbench},
};

/// The start is not held up: it is looked at files a moment later. What has changed by then is seen then.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// Where a configuration came from, so that it can be had again.
pub(super) struct Source {
    pub(super) file: PathBuf,
    /// What it was read with.
    pub(super) environment: Environment,
    /// The toolbox that the command line wants to be shown natively.
    pub(super) native: Option<String>,
    /// What was in the file.
    pub(super) fingerprint: Fingerprint,
}

/// Why a configuration is not taken up.
#[derive(Debug, Error)]
enum ReloadError {
    /// The system has no thread to read it on.
    #[error(
        "cannot read files now: {0}\n  hint: raise the limit of processes and threads (`ulimit -u`)"
    )]
    NoThread(#[from] io::Error),
    /// It cannot be read, or is wrong.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The toolbox that the command line names is not in it.
    #[error(transparent)]
    Native(#[from] UnknownName),
    /// It is good, but not for the workbench as it runs.
    #[error(transparent)]
    Apply(#[from] ApplyConfigError),
}

impl Source {
    /// Reads the file again, and the files that it refers to, off the event loop.
    async fn load(self: &Arc<Self>) -> Result<Loaded, ReloadError> {
        let source = Arc::clone(self);
        run_blocking(move || {
            let loaded = load_file_again(&source.file, &source.environment)?;
            Ok(show_natively(loaded, source.native.as_deref())?)
        })
        .await?
    }
}

/// Takes up changes until the workbench ends.
pub(super) async fn follow(workbench: Arc<Workbench>, source: Source, mut signal: ReloadSignal) {
    let mut reloader = Reloader::new(Arc::clone(&workbench), source);
    tokio::select! {
        () = workbench.announcing_stopped() => return,
        () = async {
            reloader.note_others().await;
            sleep(FIRST_LOOK).await;
        } => {}
    }
    loop {
        // What happens after the look is told by the watch.
        let mut watch = reloader.watch();
        tokio::select! {
            () = workbench.announcing_stopped() => return,
            () = reloader.look() => {}
        }
        let is_asked = tokio::select! {
            () = workbench.announcing_stopped() => return,
            () = changed(watch.as_mut()) => false,
            () = signal.next() => true,
        };
        if is_asked {
            tokio::select! {
                () = workbench.announcing_stopped() => return,
                () = reloader.reload_all() => {}
            }
        }
    }
}

/// Waits for a change; for ever where nothing is watched.
async fn changed(watch: Option<&mut FileWatch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

struct Reloader {
    workbench: Arc<Workbench>,
    source: Arc<Source>,
    /// The configuration file, whole.
    file: PathBuf,
    /// What was in the files when they were last taken up, or found to be of no use.
    seen: HashMap<PathBuf, Fingerprint>,
    /// Whether the file can be read more than once.
    is_plain: bool,
    /// Whether it was told that files are looked at in intervals.
    told_of_polling: bool,
}

impl Reloader {
    fn new(workbench: Arc<Workbench>, source: Source) -> Self {
        let file = source.environment.absolute(&source.file);
        Self {
            workbench,
            is_plain: !file.metadata().is_ok_and(|it| !it.is_file()),
            seen: HashMap::from([(file.clone(), source.fingerprint)]),
            file,
            source: Arc::new(source),
            told_of_polling: false,
        }
    }

    /// Notes what is in the files besides the configuration. Servers read theirs at their start, which is later.
    async fn note_others(&mut self) {
        let mut files = self.files();
        files.remove(0);
        self.note(files).await;
    }

    /// The files that the running configuration is made of, its own file first.
    fn files(&self) -> Vec<PathBuf> {
        let config = self.workbench.config();
        let servers = config.toolboxes.values().flat_map(|it| it.servers.values());
        let files = servers.filter_map(|server| server.env_file());
        let mut files: Vec<PathBuf> = files.map(PathBuf::from).collect();
        files.sort_unstable();
        files.dedup();
        files.insert(0, self.file.clone());
        files
    }

    /// Whether changes are looked for without being asked.
    fn is_watching(&self) -> bool {
        self.is_plain && self.workbench.config().watch
    }

    /// Watches the files, if that is wanted.
    fn watch(&mut self) -> Option<FileWatch> {
        if !self.is_watching() {
            return None;
        }
        let lock = self.workbench.pins().file().map(PathBuf::from);
        let files = self.files().into_iter().chain(lock);
        let watch = FileWatch::new(files.collect());
        if watch.is_polled() && cfg!(target_os = "linux") && !self.told_of_polling {
            tracing::warn!("the system tells of no changes of files; they are looked at every 2 s");
            self.told_of_polling = true;
        }
        Some(watch)
    }

    /// Looks at the files, and takes up what has changed.
    async fn look(&mut self) {
        let mut changed = self.changed_files().await;
        if !self.is_watching() {
            return;
        }
        self.workbench.apply_lock_file().await;
        if changed.contains(&self.file) && self.source.load().await.is_err() {
            // Perhaps it is not whole yet.
            wait_for_writer().await;
            changed = self.changed_files().await;
        }
        if !changed.is_empty() {
            self.reload(changed).await;
        }
    }

    /// The files that are not as they were. One that is named for the first time is as it was.
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

    /// Takes up everything as it is now.
    async fn reload_all(&mut self) {
        let changed = self.changed_files().await;
        self.workbench.apply_lock_file().await;
        self.reload(changed).await;
    }

    /// Reads the configuration and takes it up, if it can be used.
    async fn reload(&mut self, changed: Vec<PathBuf>) {
        self.note(vec![self.file.clone()]).await;
        if let Err(error) = self.take_up(changed).await {
            tracing::warn!(
                "the configuration has changed and is not taken up; the last one stays\n{error}"
            );
        }
    }

    async fn take_up(&mut self, changed: Vec<PathBuf>) -> Result<(), ReloadError> {
        let loaded = self.source.load().await?;
        self.note(changed.clone()).await;
        for problem in loaded.warnings.iter().chain(&loaded.unset) {
            tracing::warn!("{problem}");
        }
        let files = ChangedFiles::new(changed);
        let changes = self.workbench.reload(loaded.config, &files)?;
        tracing::info!("the configuration was read again: {changes}");
        for key in changes.needs_restart {
            tracing::warn!("`{key}` has changed: restart the workbench for it");
        }
        Ok(())
    }

    async fn note(&mut self, files: Vec<PathBuf>) {
        self.seen.extend(fingerprints(files).await);
    }
}

/// Reads files off the event loop. Without a thread to do so, none is known to have changed.
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

/// The signal by which somebody asks for the configuration to be read again.
#[cfg(unix)]
pub(super) struct ReloadSignal(tokio::signal::unix::Signal);

#[cfg(unix)]
impl ReloadSignal {
    /// From now on the signal is heard, and does not end the process.
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

/// There is no such signal.
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
