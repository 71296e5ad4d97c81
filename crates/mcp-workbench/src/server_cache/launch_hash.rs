//! A hash of the launch of a server, and of the version of its program as far as the size and times of files show it.

use std::{ffi::OsStr, fs, path::Path, time::UNIX_EPOCH};

use crate::{config::StdioLaunch, program_lookup::find_program, sha256::Sha256};

/// How the names of files end that interpreters run.
const PROGRAMS: [&str; 15] = [
    "cjs", "cts", "dll", "exe", "jar", "js", "mjs", "mts", "php", "ps1", "py", "pyz", "rb", "sh",
    "ts",
];

/// A hash that is being made.
pub(super) struct LaunchHash(Sha256);

impl LaunchHash {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a part in a way that two parts never look like one.
    pub(super) fn add(&mut self, part: &[u8]) {
        self.0.update(part.len().to_le_bytes());
        self.0.update(part);
    }

    /// Adds a program: the entry before variables were expanded, and the metadata of its files.
    pub(super) fn add_program(&mut self, launch: &StdioLaunch) {
        self.add(b"program");
        self.add(launch.command.as_bytes());
        if launch.names_cwd {
            // The meaning of `npm start` depends on the working directory.
            self.add(launch.cwd.as_os_str().as_encoded_bytes());
        }
        for argument in &launch.args_as_written {
            self.add(argument.as_bytes());
        }
        let environment = &launch.environment;
        // Looked up where the child will look: in its own `PATH`.
        let path = environment.own.get("PATH").map(AsRef::as_ref);
        let mut inherited = environment
            .inherited
            .iter()
            .filter(|(name, _)| name == "PATH");
        let path = path.or_else(|| Some(inherited.next()?.1.as_os_str()));
        if let Some(program) = find_program(&launch.command, path) {
            self.add_file(&launch.cwd.join(program));
        }
        for argument in &launch.args {
            let file = launch.cwd.join(argument);
            if is_program(&file) {
                self.add_file(&file);
            }
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finish()
    }

    /// Adds the metadata that changes with the content of a file.
    fn add_file(&mut self, file: &Path) {
        let Ok(metadata) = fs::metadata(file) else {
            return;
        };
        if metadata.is_file() {
            let changed = metadata
                .modified()
                .ok()
                .and_then(|it| it.duration_since(UNIX_EPOCH).ok());
            self.add(&metadata.len().to_le_bytes());
            self.add(&changed.unwrap_or_default().as_nanos().to_le_bytes());
        }
    }
}

/// Returns true if a file among the arguments may be a program, judged by its name. Other files, such as a database,
/// change while the server runs.
pub(crate) fn is_program(file: &Path) -> bool {
    let extension = file.extension().and_then(OsStr::to_str);
    extension.is_some_and(|it| PROGRAMS.contains(&it.to_ascii_lowercase().as_str()))
}
