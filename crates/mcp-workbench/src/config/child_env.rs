//! The environment of a child process: a safe set and the variables that `inheritEnv` names, then the `envFile`, then
//! `env`. Anything more would give every server the secrets of all the others.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;

use super::{
    dotenv,
    environment::{Environment, same_variable},
    glob::Glob,
    resolved::ChildEnvironment,
    secrets::Secrets,
};
use crate::plain_file::{self, PlainFileError};

/// Variables that every child gets.
const SAFE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "TMPDIR",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    // Proxies.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "FTP_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "ftp_proxy",
    "no_proxy",
    "NODE_USE_ENV_PROXY",
    // Certificates.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "npm_config_cafile",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    // Variables that programs on Windows need.
    "ALLUSERSPROFILE",
    "APPDATA",
    "CommonProgramFiles",
    "CommonProgramFiles(x86)",
    "COMPUTERNAME",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "ProgramData",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "ProgramW6432",
    "PUBLIC",
    "SystemDrive",
    "SystemRoot",
    "TEMP",
    "TMP",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "windir",
];

/// Prefixes of the names of variables that every child gets.
const SAFE_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Our own variables, which a child gets only if the entry lists the exact name.
const OWN: &[&str] = &["WORKBENCH_CONFIG", "WORKBENCH_TOKEN"];

/// The maximum size of an `envFile`.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The variables that a child gets besides the safe set.
#[derive(Debug)]
pub(super) enum Inherit {
    SafeSet,
    Everything,
    /// The variables with matching names.
    Names(Vec<Glob>),
}

/// The reason why the `envFile` of a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvFileError {
    #[error("cannot read the envFile `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the envFile `{}` is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
    #[error("the envFile `{}` is larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("the envFile `{}` is malformed at line {line}: {fault}", path.display())]
    Malformed {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        #[source]
        fault: dotenv::LineFault,
    },
}

impl ChildEnvironment {
    /// Returns all variables of the child. Reads the `envFile` now and adds its values to the secrets.
    pub fn variables(
        &self,
        secrets: &mut Secrets,
    ) -> Result<IndexMap<OsString, OsString>, EnvFileError> {
        let from_file = self.file.as_deref().map_or(Ok(Vec::new()), read_file)?;
        for (name, value) in &from_file {
            secrets.add(name, value);
        }
        let inherited = self.inherited.iter().cloned();
        let own = self.own.iter();
        // The last value of a name counts: `env` wins over the `envFile`, and both over what is inherited.
        Ok(inherited
            .chain(
                from_file
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into())),
            )
            .chain(own.map(|(name, value)| (name.into(), value.into())))
            .collect())
    }
}

/// Returns the variables that a child inherits.
pub(super) fn inherited(environment: &Environment, rule: &Inherit) -> Vec<(OsString, OsString)> {
    environment
        .variables()
        .filter(|(name, value)| is_passed(name, value, rule))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Returns whether every child gets the variable.
pub(super) fn is_safe(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    SAFE.iter().any(|safe| same_variable(name, safe))
        || SAFE_PREFIXES.iter().any(|part| text.starts_with(part))
}

fn is_passed(name: &OsStr, value: &OsStr, rule: &Inherit) -> bool {
    let asked_for = match rule {
        Inherit::Names(globs) => globs.iter().any(|glob| asks_for(glob, name)),
        // Even `"inheritEnv": true` does not hand our own token to every server.
        Inherit::Everything => !is_own(name),
        Inherit::SafeSet => false,
    };
    asked_for || (is_safe(name) && !is_function(value))
}

fn asks_for(glob: &Glob, name: &OsStr) -> bool {
    // A name that is not UTF-8 cannot be written in the configuration.
    let Some(text) = name.to_str() else {
        return false;
    };
    if is_own(name) {
        glob.is_exactly(text)
    } else {
        glob.matches(text)
    }
}

fn is_own(name: &OsStr) -> bool {
    OWN.iter().any(|own| same_variable(name, own))
}

/// Returns whether a value is an exported shell function, which old shells execute.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>, EnvFileError> {
    let bytes = plain_file::read(path, MAX_FILE_BYTES).map_err(|error| match error {
        PlainFileError::TooLarge(limit) => EnvFileError::TooLarge {
            path: path.into(),
            limit,
        },
        other => EnvFileError::Unreadable {
            path: path.into(),
            source: other.into(),
        },
    })?;
    let text = String::from_utf8(bytes).map_err(|_| EnvFileError::NotText { path: path.into() })?;
    dotenv::parse(&text).map_err(|(line, fault)| EnvFileError::Malformed {
        path: path.into(),
        line,
        fault,
    })
}

#[cfg(test)]
mod tests;
