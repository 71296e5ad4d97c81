//! Starts a host: the same program, detached from the client. The socket is bound before, so that other clients can already
//! connect to it, and the lock passes to the host with its descriptor.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixListener,
    },
    path::Path,
    process::{Command, Stdio},
};

use super::place::HostFolder;
use crate::{config::Environment, private_files, program_lookup::own_program};

/// The hidden command that runs a host.
pub(crate) const HOST_COMMAND: &str = "host-process";
/// The option of a host that is detached.
const DETACHED_OPTION: &str = "--detached";

/// The socket and the lock that a host gets from the process that started it, as its stdin and stdout.
pub(crate) struct InheritedHost {
    pub(super) listener: UnixListener,
    pub(super) lock: File,
}

impl InheritedHost {
    /// Takes over stdin and stdout.
    pub(crate) fn of_process() -> io::Result<Self> {
        let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
        let lock = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        // The descriptors themselves would keep the lock after it was released.
        let nothing = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        // Fails if it is something else than a listening socket.
        listener.local_addr()?;
        Ok(Self { listener, lock })
    }
}

/// Starts a host with a lock that was taken.
pub(super) fn start(
    place: &HostFolder,
    lock: &File,
    config: &Path,
    environment: &Environment,
) -> io::Result<()> {
    // An empty lock file says that the host is starting.
    lock.set_len(0)?;
    place.remove_dead_sockets();
    let socket = place.socket();
    match fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut log = OpenOptions::new();
    log.append(true).create(true);
    let log = private_files::private(&mut log).open(place.log())?;
    log.set_len(0)?;
    let listener = UnixListener::bind(&socket)?;
    let started = Command::new(own_program()?)
        .arg("--config")
        .arg(config)
        .arg(HOST_COMMAND)
        .arg(place.folder())
        .env_clear()
        .envs(environment.for_every_child())
        .envs(environment.for_telemetry())
        .current_dir("/")
        .stdin(OwnedFd::from(listener))
        .stdout(lock.try_clone()?)
        .stderr(log)
        // Waits for the process in between, which ends as soon as it has started the host.
        .status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(io::Error::other("the host could not be detached")),
        Err(error) => {
            // Other clients would connect to it and wait for a host that never comes.
            let _ = fs::remove_file(&socket);
            Err(error)
        }
    }
}

/// Starts the program again with the same streams, detached: ending the client's process tree, its process group or its
/// terminal must not end the host of all clients.
pub(crate) fn relaunch(arguments: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    if has_terminal() {
        // The terminal of one client must not become that of another's servers.
        rustix::process::setsid()?;
    } else {
        // Linux schedules each session as a group, and a round trip between two of them takes an eighth longer.
        rustix::process::setpgid(None, None)?;
    }
    Command::new(own_program()?)
        .args(arguments)
        .arg(DETACHED_OPTION)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()?;
    Ok(())
}

/// Returns whether this process has a controlling terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Says in the lock file that the host is up.
pub(super) fn mark_ready(mut lock: &File) -> io::Result<()> {
    writeln!(lock, "{}", std::process::id())
}
