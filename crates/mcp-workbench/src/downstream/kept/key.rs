//! What a list is kept under: a hash of what was started and with which values, made with a salt that only this user
//! has. Two accounts never share a list, and the name of a file reveals nothing.

use std::{fmt::Write, io, path::Path};

use crate::{
    config::{ChildEnvironment, Server, Transport},
    downstream::launch_hash::LaunchHash,
    era::Era,
    plain_file, private_files,
};

/// The file that holds the salt.
const SALT_FILE: &str = "salt";
const SALT_BYTES: usize = 32;
/// How much of an `envFile` counts.
const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;

/// Variables that are different in every terminal and session, and say nothing of an account. The path is one of them:
/// the program that it leads to counts by itself. Whole names, since `LANG` is one and `LANGFUSE_SECRET_KEY` is none.
const OF_A_SESSION: &[&str] = &[
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
    /// Reads it. One that others may know is none.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let (salt, metadata) = private_files::read(&folder.join(SALT_FILE), SALT_BYTES as u64)?;
        let salt = salt.try_into().ok().map(Self)?;
        private_files::is_unread_by_others(&metadata).then_some(salt)
    }

    /// Writes the one that is known, or another, unless somebody else is faster.
    pub(super) fn make(folder: &Path, known: Option<Self>) -> io::Result<Self> {
        let salt = known.unwrap_or_else(|| Self(private_files::random()));
        match private_files::create(folder, SALT_FILE, &salt.0) {
            Ok(()) => Ok(salt),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match Self::read(folder) {
                    Some(other) => Ok(other),
                    // What is there is no salt.
                    None => private_files::replace(folder, SALT_FILE, &salt.0).map(|()| salt),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// What the list of a server is kept under.
pub(super) struct ListKey(String);

impl ListKey {
    /// The key of a server as it would be started now, under a sign-in if there is one; a server that cannot be reached
    /// has none.
    pub(super) fn of(server: &Server, grant: Option<&str>, salt: &Salt) -> Option<Self> {
        let mut hash = LaunchHash::default();
        hash.add(&salt.0);
        match &server.transport {
            Transport::Stdio(launch) => {
                hash.add_program(launch);
                hash.add(&launch.args.len().to_le_bytes());
                for argument in &launch.args {
                    hash.add(argument.as_bytes());
                }
                add_environment(&mut hash, &launch.environment);
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
        if let Some(grant) = grant {
            hash.add(b"grant");
            hash.add(grant.as_bytes());
        }
        hash.add(match server.era {
            None => b"any",
            Some(Era::Legacy) => b"legacy",
            Some(Era::Modern) => b"modern",
        });
        let mut name = String::new();
        for byte in hash.finish() {
            write!(name, "{byte:02x}").expect("writing to a string cannot fail");
        }
        Some(Self(name))
    }

    /// The key as it stands in the file.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the file.
    pub(super) fn file(&self) -> String {
        format!("{}.json", self.0)
    }
}

/// Adds what makes the account of a program: all of its variables but those of a session.
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
    let mut inherited: Vec<_> = environment.inherited.iter().collect();
    inherited.sort();
    for (name, value) in inherited {
        if !OF_A_SESSION.iter().any(|it| name == it) {
            hash.add(name.as_encoded_bytes());
            hash.add(value.as_encoded_bytes());
        }
    }
}

/// What an `envFile` says, as far as it can be read.
fn env_file(file: &Path) -> Vec<u8> {
    plain_file::read(file, MAX_ENV_FILE_BYTES).unwrap_or_default()
}
