//! The program files of an entry: a command with a path, and scripts among the arguments. Programs from `PATH` are not
//! included, because interpreters and launchers differ between machines; nor is a file whose path [has a
//! variable](has_variable) in it. Other files among the arguments are [inputs](super::inputs).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    canonical::Digest,
    programs::{Programs, ReusableDigests},
};
use crate::{
    config::{Server, Transport},
    server_cache::is_program,
};

/// References to places, which say where the same file is on this machine.
const PLACES: [&str; 2] = ["${userHome}", "${workspaceFolder}"];

/// Returns true if a path has a variable in it, so that it leads to a different file on the next machine. The
/// documentation recommends such a path for files that are not to be compared.
pub(super) fn has_variable(written: &str) -> bool {
    let without_places = PLACES
        .iter()
        .fold(written.to_owned(), |path, place| path.replace(place, ""));
    without_places.contains("${")
}

/// Returns the digests of the program files of a server, by their names in the entry. Unreadable files are left out.
pub(super) fn digests(
    server: &Server,
    programs: &Programs,
    reusable: ReusableDigests,
) -> BTreeMap<String, Digest> {
    let mut files = BTreeMap::new();
    for (written, file) in named(server) {
        if !files.contains_key(written)
            && let Some(digest) = programs.digest(&file, reusable)
        {
            files.insert(written.to_owned(), digest);
        }
    }
    files
}

/// Returns the names of the program files in the entry, and their paths.
pub(super) fn named(server: &Server) -> impl Iterator<Item = (&str, PathBuf)> {
    let launch = match &server.transport {
        Transport::Stdio(launch) => Some(launch),
        Transport::Remote(_) | Transport::Unset(_) => None,
    };
    launch.into_iter().flat_map(|launch| {
        let command = server
            .written
            .command
            .as_deref()
            .map(|written| (written, launch.command.as_str()));
        let command = command.filter(|(_, command)| Path::new(command).is_absolute());
        let arguments = launch
            .args_as_written
            .iter()
            .zip(&launch.args)
            .map(|(written, argument)| (written.as_str(), argument.as_str()));
        let scripts = arguments.filter(|(_, argument)| is_program(Path::new(argument)));
        let files = command
            .into_iter()
            .chain(scripts)
            .filter(|(written, _)| !has_variable(written));
        files.map(|(written, file)| (written, launch.cwd.join(file)))
    })
}
