//! The keys of the cache: salted hashes of the launch of a server with its values, or of its place in a lock file. Only
//! this user has the salt. Two accounts never share a file, and the name of a file reveals nothing.

use std::{fmt, io, path::Path};

use ident::ServerIdentifier;

use super::launch_hash::LaunchHash;
use crate::{
    config::{ChildEnvironment, Server, Transport},
    era::Era,
    plain_file, private_files,
    sha256::hexadecimal,
};

/// The file that holds the salt.
const SALT_FILE: &str = "salt";
const SALT_BYTES: usize = 32;
/// The extension of the files about launches.
pub(super) const LAUNCH_EXTENSION: &str = "json";
/// The extension of the files about places in lock files.
pub(super) const PLACE_EXTENSION: &str = "pins";
/// The part of an `envFile` that counts.
const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;

/// Variables that differ between terminals and sessions, and do not depend on the account. `PATH` is one of them: the
/// program that it leads to is hashed. The names are complete, because `LANG` is one of them and `LANGFUSE_SECRET_KEY`
/// is not.
const SESSION_VARIABLES: &[&str] = &[
    "ALACRITTY_LOG",
    "ALACRITTY_SOCKET",
    "ALACRITTY_WINDOW_ID",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_STARTUP_ID",
    "DISPLAY",
    "GNOME_TERMINAL_SCREEN",
    "GNOME_TERMINAL_SERVICE",
    "INVOCATION_ID",
    "ITERM_PROFILE",
    "ITERM_SESSION_ID",
    "JOURNAL_STREAM",
    "KITTY_PID",
    "KITTY_WINDOW_ID",
    "KONSOLE_DBUS_SERVICE",
    "KONSOLE_DBUS_SESSION",
    "KONSOLE_DBUS_WINDOW",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_TIME",
    "LINES",
    "MCP_WORKBENCH_PROCESS",
    "OLDPWD",
    "PATH",
    "PWD",
    "SESSION_MANAGER",
    "SHELL",
    "SHLVL",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TEMP",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMP",
    "TMPDIR",
    "TMUX",
    "TMUX_PANE",
    "TZ",
    "VTE_VERSION",
    "WAYLAND_DISPLAY",
    "WEZTERM_PANE",
    "WEZTERM_UNIX_SOCKET",
    "WINDOW",
    "WINDOWID",
    "WT_PROFILE_ID",
    "WT_SESSION",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_SESSION_CLASS",
    "XDG_SESSION_ID",
    "XDG_SESSION_TYPE",
    "XDG_VTNR",
    "_",
];

/// A number that only this user has.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Salt([u8; SALT_BYTES]);

impl Salt {
    /// Reads the salt. One that others may know does not count.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let (salt, metadata) = private_files::read(&folder.join(SALT_FILE), SALT_BYTES as u64)?;
        let salt = salt.try_into().ok().map(Self)?;
        private_files::is_private(&metadata).then_some(salt)
    }

    /// Writes the known salt or a new one, unless another process is faster.
    pub(super) fn make(folder: &Path, known: Option<Self>) -> io::Result<Self> {
        let salt = known.unwrap_or_else(|| Self(private_files::random()));
        match private_files::create(folder, SALT_FILE, &salt.0) {
            Ok(()) => Ok(salt),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match Self::read(folder) {
                    Some(other) => Ok(other),
                    // The file that is there is not a salt.
                    None => private_files::replace(folder, SALT_FILE, &salt.0).map(|()| salt),
                }
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt")
    }
}

/// Something that the cache has a file about.
pub(crate) enum Subject<'a> {
    /// A server as it would be launched now, with the sign-in whose answers it gives.
    Launch {
        server: &'a Server,
        grant: Option<&'a str>,
    },
    /// A server of a lock file, however it is launched.
    Place {
        lock: &'a Path,
        server: &'a ServerIdentifier,
    },
}

/// The key of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheKey {
    hash: String,
    extension: &'static str,
}

impl CacheKey {
    /// Returns the key of a subject; none for a server that cannot be reached.
    pub(super) fn new(subject: &Subject<'_>, salt: &Salt) -> Option<Self> {
        let mut hash = LaunchHash::new();
        hash.add(&salt.0);
        let extension = match subject {
            Subject::Launch { server, grant } => {
                add_launch(&mut hash, server, *grant)?;
                LAUNCH_EXTENSION
            }
            Subject::Place { lock, server } => {
                hash.add(b"place");
                hash.add(lock.as_os_str().as_encoded_bytes());
                hash.add(server.toolbox.as_str().as_bytes());
                hash.add(server.server.as_str().as_bytes());
                PLACE_EXTENSION
            }
        };
        Some(Self {
            hash: hexadecimal(&hash.finish()),
            extension,
        })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.hash
    }

    /// Returns the name of the file.
    pub(super) fn file(&self) -> String {
        format!("{}.{}", self.hash, self.extension)
    }
}

/// Adds how a server is launched; none if it cannot be.
fn add_launch(hash: &mut LaunchHash, server: &Server, grant: Option<&str>) -> Option<()> {
    match &server.transport {
        Transport::Stdio(launch) => {
            hash.add_program(launch);
            // The count separates the arguments from the variables that follow.
            hash.add(&launch.args.len().to_le_bytes());
            for argument in &launch.args {
                hash.add(argument.as_bytes());
            }
            add_environment(hash, &launch.environment);
        }
        Transport::Remote(endpoint) => {
            hash.add(b"remote");
            hash.add(endpoint.url.as_bytes());
            hash.add(format!("{:?}", endpoint.protocol).as_bytes());
            for (name, value) in &endpoint.headers {
                hash.add(name.as_bytes());
                hash.add(value.as_bytes());
            }
        }
        Transport::Unset(_) => return None,
    }
    // Two accounts can see different tools at one address.
    if let Some(grant) = grant {
        hash.add(b"grant");
        hash.add(grant.as_bytes());
    }
    hash.add(match server.era {
        None => b"any",
        Some(Era::Legacy) => b"legacy",
        Some(Era::Modern) => b"modern",
    });
    Some(())
}

/// Adds the variables that can decide the account of a program: all but those of a session.
fn add_environment(hash: &mut LaunchHash, environment: &ChildEnvironment) {
    hash.add(&environment.own.len().to_le_bytes());
    for (name, value) in &environment.own {
        hash.add(name.as_bytes());
        hash.add(value.as_bytes());
    }
    if let Some(file) = &environment.file {
        hash.add(b"file");
        hash.add(file.as_os_str().as_encoded_bytes());
        hash.add(&env_file(file));
    }
    hash.add(b"inherited");
    // The order in which a parent passes variables on means nothing.
    let mut inherited: Vec<_> = environment.inherited.iter().collect();
    inherited.sort();
    for (name, value) in inherited {
        if !SESSION_VARIABLES.iter().any(|it| name == it) {
            hash.add(name.as_encoded_bytes());
            hash.add(value.as_encoded_bytes());
        }
    }
}

/// Returns the content of an `envFile`, as far as it can be read.
fn env_file(file: &Path) -> Vec<u8> {
    plain_file::read(file, MAX_ENV_FILE_BYTES).unwrap_or_default()
}
