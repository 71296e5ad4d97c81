//! The owner of the lock file in a process: its current content, the observations that are not written yet, and the
//! writer. Every comparison checks the file first, so that a change by another program takes effect at once.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use ident::ServerIdentifier;
use rawjson::RawJson;
use thiserror::Error;

use super::{
    Base, Denial, Differences, Digest, Launch, Lock, LockFault, Observation, PinPolicy,
    PinnedServer, canonical,
    disk::{Disk, MAX_FILE_BYTES, read, stamp},
    inputs,
    observed::ObservedServer,
    program_files,
    programs::{Programs, ReusableDigests},
    server_pins::Ruling,
    state::{LockState, ServerKey, key},
    texts::Texts,
    words::{self, APPROVE, ApprovalState, DIFF},
};
use crate::{
    config::{Config, Invocation, PinMode, Purpose, Secrets, Server, WriteError},
    server_cache::{CachedServer, ServerCache, Subject},
    sync::lock,
};

/// The maximum size of the tools of one server in the lock file, so that no server can make it too large for the
/// others.
pub(super) const MAX_SERVER_BYTES: usize = 4 * 1024 * 1024;

/// The lock file of a configuration.
#[derive(Debug)]
pub(crate) struct Pins {
    /// The file, or `None` if the configuration is not a regular file.
    file: Option<PathBuf>,
    /// The command line that runs the program with this configuration.
    program: Invocation,
    cache: Arc<ServerCache>,
    pub(super) texts: Texts,
    pub(super) programs: Arc<Programs>,
    state: Mutex<LockState>,
    /// False if the tool list of a first contact may be incomplete, so that it is not pinned.
    pub(super) records_first_contacts: bool,
    /// The policy of the configuration, or `None` if servers are started for a review.
    policy: Mutex<Option<PinPolicy>>,
    /// Serializes writers, so that each observation is written once.
    pub(super) writing: Mutex<()>,
}

/// A failure to write the lock file. The file is unchanged.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    #[error(
        "only a configuration in a regular file has a lock file\n  hint: move the configuration to a regular file"
    )]
    NoPlace,
    #[error(
        "the lock file `{}` cannot be used: {fault}\n  hint: fix or restore it, or remove it and approve everything again",
        file.display()
    )]
    Unusable { file: PathBuf, fault: LockFault },
    /// It would be too large to be read again.
    #[error(
        "the lock file `{}` would be larger than {} MiB\n  hint: leave out tools with \"toolFilters\", or servers that you do not need",
        file.display(), MAX_FILE_BYTES / (1024 * 1024)
    )]
    TooLarge { file: PathBuf },
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A server whose `"pin"` the configuration lowers below that of the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    pub place: ServerIdentifier,
    /// The mode that the configuration has.
    pub mode: PinMode,
}

impl Pins {
    /// Locates the lock file beside a configuration. Nothing is read yet.
    pub(crate) fn new(config: &Config) -> Self {
        // A pipe has no lock file beside it.
        let is_plain = !fs::metadata(&config.file).is_ok_and(|it| !it.is_file());
        let file = config.lock.clone().filter(|_| is_plain);
        let cache = Arc::new(ServerCache::new(config.cache.as_deref()));
        Self {
            texts: Texts::new(Arc::clone(&cache), file.as_deref()),
            programs: Arc::default(),
            cache,
            file,
            program: Invocation::of(config),
            state: Mutex::default(),
            records_first_contacts: config.purpose != Purpose::Call,
            policy: Mutex::new(policy_of(config)),
            writing: Mutex::default(),
        }
    }

    pub(crate) fn adapt(&self, config: &Config) {
        *self.policy() = policy_of(config);
    }

    /// Returns the mode that applies to a server that has this mode in the configuration.
    pub(crate) fn mode(&self, place: &ServerIdentifier, configured: PinMode) -> PinMode {
        // Commands of `trust` review what the configuration says, not what the lock file still enforces.
        let is_review = self.policy().is_none();
        match &self.fresh().disk {
            Disk::Known(lock) if !is_review => lock.policy.mode(place, configured),
            _ => configured,
        }
    }

    /// Returns the servers whose `"pin"` the configuration lowers below that of the lock file.
    pub(crate) fn lowered(&self, config: &Config) -> Vec<Lowered> {
        let servers = config.toolboxes.values().flat_map(|toolbox| {
            let servers = toolbox.servers.values();
            servers.map(|server| Lowered {
                place: ServerIdentifier {
                    toolbox: toolbox.name.clone(),
                    server: server.name.clone(),
                },
                mode: server.pin,
            })
        });
        servers
            .filter(|it| self.mode(&it.place, it.mode) != it.mode)
            .collect()
    }

