//! Finding a program in the PATH that the child will have, which is not always ours, and our own program.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// Returns the path by which this program starts itself again. On Linux that works also after an update has replaced the file,
/// whose path the system then reports as deleted.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    if cfg!(target_os = "linux") && !program.exists() {
        return Ok("/proc/self/exe".into());
    }
    Ok(program)
}

/// Returns the file to execute for `command`: itself if it is a path, else the first match in `path`.
pub(crate) fn find_program(command: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let given = Path::new(command);
    // With a separator it is a path and not searched for, as in a shell.
    if given.components().count() > 1 || given.is_absolute() {
        return given.exists().then(|| given.to_owned());
    }
    std::env::split_paths(path?)
        .flat_map(|folder| spellings(&folder.join(command)))
        .find(|candidate| is_executable(candidate))
}

#[cfg(unix)]
fn spellings(program: &Path) -> Vec<PathBuf> {
    vec![program.to_owned()]
}

/// Windows finds a program by its name without the extension, and `npx` is a `.cmd`.
#[cfg(not(unix))]
fn spellings(program: &Path) -> Vec<PathBuf> {
    let mut spellings = vec![program.to_owned()];
    for extension in ["exe", "cmd", "bat", "com"] {
        let mut name = program.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        spellings.push(name.into());
    }
    spellings
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.extension().is_some() && file.is_file()
}
