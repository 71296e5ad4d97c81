//! The folder of a host: in the runtime directory of the user, private, and one per configuration file. The holder of its
//! lock owns its socket.
//!
//! ```text
//! mcp-workbench/3f2a…/lock               locked by the host that takes clients
//!                     host.sock          its socket
//!                     draining-42.sock   the socket of a host that takes no more clients
//!                     host.log           the log of the last host
//! ```

use std::{
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use rustix::{
    io::FdFlags,
    net::{self, AddressFamily, SocketAddrUnix, SocketType},
};
use thiserror::Error;

use super::status::is_runnable;
use crate::{
    config::Environment,
    private_files,
    sha256::{Sha256, hexadecimal},
};

const FOLDER: &str = "mcp-workbench";
const SOCKET: &str = "host.sock";
const LOCK: &str = "lock";
const LOG: &str = "host.log";
/// The size above which the log of a host is emptied.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;
/// The longest path that every system takes for a socket.
const MAX_SOCKET_PATH: usize = 100;
/// The number of hexadecimal digits that name the folder of a configuration.
const NAME_DIGITS: usize = 16;

/// The folder of the host of one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostFolder {
    folder: PathBuf,
}

/// Reasons why there is no safe folder.
#[derive(Debug, Error)]
pub(crate) enum PlaceError {
    #[error("{} cannot be used as the folder of the host: {reason}", .folder.display())]
    Unusable { folder: PathBuf, reason: io::Error },
    #[error("{} belongs to another user, is accessible to others, or is not a folder", .0.display())]
    Exposed(PathBuf),
    #[error("the path of {} is too long for a socket", .0.display())]
    TooLong(PathBuf),
}

impl HostFolder {
    /// Finds the folder of a configuration file, and creates it.
    pub(crate) fn of(file: &Path, environment: &Environment) -> Result<Self, PlaceError> {
        let root = root(environment)?;
        make(&root)?;
        let folder = root.join(name(file, environment));
        make(&folder)?;
        Self::at(folder)
    }

    /// Finds the folder of a configuration file, unless no host was ever started for it.
    pub(crate) fn existing(file: &Path, environment: &Environment) -> Option<Self> {
        let root = root(environment).ok()?;
        check(&root).ok()?;
        Self::at(root.join(name(file, environment))).ok()
    }

    /// Takes a folder that exists.
    pub(crate) fn at(folder: PathBuf) -> Result<Self, PlaceError> {
        check(&folder)?;
        let place = Self { folder };
        // The longest path that a socket in this folder can have.
        if place.draining_socket(u32::MAX).as_os_str().len() > MAX_SOCKET_PATH {
            return Err(PlaceError::TooLong(place.folder));
        }
        Ok(place)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// Returns the socket of a host that takes no more clients.
    pub(crate) fn draining_socket(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("draining-{pid}.sock"))
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// Empties the log if it is too long. The host appends to it, so that it needs no other file.
    pub(crate) fn bound_log(&self) {
        let log = self.log();
        if fs::metadata(&log).is_ok_and(|it| it.len() > MAX_LOG_BYTES)
            && let Ok(file) = OpenOptions::new().write(true).open(log)
        {
            // A log that is too long is no reason to refuse clients.
            let _ = file.set_len(0);
        }
    }

    /// Returns the sockets of all hosts of the configuration, the one that takes clients first.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut sockets: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|it| it == "sock"))
            .collect();
        sockets.sort_by_key(|path| (*path != self.socket(), path.clone()));
        sockets
    }

    /// Removes the sockets of hosts that were killed while they took no more clients. Only the owner may do that.
    pub(crate) fn remove_dead_sockets(&self) {
        for socket in self.sockets() {
            if socket != self.socket() && !Self::is_alive(&socket) {
                let _ = fs::remove_file(socket);
            }
        }
    }