    /// Returns true if the lock file enforces pins for all servers and this policy does not.
    pub(crate) fn is_lowered_by(&self, policy: &PinPolicy) -> Result<bool, RecordError> {
        let lock = self.lock()?.unwrap_or_default();
        Ok(lock.policy.is_enforced && !policy.is_enforced)
    }

    /// Returns the notice about a server whose `"pin"` is lowered to a mode, and logs it the first time.
    pub(super) fn log_lowered(&self, place: &ServerIdentifier, mode: PinMode) -> String {
        let words = self.lowered_notice(place, mode);
        if self.state().logged_lowered.insert(key(place)) {
            tracing::warn!("{words}");
        }
        words
    }

    /// Returns the notice about a server whose `"pin"` is lowered to a mode.
    pub(crate) fn lowered_notice(&self, place: &ServerIdentifier, mode: PinMode) -> String {
        words::lowered_notice(&self.program, place, mode)
    }

    /// Returns true if the configuration enforces something that the lock file does not.
    pub(super) fn is_raised(&self) -> bool {
        let policy = self.policy();
        let state = self.fresh();
        let (Some(policy), Disk::Known(lock)) = (&*policy, &state.disk) else {
            return false;
        };
        let mut raised = lock.policy.clone();
        raised.raise(policy);
        raised != lock.policy
    }

