//! The client's file to change, and the program path to write into it.

use std::{fs, io, path::PathBuf};

use super::{InstallError, PROGRAM};
use crate::{
    cli::demo::program,
    clients::{Client, Scope, System, client_paths, read_text},
    config::Environment,
};

#[derive(Debug)]
pub(super) struct TargetFile {
    pub(super) client: &'static Client,
    pub(super) path: PathBuf,
    pub(super) scope: Scope,
    /// The text, if the file exists.
    pub(super) text: Option<String>,
    pub(super) directory: PathBuf,
}

impl TargetFile {
    /// Finds and reads the file of the user or project.
    pub(super) fn find(
        client: &'static Client,
        project: bool,
        environment: &Environment,
    ) -> Result<Self, InstallError> {
        let path = Self::path(client, project, environment)?;
        // A link that leads nowhere counts as a file, so that reading it reports the reason.
        let text = match fs::symlink_metadata(&path) {
            Ok(_) => Some(read_text(&path)?),
            Err(_) => None,
        };
        Ok(Self {
            client,
            path,
            scope: if project { Scope::Project } else { Scope::User },
            text,
            directory: environment.start_directory().to_owned(),
        })
    }

    /// Returns the first file that exists, or else the first that the client would read.
    pub(super) fn path(
        client: &'static Client,
        project: bool,
        environment: &Environment,
    ) -> Result<PathBuf, InstallError> {
        let scope = if project { Scope::Project } else { Scope::User };
        let mut paths: Vec<PathBuf> = client_paths(client, System::CURRENT, environment)
            .into_iter()
            .filter(|it| it.scope == scope)
            .map(|it| it.path)
            .collect();
        if paths.is_empty() {
            return Err(InstallError::NoFile {
                client: client.title,
                project,
            });
        }
        let existing = paths.iter().position(|path| path.exists());
        Ok(paths.swap_remove(existing.unwrap_or(0)))
    }
}

/// Returns a path of this program that survives an update: the one in PATH that links to it, or else its own.
pub(in crate::cli) fn stable_program(environment: &Environment) -> io::Result<String> {
    let own = program()?;
    let real = fs::canonicalize(&own)?;
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let path = environment.variable("PATH").unwrap_or_default();
    // Version managers and package managers replace the real file on updates, but not the link in PATH.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut candidates = folders.map(|folder| folder.join(&name));
    let found = candidates
        .find(|it| fs::canonicalize(it).is_ok_and(|it| it == real))
        .and_then(|it| it.into_os_string().into_string().ok());
    Ok(found.unwrap_or(own))
}