    /// Takes the lock, unless another process holds it.
    pub(crate) fn try_lock(&self) -> io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        // Not truncated: the process that holds the lock has written its id into the file.
        options.read(true).write(true).create(true).truncate(false);
        let file = private_files::private(&mut options).open(self.folder.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns whether the owner of the lock has not reported yet that it is up, or has work for which the system gives
    /// it no CPU time.
    pub(crate) fn is_host_busy(&self) -> bool {
        let owner = fs::read_to_string(self.folder.join(LOCK)).unwrap_or_default();
        match owner.trim_end().parse() {
            Ok(pid) => is_runnable(pid),
            Err(_) => owner.is_empty(),
        }
    }

    /// Returns whether a process listens at a socket, even if it has no room for a connection.
    pub(crate) fn is_alive(socket: &Path) -> bool {
        match Self::connect(socket) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Connects to a socket of this folder. A socket that belongs to another user is refused. Fails with `WouldBlock` if the
    /// process has no room for a connection.
    pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
        let metadata = fs::symlink_metadata(socket)?;
        if !metadata.file_type().is_socket() || !is_ours(&metadata) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // A process that is stopped accepts nothing. If so many wait that there is no room, a call that blocks would not return.
        let stream = UnixStream::from(net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?);
        rustix::io::fcntl_setfd(&stream, FdFlags::CLOEXEC)?;
        stream.set_nonblocking(true)?;
        net::connect(&stream, &SocketAddrUnix::new(socket)?)?;
        stream.set_nonblocking(false)?;
        // The file may have been replaced since the check, so the process behind it is checked too.
        #[cfg(target_os = "linux")]
        if rustix::net::sockopt::socket_peercred(&stream)?.uid != rustix::process::getuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(stream)
    }

    /// Creates a file in memory, which has no name.
    #[cfg(target_os = "linux")]
    #[expect(clippy::unused_self, reason = "other systems need the folder")]
    pub(crate) fn nameless_file(&self) -> io::Result<File> {
        use rustix::fs::{
            MemfdFlags, OFlags, SealFlags, fcntl_add_seals, fcntl_setfl, memfd_create,
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("mcp-workbench-journal", flags)?;
        // A host that stores in a part that another process has cut off is killed, and with it the sessions of all clients.
        fcntl_add_seals(&file, SealFlags::SHRINK)?;
        // `sendfile` would record the time of each answer. That is a fourth of what it costs more than `write`.
        fcntl_setfl(&file, OFlags::NOATIME)?;
        Ok(file.into())
    }

    /// Creates a file, and removes its name at once.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn nameless_file(&self) -> io::Result<File> {
        let name = u64::from_ne_bytes(private_files::random());
        let path = self.folder.join(format!("journal-{name:016x}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = private_files::private(&mut options).open(&path)?;
        fs::remove_file(path)?;
        Ok(file)
    }
}

/// Returns the places of all hosts of the user that may run.
pub(crate) fn hosts(environment: &Environment) -> Vec<HostFolder> {
    let root = root(environment).ok();
    let Some(root) = root.filter(|root| check(root).is_ok()) else {
        return Vec::new();
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut places: Vec<HostFolder> = entries
        .filter_map(|entry| HostFolder::at(entry.path()).ok())
        .filter(|place| !place.sockets().is_empty())
        .collect();
    places.sort_by(|one, other| one.folder.cmp(&other.folder));
    places
}

/// Returns whether a host of a configuration file may run.
pub(crate) fn has_host(file: &Path, environment: &Environment) -> bool {
    let place = HostFolder::existing(file, environment);
    place.is_some_and(|place| place.socket().exists())
}

/// Returns the name of the folder of a configuration file.
fn name(file: &Path, environment: &Environment) -> String {
    let file = environment.absolute(file);
    // A client that names the file by a link must find the same host.
    let file = fs::canonicalize(&file).unwrap_or(file);
    let digest = Sha256::digest(file.as_os_str().as_encoded_bytes());
    hexadecimal(&digest)[..NAME_DIGITS].to_owned()
}

/// Returns the folder of all hosts of the user, which need not exist.
fn root(environment: &Environment) -> Result<PathBuf, PlaceError> {
    let set = environment
        .variable("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    // A client that removes the variable must find the same host.
    let user = rustix::process::getuid().as_raw();
    let usual = PathBuf::from(format!("/run/user/{user}"));
    let usual = || check(&usual).is_ok().then(|| usual.clone());
    match set.or_else(usual) {
        Some(runtime) => {
            check_parent(&runtime)?;
            Ok(runtime.join(FOLDER))
        }
        None => {
            let temporary = environment
                .variable("TMPDIR")
                .map(PathBuf::from)
                .filter(|folder| folder.is_absolute())
                .unwrap_or_else(|| PathBuf::from("/tmp"));
            check_parent(&temporary)?;
            Ok(temporary.join(format!("{FOLDER}-{user}")))
        }
    }
}

/// Creates a private folder, and checks the one that is there.
fn make(folder: &Path) -> Result<(), PlaceError> {
    match private_files::make_folder(folder) {
        Ok(()) => check(folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(folder),
        Err(reason) => Err(PlaceError::Unusable {
            folder: folder.into(),
            reason,
        }),
    }
}

/// Checks that a folder is a folder of the user that nobody else can access. A link is refused.
fn check(folder: &Path) -> Result<(), PlaceError> {
    let metadata = metadata(folder)?;
    let is_open = metadata.permissions().mode() & 0o077 != 0;
    if !metadata.is_dir() || !is_ours(&metadata) || is_open {
        return Err(PlaceError::Exposed(folder.into()));
    }
    Ok(())
}

/// Checks that nobody else can replace what the user has put into a folder.
fn check_parent(folder: &Path) -> Result<(), PlaceError> {
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(reason) => {
            return Err(PlaceError::Unusable {
                folder: folder.into(),
                reason,
            });
        }
    };
    let mode = metadata.permissions().mode();
    let is_trusted = is_ours(&metadata) || metadata.uid() == 0;
    // The bit that keeps users from replacing each other's files in folders such as `/tmp`.
    let is_sticky = mode & 0o1000 != 0;
    let is_closed = mode & 0o022 == 0;
    if metadata.is_dir() && is_trusted && (is_closed || is_sticky) {
        Ok(())
    } else {
        Err(PlaceError::Exposed(folder.into()))
    }
}

fn metadata(folder: &Path) -> Result<Metadata, PlaceError> {
    fs::symlink_metadata(folder).map_err(|reason| PlaceError::Unusable {
        folder: folder.into(),
        reason,
    })
}

fn is_ours(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn environment(runtime: &Path) -> Environment {
        let variables = [("XDG_RUNTIME_DIR".into(), runtime.into())];
        Environment::new(variables, "/".into(), None)
    }

    #[test]
    fn a_place_is_private_and_named_after_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        let one = HostFolder::of(Path::new("/a.json"), &environment).unwrap();
        assert_eq!(
            one,
            HostFolder::of(Path::new("/./a.json"), &environment).unwrap()
        );
        assert_ne!(
            one,
            HostFolder::of(Path::new("/b.json"), &environment).unwrap()
        );
        let mode = fs::metadata(one.folder()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn folders_of_others_are_refused() {
        let file = Path::new("/a.json");
        let open = |mode: u32| {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join(FOLDER);
            fs::create_dir(&root).unwrap();
            fs::set_permissions(&root, fs::Permissions::from_mode(mode)).unwrap();
            HostFolder::of(file, &environment(folder.path())).map(|_| ())
        };
        assert!(open(0o700).is_ok());
        for mode in [0o750, 0o705, 0o777, 0o1777] {
            assert!(
                matches!(open(mode), Err(PlaceError::Exposed(_))),
                "{mode:o}"
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), folder.path().join(FOLDER)).unwrap();
        let linked = HostFolder::of(file, &environment(folder.path()));
        assert!(matches!(linked, Err(PlaceError::Exposed(_))));
        let everybodys = tempfile::tempdir().unwrap();
        fs::set_permissions(everybodys.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let open = HostFolder::of(file, &environment(everybodys.path()));
        assert!(matches!(open, Err(PlaceError::Exposed(_))));
    }

    #[test]
    fn a_long_path_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(80));
        fs::create_dir(&long).unwrap();
        let place = HostFolder::of(Path::new("/a.json"), &environment(&long));
        assert!(matches!(place, Err(PlaceError::TooLong(_))));
    }

    #[test]
    fn only_a_socket_of_the_user_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let link = folder.path().join("link");
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        symlink(&socket, &link).unwrap();
        assert!(HostFolder::connect(&socket).is_ok());
        for path in [&file, &link] {
            let error = HostFolder::connect(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{path:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_in_memory_cannot_be_shortened() {
        let folder = tempfile::tempdir().unwrap();
        let place = HostFolder::of(Path::new("/a.json"), &environment(folder.path())).unwrap();
        let file = place.nameless_file().unwrap();
        file.set_len(10).unwrap();
        let error = file.set_len(9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_long_log_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let place = HostFolder::of(Path::new("/a.json"), &environment(folder.path())).unwrap();
        for (length, expected) in [(MAX_LOG_BYTES, MAX_LOG_BYTES), (MAX_LOG_BYTES + 1, 0)] {
            let log = File::create(place.log()).unwrap();
            log.set_len(length).unwrap();
            place.bound_log();
            assert_eq!(log.metadata().unwrap().len(), expected);
        }
    }

    #[test]
    fn one_process_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let place = HostFolder::of(Path::new("/a.json"), &environment(folder.path())).unwrap();
        let held = place.try_lock().unwrap();
        assert!(held.is_some());
        assert!(place.try_lock().unwrap().is_none());
        drop(held);
        assert!(place.try_lock().unwrap().is_some());
    }
}