    pub(super) fn policy(&self) -> MutexGuard<'_, Option<PinPolicy>> {
        lock(&self.policy)
    }

    /// Returns the file, or `None` if the configuration is not a regular file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the current content of the file, or `None` if it does not exist.
    pub(crate) fn lock(&self) -> Result<Option<Arc<Lock>>, RecordError> {
        let state = self.fresh();
        match (&state.disk, &self.file) {
            (_, None) => Err(RecordError::NoPlace),
            (Disk::Unread | Disk::Missing, _) => Ok(None),
            (Disk::Known(lock), _) => Ok(Some(Arc::clone(lock))),
            (Disk::Unusable(fault), Some(file)) => Err(unusable(file, fault)),
        }
    }

    /// Reads the file if it may have changed. Returns the number of changes by other programs so far, by which each
    /// workbench of a process finds those that it has not applied. The state is not locked while the file is read, so
    /// that a slow disk blocks no other task.
    pub(crate) fn changes(&self) -> u64 {
        let Some(file) = &self.file else {
            return 0;
        };
        let now = stamp(file);
        let is_read = {
            let state = self.state();
            // A missing file has no stamp, so it is looked for each time.
            state.disk != Disk::Unread && now.is_some() && now == state.stamp
        };
        let disk = (!is_read).then(|| read(file));
        let mut state = self.state();
        if let Some(disk) = disk {
            // This is the stamp from before the reading, so that a change meanwhile is read the next time.
            state.stamp = now;
            state.disk = disk;
        }
        let now = state.disk.clone();
        let before = std::mem::replace(&mut state.reported, now);
        // The first reading is not a change.
        if before != Disk::Unread && before != state.disk {
            state.changes += 1;
        }
        state.changes
    }

    /// Returns the number of known changes of the file by other programs, without reading it.
    pub(crate) fn known_changes(&self) -> u64 {
        self.state().changes
    }

    /// Returns true if the server is pinned or waits to be. Its launch must then be compared with the pinned one.
    pub(crate) fn is_known(&self, place: &ServerIdentifier) -> bool {
        let state = self.fresh();
        let is_pinned = matches!(&state.disk, Disk::Known(lock) if lock.server(place).is_some());
        is_pinned || state.first.contains_key(&key(place))
    }

    pub(crate) fn cache(&self) -> &Arc<ServerCache> {
        &self.cache
    }

    /// Returns the current launch of a server. Files may be read, which takes a moment.
    pub(crate) fn launch(&self, server: &Server, reusable: ReusableDigests) -> Launch {
        Launch::of(server, &self.programs, reusable)
    }

    /// Adds the digests of program files from the cache record of a server.
    pub(crate) fn add_cached_programs(&self, cached: &CachedServer) {
        self.programs.add_cached(cached.programs());
    }

    /// Returns the current launch of a server for an approval: every file is read.
    pub(crate) fn launch_to_approve(&self, server: &Server) -> Launch {
        self.launch(server, ReusableDigests::of(PinMode::Enforce))
    }

    /// Returns the digests of the program files of a server that later runs may use.
    pub(crate) fn cacheable_programs(&self, server: &Server) -> BTreeMap<String, String> {
        let files = program_files::named(server).map(|(_, file)| file);
        self.programs.cacheable(files.chain(inputs::files(server)))
    }

    /// Stores these digests. Files are read and written.
    pub(crate) fn store_programs(&self, server: &Server) {
        let programs = self.cacheable_programs(server);
        // A stdio server has no sign-in.
        let grant = None;
        let subject = Subject::Launch { server, grant };
        let stored = self.cache.update(&subject, &Secrets::default(), |record| {
            record.set_programs(programs);
        });
        if let Err(error) = stored {
            tracing::debug!("failed to cache program digests: {error}");
        }
    }

    /// Returns an error unless this launch of a server is approved.
    pub(super) fn admit(&self, place: &ServerIdentifier, launch: &Launch) -> Result<(), Denial> {
        let state = self.fresh();
        let parts = self
            .approved(&state, place)?
            .launch
            .differing_before_start(launch);
        self.denied_launch(place, parts)
    }

    /// Returns the approved launch of a server; it is empty if there is none.
    pub(super) fn approved_launch(&self, place: &ServerIdentifier) -> Launch {
        let state = self.fresh();
        let approved = self.approved(&state, place);
        approved.map_or_else(|_| Launch::default(), |approved| approved.launch.clone())
    }

    /// Returns the tools of a server that are withheld because only approved ones may be offered.
    pub(super) fn enforce(&self, found: &ObservedServer) -> Ruling {
        let place = &found.place;
        let observation = found.observation();
        let tools = &observation.tools;
        let mut state = self.fresh();
        let approved = self.approved(&state, place);
        let differences = approved.and_then(|approved| {
            let differences = approved.differences(observation, Base::Pinned);
            self.denied_launch(place, differences.launch.clone())
                .map(|()| differences)
        });
        let denied: Vec<(String, String)> = match &differences {
            Err(denial) => {
                let reason = denial.to_string();
                // Without an approved launch no tool is offered, whatever its definition.
                tools
                    .iter()
                    .map(|(name, _)| (name.to_string(), reason.clone()))
                    .collect()
            }
            Ok(differences) => {
                let program = &self.program;
                let reason = |standing| {
                    move |tool: &String| {
                        let reason = words::tool_denied(program, place, tool, standing);
                        (tool.clone(), reason)
                    }
                };
                let changed = differences
                    .changed
                    .iter()
                    .map(reason(ApprovalState::Changed));
                changed
                    .chain(differences.new.iter().map(reason(ApprovalState::New)))
                    .collect()
            }
        };
        let differences = differences.unwrap_or_default();
        // Lists are read often; the same difference is logged once.
        if !denied.is_empty() && state.is_new_to_the_log(place, &differences) {
            tracing::warn!(
                "{} of {} tools are withheld: {}",
                denied.len(),
                tools.len(),
                denied[0].1
            );
        }
        Ruling {
            denied,
            notices: Vec::new(),
        }
    }

    /// Records an observation of a server. Returns the notices about changes.
    pub(super) fn notice(&self, found: ObservedServer) -> Ruling {
        let Some(file) = &self.file else {
            return Ruling::default();
        };
        let place = found.place.clone();
        let key = key(&place);
        self.observe(&found, &key);
        let mut state = self.fresh();
        let known = match &state.disk {
            Disk::Unusable(fault) => {
                let words = words::not_pinned(&file.display().to_string(), fault);
                let is_reported = std::mem::replace(&mut state.reported_unusable, true);
                // Logged too, because native mode has no result that could contain the notice.
                if !is_reported {
                    tracing::warn!("{words}");
                }
                return Ruling::noticed((!is_reported).then_some(words));
            }
            Disk::Known(lock) => lock.server(&place),
            Disk::Unread | Disk::Missing => None,
        };
        let is_too_large = || found.lock_bytes(known) > MAX_SERVER_BYTES;
        // Observing the launch reads files, and listing tools must not wait for that.
        let first = state.first.get(&key).filter(|_| known.is_none());
        let is_same_start = first.is_some_and(|it| it.is_unobserved() && found.is_unobserved());
        let observed: fn(&ObservedServer) -> &Observation = if is_same_start {
            ObservedServer::tools_only
        } else {
            ObservedServer::observation
        };
        let first = first.map(|first| PinnedServer::of(observed(first)));
        let Some(known) = known.or(first.as_ref()) else {
            if is_too_large() {
                return Ruling::noticed(Some(state.log_too_large(key)));
            }
            state.first.insert(key, Arc::new(found));
            return Ruling::default();
        };
        // A reported change counts before it is written.
        let reported = state.reported_changes.get(&key).map(|reported| {
            let mut known = known.clone();
            known.see(observed(reported));
            known
        });
        let known = reported.as_ref().unwrap_or(known);
        if known.has_seen(observed(&found)) {
            // The server matches its record again, so there is no unreported change any more.
            state.changed.remove(&key);
            return Ruling::default();
        }
        let differences = known.differences(observed(&found), Base::Seen);
        let mut too_large = None;
        if is_too_large() {
            too_large = Some(state.log_too_large(key));
        } else {
            state.changed.insert(key, Arc::new(found));
        }
        let words = self.changes_notice(&mut state, &place, &differences);
        Ruling::noticed(words.into_iter().chain(too_large))
    }

    /// Returns the notice about the differences of a server, and logs it the first time.
    fn changes_notice(
        &self,
        state: &mut LockState,
        place: &ServerIdentifier,
        differences: &Differences,
    ) -> Option<String> {
        let words = differences
            .is_notable()
            .then(|| words::changes(&self.program, place, differences))?;
        if state.is_new_to_the_log(place, differences) {
            tracing::warn!("{words}");
        }
        Some(words)
    }

    /// Computes the digests of the tools that will be compared. This takes a moment, so it happens while the state is
    /// unlocked.
    fn observe(&self, found: &ObservedServer, key: &ServerKey) {
        if self.is_known(&found.place) {
            found.compute_digests();
            let first = self.state().first.get(key).cloned();
            if let Some(first) = first {
                first.tools_only();
            }
        }
    }

    /// Returns true if the user has approved exactly this definition with its finding.
    pub(super) fn releases(
        &self,
        place: &ServerIdentifier,
        tool: &str,
        definition: &RawJson,
        code: &str,
    ) -> bool {
        let state = self.fresh();
        let Disk::Known(lock) = &state.disk else {
            return false;
        };
        let pinned = lock.server(place).and_then(|it| it.tools.get(tool));
        let digest = || Digest::of(canonical(definition).as_bytes());
        pinned.is_some_and(|it| it.releases(digest, code))
    }

    /// Returns the canonical definition of a server with this digest, if it is stored.
    pub(crate) fn text(&self, place: &ServerIdentifier, digest: Digest) -> Option<String> {
        self.texts.get(place, digest)
    }

    /// Returns the approved record of a server.
    fn approved<'s>(
        &self,
        state: &'s LockState,
        place: &ServerIdentifier,
    ) -> Result<&'s PinnedServer, Denial> {
        let Some(file) = &self.file else {
            return Err(Denial::NoPlace);
        };
        match &state.disk {
            Disk::Unread | Disk::Missing => Err(Denial::NoLock {
                file: file.clone(),
                approve: self.approve_command(place),
            }),
            Disk::Unusable(fault) => Err(Denial::Unusable {
                file: file.clone(),
                fault: fault.clone(),
                approve: self.program.command(APPROVE),
            }),
            Disk::Known(lock) => lock.server(place).ok_or_else(|| Denial::Unknown {
                approve: self.approve_command(place),
            }),
        }
    }

    fn denied_launch(&self, place: &ServerIdentifier, parts: Vec<String>) -> Result<(), Denial> {
        if parts.is_empty() {
            return Ok(());
        }
        Err(Denial::Launch {
            diff: self.program.about(DIFF, place, None),
            approve: self.approve_command(place),
            parts,
        })
    }

    /// Returns the command line that runs the program with this configuration.
    pub(super) fn program(&self) -> &Invocation {
        &self.program
    }

    /// Returns the command that shows how a server would be started, and approves it.
    pub(crate) fn approve_command(&self, place: &ServerIdentifier) -> String {
        self.program.about(APPROVE, place, None)
    }

    /// Returns the state, after reading the file if it has changed.
    fn fresh(&self) -> MutexGuard<'_, LockState> {
        let mut state = self.state();
        if let Some(file) = &self.file {
            let now = stamp(file);
            if state.disk == Disk::Unread || now.is_none() || now != state.stamp {
                state.stamp = now;
                state.disk = read(file);
            }
            // Otherwise `changes` would take the next change for the first reading.
            if state.reported == Disk::Unread {
                state.reported = state.disk.clone();
            }
        }
        state
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LockState> {
        lock(&self.state)
    }
}

/// Returns the policy of a configuration, or `None` for a review.
fn policy_of(config: &Config) -> Option<PinPolicy> {
    match config.purpose {
        Purpose::Use | Purpose::Call => Some(PinPolicy::of(config)),
        Purpose::Review => None,
    }
}

pub(super) fn unusable(file: &Path, fault: &LockFault) -> RecordError {
    RecordError::Unusable {
        file: file.to_owned(),
        fault: fault.clone(),
    }
}

#[cfg(test)]
mod tests;
