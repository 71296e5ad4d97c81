//! The files that an entry names and that are run: a command with a path, and scripts among the arguments. Programs that
//! are looked up in `PATH` are not among them, since interpreters and launchers differ from machine to machine; nor is
//! a file whose name depends on a variable. Other files among the arguments are [inputs](super::inputs).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    canonical::Digest,
    programs::{Programs, Recall},
};
use crate::{
    config::{Server, Transport},
    server_cache::is_program,
};

/// The files that a server is made of, by their names as they are written, with their digests. One that cannot be read
/// is left out.
pub(super) fn digests(
    server: &Server,
    programs: &Programs,
    recall: Recall,
) -> BTreeMap<String, Digest> {
    let mut files = BTreeMap::new();
    for (written, file) in named(server) {
        if !files.contains_key(written)
            && let Some(digest) = programs.digest(&file, recall)
        {
            files.insert(written.to_owned(), digest);
        }
    }
    files
}

/// Returns the names of files as they are written, and their paths.
pub(super) fn named(server: &Server) -> impl Iterator<Item = (&str, PathBuf)> {
    let launch = match &server.transport {
        Transport::Stdio(launch) => Some(launch),
        Transport::Remote(_) | Transport::Unset(_) => None,
    };
    launch.into_iter().flat_map(|launch| {
        let command = server.written.command.as_deref();
        let command = command.map(|written| (written, launch.command.as_str()));
        let command = command.filter(|(_, command)| Path::new(command).is_absolute());
        let arguments = launch.args_as_written.iter().zip(&launch.args);
        let arguments = arguments.map(|(written, argument)| (written.as_str(), argument.as_str()));
        let scripts = arguments.filter(|(_, argument)| is_program(Path::new(argument)));
        let files = command.into_iter().chain(scripts);
        let files = files.filter(|(written, _)| !written.contains("${"));
        files.map(|(written, file)| (written, launch.cwd.join(file)))
    })
}
